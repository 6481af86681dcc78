// Executions of workflows: a list, and one, live while it runs.
import { get, post, stream } from "./api.js";
import { ask, dialog } from "./dialog.js";
import { badge, button, crumb, follower, h, pager, pretty, refill, size, span, table, when } from "./dom.js";
import { form, object } from "./form.js";
import { nameOf, picture } from "./graph.js";

const ended = (x) => !["queued", "running"].includes(x.status);
const took = (x) => (x.started_at && x.completed_at ? span(new Date(x.completed_at) - new Date(x.started_at)) : "");

/** Shows executions, newest first, within an element. */
export async function executionTable(shown, { at, to, signal }, query) {
  let offset = 0;
  const load = async () => {
    const found = await get(at("workflows", "executions"), { ...query, limit: 10, offset }, signal);
    const names = query.workflow_id || !found.executions.length ? null
      : new Map((await get(at("workflows"), { limit: 200 }, signal)).workflows.map((w) => [w.id, w.name]));
    refill(shown, table([
      names ? ["Workflow", (x) => h("bdi", {}, names.get(x.workflow_id) ?? x.workflow_id)] : ["Version", (x) => x.version, "number"],
      ["Begun", (x) => h("a", { href: to("workflows", "executions", x.id) }, when(x.started_at ?? x.created_at))],
      ["Status", (x) => [badge(x.status), x.error && h("small", { class: "wrong" }, x.error.message)]],
      ["Started by", (x) => x.trigger], ["Took", took],
    ], found.executions, "It has not been executed yet."),
    h("div", { class: "row" }, found.meta.total ? pager(found.meta, (next) => { offset = next; return load(); }) : "", button("Refresh", load, { class: "quiet" })));
    look(found.executions.some((x) => !ended(x)));
  };
  const look = follower(load, signal);
  await load();
}

const placeOf = (r) => r.path ?? (r.iteration === undefined ? "" : String(r.iteration));
const keyOf = (r) => `${placeOf(r)}@${r.node_id}`;
const listed = 200; // results; more than that say little to a reader

/** What became of a node over all its iterations: the worst, and what goes on before what is done. */
const weight = ["skipped", "success", "cancelled", "running", "waiting", "error"];
const worst = (statuses) => statuses.reduce((a, b) => (weight.indexOf(b) > weight.indexOf(a) ? b : a), "");

export async function execution(page, { at, to, may, signal, again }, id) {
  const where = (...more) => at("workflows", "executions", id, ...more);
  let x = await get(where(), {}, signal);
  // The graph as it was when the execution started; when that is gone, as it is.
  const graph = await get(at("workflows", x.workflow_id, "versions", x.version), {}, signal).catch(() => get(at("workflows", x.workflow_id), {}, signal));
  const nodes = new Map(graph.nodes.map((n) => [n.id, n]));
  const results = new Map(x.node_results.map((r) => [keyOf(r), r]));
  const cards = new Map();
  let only = "";
  const head = h("div");
  const drawing = h("div");
  const list = h("ol", { class: "results" });
  const note = h("p", { class: "hint", role: "status" });
  const end = h("div");

  const actions = { at: where, may, ended: () => ended(x), again, follow: (made) => { location.hash = to("workflows", "executions", made.id); } };
  const drawHead = () => head.replaceChildren(h("div", {},
    h("h1", { tabindex: -1 }, "Execution ", badge(x.status)),
    h("div", { class: "row" },
      may && !ended(x) && ask("Terminate", "End this execution?", "Nodes that run are cut, and nothing behind them runs.",
        async () => { await post(where("terminate")); await again(); }),
      may && ended(x) && x.status !== "complete" && button("Retry", async () => actions.follow(await post(where("retry")))),
      ended(x) && x.status !== "complete" && h("small", {}, "A retry begins at the node that failed, by the workflow as it is now.")),
    x.error && h("div", { class: "card bad" }, h("p", {}, x.error.node_id && [h("bdi", {}, nameOf(nodes.get(x.error.node_id)) || x.error.node_id), ": "],
      h("bdi", {}, x.error.message)), h("small", {}, x.error.code)),
    h("dl", { class: "about" }, [["Started by", x.trigger], ["Begun", when(x.started_at ?? x.created_at)], ["Took", took(x)], ["Version", x.version],
      ["Repeats", x.retried_from && h("a", { href: to("workflows", "executions", x.retried_from) }, "another execution")],
      ["Part of", x.parent_id && h("a", { href: to("workflows", "executions", x.parent_id) }, "another execution")], ["Id", h("code", {}, x.id)]]
      .filter(([, value]) => value).map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]))));
  const drawEnd = () => end.replaceChildren(h("h2", {}, "Input"), h("pre", { class: "card" }, pretty(x.input ?? {})),
    x.output === undefined ? "" : h("section", {}, h("h2", {}, "Output"), h("pre", { class: "card" }, pretty(x.output))));
  const draw = () => {
    const found = new Map();
    for (const r of results.values()) found.set(r.node_id, worst([found.get(r.node_id) ?? "", r.status]));
    const [x0, y0] = [drawing.firstChild?.scrollLeft ?? 0, drawing.firstChild?.scrollTop ?? 0];
    const focused = [...drawing.querySelectorAll("[tabindex]")].indexOf(document.activeElement);
    drawing.replaceChildren(picture(graph, { fresh: !drawing.firstChild, status: (node) => found.get(node) ?? "",
      pick: (node) => { only = only === node ? "" : node; arrange(); list.scrollIntoView({ block: "nearest" }); } }));
    drawing.firstChild.scrollTo?.(x0, y0);
    drawing.querySelectorAll("[tabindex]")[focused]?.focus();
    arrange();
  };
  const arrange = () => {
    const wanted = [...results.values()].filter((r) => (only ? r.node_id === only : r.status !== "skipped"));
    const skipped = only ? 0 : results.size - wanted.length;
    note.replaceChildren(only ? h("button", { type: "button", click: () => { only = ""; arrange(); } }, "Show all nodes") : "",
      [wanted.length > listed && `The first ${listed} of ${wanted.length.toLocaleString()} results are shown.`,
        skipped && `${skipped} skipped ${skipped === 1 ? "node is" : "nodes are"} left out.`,
        !results.size && "No node has begun yet."].filter(Boolean).join(" "));
    note.hidden = !note.textContent;
    const kept = wanted.slice(0, listed).map((r) => card(r));
    if (kept.length !== list.children.length || kept.some((el, i) => el !== list.children[i])) list.replaceChildren(...kept);
  };
  // A result that has not changed keeps its element, and with it what is typed or unfolded there.
  const card = (r) => {
    const known = cards.get(keyOf(r));
    if (known?.result === r) return known.el;
    const el = resultCard(r, nodes.get(r.node_id), actions);
    cards.set(keyOf(r), { result: r, el });
    return el;
  };

  let due;
  const soon = () => { due ??= setTimeout(() => { due = undefined; draw(); }, 60); }; // many nodes may end at once

  page.append(crumb(to("workflows", x.workflow_id), h("bdi", {}, graph.name)), head, drawing, h("h2", {}, "Nodes"), note, list, end);
  drawHead();
  draw();
  drawEnd();
  if (!ended(x)) watch(where("events"), signal, {
    node: (r) => {
      results.set(keyOf(r), r);
      if (x.status === "queued") { x = { ...x, status: "running" }; drawHead(); }
      soon();
    },
    end: (last) => { x = { ...x, ...last }; cards.clear(); drawHead(); soon(); drawEnd(); },
  });
}

