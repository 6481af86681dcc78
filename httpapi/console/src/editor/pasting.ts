// Pasting nodes: their new ids and positions, and nodes that were copied in n8n.
import { agentId, path, post } from "../data";
import { plural, showToast } from "../ui";
import { freshId, type Graph, type GraphNode, noteNodeId, type Point, readCopy, readGraph } from "./graph";
import { nodeHeight, nodeWidth, withPositions } from "./layout";
import { renameIn } from "./rename";
import type { EditorView } from "./view";

export { renameNode } from "./rename";

const round = (n: number) => Math.round(n / 10) * 10;
const positions = (part: Graph) => [...part.nodes.map((n) => n.position ?? { x: 0, y: 0 }), ...(part.notes ?? [])];

/** Returns the new ids of pasted nodes: their own if these are free. */
function newIds(graph: Graph, part: Graph): Map<string, string> {
  const taken = new Set(graph.nodes.map((node) => node.id));
  const ids = new Map<string, string>();
  for (const { id, type } of part.nodes) {
    const isFree = !taken.has(id);
    if (isFree) taken.add(id);
    ids.set(id, isFree ? id : freshId(id.replace(/\d+$/, "") || type, taken));
  }
  return ids;
}

/** Adds nodes, edges and notes with new ids, moved by dx and dy; templates and scripts follow their nodes. */
export function paste(graph: Graph, part: Graph, dx: number, dy: number): { graph: Graph; ids: string[] } {
  const ids = newIds(graph, part);
  const nodes = part.nodes.map((node) => ({
    ...node,
    id: ids.get(node.id)!,
    data: renameIn(node, ids),
    position: { x: (node.position?.x ?? 0) + dx, y: (node.position?.y ?? 0) + dy },
  }));
  const edgeIds = new Set(graph.edges.map((edge) => edge.id));
  const edges = part.edges
    .filter((edge) => ids.has(edge.source) && ids.has(edge.target))
    .map((edge) => ({
      ...edge,
      id: freshId("e", edgeIds),
      source: ids.get(edge.source)!,
      target: ids.get(edge.target)!,
    }));
  const noteIds = new Set(graph.notes?.map((note) => note.id));
  const notes = (part.notes ?? []).map((note) => ({
    ...note,
    id: freshId("note", noteIds),
    x: note.x + dx,
    y: note.y + dy,
  }));
  return {
    graph: {
      nodes: [...graph.nodes, ...nodes],
      edges: [...graph.edges, ...edges],
      notes: [...(graph.notes ?? []), ...notes],
    },
    ids: [...nodes.map((node) => node.id), ...notes.map((note) => noteNodeId(note.id))],
  };
}

/** Returns the offset by which a copy lies beside its originals, where no other node is. */
function offsetBeside(graph: Graph, part: Graph): Point {
  const key = (x: number, y: number) => `${x},${y}`;
  const taken = new Set(positions(graph).map(({ x, y }) => key(x, y)));
  const offset = { x: 40, y: 60 };
  while (positions(part).some(({ x, y }) => taken.has(key(x + offset.x, y + offset.y)))) {
    offset.x += 40;
    offset.y += 60;
  }
  return offset;
}

const isInside = (point: Point, box: DOMRect) =>
  point.x > box.left && point.x < box.right && point.y > box.top && point.y < box.bottom;

/** Returns the middle of the nodes and notes of a graph. */
function middleOf(graph: Graph): Point {
  const xs = positions(graph).map(({ x }) => x);
  const ys = positions(graph).map(({ y }) => y);
  return {
    x: (Math.min(...xs) + Math.max(...xs) + nodeWidth) / 2,
    y: (Math.min(...ys) + Math.max(...ys) + nodeHeight(1)) / 2,
  };
}

/**
 * Returns the offset of a copy: to the mouse if it is over the graph, beside the
 * originals if these are visible, otherwise to the middle of the view.
 */
function pasteOffset({ editor, flow: getFlow, element }: EditorView, part: Graph, mouse: Point): Point {
  const graph = editor.doc.value;
  const beside = offsetBeside(graph, part);
  const flow = getFlow();
  const view = element();
  if (!flow || !view) return beside;
  const middle = middleOf(part);
  const offsetTo = (point: Point) => {
    const { x, y } = flow.screenToFlowPosition(point);
    return { x: round(x - middle.x), y: round(y - middle.y) };
  };
  if (view.querySelector(".react-flow:hover")) return offsetTo(mouse);
  const box = view.getBoundingClientRect();
  const ids = new Set(graph.nodes.map((node) => node.id));
  const hasOriginals = part.nodes.some((node) => ids.has(node.id));
  const shown = flow.flowToScreenPosition({ x: middle.x + beside.x, y: middle.y + beside.y });
  return hasOriginals && isInside(shown, box)
    ? beside
    : offsetTo({ x: box.left + box.width / 2, y: box.top + box.height / 2 });
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
  const without = unsupported ? `; ${unsupported} without a counterpart` : "";
  showToast(`Pasted ${plural(workflow.nodes.length, "node")} from n8n${without}`);
  return withPositions(readGraph({ nodes: workflow.nodes as GraphNode[], edges: workflow.edges }));
}

/** Inserts copied nodes: at the mouse if it is given and over the graph, otherwise near the originals. */
export async function pasteText(view: EditorView, text: string, mouse?: Point) {
  const part = readCopy(text) ?? (await readForeign(text));
  if (!part?.nodes.length && !part?.notes?.length) return;
  const { editor } = view;
  const graph = editor.doc.value;
  const offset = mouse ? pasteOffset(view, part, mouse) : offsetBeside(graph, part);
  const pasted = paste(graph, part, offset.x, offset.y);
  editor.set(pasted.graph);
  editor.select(pasted.ids);
}
