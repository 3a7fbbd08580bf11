// Suggestions on the clipboard.
import { element } from "./common.js";

const csvLine = (cells) => cells.map((cell) => `"${String(cell ?? "").replaceAll('"', '""')}"`).join(",");
const CONTENTS = {
  uris: (labels) => labels.map(({ uri }) => uri).join("\n"),
  labels: (labels) => labels.map(({ label }) => label).join("\n"),
  csv: (labels) =>
    ["uri,label,notation,score", ...labels.map((one) => csvLine([one.uri, one.label, one.notation, one.score]))]
      .join("\r\n"),
};

/** Copy labels as `uris`, `labels` or `csv`, and return whether the browser allowed it. */
export async function copy(labels, kind) {
  const content = CONTENTS[kind](labels);
  try {
    await navigator.clipboard.writeText(content);
    return true;
  } catch {
    // Without HTTPS there is no clipboard, and it may be forbidden.
    return copySelection(content);
  }
}

function copySelection(content) {
  const focused = document.activeElement;
  const area = element("textarea", { class: "unseen", "aria-hidden": "true" });
  area.value = content;
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  focused?.focus();
  return done;
}
