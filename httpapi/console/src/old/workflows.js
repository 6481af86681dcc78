// Workflows: the list, and one with its graph, its executions and its versions.
import { absolute, get, post, put, remove } from "./api.js";
import { ask, dialog } from "./dialog.js";
import { badge, button, copyable, crumb, h, pager, pretty, settled, table, tell, when } from "./dom.js";
import { form, issuesOf, object } from "./form.js";
import { nameOf, picture } from "./graph.js";
import { locate, point, wrongAt } from "./json.js";
import { execution, executionTable } from "./executions.js";

export async function workflows(page, context) {
  const [id, inner] = context.rest;
  if (id === "executions") return execution(page, context, inner);
  return id ? workflow(page, context, id) : list(page, context);
}

const statuses = [["", "every status"], "draft", "active", "paused", "archived"];

async function list(page, { at, to, may, signal }) {
  const shown = h("div");
  const search = h("input", { type: "search", placeholder: "Name or description", "aria-label": "Search workflows" });
  const status = h("select", { "aria-label": "Status" }, statuses.map((o) => h("option", { value: [o].flat()[0] }, [o].flat().at(-1))));
  let offset = 0;
  const load = async () => {
    const found = await get(at("workflows"), { search: search.value, status: status.value, limit: 25, offset, sort: "updated_at", order: "desc" }, signal);
    const empty = search.value || status.value ? "No workflow fits." : "No workflows yet. Make one: it begins with a trigger, and does what its nodes say.";
    shown.replaceChildren(table([
      ["Name", (w) => [h("a", { href: to("workflows", w.id) }, h("bdi", {}, w.name)), w.description && h("small", {}, w.description)]],
      ["Status", (w) => badge(w.status)], ["Version", (w) => w.version, "number"], ["Changed", (w) => when(w.updated_at)],
    ], found.workflows, empty), found.meta.total ? pager(found.meta, (next) => { offset = next; return load(); }) : "");
  };
  const first = settled(() => { offset = 0; return load(); });
  search.addEventListener("input", first);
  status.addEventListener("input", first);
  page.append(h("h1", { tabindex: -1 }, "Workflows"),
    h("div", { class: "row" }, search, status, h("span", { class: "grow" }),
      may && h("button", { type: "button", class: "main", click: () => create(at, to) }, "New workflow")), shown);
  const all = h("div");
  page.append(h("h2", {}, "Executions"), all);
  await Promise.all([load(), executionTable(all, { at, to, signal }, {})]);
}

const beginnings = [["manual", "by hand, or from other programs"], ["webhook", "when an address is called"], ["message.received", "when a message comes in"],
  ["contact.created", "when a contact is made"], ["schedule", "by a schedule"], ["calendar", "by a task of the calendar"]];

function create(at, to) {
  dialog("New workflow", (close) => form([
    { name: "name", label: "Name", required: true },
    { name: "event", label: "It begins", type: "select", options: beginnings },
  ], { submit: "Make", cancel: close, run: async ({ name, event }) => {
    const made = await post(at("workflows"), { name,
      nodes: [{ id: "start", type: "trigger", data: { label: "Start", event } }, { id: "hello", type: "set",
        data: { label: "Say hello", values: { text: "Hello {{contact.name | default:\"you\"}}" } } }],
      edges: [{ source: "start", target: "hello" }] });
    close();
    location.hash = to("workflows", made.id);
  } }));
}

