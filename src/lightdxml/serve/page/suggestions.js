// Suggestions as elements: name, probability, and the words behind them.
import { count, element, named, probability } from "./common.js";

/** Return a suggestion as elements of the list. */
export function suggestion(label) {
  const name = element("span", { class: "name" });
  if (label.broader.length) {
    const path = label.broader.flatMap((concept) => [named(concept.label), " › "]);
    name.append(element("span", { class: "path" }, ...path.slice(0, -1)));
  }
  if (label.notation) name.append(element("bdi", { class: "notation" }, label.notation));
  name.append(named(label.label));
  const bar = element("span");
  bar.style.width = `${100 * label.score}%`;
  const button = element(
    "button", { type: "button", class: "suggestion", tabindex: "-1" },
    name,
    element("span", { class: "bar", "aria-hidden": "true" }, bar),
    element("span", { class: "number" }, probability(label.score)),
  );
  const words = element("ul", { class: "words", "aria-label": "Words" });
  const line = element("div", { class: "line" }, button);
  return { label, button, line, words, row: element("li", {}, line, words), explanation: null };
}

/** Return what counts for a label, and what is known about it, as entries of its list. */
export const wordsAndFacts = (label, explanation) => [...wordsOf(explanation), ...facts(label, explanation)];

/** Return the words that count, as entries: small ones beside large ones only distract. */
function wordsOf(explanation) {
  const words = explanation?.words ?? [];
  // The first word adds most.
  const digits = Math.abs(words[0]?.adds) < 0.05 ? 3 : 2;
  const size = (adds) => Math.abs(adds).toFixed(digits);
  return words.filter(({ adds }) => size(adds) > 0).slice(0, 20).map(({ word, adds }) => {
    const [kind, sign] = adds > 0 ? ["for", "+"] : ["against", "−"];
    return element("li", { class: kind }, named(word), ` ${sign}${size(adds)}`);
  });
}

function facts({ uri, training_documents: documents }, explanation) {
  const match = explanation?.name_match ? [`The text contains the name “${explanation.name_match}”`] : [];
  const all = [...match, count(documents, "training document"), uri];
  return all.map((fact) => element("li", { class: "fact" }, named(fact)));
}
