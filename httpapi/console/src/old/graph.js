// A picture of a workflow's graph.
import { h } from "./dom.js";
import { box, bulge, layout } from "./layout.js";

const space = "http://www.w3.org/2000/svg";
const most = 250; // nodes; a picture of more shows nothing

/** Makes an element of a picture; texts only become text nodes. */
function s(name, props, ...children) {
  const el = document.createElementNS(space, name);
  for (const [key, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (typeof value === "function") el.addEventListener(key, value);
    else el.setAttribute(key, String(value));
  }
  el.append(...children.flat().filter((c) => c !== null && c !== undefined && c !== false));
  return el;
}

const text = (value) => (typeof value === "string" || typeof value === "number" ? String(value) : "");
const clip = (value, most) => { const letters = [...value]; return letters.length > most ? `${letters.slice(0, most - 1).join("")}…` : value; };

/** What a node is called: its label, else its id. */
export const nameOf = (node) => text(node?.data?.label).trim() || text(node?.id);

/** The nodes and edges that can be drawn of what may be anything. */
function readable(graph) {
  const objects = (list) => (Array.isArray(list) ? list.filter((v) => v && typeof v === "object") : []);
  return { nodes: objects(graph?.nodes).filter((n) => text(n.id)), edges: objects(graph?.edges) };
}

/** Draws a graph. status(id) says what became of a node; pick(id) is called for one that is chosen;
 * a fresh picture that is too wide begins at its first node. */
export function picture(graph, { status = () => "", pick, fresh = true } = {}) {
  const { nodes, edges } = readable(graph);
  if (!nodes.length) return h("p", { class: "empty" }, "There is nothing to draw yet: the graph has no nodes.");
  if (nodes.length > most) return h("p", { class: "hint" }, `The graph has ${nodes.length.toLocaleString()} nodes; up to ${most} are drawn.`);
  const plan = layout(nodes, edges);
  const [width, height] = [plan.width + 24, plan.height + 24];
  const drawn = s("svg", { width, height, viewBox: `-12 -12 ${width} ${height}`, role: "group", "aria-label": "Graph of the workflow" },
    plan.edges.map((e) => line(e)), nodes.map((n) => node(n, plan.nodes.get(n.id), status(n.id), pick)), plan.edges.map((e) => way(e)));
  drawn.style.minWidth = `${Math.round(width * 0.75)}px`; // a wide one is made smaller, as long as it can be read
  const shown = h("div", { class: "graph", tabindex: 0, role: "region", "aria-label": "Picture of the graph" }, drawn);
  if (fresh) {
    new ResizeObserver((_, seen) => {
      if (!shown.clientWidth) return; // it is not in the page yet
      seen.disconnect();
      shown.scrollLeft = (plan.nodes.get(nodes[0].id).x + 12) * drawn.clientWidth / width - shown.clientWidth / 2;
    }).observe(shown);
  }
  return shown;
}

const glyphs = { success: "✓", error: "✕", skipped: "–", running: "…", waiting: "‖", cancelled: "■", wrong: "!" };

function node(n, at, status, pick) {
  const label = nameOf(n);
  const kind = text(n.type) || "no type";
  const choose = pick && (() => pick(n.id));
  return s("g", { class: `node ${status || "plain"}${n.data?.disabled ? " off" : ""}`, transform: `translate(${at.x - box.width / 2} ${at.y - box.height / 2})`,
    tabindex: pick && 0, role: pick && "button", "aria-label": pick && `${label}, ${kind}${status ? `, ${status}` : ""}`,
    click: choose, keydown: choose && ((e) => { if (e.key === "Enter" || e.key === " ") { e.preventDefault(); choose(); } }) },
  s("title", {}, `${clip(label, 300)} (${clip(text(n.id), 100)}), ${clip(kind, 60)}${status ? `: ${status}` : ""}`),
  s("rect", { width: box.width, height: box.height, rx: 8 }),
  s("svg", { x: 12, width: box.width - (status ? 44 : 20), height: box.height },
    s("text", { y: 21, class: "name" }, clip(label, 26)), s("text", { y: 38, class: "kind" }, clip(kind, 30))),
  status && s("text", { x: box.width - 20, y: 31, class: "mark" }, glyphs[status] ?? ""));
}

const n = (value) => Math.round(value * 10) / 10;

function line({ points, back }) {
  const [from, to] = [points[0], points.at(-1)];
  if (back) {
    const [x0, x1, out] = [from.x + box.width / 2, to.x + box.width / 2, bulge(from, to)];
    const y = from === to ? 14 : 0;
    const turn = Math.max(x0, x1) + out;
    return s("path", { class: "edge back", d: `M${n(x0)} ${n(from.y + y)}C${n(turn)} ${n(from.y + y)} ${n(turn)} ${n(to.y - y)} ${n(x1 + 5)} ${n(to.y - y)}m5 -4l-9 4l9 4` });
  }
  let d = `M${n(from.x)} ${n(from.y + box.height / 2)}`;
  points.slice(1).forEach((p, i) => {
    const [start, end] = [points[i].y + box.height / 2, p.y - box.height / 2 - (p === to ? 5 : 0)];
    const bend = (end - start) / 2;
    d += `C${n(points[i].x)} ${n(start + bend)} ${n(p.x)} ${n(end - bend)} ${n(p.x)} ${n(end)}`;
    if (p !== to) d += `V${n(p.y + box.height / 2)}`;
  });
  return s("path", { class: "edge", d: `${d}m-4 -5l4 9l4 -9` });
}

/** The name of the way out that an edge takes. */
function way({ edge, points, back }) {
  const name = text(edge.sourceHandle);
  if (!name) return null;
  const [from, next] = points;
  const at = back ? { x: from.x + box.width / 2 + 12, y: from.y - 6 } : { x: from.x + (next.x - from.x) * 0.3, y: from.y + box.height / 2 + box.rise * 0.42 };
  return s("text", { class: "way", x: n(at.x), y: n(at.y), "text-anchor": back ? "start" : "middle" }, clip(name, 18));
}
