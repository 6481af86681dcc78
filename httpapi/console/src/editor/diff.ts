// The differences between two versions of a graph: nodes, their fields, and edges.
import { catalog, typeOf } from "./catalog";
import { type GraphEdge, type GraphNode, sourceHandleOf } from "./graph";

/** How a node or an edge differs from the older version. */
export type Change = "added" | "changed" | "removed";
/** A field of a node with its older and newer value. */
export type FieldChange = { name: string; from: unknown; to: unknown };
/** A node that differs, with the fields that do. */
export type NodeChange = { node: GraphNode; change: Change; fields: FieldChange[] };
/** An edge that was added or removed. */
export type EdgeChange = { edge: GraphEdge; change: Change };

type NodesAndEdges = { nodes: GraphNode[]; edges: GraphEdge[] };

const same = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b);

function fieldChanges(from: GraphNode, to: GraphNode): FieldChange[] {
  const names = new Set([...Object.keys(from.data ?? {}), ...Object.keys(to.data ?? {})]);
  const fields = [...names]
    .map((name) => ({ name, from: from.data?.[name], to: to.data?.[name] }))
    .filter((field) => !same(field.from, field.to));
  return from.type === to.type ? fields : [{ name: "type", from: from.type, to: to.type }, ...fields];
}

/** Returns the nodes that differ, those of the newer graph first. */
export function nodeChanges(from: NodesAndEdges, to: NodesAndEdges): NodeChange[] {
  const nodesBefore = new Map(from.nodes.map((node) => [node.id, node]));
  const idsAfter = new Set(to.nodes.map((node) => node.id));
  const changes: NodeChange[] = [];
  for (const node of to.nodes) {
    const before = nodesBefore.get(node.id);
    const fields = before ? fieldChanges(before, node) : [];
    if (!before || fields.length) changes.push({ node, change: before ? "changed" : "added", fields });
  }
  for (const node of from.nodes) if (!idsAfter.has(node.id)) changes.push({ node, change: "removed", fields: [] });
  return changes;
}

/** Returns the edges by where they lead, since their ids may differ. */
function edgesByEnds({ nodes, edges }: NodesAndEdges): Map<string, GraphEdge> {
  const nodesById = new Map(nodes.map((node) => [node.id, node]));
  return new Map(
    edges.map((edge) => {
      const source = nodesById.get(edge.source);
      const handle = sourceHandleOf(edge, source, source && typeOf(source.type));
      return [`${edge.source}\n${handle}\n${edge.target}`, edge];
    }),
  );
}

/** Returns the edges that differ between nodes that both graphs have. */
export function edgeChanges(from: NodesAndEdges, to: NodesAndEdges): EdgeChange[] {
  const edgesBefore = edgesByEnds(from);
  const edgesAfter = edgesByEnds(to);
  const idsBefore = new Set(from.nodes.map((node) => node.id));
  const sharedIds = new Set(to.nodes.map((node) => node.id).filter((id) => idsBefore.has(id)));
  const changes: EdgeChange[] = [];
  for (const [ends, edge] of edgesAfter) if (!edgesBefore.has(ends)) changes.push({ edge, change: "added" });
  for (const [ends, edge] of edgesBefore) if (!edgesAfter.has(ends)) changes.push({ edge, change: "removed" });
  return changes.filter(({ edge }) => sharedIds.has(edge.source) && sharedIds.has(edge.target));
}

/** Returns the title of a node's field in its form. */
export const fieldTitle = (node: GraphNode, name: string) =>
  typeOf(node.type)?.data.properties?.[name]?.title ?? catalog.value.common.properties?.[name]?.title ?? name;

/** A line of two compared texts. */
export type Line = { kind: "same" | "removed" | "added"; text: string };

const maxCompared = 400_000; // pairs of lines

/** Returns for each pair of lines how many lines the rests of both texts from there on have in common. */
function commonLengths(before: string[], after: string[]): Uint16Array[] {
  const common = Array.from({ length: before.length + 1 }, () => new Uint16Array(after.length + 1));
  for (let i = before.length - 1; i >= 0; i--)
    for (let j = after.length - 1; j >= 0; j--)
      common[i][j] = before[i] === after[j] ? common[i + 1][j + 1] + 1 : Math.max(common[i + 1][j], common[i][j + 1]);
  return common;
}

/** Compares two texts line by line. */
export function lineChanges(from: string, to: string): Line[] {
  const before = from.split("\n");
  const after = to.split("\n");
  const lines: Line[] = [];
  if (before.length * after.length > maxCompared) {
    for (const text of before) lines.push({ kind: "removed", text });
    for (const text of after) lines.push({ kind: "added", text });
    return lines;
  }
  const common = commonLengths(before, after);
  let i = 0;
  let j = 0;
  while (i < before.length || j < after.length) {
    const bothLeft = i < before.length && j < after.length;
    if (bothLeft && before[i] === after[j]) {
      lines.push({ kind: "same", text: before[i] });
      i++;
      j++;
    } else if (i < before.length && (!bothLeft || common[i + 1][j] >= common[i][j + 1])) {
      lines.push({ kind: "removed", text: before[i] });
      i++;
    } else {
      lines.push({ kind: "added", text: after[j] });
      j++;
    }
  }
  return lines;
}

/** Returns the lines that changed and those around them; null stands for lines that are left out. */
export function linesInContext(lines: Line[], around = 2): (Line | null)[] {
  const isNear = lines.map((_, index) =>
    lines.slice(Math.max(0, index - around), index + around + 1).some((line) => line.kind !== "same"),
  );
  return lines.flatMap((line, index): (Line | null)[] => {
    if (isNear[index]) return [line];
    return index === 0 || isNear[index - 1] ? [null] : [];
  });
}
