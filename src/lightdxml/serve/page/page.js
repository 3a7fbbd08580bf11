// The page for people: a text in, suggestions out, with the words that spoke for each label.
import { byId, element, problem, send } from "./common.js";

const TYPING_PAUSE = 300;
const ROWS = 100;
// Lines of a file that are sent together. The server answers while it reads, but a browser reads only after it has sent
// all: what is sent must fit into the server's buffer.
const BLOCK = { lines: 100, bytes: 60_000 };
const EXAMPLE = "The Council sets quotas for fishing cod in the North Sea and protects the marine environment.";

const text = byId("text");
const backdrop = byId("backdrop");
const list = byId("suggestions");
const picker = byId("model");
const sliders = ["k", "threshold", "tail"].map(byId);
const views = ["start", "list", "documents"].map(byId);

let models = null;
let items = []; // A suggestion each: the label, its row, its button, and its explanation as soon as it is known.
let pinned = null; // The URI of the label whose highlight stays.
let file = null; // The .jsonl file that is shown instead of suggestions.
let running = new AbortController();
let timer = 0;

/* Settings: sliders and the model, kept in the address. */

const settings = () => Object.fromEntries(sliders.map((slider) => [slider.id, Number(slider.value)]));

function readSettings() {
  const given = new URLSearchParams(location.hash.slice(1));
  for (const slider of sliders) slider.value = given.get(slider.id) ?? slider.defaultValue;
  if (models?.some(({ id }) => id === given.get("model"))) picker.value = given.get("model");
  showSettings();
}

function showSettings() {
  for (const slider of sliders) {
    slider.nextElementSibling.value = slider.id === "k" ? slider.value : Number(slider.value).toFixed(2);
  }
}

function keepSettings() {
  const changed = sliders.filter((slider) => slider.value !== slider.defaultValue);
  const kept = new URLSearchParams(changed.map((slider) => [slider.id, slider.value]));
  if (models?.length > 1) kept.set("model", picker.value);
  if (kept.toString() !== location.hash.slice(1)) history.replaceState(null, "", `#${kept}`);
}

/* Requests */

async function loadModels() {
  const response = await send("api/models", { signal: running.signal }, say);
  if (!response.ok) throw new Error(await problem(response));
  ({ models } = await response.json());
  picker.replaceChildren(...models.map(({ id }) => element("option", { value: id }, id)));
  byId("model-field").hidden = models.length < 2;
  readSettings();
  showModel();
}

function showModel() {
  const model = models.find(({ id }) => id === picker.value);
  const count = (number, name) => `${number.toLocaleString("en")} ${name}`;
  byId("about").textContent =
    `${model.id}: ${count(model.labels, "labels")}, ${count(model.documents, "training documents")}`;
}

/** Send a request to the chosen model. */
async function ask(question, body, type) {
  const init = { method: "POST", headers: { "Content-Type": type }, body, signal: running.signal };
  const response = await send(`api/models/${encodeURIComponent(picker.value)}/${question}`, init, say);
  if (!response.ok) throw new Error(await problem(response));
  return response;
}

async function labelsOf(question, body) {
  return (await (await ask(question, JSON.stringify(body), "application/json")).json()).labels;
}

/** Do what takes time; what was begun before is cancelled. Errors are shown. */
async function run(work) {
  clearTimeout(timer);
  running.abort();
  running = new AbortController();
  const { signal } = running;
  byId("error").hidden = true;
  list.setAttribute("aria-busy", "true");
  try {
    if (models === null) await loadModels();
    keepSettings();
    await work(signal);
  } catch (error) {
    if (signal.aborted) return;
    say("");
    byId("error").textContent = error.message;
    byId("error").hidden = false;
  }
  if (!signal.aborted) list.removeAttribute("aria-busy");
}

const again = () => run(file ? suggestLines : suggest);

function later() {
  clearTimeout(timer);
  timer = setTimeout(again, TYPING_PAUSE);
}

function say(sentence) {
  byId("status").textContent = sentence;
}

function show(view) {
  for (const one of views) one.hidden = one.id !== view;
}

/* Suggestions for a text */

