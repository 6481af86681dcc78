// Tools: what the agent can call, to make, change and try; and the MCP servers whose tools it may use.
import { get, post, put, remove } from "./api.js";
import { ask, dialog } from "./dialog.js";
import { badge, button, h, pager, pretty, settled, span, table, tell, when } from "./dom.js";
import { form, object } from "./form.js";

export async function tools(page, context) {
  const { at, may, signal } = context;
  const shown = h("div");
  const search = h("input", { type: "search", placeholder: "Name or description", "aria-label": "Search tools" });
  let offset = 0;
  const load = async () => {
    const found = await get(at("tools"), { search: search.value, limit: 25, offset }, signal);
    shown.replaceChildren(table([
      ["Name", (t) => h("code", {}, t.name)], ["Does", (t) => t.description], ["Type", (t) => badge(t.type)],
      ["", (t) => may && [button("Try", async () => attempt(await get(at("tools", t.id), {}, signal), at)),
        button("Edit", async () => edit(await get(at("tools", t.id), {}, signal), at, load)),
        ask("Delete", `Delete ${t.name}?`, "The agent and its workflows can call it no more.", async () => { await remove(at("tools", t.id)); await load(); })], "actions"],
    ], found.tools, search.value ? "No tool fits." : "No tools yet. A tool is a function, an API or a tool of an MCP server that the agent may call."),
    found.meta.total ? pager(found.meta, (next) => { offset = next; return load(); }) : "");
  };
  search.addEventListener("input", settled(() => { offset = 0; return load(); }));
  const added = h("div");
  page.append(h("h1", { tabindex: -1 }, "Tools"), h("div", { class: "row" }, search, h("span", { class: "grow" }),
    may && h("button", { type: "button", class: "main", click: () => edit(null, at, load) }, "New tool")), shown, h("h2", {}, "MCP servers"), added);
  const looking = servers(added, context, load);
  await load();
  looking.catch(tell); // servers that do not answer hold up nobody
}

const noArguments = { type: "object", properties: {} };

async function edit(now, at, done) {
  const c = now?.config ?? {};
  const is = (...types) => (v) => types.includes(v.type);
  const auth = (...types) => (v) => v.type === "api" && types.includes(v["config.auth.type"]);
  const json = (name, label, value, hint, when) => ({ name: `config.${name}`, label, type: "textarea", code: true, rows: 3, value, hint, when });
  dialog(now ? now.name : "New tool", (close) => form([
    { name: "name", label: "Name", value: now?.name, required: true, hint: "Letters, digits, _ and -." },
    { name: "type", label: "Type", type: "select", value: now?.type ?? "function",
      options: [["function", "a function in JavaScript"], ["api", "an HTTP API"], ["mcp", "a tool of an MCP server"]] },
    { name: "description", label: "Description", type: "textarea", rows: 2, value: now?.description, hint: "What it does and when to call it: the model reads this." },
    { name: "config.code", label: "Code", type: "textarea", code: true, rows: 8, value: c.code ?? "return { sum: args.a + args.b }", required: true,
      when: is("function"), hint: "The body of an async function that reads args." },
    { name: "config.method", label: "Method", type: "select", value: c.method || "GET", options: ["GET", "POST", "PUT", "PATCH", "DELETE"], when: is("api") },
    { name: "config.url", label: "Address", value: c.url, required: true, when: is("api"), hint: "Arguments as {{name}}, behind the host." },
    json("headers", "Headers", pretty(c.headers ?? {}), "A JSON object.", is("api")),
    json("query", "Query", pretty(c.query ?? {}), "A JSON object.", is("api")),
    json("body", "Body", c.body === undefined ? "" : pretty(c.body), "JSON; nothing when empty.", (v) => v.type === "api" && v["config.method"] !== "GET"),
    { name: "config.auth.type", label: "Credentials", type: "select", value: c.auth?.type ?? "", options: [["", "none"], "bearer", "basic", "header"], when: is("api") },
    { name: "config.auth.name", label: "Header", value: c.auth?.name, required: true, when: auth("header") },
    { name: "config.auth.username", label: "User name", value: c.auth?.username, required: true, when: auth("basic") },
    { name: "config.auth.token", label: "Token", type: "password", value: c.auth?.token, required: true, when: auth("bearer") },
    { name: "config.auth.password", label: "Password", type: "password", value: c.auth?.password, required: true, when: auth("basic") },
    { name: "config.auth.value", label: "Value", type: "password", value: c.auth?.value, required: true, when: auth("header") },
    { name: "config.response_path", label: "Part of the answer", value: c.response_path, when: is("api"), placeholder: "data.items" },
    { name: "config.server_id", label: "MCP server", value: c.server_id, required: true, when: is("mcp"), hint: "Its id. The list of a server's tools has a button for this." },
    { name: "config.tool_name", label: "Tool of the server", value: c.tool_name, required: true, when: is("mcp") },
    { ...json("parameters", "Arguments", pretty(c.parameters ?? noArguments), "A JSON Schema of type object.", is("function", "api")), rows: 6 },
  ], { submit: now ? "Save" : "Make", cancel: close, wide: true, run: async (v) => {
    const body = { name: v.name, type: v.type, description: v.description, config: configOf(v, c) };
    await (now ? put(at("tools", now.id), body) : post(at("tools"), body));
    close();
    await done();
  } })).classList.add("large");
}

/** The config that a form says; what it does not show stays as it is. */
function configOf(v, was) {
  const config = v.type === "api" && was.timeout_ms ? { timeout_ms: was.timeout_ms } : {};
  for (const [name, value] of Object.entries(v)) {
    const field = name.replace("config.", "");
    if (field === name || value === "" || field.startsWith("auth.")) continue;
    config[field] = ["headers", "query", "parameters"].includes(field) ? object(value, name) : field === "body" ? anything(value, name) : value;
  }
  if (v["config.auth.type"]) {
    config.auth = Object.fromEntries(Object.entries(v).filter(([name]) => name.startsWith("config.auth.")).map(([name, value]) => [name.replace("config.auth.", ""), value]));
  }
  return config;
}

