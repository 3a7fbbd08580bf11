// What both pages share: elements, requests with a token, and errors as sentences.

const TOKEN = "lightdxml-token";

export const byId = (id) => document.getElementById(id);

/** Return a new element. Strings become text: nothing is ever read as HTML. */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** Return a name as an element. Names come from anywhere: their direction concerns nothing around them. */
export const named = (name) => element("bdi", {}, name);
export const count = (number, name) => `${number.toLocaleString("en")} ${name}${number === 1 ? "" : "s"}`;
export const probability = (score) => (score < 0.005 ? "<0.01" : score.toFixed(2));

/** Send a request and return the response. Ask for a token if the server wants one.
 *
 * `onWait` is called if the server cannot answer yet (503), before the request is sent again.
 */
export async function send(url, init = {}, onWait = null) {
  for (;;) {
    const token = sessionStorage.getItem(TOKEN);
    const response = await attempt(url, init, token);
    if (response.status === 401) await newToken(token);
    else if (response.status === 503 && onWait) {
      onWait();
      await pause(1000, init.signal);
    } else return response;
  }
}

/** Return what is wrong, as a sentence. */
export async function problem(response) {
  const { detail } = await response.json().catch(() => ({}));
  const text = detail || `the server answered with status ${response.status}`;
  return text[0].toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? "" : ".");
}

export const hasToken = () => sessionStorage.getItem(TOKEN) !== null;

async function attempt(url, init, token) {
  const headers = new Headers(init.headers);
  // Headers hold bytes: a token with other characters than ASCII is sent as UTF-8.
  if (token !== null) headers.set("Authorization", `Bearer ${String.fromCharCode(...new TextEncoder().encode(token))}`);
  try {
    return await fetch(url, { ...init, headers });
  } catch (error) {
    init.signal?.throwIfAborted();
    throw new Error("The server does not answer.", { cause: error });
  }
}

function pause(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    setTimeout(resolve, milliseconds);
    signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}

let asking = null;

/** Ask for a token, unless another request has done so meanwhile. */
async function newToken(refused) {
  if (sessionStorage.getItem(TOKEN) !== refused) return;
  asking ??= askForToken(refused !== null).finally(() => (asking = null));
  await asking;
}

function askForToken(wasWrong) {
  const input = element("input", { type: "password", id: "token", autocomplete: "off", required: "" });
  const reason = wasWrong ? "The token is wrong. Enter another one." : "This server needs a token.";
  const form = element(
    "form", {},
    element("p", { id: "token-reason" }, reason),
    element("label", { for: "token" }, "Token"),
    input,
    element("button", { class: "primary" }, "Continue"),
  );
  const dialog = element("dialog", { "aria-labelledby": "token-reason" }, form);
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve, reject) => {
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      sessionStorage.setItem(TOKEN, input.value.trim());
      resolve();
      dialog.close();
    });
    dialog.addEventListener("close", () => {
      dialog.remove();
      // Without effect after a token was entered.
      reject(new Error("This server needs a token."));
    });
  });
}
