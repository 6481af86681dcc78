// Conversations: the list, and one to read.
import { get, path, post } from "./api.js";
import { badge, button, h, pager, table, when } from "./dom.js";

export async function conversations(page, context) {
  const [id] = context.rest;
  return id ? conversation(page, context, id) : list(page, context);
}

/** The names of contacts by id, in one request; without them ids are shown. */
async function names(at, ids, signal) {
  const wanted = [...new Set(ids.filter(Boolean))];
  if (!wanted.length) return new Map();
  const query = `SELECT id, name FROM contacts WHERE id IN (${wanted.map(() => "?").join(",")})`;
  const found = await post(at("sql", "execute"), { query, params: wanted }, signal).catch(() => ({ rows: [] }));
  return new Map(found.rows);
}

const who = (c, known) => known.get(c.contact_id) ?? (c.contact_id || "nobody");

async function list(page, { agent, at, signal }) {
  const shown = h("div");
  let offset = 0;
  const load = async () => {
    const found = await get(at("conversations"), { limit: 25, offset, sort: "updated_at", order: "desc" }, signal);
    const known = await names(at, found.conversations.map((c) => c.contact_id), signal);
    shown.replaceChildren(table([
      ["With", (c) => h("a", { href: `#/${path("agents", agent.id, "conversations", c.id)}` }, who(c, known))],
      ["Over", (c) => c.gateway_id || "no gateway"],
      ["", (c) => c.muted && badge("muted")],
      ["Begun", (c) => when(c.created_at)], ["Changed", (c) => when(c.updated_at)],
    ], found.conversations, "No conversations yet. They begin with a message over a gateway or over the interface."),
    found.meta.total ? pager(found.meta, (to) => { offset = to; return load(); }) : "");
  };
  page.append(h("h1", { tabindex: -1 }, "Conversations"), shown);
  await load();
}

async function conversation(page, { agent, at, signal }, id) {
  const found = await get(at("conversations", id), {}, signal);
  const known = await names(at, [found.contact_id], signal);
  const shown = h("ol", { class: "talk" });
  let cursor;
  const older = async () => {
    const part = await get(at("conversations", id, "messages"), { order: "desc", limit: 50, cursor }, signal);
    shown.prepend(...part.messages.reverse().map(message));
    cursor = part.meta.next_cursor;
    more.hidden = !part.meta.has_more;
  };
  const more = button("Show older", older, { hidden: true });
  page.append(h("p", {}, h("a", { href: `#/${path("agents", agent.id, "conversations")}` }, "All conversations")),
    h("h1", { tabindex: -1 }, who(found, known), " ", found.muted && badge("muted")),
    h("p", { class: "hint" }, "Begun ", when(found.created_at), found.gateway_id ? ` over ${found.gateway_id}` : ""), h("p", {}, more), shown);
  await older();
  if (!shown.children.length) shown.replaceWith(h("p", { class: "empty" }, "Nothing was said yet."));
}

function message(m) {
  const author = m.role === "assistant" && m.metadata.author === "human" ? "assistant, a person" : m.role;
  return h("li", { class: m.role }, h("small", {}, author, " · ", when(m.created_at)), h("p", { class: "text" }, m.content));
}
