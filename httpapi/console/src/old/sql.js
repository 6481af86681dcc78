// The agent's own tables, by SQL.
import { get, post } from "./api.js";
import { failure, h } from "./dom.js";

const quote = (name) => (/^[a-z_][a-z0-9_]*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`);

export async function sql(page, { at, signal }) {
  const query = h("textarea", { rows: 5, class: "code", spellcheck: "false", autocapitalize: "off", "aria-label": "SQL statement",
    value: "SELECT name, email, created_at FROM contacts ORDER BY created_at DESC LIMIT 20",
    keydown: (e) => { if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) { e.preventDefault(); run(); } } });
  const go = h("button", { class: "main" }, "Run");
  const outcome = h("div", { "aria-live": "polite" });
  const run = async () => {
    go.disabled = true;
    try {
      outcome.replaceChildren(...answer(await post(at("sql", "execute"), { query: query.value }, signal)));
    } catch (error) { outcome.replaceChildren(failure(error)); }
    go.disabled = false;
  };
  const { tables } = await get(at("sql", "schema"), {}, signal);
  page.append(h("h1", { tabindex: -1 }, "SQL"),
    h("div", { class: "split" },
      h("form", { submit: (e) => { e.preventDefault(); run(); } }, query,
        h("div", { class: "row" }, go, h("small", {}, "Ctrl+Enter. SELECT, INSERT, UPDATE, DELETE, PRAGMA and EXPLAIN, one statement at a time.")), outcome),
      h("aside", { "aria-label": "Tables" }, h("h2", {}, "Tables"), tables.map((t) => h("details", {},
        h("summary", { title: t.description }, t.name),
        h("ul", {}, t.columns.map((c) => h("li", { title: c.description }, h("code", {}, c.name), " ", h("small", {}, c.type, c.nullable ? "" : " not null")))),
        h("button", { type: "button", click: () => { query.value = `SELECT * FROM ${quote(t.name)} LIMIT 50`; run(); } }, "Show rows"))))));
}

function answer(a) {
  const facts = [`${a.row_count} ${a.row_count === 1 ? "row" : "rows"}`, `${a.duration_ms} ms`, a.truncated && "cut short: there is more"].filter(Boolean);
  const rows = a.rows.slice(0, 200);
  if (rows.length < a.rows.length) facts.push(`the first ${rows.length} are shown`);
  return [h("p", { class: "hint" }, facts.join(" · ")),
    a.columns.length ? h("div", { class: "scroll" }, h("table", { class: "grid" },
      h("thead", {}, h("tr", {}, a.columns.map((c) => h("th", { scope: "col" }, c)))),
      h("tbody", {}, rows.map((row) => h("tr", {}, row.map((v) => h("td", { class: typeof v === "number" ? "number" : undefined },
        v === null ? h("em", {}, "null") : typeof v === "object" ? JSON.stringify(v) : String(v)))))))) : ""];
}