async function suggest(signal) {
  // A lone half of a character cannot be sent; its replacement has the same length.
  const body = { text: text.value.toWellFormed?.() ?? text.value, ...settings() };
  if (!body.text.trim()) {
    items = [];
    show("start");
    say("There is no text yet.");
    return;
  }
  const labels = await labelsOf("suggest", body);
  if (!labels.length) return sayWhyNone(body);
  showSuggestions(labels);
  const explained = new Map((await labelsOf("explain", body)).map((label) => [label.uri, label]));
  if (!signal.aborted) showExplanations(explained);
}

async function sayWhyNone(body) {
  const others = body.threshold > 0 ? await labelsOf("suggest", { ...body, k: 1, threshold: 0 }) : [];
  items = [];
  show(null);
  say(others.length ? "No label reaches the threshold. Lower it to see less probable labels."
    : "The model knows none of these words.");
}

function showSuggestions(labels) {
  items = labels.map(suggestion);
  if (!items.some(({ label }) => label.uri === pinned)) pinned = null;
  items[0].button.tabIndex = 0;
  list.replaceChildren(...items.map(({ row }) => row));
  byId("copied").textContent = "";
  show("list");
  say(items.length === 1 ? "1 suggestion" : `${items.length} suggestions`);
  highlight();
}

function suggestion(label) {
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
  return { label, button, words, row: element("li", {}, button, words), explanation: null };
}

/** Names come from anywhere: they are text, and their direction concerns nothing around them. */
const named = (name) => element("bdi", {}, name);
const probability = (score) => (score < 0.005 ? "<0.01" : score.toFixed(2));

function showExplanations(explained) {
  for (const item of items) {
    item.explanation = explained.get(item.label.uri) ?? null;
    item.words.replaceChildren(...wordsOf(item.explanation), ...facts(item.label));
  }
  highlight();
}

/** Return the words that count: small ones beside large ones only distract. */
function wordsOf(explanation) {
  const words = explanation?.words ?? [];
  const least = 0.03 * Math.max(0, ...words.map(({ adds }) => Math.abs(adds)));
  return words.filter(({ adds }) => adds && Math.abs(adds) >= least).slice(0, 20).map(({ word, adds }) => {
    const size = Math.abs(adds).toLocaleString("en", { maximumSignificantDigits: 2, maximumFractionDigits: 6 });
    return element("li", { class: adds > 0 ? "for" : "against" }, named(word), ` ${adds > 0 ? "+" : "−"}${size}`);
  });
}

function facts({ uri, training_documents: documents }) {
  const count = `${documents.toLocaleString("en")} training document${documents === 1 ? "" : "s"}`;
  return [count, uri].map((fact) => element("li", { class: "fact" }, named(fact)));
}

/* Highlights */

/** Show the words of one suggestion: the one under the pointer, the one with the focus, or the pinned one. */
function highlight() {
  for (const { label, row, button } of items) {
    row.classList.toggle("pinned", label.uri === pinned);
    button.setAttribute("aria-pressed", label.uri === pinned);
  }
  const active =
    items.find(({ button }) => button.matches(":hover")) ??
    items.find(({ button }) => button === document.activeElement) ??
    items.find(({ label }) => label.uri === pinned);
  paint(active?.explanation);
}

/** Fill the copy of the text that is behind it, with marks around words. */
function paint(explanation) {
  // The last line break makes an empty last line as high as in the text box.
  const content = `${text.value}\n`;
  const parts = [];
  let at = 0;
  for (const { begin, end, strength } of explanation ? marks(explanation.words, text.value) : []) {
    const mark = element("mark", { class: strength > 0 ? "for" : "against" }, content.slice(begin, end));
    mark.style.setProperty("--strength", Math.abs(strength).toFixed(3));
    parts.push(content.slice(at, begin), mark);
    at = end;
  }
  backdrop.replaceChildren(...parts, content.slice(at));
}

