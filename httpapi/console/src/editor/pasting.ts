// Pasting nodes: under which ids, where they stand, and those that were copied in n8n.
import { agentId, path, post } from "../data";
import { plural, tell } from "../ui";
import type { Flow } from "./canvas";
import { freshId, type Graph, nodeWidth, noteNode, placed, readGraph, type Step } from "./base";
import { renameIn } from "./rename";

type Place = { x: number; y: number };

const round = (n: number) => Math.round(n / 10) * 10;
const spots = (part: Graph) => [...part.nodes.map((n) => n.position ?? { x: 0, y: 0 }), ...(part.notes ?? [])];

/** Adds nodes, edges and notes with fresh ids, moved by dx and dy; templates and scripts follow their nodes. */
export function paste(graph: Graph, part: Graph, dx: number, dy: number): { graph: Graph; ids: string[] } {
  const taken = new Set(graph.nodes.map((n) => n.id));
  const takenEdges = new Set(graph.edges.map((e) => e.id));
  const renamed = new Map<string, string>();
  for (const n of part.nodes)
    renamed.set(n.id, taken.has(n.id) ? freshId(n.id.replace(/\d+$/, "") || n.type, taken) : (taken.add(n.id), n.id));
  const nodes = part.nodes.map((n) => ({
    ...n,
    id: renamed.get(n.id)!,
    data: renameIn(n, renamed),
    position: { x: (n.position?.x ?? 0) + dx, y: (n.position?.y ?? 0) + dy },
  }));
  const edges = part.edges
    .filter((e) => renamed.has(e.source) && renamed.has(e.target))
    .map((e) => ({
      ...e,
      id: freshId("e", takenEdges),
      source: renamed.get(e.source)!,
      target: renamed.get(e.target)!,
    }));
  const takenNotes = new Set(graph.notes?.map((n) => n.id));
  const notes = (part.notes ?? []).map((n) => ({ ...n, id: freshId("note", takenNotes), x: n.x + dx, y: n.y + dy }));
  return {
    graph: {
      nodes: [...graph.nodes, ...nodes],
      edges: [...graph.edges, ...edges],
      notes: [...(graph.notes ?? []), ...notes],
    },
    ids: [...nodes.map((n) => n.id), ...notes.map((n) => noteNode(n.id))],
  };
}

/** The way from where nodes were copied to a free place beside it. */
export function besides(graph: Graph, part: Graph): Place {
  const taken = new Set(spots(graph).map((p) => `${p.x},${p.y}`));
  const by = { x: 40, y: 60 };
  while (spots(part).some((p) => taken.has(`${p.x + by.x},${p.y + by.y}`))) {
    by.x += 40;
    by.y += 60;
  }
  return by;
}

/** The way from where nodes were copied to the mouse, if it is over the graph; else beside the originals, if they are in sight, or in the middle. */
export function pastePlace(
  graph: Graph,
  part: Graph,
  flow: Flow | null,
  view: HTMLElement | null | undefined,
  mouse: Place,
): Place {
  const box = view?.getBoundingClientRect();
  if (!flow || !view || !box) return besides(graph, part);
  const all = spots(part);
  const left = Math.min(...all.map((p) => p.x)),
    top = Math.min(...all.map((p) => p.y));
  const middle = {
    x: (left + Math.max(...all.map((p) => p.x)) + nodeWidth) / 2,
    y: (top + Math.max(...all.map((p) => p.y)) + 60) / 2,
  };
  const to = (at: Place) => {
    const p = flow.screenToFlowPosition(at);
    return { x: round(p.x - middle.x), y: round(p.y - middle.y) };
  };
  if (view.querySelector(".react-flow:hover")) return to(mouse);
  const by = besides(graph, part);
  const seen = flow.flowToScreenPosition({ x: middle.x + by.x, y: middle.y + by.y });
  const inSight = seen.x > box.left && seen.x < box.right && seen.y > box.top && seen.y < box.bottom;
  const known = new Set(graph.nodes.map((n) => n.id));
  return inSight && part.nodes.some((n) => known.has(n.id))
    ? by
    : to({ x: box.left + box.width / 2, y: box.top + box.height / 2 });
}

/** Reads nodes that were copied in n8n, as its import does; undefined for other text. */
export async function readForeign(text: string): Promise<Graph | undefined> {
  let document: { nodes?: unknown; connections?: unknown };
  try {
    document = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!Array.isArray(document.nodes) || !document.connections || typeof document.connections !== "object")
    return undefined;
  const {
    workflows: [workflow],
    report,
  } = await post(path("agents", agentId.value, "workflows", "import"), { format: "n8n", document, dry_run: true });
  if (!workflow) return undefined;
  const unsupported = new Set(report.filter((l) => l.node && l.level === "unsupported").map((l) => l.node)).size;
  tell(
    `Pasted ${plural(workflow.nodes.length, "node")} from n8n${unsupported ? `; ${unsupported} without a counterpart` : ""}`,
  );
  return placed(readGraph({ nodes: workflow.nodes as Step[], edges: workflow.edges }));
}
