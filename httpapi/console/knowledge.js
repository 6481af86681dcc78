// Documents: upload, what becomes of them, and the search in them.
import { download, get, post, remove, upload } from "./api.js";
import { confirm } from "./dialog.js";
import { badge, button, failure, h, pager, size, table, tell, when } from "./dom.js";

const kinds = ".txt,.md,.docx,.json,.csv,.pdf,.html,.htm";
const busy = (source) => !["ready", "error"].includes(source.status);

export async function knowledge(page, { at, may, signal }) {
  const sending = h("ul", { class: "sending" });
  const list = h("div");
  let offset = 0;
  let timer;

  const load = async () => {
    clearTimeout(timer);
    const found = await get(at("sources"), { limit: 25, offset }, signal);
    const running = found.sources.filter(busy);
    // How far the work has come stands only with a source by itself; two are asked, for the rate limit's sake.
    await Promise.all(running.slice(0, 2).map(async (s) => Object.assign(s, await get(at("sources", s.id), {}, signal).catch(() => null))));
    const focused = [...list.querySelectorAll("button")].indexOf(document.activeElement);
    list.replaceChildren(sources(found.sources), found.meta.total > 0 ? pager(found.meta, (to) => { offset = to; return load(); }) : "");
    list.querySelectorAll("button")[focused]?.focus(); // a look again takes nobody's place away
    if (running.length) later(document.hidden ? 15000 : 4000);
  };
  // A look that fails, for example because of the rate limit, is made again after a while.
  const later = (wait) => {
    clearTimeout(timer);
    timer = setTimeout(() => load().catch((error) => { if (!signal.aborted) later(1000 * (error.details?.retry_after ?? 15)); }), wait);
  };
  signal.addEventListener("abort", () => clearTimeout(timer));

  const sources = (all) => table([
    ["Name", (s) => s.name],
    ["Status", (s) => [badge(s.status), s.stale && badge("stale"), s.progress?.total ? [h("progress",
      { max: s.progress.total, value: s.progress.done, "aria-label": "Progress" }),
      h("small", {}, `${s.progress.done.toLocaleString()} of ${s.progress.total.toLocaleString()}`)] : "",
    s.error && h("small", { class: "wrong" }, s.error.message)]],
    ["Chunks", (s) => s.chunks.toLocaleString(), "number"],
    ["Changed", (s) => when(s.updated_at)],
    ["", (s) => [
      button("Download", () => download("GET", at("sources", s.id, "file"))),
      may && !busy(s) && button("Reindex", async () => { await post(at("sources", s.id, "reindex")); await load(); }),
      may && h("button", { type: "button", class: "danger", click: () => confirm(`Delete ${s.name}?`, "The document and its chunks are deleted.", "Delete",
        async () => { await remove(at("sources", s.id)); await load(); }) }, "Delete")], "actions"],
  ], all, "Nothing is known yet. Upload a document to begin.");

  const send = async (files) => {
    for (const file of files) {
      const bar = h("progress", { max: 1, value: 0, "aria-label": `Sending ${file.name}` });
      const line = h("li", {}, h("span", {}, file.name), h("small", {}, size(file.size)), bar);
      sending.append(line);
      try {
        await upload(at("sources"), { type: "file", name: file.name, file }, (share) => { bar.value = share; });
        line.remove();
      } catch (error) {
        bar.remove();
        line.append(h("small", { class: "wrong" }, error.message), h("button", { type: "button", class: "quiet", "aria-label": "Close", click: () => line.remove() }, "×"));
      }
      await load().catch(tell);
    }
  };
  const file = h("input", { type: "file", multiple: true, accept: kinds, hidden: true, "aria-label": "Documents",
    change: async () => { await send([...file.files]); file.value = ""; } });
  const drop = h("div", { class: "drop",
    dragover: (e) => { e.preventDefault(); drop.classList.add("over"); },
    dragleave: () => drop.classList.remove("over"),
    drop: (e) => { e.preventDefault(); drop.classList.remove("over"); send([...e.dataTransfer.files]); } },
  file, h("button", { type: "button", class: "main", click: () => file.click() }, "Upload documents"),
  h("span", { class: "hint" }, "or drop them here: text, Markdown, HTML, PDF, DOCX, CSV, JSON"));

  page.append(h("h1", { tabindex: -1 }, "Knowledge"), search(at, signal), h("h2", {}, "Documents"), may ? drop : "", sending, list);
  await load();
}

function search(at, signal) {
  const query = h("input", { type: "search", required: true, placeholder: "Ask in any words", "aria-label": "Search for", autocomplete: "off" });
  const mode = h("select", { "aria-label": "Way to search" },
    [["hybrid", "meaning and words"], ["vector", "meaning"], ["keyword", "words"]].map(([v, t]) => h("option", { value: v }, t)));
  const results = h("div", { "aria-live": "polite" });
  return h("section", {}, h("form", { class: "row bar", role: "search", submit: async (event) => {
    event.preventDefault();
    results.replaceChildren(h("p", { class: "hint" }, "Searching…"));
    try {
      const found = await get(at("sources", "search"), { query: query.value, mode: mode.value }, signal);
      results.replaceChildren(found.results.length ? h("ol", { class: "results" }, found.results.map(result)) : h("p", { class: "empty" }, "Nothing was found."));
    } catch (error) { results.replaceChildren(failure(error)); }
  } }, query, mode, h("button", { class: "main" }, "Search")), results);
}

function result(r) {
  const from = [r.metadata.source_name, r.metadata.page && `page ${r.metadata.page}`, r.metadata.section].filter(Boolean).join(" · ");
  return h("li", { class: "card" }, h("div", { class: "row" }, h("small", { class: "grow" }, from),
    h("meter", { min: 0, max: 1, value: r.score, "aria-label": "Similarity" }), h("small", { title: "cosine similarity" }, r.score.toFixed(3))),
  h("p", { class: "text" }, r.content));
}
