// What differs between two versions of a graph: its nodes, their fields, and
// its edges.
import { catalog, type GraphEdge, type GraphNode, sourceHandleOf, typeOf } from "./index";

/** How a node or an edge differs from the older version. */
export type Change = "added" | "changed" | "removed";
/** A field of a node with its older and newer value. */
export type FieldChange = { name: string; from: unknown; to: unknown };
/** A node that differs, with the fields that do. */
export type NodeChange = { node: GraphNode; change: Change; fields: FieldChange[] };
/** An edge that was added or removed. */
export type EdgeChange = { edge: GraphEdge; change: Change };

type Nodes = { nodes: GraphNode[]; edges: GraphEdge[] };

const same = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b);

function fieldChanges(from: GraphNode, to: GraphNode): FieldChange[] {
  const names = new Set([...Object.keys(from.data ?? {}), ...Object.keys(to.data ?? {})]);
  const fields = [...names]
    .map((name) => ({ name, from: from.data?.[name], to: to.data?.[name] }))
    .filter((f) => !same(f.from, f.to));
  return from.type === to.type ? fields : [{ name: "type", from: from.type, to: to.type }, ...fields];
}

/** The nodes that differ, those of the newer graph first. */
export function nodeChanges(from: Nodes, to: Nodes): NodeChange[] {
  const before = new Map(from.nodes.map((n) => [n.id, n])),
    after = new Set(to.nodes.map((n) => n.id));
  const changes: NodeChange[] = [];
  for (const node of to.nodes) {
    const was = before.get(node.id);
    const fields = was ? fieldChanges(was, node) : [];
    if (!was || fields.length) changes.push({ node, change: was ? "changed" : "added", fields });
  }
  for (const node of from.nodes) if (!after.has(node.id)) changes.push({ node, change: "removed", fields: [] });
  return changes;
}

/** The edges between nodes of both graphs that differ; those of added and removed nodes go without saying. */
export function edgeChanges(from: Nodes, to: Nodes): EdgeChange[] {
  const keys = ({ nodes, edges }: Nodes) => {
    const byId = new Map(nodes.map((n) => [n.id, n]));
    return new Map(
      edges.map((e) => {
        const n = byId.get(e.source);
        return [`${e.source}\n${sourceHandleOf(e, n, n && typeOf(n.type))}\n${e.target}`, e];
      }),
    );
  };
  const [before, after] = [keys(from), keys(to)];
  const both = (e: GraphEdge) =>
    [e.source, e.target].every((id) => from.nodes.some((n) => n.id === id) && to.nodes.some((n) => n.id === id));
  return [
    ...[...after].filter(([k]) => !before.has(k)).map(([, edge]) => ({ edge, change: "added" as const })),
    ...[...before].filter(([k]) => !after.has(k)).map(([, edge]) => ({ edge, change: "removed" as const })),
  ].filter((c) => both(c.edge));
}

/** What a field of a node is called in its form. */
export const fieldTitle = (node: GraphNode, name: string) =>
  typeOf(node.type)?.data.properties?.[name]?.title ?? catalog.value.common.properties?.[name]?.title ?? name;

/** A line of two compared texts. */
export type Line = { kind: "same" | "removed" | "added"; text: string };

const mostCompared = 400_000; // pairs of lines

/** Compares two texts line by line. */
export function lineChanges(from: string, to: string): Line[] {
  const [a, b] = [from.split("\n"), to.split("\n")];
  const as =
    (kind: Line["kind"]) =>
    (text: string): Line => ({ kind, text });
  if (a.length * b.length > mostCompared) return [...a.map(as("removed")), ...b.map(as("added"))];
  // common[i][j] is the length of what a from i and b from j have in common.
  const common = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      common[i][j] = a[i] === b[j] ? common[i + 1][j + 1] + 1 : Math.max(common[i + 1][j], common[i][j + 1]);
  const lines: Line[] = [];
  let i = 0,
    j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      lines.push({ kind: "same", text: a[i++] });
      j++;
    } else if (i < a.length && (j === b.length || common[i + 1][j] >= common[i][j + 1]))
      lines.push({ kind: "removed", text: a[i++] });
    else lines.push({ kind: "added", text: b[j++] });
  }
  return lines;
}

/** The lines that changed with the ones around them; null stands for those left out. */
export function nearChanges(lines: Line[], around = 2): (Line | null)[] {
  const near = lines.map((_, i) => lines.slice(Math.max(0, i - around), i + around + 1).some((l) => l.kind !== "same"));
  return lines.flatMap((line, i): (Line | null)[] => (near[i] ? [line] : i === 0 || near[i - 1] ? [null] : []));
}