function anything(text, name) {
  try { return JSON.parse(text); } catch (error) {
    throw Object.assign(new Error("The body is not JSON."), { details: { field: name, issue: `is not JSON: ${error.message}` } });
  }
}

/** Arguments to begin with, from their schema. */
function sample(schema) {
  const empty = { number: 0, integer: 0, boolean: false, array: [], object: {} };
  const known = Object.entries(schema?.properties ?? {});
  return Object.fromEntries(known.map(([name, s]) => [name, s?.default ?? s?.examples?.[0] ?? s?.enum?.[0] ?? empty[s?.type] ?? ""]));
}

function attempt(tool, at) {
  dialog(`Try ${tool.name}`, (close) => {
    const outcome = h("div", { class: "outcome", "aria-live": "polite" });
    return [tool.description ? h("p", {}, tool.description) : "", form([{ name: "arguments", label: "Arguments", type: "textarea", code: true, rows: 6,
      value: pretty(sample(tool.config.parameters)), hint: "A JSON object." }],
      { submit: "Call it", extra: h("button", { type: "button", click: close }, "Close"), run: async (v) => {
        outcome.replaceChildren();
        const r = await post(at("tools", tool.id, "execute"), { arguments: object(v.arguments, "arguments") });
        outcome.replaceChildren(r.success ? h("pre", { class: "card" }, pretty(r.result)) : h("div", { class: "card bad" }, h("p", {}, r.error.message),
          h("p", {}, h("small", {}, r.error.code))),
          h("small", {}, span(r.duration_ms)));
      } }), outcome];
  });
}

async function servers(shown, { at, may, signal }, toolsChanged) {
  const load = async () => {
    const found = await get(at("mcp"), { limit: 200 }, signal);
    shown.replaceChildren(table([
      ["Name", (s) => h("bdi", {}, s.name)], ["Address", (s) => s.url],
      ["Status", (s) => [badge(s.status), s.last_error && h("small", { class: "wrong" }, s.last_error)]], ["Seen", (s) => when(s.checked_at)],
      ["", (s) => [button("Tools", async () => offered(s, at, may, toolsChanged)),
        may && ask("Delete", `Delete ${s.name}?`, "The agent's tools that call it will fail.", async () => { await remove(at("mcp"), { id: s.id }); await load(); })], "actions"],
    ], found.servers, "No MCP servers yet. Add one, and the agent can use its tools."),
      may ? h("div", { class: "row" }, h("button", { type: "button", click: () => add(at, load) }, "Add an MCP server")) : "");
  };
  shown.replaceChildren(h("p", { class: "hint" }, "Looking at the servers…"));
  await load();
}

async function offered(server, at, may, done) {
  const found = await get(at("mcp", server.id, "tools"));
  dialog(`Tools of ${server.name}`, (close) => [
    found.stale ? h("p", { class: "hint" }, "The server does not answer now; these are the tools it had last.") : "",
    found.tools.length ? h("ul", { class: "results" }, found.tools.map((t) => h("li", { class: "card" },
      h("div", { class: "row" }, h("code", {}, t.name), h("span", { class: "grow" }),
      may && button("Let the agent call it", async () => {
        const name = t.name.replace(/[^A-Za-z0-9_-]/g, "_").slice(0, 64);
        const description = [...t.description].slice(0, 4000).join("");
        await post(at("tools"), { name, description, type: "mcp", config: { server_id: server.id, tool_name: t.name } });
        tell(`The agent may call ${t.name}.`);
        await done();
      })), h("p", { class: "text" }, t.description)))) : h("p", { class: "empty" }, "It offers no tools."),
    h("div", { class: "row" }, h("button", { type: "button", click: close }, "Close"))]).classList.add("large");
}

function add(at, done) {
  const is = (...types) => (v) => types.includes(v["auth.type"]);
  dialog("Add an MCP server", (close) => form([
    { name: "name", label: "Name", required: true }, { name: "url", label: "Address", type: "url", required: true },
    { name: "auth.type", label: "Credentials", type: "select", options: ["none", "bearer", "basic", "header", "oauth2"] },
    { name: "auth.token", label: "Token", type: "password", required: true, when: is("bearer") },
    { name: "auth.username", label: "User name", required: true, when: is("basic") },
    { name: "auth.password", label: "Password", type: "password", required: true, when: is("basic") },
    { name: "auth.name", label: "Header", required: true, when: is("header"), placeholder: "X-Api-Key" },
    { name: "auth.value", label: "Value", type: "password", required: true, when: is("header") },
    { name: "auth.client_id", label: "Client id", required: true, when: is("oauth2") },
    { name: "auth.client_secret", label: "Client secret", type: "password", required: true, when: is("oauth2") },
    { name: "auth.token_url", label: "Address of tokens", type: "url", when: is("oauth2"), hint: "The server tells without it." },
    { name: "auth.scope", label: "Scopes", when: is("oauth2") },
  ], { submit: "Add", cancel: close, wide: true, run: async (v) => {
    const auth = Object.fromEntries(Object.entries(v).filter(([name, value]) => name.startsWith("auth.") && value !== "").map(([name, value]) => [name.slice(5), value]));
    const made = await post(at("mcp"), { name: v.name, url: v.url, auth });
    close();
    tell(made.status === "connected" ? `${made.name} answers.` : new Error(`${made.name} is ${made.status}: ${made.last_error}`));
    await done();
  } })).classList.add("large");
}
