// Files with a document per line (.jsonl).
import { element, named, probability } from "./common.js";

// How much of a file is sent at once. The server answers while it reads, but a browser reads answers only after it has
// sent everything. So a block must fit into the server's buffer.
const BLOCK = { lines: 100, bytes: 60_000 };

/** Yield parts of a file: whole lines, few enough to be sent at once. */
export async function* blocks(content) {
  let [begin, last, lines] = [0, 0, 0];
  for await (const end of lineEnds(content)) {
    if (lines === BLOCK.lines || (lines && end - begin > BLOCK.bytes)) {
      yield { lines: content.slice(begin, last), end: last };
      [begin, lines] = [last, 0];
    }
    [last, lines] = [end, lines + 1];
  }
  if (last > begin) yield { lines: content.slice(begin, last), end: last };
}

async function* lineEnds(content) {
  const reader = content.stream().getReader();
  let at = 0;
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    for (let i = part.value.indexOf(10); i >= 0; i = part.value.indexOf(10, i + 1)) yield at + i + 1;
    at += part.value.length;
  }
  // The last line may have no line break.
  yield at;
}

/** Return rows of a table: documents with their labels. `count` documents came before them. */
export async function rows(answers, lines, count) {
  // The server skips lines of nothing but ASCII spaces, too.
  const documents = (await lines.text()).split("\n").filter((line) => /[^ \t\r\v\f]/.test(line));
  return answers.map((answer, i) => {
    const { id, labels, error } = JSON.parse(answer);
    const name = named(String(id ?? count + i + 1));
    const start = element("small", { dir: "auto" }, excerpt(documents[i]));
    const found = error ? element("td", { class: "error" }, error) : element("td", {}, labelList(labels));
    return element("tr", {}, element("td", {}, name, " ", start), found);
  });
}

function labelList(labels) {
  if (!labels.length) return "no label";
  const entries = labels.map(({ label, score }) => [named(label), " ", element("small", {}, probability(score))]);
  return element("ul", {}, ...entries.map((entry) => element("li", {}, ...entry)));
}

function excerpt(line) {
  try {
    const { title, text } = JSON.parse(line);
    return [title, text].filter(Boolean).join(" · ").slice(0, 120);
  } catch {
    return "";
  }
}
