// What a person says about suggestions, and what the model learns from it.
import { byId, count, element, named, probability } from "./common.js";

const KINDS = { accept: ["✓", "Accept"], reject: ["✗", "Reject"] };

/** Controls to accept and reject suggestions, to add labels, and to let the model learn.
 *
 * They are about one text: `forget` is called when it changes.
 */
export class Teacher {
  canLearn = false;
  #judgments = new Map(); // By URI: "accept" or "reject".
  #added = new Map(); // By name: what is sent for a label that was not suggested, its URI if that is known.
  #known = new Map(); // By name: URIs of labels that are offered.
  #items = [];
  #before = new Map(); // Probabilities by URI before the lesson that has just ended.
  #isLearning = false;

  /** Take functions: `candidates` returns labels to offer, `learn` sends labels, `after` suggests again. */
  constructor({ candidates, learn, after, fail }) {
    Object.assign(this, { candidates, learn, after, fail });
    byId("teach").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#add();
    });
    byId("learn").addEventListener("click", () => this.#teach());
    byId("label").addEventListener("focus", () => this.#offer());
  }

  /** Show the controls if the model can learn and there `isText`. */
  show(isText) {
    byId("teach").hidden = !this.canLearn || !isText;
  }

  /** Forget what was said: the text or the model is another one. */
  forget() {
    this.#judgments.clear();
    this.#added.clear();
    this.#known.clear();
    this.#before.clear();
    byId("label").value = byId("learned").textContent = "";
    this.#refresh();
  }

  /** Add controls to suggestions, and what their probabilities were before the lesson. */
  addControls(items) {
    this.#items = this.canLearn ? items : [];
    for (const { label, line, button } of this.#items) {
      const controls = Object.keys(KINDS).map((kind) => this.#control(kind, label));
      line.append(element("span", { class: "judge" }, ...controls));
      const before = this.#before.get(label.uri);
      if (before !== undefined) button.querySelector(".number").append(was(before));
    }
    this.#refresh();
  }

  #control(kind, { uri, label }) {
    const [sign, name] = KINDS[kind];
    const attributes = { type: "button", class: kind, tabindex: "-1", title: name, "aria-label": `${name} ${label}` };
    const control = element("button", attributes, sign);
    control.addEventListener("click", () => {
      if (this.#judgments.get(uri) === kind) this.#judgments.delete(uri);
      else this.#judgments.set(uri, kind);
      this.#refresh();
    });
    return control;
  }

  #refresh() {
    for (const { label, row } of this.#items) {
      const judgment = this.#judgments.get(label.uri);
      for (const kind of Object.keys(KINDS)) {
        row.classList.toggle(`${kind}ed`, judgment === kind);
        row.querySelector(`.${kind}`)?.setAttribute("aria-pressed", judgment === kind);
      }
    }
    byId("added").replaceChildren(...[...this.#added.keys()].map((name) => this.#entry(name)));
  }

  #entry(name) {
    const remove = element("button", { type: "button", "aria-label": `Remove ${name}` }, "✗");
    remove.addEventListener("click", () => {
      this.#added.delete(name);
      this.#refresh();
      byId("label").focus();
    });
    return element("li", {}, named(name), " ", remove);
  }

  /** Offer labels that are less probable than those that are shown. */
  async #offer() {
    try {
      const labels = await this.candidates();
      this.#known = new Map(labels.map(({ label, uri }) => [label, uri]));
      byId("candidates").replaceChildren(...labels.map(({ label }) => element("option", { value: label })));
    } catch {
      // Any label can be entered all the same.
    }
  }

  #add() {
    const name = byId("label").value.trim();
    if (!name) return;
    const shown = this.#items.find(({ label }) => label.label === name || label.uri === name);
    if (shown) this.#judgments.set(shown.label.uri, "accept");
    else this.#added.set(name, this.#known.get(name) ?? name);
    byId("label").value = "";
    this.#refresh();
  }

  #judged(kind) {
    return this.#items.map(({ label }) => label.uri).filter((uri) => this.#judgments.get(uri) === kind);
  }

  async #teach() {
    this.#add();
    const labels = [...this.#judged("accept"), ...this.#added.values()];
    if (this.#isLearning || !labels.length) {
      if (!labels.length) say("Accept or add a label first.");
      return;
    }
    this.#isLearning = true;
    byId("learn").setAttribute("aria-disabled", "true");
    byId("error").hidden = true;
    say("Learning …");
    try {
      const before = new Map(this.#items.map(({ label }) => [label.uri, label.score]));
      const found = await this.learn(labels, this.#judged("reject"));
      this.forget();
      this.#before = before;
      await this.after();
      say(result(found));
    } catch (error) {
      say("");
      this.fail(error);
    } finally {
      this.#isLearning = false;
      byId("learn").removeAttribute("aria-disabled");
    }
  }
}

function say(sentence) {
  byId("learned").textContent = sentence;
}

function result({ labels, new_labels: added, seconds, drift }) {
  const fresh = added ? ` (${added.toLocaleString("en")} new)` : "";
  const learned = `Learned: ${count(labels, "label")} trained again${fresh} in ${seconds.toFixed(2)} seconds.`;
  return [learned, ...drift.reasons.map((reason) => `Train the model again soon: ${reason}.`)].join(" ");
}

const was = (score) => element("small", { class: "was" }, `was ${probability(score)}`);