async function workflow(page, context, id) {
  const { agent, at, to, may, signal } = context;
  let now = await get(at("workflows", id), {}, signal);
  const head = h("div");
  const hook = h("div");
  const runs = h("div");
  const history = h("div");
  const editor = graphEditor({ may, save: async (change) => {
    const was = now.version;
    now = await put(at("workflows", id), change);
    tell(now.version === was ? "Saved." : `Saved as version ${now.version}.`);
    await arrange();
  } });

  const arrange = async () => {
    head.replaceChildren(h("h1", { tabindex: -1 }, h("bdi", {}, now.name), " ", badge(now.status)), h("div", { class: "row" },
      may && ["draft", "active"].includes(now.status) && h("button", { type: "button", class: "main", click: () => execute(now, at, to, editor.dirty()) }, "Execute"),
      may && ["draft", "paused"].includes(now.status) && button("Activate", () => editor.submit({ status: "active" })),
      may && now.status === "active" && button("Pause", () => editor.submit({ status: "paused" })),
      may && now.status !== "draft" && button("Back to draft", () => editor.submit({ status: "draft" })),
      may && ["draft", "paused"].includes(now.status) && button("Archive", () => editor.submit({ status: "archived" })),
      may && ask("Delete", `Delete ${now.name}?`, "The workflow is deleted with its versions and executions.", async () => {
        await remove(at("workflows", id));
        location.hash = to("workflows");
      })), now.description ? h("p", {}, now.description) : "");
    hook.replaceChildren(...hookOf(now, agent));
    editor.show(now);
    await versions(history, { at, id, may, signal, restored: async () => { now = await get(at("workflows", id), {}, signal); await arrange(); } });
  };
  addEventListener("beforeunload", (event) => { if (editor.dirty()) event.preventDefault(); }, { signal });
  page.append(crumb(to("workflows"), "All workflows"), head, editor.picture, hook, h("h2", {}, "Definition"), editor.form,
    h("h2", {}, "Executions"), runs, h("h2", {}, "Versions"), history);
  await Promise.all([arrange(), executionTable(runs, context, { workflow_id: id })]);
}

const callers = { "standard-webhooks": "Calls are signed by Standard Webhooks.", hmac: "Calls are signed with an HMAC of the body.", header: "Calls carry a secret header.",
  bearer: "Calls carry a bearer token.", basic: "Calls carry a user name and a password.", none: "Whoever knows the address may call it." };

/** The inbound address of a workflow that has a trigger for it. */
function hookOf(now, agent) {
  const trigger = now.nodes.find((n) => n.type === "trigger" && n.data?.event === "webhook");
  if (!trigger) return [];
  const kind = trigger.data.auth?.type;
  const who = Object.hasOwn(callers, kind ?? "") ? callers[kind] : "The caller needs an identity or an API key with the role admin; auth in the trigger's data lets others in.";
  return [h("h2", {}, "Inbound hook"), copyable(absolute("agents", agent.id, "hooks", now.id)),
    h("p", { class: "hint" }, `POST to this address starts the workflow. ${who}`, now.status === "active" ? "" : " It answers once the workflow is active.")];
}

function execute(now, at, to, dirty) {
  dialog(`Execute ${now.name}`, (close) => [dirty ? h("p", { class: "hint" }, "What is typed and not saved does not take part.") : "", form([
    { name: "input", label: "Input", type: "textarea", code: true, rows: 8, value: "{}",
      hint: "A JSON object: the payload of the trigger. Nodes read it by templates such as {{contact.name}}." },
  ], { submit: "Execute", cancel: close, run: async ({ input }) => {
    const started = await post(at("workflows", "execute"), { workflow_id: now.id, input: object(input, "input") });
    close();
    location.hash = to("workflows", "executions", started.id);
  } })]);
}