/** Follows an execution until it ends. A stream that breaks is opened again, and tells the whole story. */
async function watch(at, signal, { node, end }) {
  let over = false;
  for (let wait = 1000; !over && !signal.aborted; wait = Math.min(wait * 2, 30000)) {
    await stream(at, signal, (name, data) => {
      wait = 1000;
      if (name.startsWith("node.")) node(data);
      else { over = true; end(data); }
    }).catch(() => {});
    if (!over) await new Promise((done) => { setTimeout(done, wait); });
  }
}

/** What became of one node, once. */
function resultCard(r, node, actions) {
  const place = placeOf(r);
  const facts = [r.type, place !== "" && `iteration ${place.split(".").map((n) => Number(n) + 1).join(" of ")}`, r.attempt > 1 && `attempt ${r.attempt}`,
    r.handle && `left by ${r.handle}`,
    !["running", "waiting", "skipped"].includes(r.status) && span(r.duration_ms)].filter(Boolean).join(" · ");
  return h("li", { class: `card ${r.status}` },
    h("div", { class: "row" }, h("strong", {}, h("bdi", {}, nameOf(node) || r.node_id)), badge(r.status), h("small", { class: "grow" }, facts),
      actions.may && actions.ended() && node && r.status !== "skipped" && button("Retry from here",
        async () => actions.follow(await post(actions.at("retry"), { from_node: r.node_id })), { class: "quiet" })),
    r.error && h("p", { class: "wrong" }, r.error.message, " ", h("small", {}, r.error.code)),
    (r.warnings ?? []).map((w) => h("p", { class: "hint" }, w)),
    r.logs?.length ? h("details", {}, h("summary", {}, "Console"), h("pre", {}, r.logs.map((l) => `${l.level === "log" ? "" : `${l.level}: `}${l.message}`).join("\n"))) : "",
    output(r, actions),
    r.status === "waiting" && actions.may && waiting(r, node, actions));
}

function output(r, actions) {
  if (r.output !== undefined) return h("details", {}, h("summary", {}, "Output"), h("pre", {}, pretty(r.output)));
  if (!r.output_bytes) return "";
  const shown = h("div", {}, button(`Show the output, ${size(r.output_bytes)}`, async () => {
    const all = await get(actions.at(), { full: true });
    shown.replaceChildren(h("pre", {}, pretty(all.node_results.find((o) => keyOf(o) === keyOf(r))?.output)));
  }));
  return shown;
}

/** How a node that waits is answered. */
function waiting(r, node, actions) {
  const resume = (data) => post(actions.at("resume"), { node_id: r.node_id, path: placeOf(r) || undefined, data });
  if (r.type === "workflow") return h("p", { class: "hint" }, "It waits for the execution that it started.");
  if (r.type !== "approval") return button("Go on now", () => goOn(resume));
  const told = [r.approval?.title, r.approval?.message].filter(Boolean);
  const decide = (decision) => async () => resume({ decision, comment: said.value });
  const said = h("input", { type: "text", "aria-label": "Comment", placeholder: "Comment", maxlength: 10000 });
  return h("div", {}, told.map((t) => h("p", { class: "text" }, t)), h("div", { class: "row" }, said,
    button("Approve", decide("approved"), { class: "main" }), button("Reject", decide("rejected"), { class: "danger" })));
}

function goOn(resume) {
  dialog("Go on now", (close) => form([{ name: "data", label: "Data", type: "textarea", code: true, value: "{}", hint: "A JSON object; the node's output holds it as data." }],
    { submit: "Go on", cancel: close, run: async ({ data }) => { await resume(object(data, "data")); close(); } }));
}

/** A link to an execution, where there is one. */
export const executionLink = (to, id) => (id ? h("a", { href: to("workflows", "executions", id) }, "execution") : "");
