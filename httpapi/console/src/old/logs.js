// What happened in the agent.
import { get } from "./api.js";
import { badge, button, h, pager, settled, table, when } from "./dom.js";

export async function logs(page, { at, signal }) {
  const list = h("div");
  const search = h("input", { type: "search", placeholder: "Search", "aria-label": "Search the log" });
  const level = h("select", { "aria-label": "Level" }, [["", "every level"], ["debug", "debug"], ["info", "info"], ["warn", "warn"], ["error", "error"]]
    .map(([v, t]) => h("option", { value: v }, t)));
  const source = h("input", { type: "search", placeholder: "Source, such as audit", "aria-label": "Source", class: "short" });
  let offset = 0;
  const load = async () => {
    const found = await get(at("logs"), { search: search.value, level: level.value, source: source.value, limit: 50, offset }, signal);
    list.replaceChildren(table([
      ["When", (l) => when(l.created_at)], ["Level", (l) => badge(l.level)], ["Source", (l) => l.source],
      ["Message", (l) => [l.message, data(l.data)], "text"],
    ], found.logs, "Nothing is written here."), found.meta.total ? pager(found.meta, (to) => { offset = to; return load(); }) : "");
  };
  const first = settled(() => { offset = 0; return load(); });
  for (const input of [search, level, source]) input.addEventListener("input", first);
  page.append(h("h1", { tabindex: -1 }, "Activity"),
    h("div", { class: "row" }, search, level, source, h("span", { class: "grow" }), button("Refresh", load)), list);
  await load();
}

function data(value) {
  if (!value || !Object.keys(value).length) return null;
  return h("details", {}, h("summary", {}, "Data"), h("pre", {}, JSON.stringify(value, null, 2)));
}
