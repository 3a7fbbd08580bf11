// The page for people: a text in, suggestions out, with the words that spoke for each label.
import { byId, count, element, problem, send } from "./common.js";
import { copy } from "./copy.js";
import { paint } from "./highlights.js";
import { blocks, rows } from "./lines.js";
import { suggestion, wordsAndFacts } from "./suggestions.js";
import { Teacher } from "./teacher.js";

const TYPING_PAUSE = 300;
const ROWS = 100;
// Longer texts make the text box slow.
const MOST_BYTES = 2_000_000;
// Labels that are offered to be added.
const CANDIDATES = 100;

const text = byId("text");
const backdrop = byId("backdrop");
const list = byId("suggestions");
const picker = byId("model");
const sliders = ["k", "threshold", "tail"].map(byId);
const views = ["list", "documents"].map(byId);

let models = null;
let items = []; // The suggestions: label, elements, and the explanation as soon as it is known.
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

async function loadModels(signal) {
  const response = await send("api/models", { signal }, sayWait);
  if (!response.ok) throw new Error(await problem(response));
  ({ models } = await response.json());
  picker.replaceChildren(...models.map(({ id }) => element("option", { value: id }, id)));
  byId("model-field").hidden = models.length < 2;
  readSettings();
  showModel();
}

function showModel() {
  const model = models.find(({ id }) => id === picker.value);
  const size = `${count(model.labels, "label")}, ${count(model.documents, "training document")}`;
  byId("about").textContent = `${model.id}: ${size}`;
  teacher.canLearn = model.can_learn;
}

/** Send a request to the chosen model. */
async function ask(question, type, body, signal) {
  const init = { method: "POST", headers: { "Content-Type": type }, body, signal };
  const response = await send(`api/models/${encodeURIComponent(picker.value)}/${question}`, init, sayWait);
  if (!response.ok) throw new Error(await problem(response));
  return response;
}

async function answerTo(question, body, signal) {
  const response = await ask(question, "application/json", JSON.stringify(body), signal);
  return response.json();
}

const labelsOf = async (...question) => (await answerTo(...question)).labels;

/** Run a task, and show its error. The task that ran before is cancelled. */
async function run(task) {
  clearTimeout(timer);
  running.abort();
  running = new AbortController();
  const { signal } = running;
  byId("error").hidden = true;
  list.setAttribute("aria-busy", "true");
  try {
    if (models === null) await loadModels(signal);
    keepSettings();
    await task(signal);
  } catch (error) {
    if (signal.aborted) return;
    if (!file) showNone("");
    fail(error);
  }
}

const again = () => run(file ? suggestLines : suggest);

function later() {
  clearTimeout(timer);
  timer = setTimeout(again, TYPING_PAUSE);
}

function fail(error) {
  byId("error").textContent = error.message;
  byId("error").hidden = false;
}

const sayWait = () => say("The models are loading. Trying again …");

function say(sentence) {
  byId("status").textContent = sentence;
}

function show(view) {
  for (const one of views) one.hidden = one.id !== view;
  teacher.show(!file && text.value.trim() !== "");
}

/* Suggestions for a text */

// Half of a surrogate pair cannot be sent. Its replacement has the same length.
const wellFormed = () => text.value.toWellFormed?.() ?? text.value;

async function suggest(signal) {
  const body = { text: wellFormed(), ...settings() };
  if (!body.text.trim()) {
    showNone("There is no text yet.");
    return;
  }
  const labels = await labelsOf("suggest", body, signal);
  if (labels.length) {
    showSuggestions(labels);
    await explain(body, signal);
  } else if (body.threshold > 0 && (await labelsOf("suggest", { ...body, k: 1, threshold: 0 }, signal)).length) {
    showNone("No label reaches the threshold. Lower it to see less probable labels.");
  } else showNone("The model knows none of these words.");
}

function showNone(reason, view = null) {
  items = [];
  teacher.addControls(items);
  highlight();
  show(view);
  say(reason);
}

/** Find the words behind the suggestions. If this fails, the suggestions stay. */
async function explain(body, signal) {
  try {
    const { labels, positions } = await answerTo("explain", body, signal);
    for (const word of labels.flatMap(({ words }) => words)) {
      word.positions = Object.hasOwn(positions, word.word) ? positions[word.word] : [];
    }
    showExplanations(new Map(labels.map((label) => [label.uri, label])));
  } catch (error) {
    if (!signal.aborted) fail(error);
  }
}

function showSuggestions(labels) {
  items = labels.map(suggestion);
  if (!items.some(({ label }) => label.uri === pinned)) pinned = null;
  teacher.addControls(items);
  setTabStop(items[0].row);
  list.replaceChildren(...items.map(({ row }) => row));
  list.removeAttribute("aria-busy");
  byId("copied").textContent = "";
  show("list");
  say(count(items.length, "suggestion"));
  highlight();
}

function showExplanations(explained) {
  for (const item of items) {
    item.explanation = explained.get(item.label.uri) ?? null;
    item.words.replaceChildren(...wordsAndFacts(item.label, item.explanation));
  }
  highlight();
}

/* Highlights */

