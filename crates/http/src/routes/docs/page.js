// Shows the OpenAPI document of this server. What comes out of it is only ever put in as text.
"use strict";

const METHODS = ["get", "post", "put", "patch", "delete"];

function make(name, attributes, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) element.setAttribute(key, value);
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== "") element.append(child);
  }
  return element;
}

// Text with `code` in it, in paragraphs.
function prose(text) {
  return (text || "").split(/\n\s*\n/).filter(Boolean).map((paragraph) =>
    make("p", {}, paragraph.split(/(`[^`]+`)/).map((part) =>
      part.startsWith("`") && part.length > 1 ? make("code", {}, part.slice(1, -1)) : part)));
}

const lastName = (reference) => reference.split("/").pop();

function resolve(api, item) {
  if (!item || !item.$ref) return item;
  return item.$ref.slice(2).split("/").reduce((at, key) => at && at[key], api);
}

function link(reference) {
  const name = lastName(reference);
  return make("a", { href: `#schema-${name}` }, name);
}

// What values there can be, in a few words.
function type(schema) {
  if (!schema || typeof schema !== "object") return "anything";
  if (schema.$ref) return link(schema.$ref);
  const choices = schema.oneOf || (schema.type ? null : schema.anyOf);
  if (choices) return choices.flatMap((choice, i) => (i ? [" or ", type(choice)] : [type(choice)])).flat();
  const types = [].concat(schema.type || "anything");
  const parts = types.map((name) => {
    if (name !== "array") return name;
    return ["list of ", type(schema.items)].flat();
  });
  return parts.flatMap((part, i) => (i ? [" or ", part] : [part])).flat();
}

// What the type alone does not say.
function bounds(schema) {
  if (!schema || typeof schema !== "object") return [];
  const said = [];
  const values = (schema.enum || []).filter((value) => value !== null);
  if (values.length) said.push(`one of ${values.join(", ")}`);
  if (schema.const !== undefined) said.push(`always ${JSON.stringify(schema.const)}`);
  if (schema.minimum !== undefined) said.push(`at least ${schema.minimum}`);
  if (schema.maximum !== undefined) said.push(`at most ${schema.maximum}`);
  if (schema.minLength) said.push(`at least ${schema.minLength} characters`);
  if (schema.maxLength !== undefined) said.push(`at most ${schema.maxLength} characters`);
  if (schema.minItems) said.push(`at least ${schema.minItems}`);
  if (schema.maxItems !== undefined) said.push(`at most ${schema.maxItems}`);
  if (schema.pattern) said.push(`matches ${schema.pattern}`);
  if (schema.format && !schema.format.startsWith("int")) said.push(schema.format);
  return said;
}

function table(head, rows) {
  const line = (cells, kind) => make("tr", {}, cells.map((cell) => make(kind, {}, cell)));
  return make("div", { class: "scroll" },
    make("table", {}, make("thead", {}, line(head, "th")), make("tbody", {}, rows.map((row) => line(row, "td")))));
}

function described(description, schema) {
  const limits = bounds(schema).join("; ");
  return [...prose(description), limits ? make("p", { class: "soft" }, limits) : ""];
}

function fields(schema) {
  const required = schema.required || [];
  return table(["Field", "Type", ""], Object.entries(schema.properties || {}).map(([name, field]) => [
    [make("code", {}, name), required.includes(name) ? make("span", { class: "badge" }, "required") : ""],
    type(field),
    described(field.description, field),
  ]));
}

function code(value) {
  return make("pre", {}, make("code", {}, typeof value === "string" ? value : JSON.stringify(value, null, 2)));
}

function parameters(api, operation) {
  const list = (operation.parameters || []).map((item) => resolve(api, item));
  if (!list.length) return [];
  return [make("h4", {}, "Parameters"), table(["Name", "In", "Type", ""], list.map((item) => [
    [make("code", {}, item.name), item.required ? make("span", { class: "badge" }, "required") : ""],
    item.in, type(item.schema), described(item.description, resolve(api, item.schema)),
  ]))];
}

function examplesOf(media) {
  if (media.examples) return Object.values(media.examples).map((example) => [example.summary, example.value]);
  return media.example === undefined ? [] : [["", media.example]];
}

function requestBody(operation) {
  if (!operation.requestBody) return [];
  const parts = [make("h4", {}, "Body")];
  for (const [kind, media] of Object.entries(operation.requestBody.content)) {
    parts.push(make("p", {}, make("code", {}, kind), " ", type(media.schema)));
    for (const [summary, value] of examplesOf(media)) {
      if (summary) parts.push(make("p", { class: "soft" }, summary));
      parts.push(code(value));
    }
  }
  return parts;
}

function responses(api, operation) {
  const rows = Object.entries(operation.responses).map(([status, item]) => {
    const answer = resolve(api, item);
    const bodies = Object.entries(answer.content || {}).map(([kind, media]) =>
      make("p", {}, make("code", {}, kind), " ", type(media.schema)));
    const headers = Object.keys(answer.headers || {}).map((name) =>
      make("p", { class: "soft" }, "with ", make("code", {}, name)));
    return [make("span", { class: "status" }, status), prose(answer.description), [...bodies, ...headers]];
  });
  return [make("h4", {}, "Answers"), table(["Status", "", "Body"], rows)];
}

function needsKey(api, operation) {
  const wanted = operation.security || api.security || [];
  return wanted.length > 0 && !wanted.some((choice) => Object.keys(choice).length === 0);
}

// The operation as a line for a shell.
function curl(api, path, method, operation) {
  const words = ["curl"];
  if (method !== "get" && !(method === "post" && operation.requestBody)) words.push(`-X ${method.toUpperCase()}`);
  if (needsKey(api, operation)) words.push('-H "X-API-Key: $COFFERDAM_API_KEY"');
  const media = operation.requestBody && operation.requestBody.content["application/json"];
  if (media) {
    const schema = resolve(api, media.schema) || {};
    const [example] = examplesOf(media).map(([, value]) => value).concat([schema.example, {}]).filter(Boolean);
    words.push("-H 'Content-Type: application/json'");
    words.push(`-d '${JSON.stringify(example).replaceAll("'", "'\\''")}'`);
  }
  const query = (operation.parameters || []).find((item) => item.in === "query" && item.example !== undefined);
  const suffix = query ? `?${query.name}=${query.example}` : "";
  words.push(`'${location.origin}${path}${suffix}'`);
  return words.join(" \\\n  ");
}

function operationArticle(api, path, method, operation) {
  return make("article", { id: operation.operationId },
    make("h3", {}, operation.summary || operation.operationId),
    make("div", { class: "route" },
      make("span", { class: `method ${method}` }, method), make("code", {}, path),
      make("span", { class: "soft" }, needsKey(api, operation) ? "" : "no key needed")),
    prose(operation.description), parameters(api, operation), requestBody(operation),
    responses(api, operation), make("h4", {}, "By hand"), code(curl(api, path, method, operation)));
}

function schemaArticle(name, schema) {
  const parts = [...prose(schema.description)];
  const values = bounds({ ...schema, properties: undefined }).join("; ");
  if (values) parts.push(make("p", { class: "soft" }, values));
  if (schema.properties) parts.push(fields(schema));
  for (const choice of schema.oneOf || []) {
    parts.push(choice.properties ? fields(choice) : make("p", {}, "Or ", type(choice), " ", bounds(choice).join("; ")));
    if (choice.description) parts.push(...prose(choice.description));
  }
  if (schema.additionalProperties === false) parts.push(make("p", { class: "soft" }, "Other fields are refused."));
  if (schema.example !== undefined) parts.push(make("h4", {}, "Example"), code(schema.example));
  return make("article", { id: `schema-${name}` }, make("h3", {}, name), parts);
}

function operationsByTag(api) {
  const tags = new Map((api.tags || []).map((tag) => [tag.name, { ...tag, operations: [] }]));
  for (const [path, item] of Object.entries(api.paths)) {
    for (const method of METHODS.filter((name) => item[name])) {
      const operation = item[method];
      const name = (operation.tags || ["other"])[0];
      if (!tags.has(name)) tags.set(name, { name, operations: [] });
      tags.get(name).operations.push({ path, method, operation });
    }
  }
  return [...tags.values()].filter((tag) => tag.operations.length);
}

function indexOf(tags, schemas) {
  const entry = (href, ...children) => make("li", {}, make("a", { href }, children));
  const groups = tags.map((tag) => make("section", {}, make("h2", {}, tag.name), make("ul", {},
    tag.operations.map(({ method, operation }) => entry(`#${operation.operationId}`,
      make("span", { class: `method ${method}` }, method), operation.summary || operation.operationId)))));
  const names = schemas.map((name) => entry(`#schema-${name}`, name));
  return [...groups, make("section", {}, make("h2", {}, "Schemas"), make("ul", {}, names))];
}

function show(api) {
  const tags = operationsByTag(api);
  const schemas = Object.keys(api.components.schemas || {});
  const keys = Object.values(api.components.securitySchemes || {}).map((scheme) => make("li", {},
    make("code", {}, scheme.type === "apiKey" ? `${scheme.name}: SECRET` : "Authorization: Bearer SECRET"),
    ` ${scheme.description || ""}`));
  const content = [
    make("h1", {}, `${api.info.title} API`),
    make("p", { class: "soft" }, `Version ${api.info.version} · `, make("a", { href: "/openapi.json" }, "openapi.json")),
    prose(api.info.description),
    make("h2", {}, "Keys"), make("p", {}, "A key is sent in one of two ways:"), make("ul", {}, keys),
    tags.flatMap((tag) => [
      make("h2", {}, tag.name), prose(tag.description),
      ...tag.operations.map(({ path, method, operation }) => operationArticle(api, path, method, operation)),
    ]),
    make("h2", {}, "Schemas"), schemas.map((name) => schemaArticle(name, api.components.schemas[name])),
  ];
  document.getElementById("content").replaceChildren(...content.flat(Infinity));
  document.getElementById("index").replaceChildren(...indexOf(tags, schemas));
  if (location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView();
}

function filter(text) {
  const wanted = text.trim().toLowerCase();
  for (const entry of document.querySelectorAll("#index li")) {
    const found = (entry.textContent + entry.firstChild.getAttribute("href")).toLowerCase().includes(wanted);
    entry.hidden = !found;
  }
  for (const section of document.querySelectorAll("#index section")) {
    section.hidden = !section.querySelector("li:not([hidden])");
  }
}

document.getElementById("filter").addEventListener("input", (event) => filter(event.target.value));
fetch("/openapi.json")
  .then((answer) => (answer.ok ? answer.json() : Promise.reject(new Error(`status ${answer.status}`))))
  .then(show)
  .catch((error) => {
    document.getElementById("content").textContent = `The document could not be shown: ${error.message}`;
  });