/** Return parts of a text and how much they speak for a label, from -1 to 1; where words overlap, they are added. */
function marks(words, content) {
  const changes = new Map();
  const change = (place, by) => changes.set(place, (changes.get(place) ?? 0) + by);
  for (const { adds, places } of words) {
    for (const [begin, end] of adds ? places : []) {
      change(begin, adds);
      change(end, -adds);
    }
  }
  const bounds = [...changes.keys()].sort((a, b) => a - b);
  let sum = 0;
  const sums = bounds.map((bound) => (sum += changes.get(bound)));
  const most = Math.max(...sums.map(Math.abs));
  const units = unitsOf(content);
  return bounds
    .map((bound, i) => ({ begin: units[bound], end: units[bounds[i + 1]], strength: sums[i] / most }))
    .filter(({ strength }) => Math.abs(strength) > 0.03);
}

/** Return where each character begins: the server counts code points, JavaScript counts UTF-16 units. */
function unitsOf(content) {
  const units = [0];
  for (const character of content) units.push(units.at(-1) + character.length);
  return units;
}

function pin(button) {
  const { uri } = items.find((item) => item.button === button).label;
  pinned = uri === pinned ? null : uri;
  highlight();
  const first = pinned && backdrop.querySelector("mark");
  if (first) byId("box").scrollTop = Math.max(0, first.offsetTop - backdrop.offsetTop - 60);
}

function moveFocus(event) {
  const last = items.length - 1;
  const at = items.findIndex(({ button }) => button === document.activeElement);
  const to = { ArrowDown: Math.min(at + 1, last), ArrowUp: Math.max(at - 1, 0), Home: 0, End: last }[event.key];
  if (event.key === "Escape") pinned = null;
  if (to !== undefined && at >= 0) {
    event.preventDefault();
    items[to].button.focus();
  }
  highlight();
}

/* Copying */

const CSV_LINE = (cells) => cells.map((cell) => `"${String(cell ?? "").replaceAll('"', '""')}"`).join(",");
const COPIES = {
  uris: (labels) => labels.map(({ uri }) => uri),
  labels: (labels) => labels.map(({ label }) => label),
  csv: (labels) => [
    "uri,label,notation,score",
    ...labels.map(({ uri, label, notation, score }) => CSV_LINE([uri, label, notation, score])),
  ],
};

async function copy({ currentTarget: { dataset } }) {
  const labels = items.map(({ label }) => label);
  const content = COPIES[dataset.copy](labels).join(dataset.copy === "csv" ? "\r\n" : "\n");
  // Without HTTPS there is no clipboard, and it may be forbidden.
  const done = await Promise.resolve(navigator.clipboard?.writeText(content).then(() => true)).catch(() => false);
  const what = labels.length === 1 ? "1 label" : `${labels.length} labels`;
  byId("copied").textContent = done || copyOldWay(content) ? `Copied ${what}.` : "The browser did not allow copying.";
}

function copyOldWay(content) {
  const back = document.activeElement;
  const area = element("textarea", { class: "hidden", "aria-hidden": "true" });
  area.value = content;
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  back?.focus();
  return done;
}

/* Files */

async function open(chosen) {
  if (/\.jsonl$/i.test(chosen.name)) {
    file = chosen;
    await run(suggestLines);
  } else if (/\.txt$/i.test(chosen.name)) {
    setText(await chosen.text());
  } else {
    await run(() => Promise.reject(new Error("Choose a file that ends with .txt or .jsonl.")));
  }
}

function setText(content) {
  text.value = content;
  onInput();
  run(suggest);
}

async function suggestLines(signal) {
  const query = new URLSearchParams(settings());
  const results = [];
  let count = 0;
  items = [];
  byId("rows").replaceChildren();
  byId("progress").value = 0;
  byId("more").hidden = byId("download").hidden = true;
  byId("stop").hidden = false;
  show("documents");
  say(`Reading ${file.name} …`);
  signal.addEventListener("abort", () => offer(results));
  for await (const { lines, end } of blocks(file)) {
    const answers = await (await ask(`suggest-lines?${query}`, lines, "application/jsonl")).text();
    results.push(new Blob([answers]));
    const found = answers.trim().split("\n").filter(Boolean);
    if (count < ROWS) byId("rows").append(...(await rows(found.slice(0, ROWS - count), lines, count)));
    count += found.length;
    byId("progress").value = end / file.size;
    byId("more").hidden = count <= ROWS;
    say(`${count.toLocaleString("en")} document${count === 1 ? "" : "s"}`);
  }
  if (!count) say("The file has no documents.");
  offer(results);
}