/** The form of a workflow with its picture, which follows what is typed. */
function graphEditor({ may, save }) {
  let shown = {};
  let also = {}; // what a button above saves along
  let wrong = new Map();
  const drawing = h("div");
  const faults = h("ul", { class: "faults", role: "alert" });
  const holder = h("div", { class: "editor" });
  const area = () => holder.querySelector("textarea.code");
  const draw = (graph) => drawing.replaceChildren(picture(graph, { status: (id) => (wrong.has(id) ? "wrong" : ""), pick: (id) => {
    const text = area().value;
    const index = parsed(text)?.nodes?.findIndex?.((n) => n?.id === id) ?? -1;
    if (index >= 0) point(area(), locate(text, `nodes[${index}]`));
  } }));
  const parsed = (text) => { try { return JSON.parse(text); } catch { return null; } };
  const follow = settled(() => { const graph = parsed(area().value); if (graph) draw(graph); }, 200);

  /** Shows what is wrong with the graph below it, each with a way to its place. */
  const complain = (issues) => {
    wrong = new Map(issues.filter((i) => i.node_id).map((i) => [i.node_id, i]));
    const nodes = parsed(area().value)?.nodes ?? [];
    const words = (i) => (i.node_id ? [h("strong", {}, h("bdi", {}, nameOf(nodes.find((n) => n?.id === i.node_id)) || i.node_id)),
      `: ${i.field.replace(/^nodes\[\d+\]\.?/, "")} ${i.issue}`] : `${i.field} ${i.issue}`);
    faults.replaceChildren(...issues.map((i) => h("li", {},
      h("button", { type: "button", class: "quiet", click: () => point(area(), locate(area().value, i.field)) }, words(i)))));
    draw(parsed(area().value));
    if (issues.length) point(area(), locate(area().value, issues[0].field));
  };

  const submit = async (values, extra) => {
    complain([]);
    let graph;
    try { graph = object(values.graph, "graph"); } catch (error) {
      const place = wrongAt(values.graph, error);
      if (place !== undefined) point(area(), [place, place + 1]);
      throw error;
    }
    const settings = { concurrency: Number(values["settings.concurrency"]), on_conflict: values["settings.on_conflict"], strict_templates: values["settings.strict_templates"] };
    try {
      await save({ name: values.name, description: values.description, nodes: graph.nodes ?? [], edges: graph.edges ?? [], settings, ...extra });
    } catch (error) {
      const issues = issuesOf(error);
      const ours = issues.filter((i) => /^(nodes|edges)\b/.test(i.field));
      if (!ours.length) throw error;
      const others = issues.filter((i) => !ours.includes(i));
      complain(ours);
      if (others.length) throw Object.assign(new Error(error.message), { details: { errors: others } });
    }
  };

  const make = () => form([
    { name: "name", label: "Name", value: shown.name, required: true },
    { name: "description", label: "Description", type: "textarea", rows: 2, value: shown.description },
    { name: "graph", label: "Nodes and edges", type: "textarea", code: true, rows: 18, value: pretty({ nodes: shown.nodes, edges: shown.edges }),
      hint: "JSON. A node has id, type and data; an edge source, target and, where there are several ways out, sourceHandle. Press a node of the picture to find it here." },
    { name: "settings.concurrency", label: "Executions at a time", type: "number", min: 1, max: 1000, value: shown.settings.concurrency },
    { name: "settings.on_conflict", label: "Executing it while that many run", type: "select", options: [["reject", "is refused"], ["queue", "waits in a queue"]],
      value: shown.settings.on_conflict },
    { name: "settings.strict_templates", label: "A template that names nothing fails its node", type: "checkbox", value: shown.settings.strict_templates },
  ], { submit: "Save", wide: true, locked: !may, run: (values) => submit(values, also) });

  return {
    picture: drawing, form: holder,
    submit: (extra) => { also = extra; holder.firstChild.requestSubmit(); also = {}; },
    dirty: () => area().value !== area().defaultValue,
    show(workflow) {
      shown = workflow;
      wrong = new Map();
      faults.replaceChildren();
      const made = make();
      holder.replaceChildren(made);
      area().after(faults);
      area().defaultValue = area().value;
      area().addEventListener("input", follow);
      draw(shown);
    },
  };
}

async function versions(shown, { at, id, may, signal, restored }) {
  let offset = 0;
  const load = async () => {
    const found = await get(at("workflows", id, "versions"), { limit: 10, offset }, signal);
    shown.replaceChildren(table([
      ["Version", (v) => [v.version, " ", v.current && badge("current")]], ["Nodes", (v) => v.nodes, "number"], ["Edges", (v) => v.edges, "number"],
      ["Made", (v) => when(v.created_at)],
      ["", (v) => !v.current && [button("Show", async () => look(await get(at("workflows", id, "versions", v.version), {}, signal))),
        may && button("Restore", async () => {
          await post(at("workflows", id, "versions", v.version, "restore"));
          tell(`The graph of version ${v.version} is the newest again.`);
          await restored();
        })], "actions"],
    ], found.versions, ""), pager(found.meta, (next) => { offset = next; return load(); }));
  };
  await load();
}

function look(old) {
  dialog(`Version ${old.version}`, (close) => [picture(old), h("details", {}, h("summary", {}, "JSON"), h("pre", {}, pretty({ nodes: old.nodes, edges: old.edges }))),
    h("div", { class: "row" }, h("button", { type: "button", click: close }, "Close"))]).classList.add("large");
}
