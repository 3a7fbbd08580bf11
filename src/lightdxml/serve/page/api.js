// The description of the API: what the OpenAPI file says, with examples, and a form that sends requests.
import { byId, element, hasToken, problem, send } from "./common.js";

const ROOT = new URL("../../", location.href);
const METHODS = ["get", "post", "put", "patch", "delete"];
const JSON_TYPE = "application/json";
const FORM_TYPE = "application/x-www-form-urlencoded";
// Values of examples, by the name of the field; the names of models come from the server.
const EXAMPLES = { text: "A purring cat.", languages: ["en", "fr"], uri: "urn:example:cat", shape: [1] };
// Limits of JSON Schema: the names of the least and the most, and what they count.
const LIMITS = [
  ["minimum", "maximum", ""], ["minLength", "maxLength", " characters"], ["minItems", "maxItems", " items"],
];

let spec = null;

async function json(path) {
  const response = await send(new URL(path, ROOT));
  if (!response.ok) throw new Error(await problem(response));
  return response.json();
}

async function main() {
  try {
    spec = await json("v1/openapi.json");
    byId("about").textContent = `${spec.info.title} ${spec.info.version}. ${spec.info.description}`;
    // While models are loading, the examples have no name of one.
    const { models } = await json("api/models").catch(() => ({ models: [] }));
    EXAMPLES.model = EXAMPLES.project_id = models[0]?.id ?? "MODEL";
    byId("operations").replaceChildren(...groups());
  } catch (error) {
    byId("error").textContent = error.message;
    byId("error").hidden = false;
  }
}

/** Return a section per tag. */
function groups() {
  const sections = new Map();
  for (const [path, item] of Object.entries(spec.paths)) {
    for (const method of METHODS.filter((one) => one in item)) {
      const operation = { path, method: method.toUpperCase(), parameters: [], ...item[method] };
      const tag = operation.tags?.[0] ?? "Other";
      if (!sections.has(tag)) sections.set(tag, element("section", {}, element("h2", {}, tag)));
      sections.get(tag).append(described(operation));
    }
  }
  return sections.values();
}

function described(operation) {
  const [first, ...others] = paragraphs(operation.description ?? operation.summary ?? "");
  const [type, media] = Object.entries(operation.requestBody?.content ?? {})[0] ?? [null, null];
  const head = element(
    "summary", {},
    element("span", { class: "method" }, operation.method), " ", element("code", {}, operation.path), " ",
    element("span", { class: "note" }, ...first),
  );
  const parts = others.map((paragraph) => element("p", {}, ...paragraph));
  if (operation.parameters.length) parts.push(title("Parameters"), parameterTable(operation.parameters));
  if (type) parts.push(title(`Request body: ${type}`), ...about(media.schema), fieldTable(media.schema));
  parts.push(title("Responses"), responseTable(operation.responses), ...answerFields(operation.responses));
  parts.push(...tryOut(operation, type, media?.schema));
  return element("details", {}, head, ...parts);
}

const title = (content) => element("h3", {}, content);

/** Return paragraphs, each with `code` as elements. */
function paragraphs(description) {
  const inline = (part, i) => (i % 2 ? element("code", {}, part) : part);
  return description.split(/\n\s*\n/).map((paragraph) => paragraph.split("`").map(inline));
}

/* Schemas */

const resolved = (schema) => (schema?.$ref ? spec.components.schemas[schema.$ref.split("/").at(-1)] : (schema ?? {}));

const about = (schema) => paragraphs(resolved(schema).description ?? "").map((content) => element("p", {}, ...content));

/** Return what values a schema allows, as text. */
function typeOf(given) {
  const schema = resolved(given);
  if (schema.anyOf) return schema.anyOf.map(typeOf).join(" or ");
  if ("const" in schema) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((one) => JSON.stringify(one)).join(" or ");
  if (schema.prefixItems) return `[${schema.prefixItems.map(typeOf).join(", ")}]`;
  const kind = schema.type === "array" ? `list of ${typeOf(schema.items)}` : (schema.type ?? "any value");
  const limits = limitsOf(schema);
  return limits.length ? `${kind} (${limits.join(", ")})` : kind;
}

function limitsOf(schema) {
  const limits = LIMITS.map(([least, most, unit]) => {
    if (least in schema && most in schema) return `${schema[least]} to ${schema[most]}${unit}`;
    if (least in schema) return `at least ${schema[least]}${unit}`;
    return most in schema ? `at most ${schema[most]}${unit}` : "";
  });
  return [...limits, schema.pattern ? `pattern ${schema.pattern}` : ""].filter(Boolean);
}

/** Return [name, schema, whether it is required] of all fields, those of nested objects with their paths. */
function fieldsOf(given, prefix = "") {
  const schema = resolved(given);
  if (schema.type === "array") return fieldsOf(schema.items, `${prefix}[]`);
  return Object.entries(schema.properties ?? {}).flatMap(([name, field]) => {
    const path = prefix ? `${prefix}.${name}` : name;
    return [[path, field, schema.required?.includes(name) ?? false], ...fieldsOf(field, path)];
  });
}

/* Tables */

function table(names, lines) {
  const row = (cells, tag) => element("tr", {}, ...cells.map((cell) => element(tag, {}, cell)));
  const head = element("thead", {}, row(names, "th"));
  return element("table", {}, head, element("tbody", {}, ...lines.map((cells) => row(cells, "td"))));
}

const code = (content) => element("code", {}, content);
const standard = (schema, isRequired) =>
  isRequired ? "required" : code(JSON.stringify(resolved(schema).default ?? null));

