// The list of agents, and one agent as a whole.
import { download, get, path, post, put, remove, upload } from "./api.js";
import { confirm, dialog } from "./dialog.js";
import { badge, button, h, pager, settled, tell, when } from "./dom.js";
import { form } from "./form.js";

const nameHint = "Letters and digits, with single hyphens between.";
const open = (agent) => { location.hash = `#/${path("agents", agent.id)}`; };

export async function agentList(page) {
  const list = h("div");
  const search = h("input", { type: "search", placeholder: "Search", "aria-label": "Search agents" });
  let offset = 0;
  const load = async () => {
    const found = await get("agents", { search: search.value, limit: 24, offset });
    list.replaceChildren(
      found.agents.length ? h("ul", { class: "cards" }, found.agents.map((a) => h("li", {},
        h("a", { class: "card", href: `#/${path("agents", a.id)}` },
          h("strong", {}, a.name), " ", badge(a.status), h("p", {}, a.description || "No description"), h("small", {}, "Changed ", when(a.updated_at))))))
        : h("p", { class: "empty" }, "No agent is called that."),
      pager(found.meta, (to) => { offset = to; return load(); }));
  };
  search.addEventListener("input", settled(() => { offset = 0; return load(); }));
  page.append(h("h1", { tabindex: -1 }, "Agents"), h("div", { class: "row" }, search, h("span", { class: "grow" }), h("a", { href: "#/keys" }, "API keys"), importButton(),
    h("button", { type: "button", class: "main", click: create }, "New agent")), list);
  await load();
}

function create() {
  dialog("New agent", (close) => form([
    { name: "name", label: "Name", required: true, hint: nameHint },
    { name: "description", label: "Description", type: "textarea", rows: 2 },
  ], { submit: "Create", cancel: close, run: async (values) => { const made = await post("agents", values); close(); open(made); } }));
}

function importButton() {
  const bar = h("progress", { max: 1, value: 0, hidden: true, "aria-label": "Sent so far" });
  const file = h("input", { type: "file", accept: ".db", hidden: true, "aria-label": "Backup file", change: async () => {
    bar.hidden = false;
    try {
      const made = await upload("agents/import", { file: file.files[0] }, (share) => { bar.value = share; });
      tell(`${made.name} is back, and paused.`);
      open(made);
    } catch (error) { tell(error); }
    bar.hidden = true;
    file.value = "";
  } });
  return [bar, file, h("button", { type: "button", click: () => file.click() }, "Import a backup")];
}

export async function overview(page, { agent, at, may, again }) {
  const paused = agent.status === "paused";
  const status = (to) => async () => { await put(at(), { status: to }); await again(); };
  page.append(
    h("h1", { tabindex: -1 }, agent.name, " ", badge(agent.status)),
    h("dl", { class: "facts" }, Object.entries(agent.stats).map(([name, n]) => h("div", {}, h("dt", {}, name), h("dd", {}, n.toLocaleString())))),
    h("div", { class: "row" },
      may && agent.status === "active" && button("Pause", status("paused")),
      may && agent.status !== "active" && button(paused ? "Resume" : "Enable", status("active")),
      may && button("Download backup", () => download("POST", at("backup"))),
      may && h("button", { type: "button", click: () => copy(agent, at) }, "Copy"),
      agent.role === "owner" && agent.id !== "default" && h("button", { type: "button", class: "danger", click: () => confirm(`Delete ${agent.name}?`,
        "Its knowledge, contacts, conversations and everything else in it are deleted. This cannot be undone.",
        "Delete", async () => { const gone = await remove(at()); tell(gone.message); location.hash = "#/"; }, agent.name) }, "Delete")),
    paused ? h("p", { class: "hint" }, "While it is paused, triggers, schedules and automatic replies rest; the interface works.") : "",
    h("h2", {}, "About"),
    form([{ name: "name", label: "Name", value: agent.name, required: true, hint: nameHint },
      { name: "description", label: "Description", type: "textarea", value: agent.description, hint: "At most 500 characters." }],
    { submit: "Save", locked: !may, run: async (values) => { await put(at(), values); tell("Saved."); await again(); } }),
    h("dl", { class: "about" }, [["Id", h("code", {}, agent.id)], ["Owner", agent.owner_email || "nobody: made without identity"],
      ["Model", [agent.settings.llm_provider, agent.settings.llm_model].filter(Boolean).join(" · ") || "none set"],
      ["Created", when(agent.created_at)], ["Changed", when(agent.updated_at)]].map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])));
}

function copy(agent, at) {
  dialog(`Copy ${agent.name}`, (close) => form([{ name: "name", label: "Name of the copy", value: `${agent.name}-copy`, required: true, hint: nameHint }],
    { submit: "Copy", cancel: close, run: async (values) => { const made = await post(at("fork"), values); close(); tell("The copy is paused."); open(made); } }));
}
