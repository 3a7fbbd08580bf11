// Marks around the words that speak for or against a label.
import { element } from "./common.js";

// What adds less, compared with the word that adds most, is not marked.
const LEAST = 0.05;

/** Fill the backdrop, a copy of the text behind it, with marks around words. */
export function paint(backdrop, text, words) {
  // The last line break makes an empty last line as high as in the text box.
  const content = `${text}\n`;
  const parts = document.createDocumentFragment();
  let at = 0;
  for (const { begin, end, strength } of marks(words, text)) {
    const mark = element("mark", { class: strength > 0 ? "for" : "against" }, content.slice(begin, end));
    mark.style.setProperty("--strength", Math.abs(strength).toFixed(3));
    parts.append(content.slice(at, begin), mark);
    at = end;
  }
  parts.append(content.slice(at));
  backdrop.replaceChildren(parts);
}

/** Return parts of a text and how much they speak for a label, from -1 to 1; where words overlap, they are added. */
function marks(words, text) {
  const changes = new Map();
  const change = (place, by) => changes.set(place, (changes.get(place) ?? 0) + by);
  for (const { adds, positions } of words) {
    for (const [begin, end] of adds ? positions : []) {
      change(begin, adds);
      change(end, -adds);
    }
  }
  const bounds = [...changes.keys()].sort((a, b) => a - b);
  let sum = 0;
  const sums = bounds.map((bound) => (sum += changes.get(bound)));
  const most = sums.reduce((found, one) => Math.max(found, Math.abs(one)), 0);
  const units = unitsOf(text);
  return bounds
    .map((bound, i) => ({ begin: units[bound], end: units[bounds[i + 1]], strength: sums[i] / most }))
    .filter(({ strength }) => Math.abs(strength) > LEAST);
}

/** Return where each character begins: the server counts code points, JavaScript counts UTF-16 units. */
function unitsOf(text) {
  const units = [0];
  for (const character of text) units.push(units.at(-1) + character.length);
  return units;
}
