// Where nodes stand: from left to right, in layers, by dagre.
import type { Graph } from "./graph";
import { sourceHandleOf, outputHandles } from "./graph";
import { typeOf } from "./catalog";

/** The width of a node, in pixels; see editor.css. */
export const nodeWidth = 220;

/** The height of a node, which grows with its outputs; see editor.css. */
export const nodeHeight = (handles: number) => 58 + (handles > 1 ? handles * 24 + 6 : 0);

/** The graph with each node of ids (all without it) at a place of its own. */
export async function tidy(graph: Graph, ids?: Set<string>): Promise<Graph> {
  const { default: dagre } = await import("@dagrejs/dagre");
  const g = new dagre.graphlib.Graph({ multigraph: true });
  g.setGraph({ rankdir: "LR", nodesep: 36, ranksep: 84 });
  g.setDefaultEdgeLabel(() => ({}));
  for (const n of graph.nodes)
    g.setNode(n.id, { width: nodeWidth, height: nodeHeight(outputHandles(n, typeOf(n.type)).length) });
  for (const e of graph.edges)
    if (g.hasNode(e.source) && g.hasNode(e.target) && e.source !== e.target) g.setEdge(e.source, e.target, {}, e.id);
  dagre.layout(g);
  if (crossings(graph, (id) => g.node(id).y) > 0) for (const n of graph.nodes) g.node(n.id).y *= -1; // upside down, there are fewer
  return {
    ...graph,
    nodes: graph.nodes.map((n) => {
      if (ids && !ids.has(n.id)) return n;
      const at = g.node(n.id);
      return {
        ...n,
        position: { x: Math.round((at.x - at.width / 2) / 10) * 10, y: Math.round((at.y - at.height / 2) / 10) * 10 },
      };
    }),
  };
}

/** How many more pairs of edges that leave a node cross than do not: dagre does not know which output is above which. */
function crossings({ nodes, edges }: Graph, y: (id: string) => number): number {
  let crossed = 0;
  for (const n of nodes) {
    const type = typeOf(n.type),
      handles = outputHandles(n, type);
    if (handles.length < 2) continue;
    const out = edges
      .filter((e) => e.source === n.id && e.target !== n.id && nodes.some((t) => t.id === e.target))
      .map((e) => ({ handle: handles.indexOf(sourceHandleOf(e, n, type)), y: y(e.target) }));
    for (const a of out) for (const b of out) if (a.handle < b.handle) crossed += Math.sign(a.y - b.y);
  }
  return crossed;
}

/** Gives a place to nodes that have none; when several stand on one spot, to all. */
export async function withPositions(graph: Graph): Promise<Graph> {
  const spots = new Set(
    graph.nodes.map((n) => (n.position && Number.isFinite(n.position.x) ? `${n.position.x},${n.position.y}` : "")),
  );
  const missing = graph.nodes.filter(
    (n) => !n.position || !Number.isFinite(n.position.x) || !Number.isFinite(n.position.y),
  );
  if (graph.nodes.length && (missing.length || (spots.size === 1 && graph.nodes.length > 1))) return tidy(graph);
  return graph;
}