function parameterTable(parameters) {
  return table(
    ["Name", "Where", "Type", "Default"],
    parameters.map((one) => [code(one.name), one.in, typeOf(one.schema), standard(one.schema, one.required)]),
  );
}

function fieldTable(schema) {
  const fields = fieldsOf(schema);
  if (!fields.length) return element("p", {}, `A ${typeOf(schema)}.`);
  return table(
    ["Field", "Type", "Default"],
    fields.map(([name, field, isRequired]) => [code(name), typeOf(field), standard(field, isRequired)]),
  );
}

function responseTable(responses) {
  const lines = Object.entries(responses).map(([status, { description, content = {} }]) => {
    const [type, media] = Object.entries(content)[0] ?? ["no body", {}];
    // The fields of the usual answer have a table of their own.
    const names = status < 300 ? [] : fieldsOf(media.schema).map(([name]) => name);
    return [status, description, element("span", {}, code(type), names.length ? `: ${names.join(", ")}` : "")];
  });
  const made = table(["Status", "Meaning", "Body"], lines);
  made.className = "responses";
  return made;
}

function answerFields(responses) {
  const [status, { content = {} }] = Object.entries(responses).find(([one]) => one < 300) ?? ["", {}];
  const fields = fieldsOf(Object.values(content)[0]?.schema).map(([name, field]) => [code(name), typeOf(field)]);
  return fields.length ? [title(`Fields of ${status}`), table(["Field", "Type"], fields)] : [];
}

/* Examples */

function example(given, name = "") {
  const schema = resolved(given);
  if (name in EXAMPLES) return EXAMPLES[name];
  if (schema.example ?? schema.const ?? schema.default) return schema.example ?? schema.const ?? schema.default;
  if (schema.anyOf) return example(schema.anyOf[0], name);
  if (schema.type === "array") return [example(schema.items, name === "data" ? "text" : "")];
  if (schema.type === "object") {
    const required = Object.entries(schema.properties ?? {}).filter(([key]) => schema.required?.includes(key));
    return Object.fromEntries(required.map(([key, field]) => [key, example(field, key)]));
  }
  return { integer: 1, number: 0.5, boolean: false, string: "" }[schema.type] ?? null;
}

/** Return the inputs of an operation: its parameters, and its body as fields or as one text. */
function inputsOf(operation, type, schema) {
  const given = operation.parameters.map(({ name, in: where, schema: one, required }) =>
    ({ name, where, value: required ? example(one, name) : (one.default ?? "") }));
  if (type === FORM_TYPE) {
    const fields = Object.entries(resolved(schema).properties).map(([name, one]) =>
      ({ name, where: "form", value: EXAMPLES[name] ?? one.default ?? "" }));
    return [...given, ...fields];
  }
  if (!type) return given;
  const body = example(schema);
  return [...given, { name: "body", where: "body", value: type === JSON_TYPE ? JSON.stringify(body, null, 2) : body }];
}

/** Return the request that the inputs make. Empty ones are left out. */
function requestOf({ path, method }, type, inputs) {
  const values = (where) => inputs.filter((one) => one.where === where && one.control.value !== "")
    .map(({ name, control }) => [name, control.value]);
  const fill = (all, [name, value]) => all.replace(`{${name}}`, encodeURIComponent(value));
  const url = new URL(values("path").reduce(fill, path).slice(1), ROOT);
  url.search = new URLSearchParams(values("query"));
  const body = type === FORM_TYPE ? new URLSearchParams(values("form")).toString() : values("body")[0]?.[1];
  return { url, method, headers: type ? { "Content-Type": type } : {}, body };
}

/** Return the command that sends a request. */
function curl({ url, method, headers, body }) {
  const quoted = (content) => `'${String(content).replaceAll("'", "'\\''")}'`;
  const parts = [`curl ${method === "GET" ? "" : `-X ${method} `}${quoted(url)}`];
  if (hasToken()) parts.push('-H "Authorization: Bearer $TOKEN"');
  for (const [name, value] of Object.entries(headers)) parts.push(`-H ${quoted(`${name}: ${value}`)}`);
  if (body !== undefined) parts.push(`--data-binary ${quoted(body)}`);
  return parts.join(" \\\n  ");
}

function tryOut(operation, type, schema) {
  const inputs = inputsOf(operation, type, schema).map((one) => ({ ...one, control: controlOf(operation, one) }));
  const command = element("pre", { class: "curl" });
  const answer = element("pre", { class: "answer", role: "status", hidden: "" });
  const button = element("button", { class: "primary wide" }, "Send");
  const fields = inputs.flatMap(({ name, control }) => [element("label", { for: control.id }, name), control]);
  const form = element("form", { class: "try" }, ...fields, button);
  const update = () => (command.textContent = curl(requestOf(operation, type, inputs)));
  form.addEventListener("input", update);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    answer.hidden = false;
    answer.textContent = "Sending …";
    const { url, ...init } = requestOf(operation, type, inputs);
    answer.textContent = await send(url, init).then(answerText).catch((error) => error.message);
    update();
  });
  update();
  return [title("Example"), command, title("Try it"), form, answer];
}

function controlOf({ method, path }, { name, where, value }) {
  const id = `${method} ${path} ${where} ${name}`.replaceAll(/\W+/g, "-");
  const isBody = where === "body";
  const control = element(isBody ? "textarea" : "input", { id, name, spellcheck: "false", autocomplete: "off" });
  control.classList.toggle("body", isBody);
  control.value = value;
  return control;
}

async function answerText(response) {
  const body = await response.text();
  const type = response.headers.get("Content-Type") ?? "";
  const readable = /json$/.test(type) ? JSON.stringify(JSON.parse(body), null, 2) : body;
  return `${response.status} ${response.statusText}\n${type}\n\n${readable}`;
}

main();