/** Yield parts of a file that end where lines end, small enough to be sent at once unless a line is longer. */
async function* blocks(content) {
  const reader = content.stream().getReader();
  let [begin, lineBegin, at, lines] = [0, 0, 0, 0];
  for (;;) {
    const { value = [], done } = await reader.read();
    // The last line may have no line break.
    for (let i = done ? 0 : value.indexOf(10); i >= 0; i = done ? -1 : value.indexOf(10, i + 1)) {
      const end = at + i + (done ? 0 : 1);
      if (lines && (lines === BLOCK.lines || end - begin > BLOCK.bytes)) {
        yield { lines: content.slice(begin, lineBegin), end: lineBegin };
        [begin, lines] = [lineBegin, 0];
      }
      [lineBegin, lines] = [end, lines + 1];
    }
    at += value.length;
    if (done) break;
  }
  if (at > begin) yield { lines: content.slice(begin, at), end: at };
}

async function rows(answers, lines, count) {
  // The server skips lines of nothing but ASCII spaces, too.
  const documents = (await lines.text()).split("\n").filter((line) => /[^ \t\r\v\f]/.test(line));
  return answers.map((answer, i) => {
    const { id, labels, error } = JSON.parse(answer);
    const found = labels?.map(({ label, score }) =>
      element("li", {}, named(label), " ", element("small", {}, probability(score))));
    return element(
      "tr", {},
      element("td", {}, named(String(id ?? count + i + 1)), " ", element("small", { dir: "auto" }, excerpt(documents[i]))),
      error ? element("td", { class: "error" }, error)
        : element("td", {}, found.length ? element("ul", {}, ...found) : "no label"),
    );
  });
}

function excerpt(line) {
  try {
    const { title, text: body } = JSON.parse(line);
    return `${title ?? ""} ${body}`.trim().slice(0, 120);
  } catch {
    return "";
  }
}

function offer(results) {
  const link = byId("download");
  URL.revokeObjectURL(link.href);
  link.href = URL.createObjectURL(new Blob(results, { type: "application/jsonl" }));
  link.download = file ? file.name.replace(/(\.jsonl)?$/i, ".labels.jsonl") : "";
  link.hidden = !results.length;
  byId("stop").hidden = true;
}

/* Events */

function onInput() {
  file = null;
  // The places of words are those of the text before.
  for (const item of items) item.explanation = null;
  paint(null);
}

text.addEventListener("input", () => {
  onInput();
  later();
});
text.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) run(suggest);
});
byId("suggest").addEventListener("click", () => {
  file = null;
  run(suggest);
});
byId("clear").addEventListener("click", () => {
  setText("");
  text.focus();
});
byId("example").addEventListener("click", () => setText(EXAMPLE));
byId("settings").addEventListener("input", () => {
  showSettings();
  later();
});
picker.addEventListener("change", () => {
  showModel();
  again();
});
addEventListener("hashchange", () => {
  readSettings();
  again();
});
for (const name of ["pointerover", "pointerout", "focusin", "focusout"]) {
  list.addEventListener(name, () => requestAnimationFrame(highlight));
}
list.addEventListener("focusin", ({ target }) => {
  // One tab stop for the whole list: the suggestion that had the focus last.
  for (const { button } of items) button.tabIndex = button === target ? 0 : -1;
});
list.addEventListener("click", ({ target }) => {
  const button = target.closest(".suggestion");
  if (button) pin(button);
});
list.addEventListener("keydown", moveFocus);
for (const button of document.querySelectorAll("[data-copy]")) button.addEventListener("click", copy);
byId("stop").addEventListener("click", () => running.abort());
byId("file").addEventListener("change", ({ target }) => {
  if (target.files.length) open(target.files[0]);
  // The same file may be chosen again.
  target.value = "";
});
for (const name of ["dragover", "dragleave", "drop"]) {
  addEventListener(name, (event) => {
    if (!event.dataTransfer.types.includes("Files")) return;
    event.preventDefault();
    byId("box").classList.toggle("over", name === "dragover");
    if (name === "drop" && event.dataTransfer.files.length) open(event.dataTransfer.files[0]);
  });
}

readSettings();
paint(null);
again();
