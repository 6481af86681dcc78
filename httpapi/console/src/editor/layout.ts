// Positions of nodes: from left to right in layers, computed by dagre.
import { typeOf } from "./catalog";
import { type Graph, type GraphNode, outputHandles, sourceHandleOf } from "./graph";

/** The width of a node, in pixels; see editor.css. */
export const nodeWidth = 220;

/** Returns the height of a node with a number of outputs; see editor.css. */
export const nodeHeight = (outputs: number) => 58 + (outputs > 1 ? outputs * 24 + 6 : 0);

/** Returns the height of a node without outputs that its type no longer has. */
export const heightOf = (node: GraphNode) => nodeHeight(outputHandles(node, typeOf(node.type)).length);

/** Returns a coordinate on the grid of the canvas. */
const onGrid = (value: number) => Math.round(value / 10) * 10;

/** Returns the graph with new positions for the nodes of ids, or for all of them. */
export async function tidy(graph: Graph, ids?: Set<string>): Promise<Graph> {
  const { default: dagre } = await import("@dagrejs/dagre");
  const layout = new dagre.graphlib.Graph({ multigraph: true });
  layout.setGraph({ rankdir: "LR", nodesep: 36, ranksep: 84 });
  layout.setDefaultEdgeLabel(() => ({}));
  for (const node of graph.nodes) layout.setNode(node.id, { width: nodeWidth, height: heightOf(node) });
  for (const { id, source, target } of graph.edges)
    if (layout.hasNode(source) && layout.hasNode(target) && source !== target) layout.setEdge(source, target, {}, id);
  dagre.layout(layout);
  // If most edges cross, fewer do upside down.
  if (excessCrossings(graph, (id) => layout.node(id).y) > 0)
    for (const node of graph.nodes) layout.node(node.id).y *= -1;
  const nodes = graph.nodes.map((node) => {
    if (ids && !ids.has(node.id)) return node;
    const { x, y, width, height } = layout.node(node.id);
    return { ...node, position: { x: onGrid(x - width / 2), y: onGrid(y - height / 2) } };
  });
  return { ...graph, nodes };
}

/**
 * Returns by how many the pairs of edges that leave the same node and cross exceed those that do not cross.
 * Dagre does not know the order of a node's outputs.
 */
function excessCrossings({ nodes, edges }: Graph, yOf: (id: string) => number): number {
  const ids = new Set(nodes.map((node) => node.id));
  let excess = 0;
  for (const node of nodes) {
    const type = typeOf(node.type);
    const handles = outputHandles(node, type);
    if (handles.length < 2) continue;
    const leaving = edges
      .filter((edge) => edge.source === node.id && edge.target !== node.id && ids.has(edge.target))
      .map((edge) => ({ output: handles.indexOf(sourceHandleOf(edge, node, type)), y: yOf(edge.target) }));
    for (const a of leaving) for (const b of leaving) if (a.output < b.output) excess += Math.sign(a.y - b.y);
  }
  return excess;
}

/**
 * Returns the graph with a position for every node: the graph is laid out anew if one has none, or all have the same.
 */
export async function withPositions(graph: Graph): Promise<Graph> {
  const { nodes } = graph;
  const complete = nodes.every(({ position }) => Number.isFinite(position?.x) && Number.isFinite(position?.y));
  const distinct = new Set(nodes.map(({ position }) => `${position?.x},${position?.y}`)).size;
  return complete && (distinct > 1 || nodes.length < 2) ? graph : tidy(graph);
}