/** Show the words of one suggestion: the one under the pointer, the one with the focus, or the pinned one. */
function highlight() {
  for (const { label, row, button } of items) {
    row.classList.toggle("pinned", label.uri === pinned);
    button.setAttribute("aria-pressed", label.uri === pinned);
  }
  const active =
    items.find(({ row }) => row.matches(":hover")) ??
    items.find(({ row }) => row.contains(document.activeElement)) ??
    items.find(({ label }) => label.uri === pinned);
  paint(backdrop, text.value, active?.explanation?.words ?? []);
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
  const at = items.findIndex(({ row }) => row.contains(document.activeElement));
  const to = { ArrowDown: Math.min(at + 1, last), ArrowUp: Math.max(at - 1, 0), Home: 0, End: last }[event.key];
  if (event.key === "Escape") pinned = null;
  if (to !== undefined && at >= 0) {
    event.preventDefault();
    // From accept to accept, and from reject to reject.
    const control = [...items[at].row.querySelectorAll("button")].indexOf(document.activeElement);
    items[to].row.querySelectorAll("button")[control].focus();
  }
  highlight();
}

/** Let the tab key reach one suggestion of the list: the one that had the focus last. */
function setTabStop(row) {
  for (const control of list.querySelectorAll("button")) control.tabIndex = -1;
  for (const control of row.querySelectorAll("button")) control.tabIndex = 0;
}

/* Files */

async function open(chosen) {
  if (/\.jsonl$/i.test(chosen.name)) {
    file = chosen;
    await run(suggestLines);
  } else if (!/\.txt$/i.test(chosen.name)) {
    fail(new Error("Choose a file that ends with .txt or .jsonl."));
  } else if (chosen.size > MOST_BYTES) {
    fail(new Error("A text may have 2 MB. Choose a .jsonl file for many documents."));
  } else setText(await chosen.text());
}

async function suggestLines(signal) {
  const query = new URLSearchParams(settings());
  const { name, size } = file;
  const results = [];
  let done = 0;
  showNone(`Reading ${name} …`, "documents");
  byId("rows").replaceChildren();
  byId("progress").value = 0;
  byId("more").hidden = byId("download").hidden = true;
  byId("stop").hidden = false;
  try {
    for await (const { lines, end } of blocks(file)) {
      const response = await ask(`suggest-lines?${query}`, "application/jsonl", lines, signal);
      const answers = await response.text();
      results.push(new Blob([answers]));
      const found = answers.split("\n").filter(Boolean);
      const shown = await rows(found.slice(0, Math.max(0, ROWS - done)), lines, done);
      signal.throwIfAborted();
      byId("rows").append(...shown);
      done += found.length;
      byId("progress").value = end / size;
      byId("more").hidden = done <= ROWS;
      say(`${name}: ${count(done, "document")}`);
    }
    if (!done) say(`${name} has no documents.`);
  } finally {
    // Also after an error or a stop, but not if another task has begun.
    if (signal === running.signal) offer(results, name.replace(/(\.jsonl)?$/i, ".labels.jsonl"));
  }
}

/** Offer results as a file. */
function offer(results, name) {
  const link = byId("download");
  URL.revokeObjectURL(link.href);
  link.href = URL.createObjectURL(new Blob(results, { type: "application/jsonl" }));
  link.download = name;
  link.hidden = !results.length;
  byId("stop").hidden = true;
}

/* Lessons */

const teacher = new Teacher({
  candidates: () => labelsOf("suggest", { text: wellFormed(), k: CANDIDATES }),
  learn: (labels, rejected) => answerTo("learn", { documents: [{ text: wellFormed(), labels, rejected }] }),
  // The model has other numbers of labels and documents now.
  after: () => run(async (signal) => (await loadModels(signal), await suggest(signal))),
  fail,
});

/* Events */

function onInput() {
  // The explanations are about the previous text.
  running.abort();
  for (const item of items) item.explanation = null;
  file = null;
  teacher.forget();
  paint(backdrop, text.value, []);
}

function suggestNow() {
  file = null;
  run(suggest);
}

function setText(content) {
  text.value = content;
  onInput();
  suggestNow();
}

text.addEventListener("input", () => {
  onInput();
  later();
});
text.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) suggestNow();
});
byId("suggest").addEventListener("click", suggestNow);
byId("clear").addEventListener("click", () => {
  setText("");
  text.focus();
});
byId("settings").addEventListener("input", () => {
  showSettings();
  later();
});
picker.addEventListener("change", () => {
  teacher.forget();
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
  setTabStop(target.closest("#suggestions > li"));
});
list.addEventListener("click", ({ target }) => {
  const button = target.closest(".suggestion");
  if (button) pin(button);
});
list.addEventListener("keydown", moveFocus);
for (const button of document.querySelectorAll("[data-copy]")) {
  button.addEventListener("click", async () => {
    const done = await copy(items.map(({ label }) => label), button.dataset.copy);
    const what = count(items.length, "label");
    byId("copied").textContent = done ? `Copied ${what}.` : "The browser did not allow copying.";
  });
}
byId("stop").addEventListener("click", () => {
  running.abort();
  byId("status").append(", stopped");
});
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
paint(backdrop, text.value, []);
again();
