// Graphs of workflows as the editor holds them. What it does not know of a
// node or an edge stays as it is.
import type { API } from "../data";
import type { NodeType } from "./catalog";

/** A position on the canvas, in pixels. */
export type Point = { x: number; y: number };
/** The fields of a node, by name. */
export type Data = Record<string, unknown>;
/** What the editor keeps with a node: an output that tests use in place of running it, a note below it, and with the first node the notes on the canvas. */
export type Metadata = { pin?: unknown; note?: unknown; notes?: unknown; [key: string]: unknown };
/** A node of the graph. */
export type GraphNode = {
  id: string;
  type: string;
  position?: Point;
  data?: Data;
  metadata?: Metadata;
  [key: string]: unknown;
};
/** A graph as it is sent and stored: its edges need no id. */
export type StoredGraph = {
  nodes?: GraphNode[];
  notes?: unknown;
  edges?: { id?: string; source: string; target: string; sourceHandle?: string; [key: string]: unknown }[];
};
/** An edge of the graph: from an output of one node to another node. */
export type GraphEdge = { id: string; source: string; target: string; sourceHandle?: string; [key: string]: unknown };
/** A note on the canvas. */
export type Note = { id: string; text: string; x: number; y: number; width: number; height: number; color?: string };
/** The nodes, edges and notes of a workflow. */
export type Graph = { nodes: GraphNode[]; edges: GraphEdge[]; notes?: Note[] };
/** How executions of a workflow run. */
export type Settings = API.WorkflowSettings;
/** What the editor changes of a workflow. */
export type Doc = Graph & { name: string; description: string; settings: Settings };

/** The handle of the one output of a node that has no others, in the canvas. */
export const defaultHandle = "out";

const text = (value: unknown) => (typeof value === "string" || typeof value === "number" ? String(value) : "");

// Ids that the editor gave to edges that came without one begin so; they are not saved.
const generatedIdPrefix = "~";

/** The colours of notes; the first is the default. */
export const noteColors = ["", "blue", "green", "red"];
/** The smallest width of a note, in pixels; its height can be half of that. */
export const smallestNote = 100;
const noteIdPrefix = "~note:";

/** The node of the canvas that shows a note. */
export const noteNodeId = (id: string) => noteIdPrefix + id;
/** Reports whether a node of the canvas is that of a note. */
export const isNote = (id: string) => id.startsWith(noteIdPrefix);

const number = (v: unknown, otherwise: number) => (typeof v === "number" && Number.isFinite(v) ? v : otherwise);

/** Notes are kept with the metadata of a node, which needs no version. */
function readNotes(nodes: GraphNode[], others: unknown = []): Note[] {
  const found = [...nodes.map((n) => n.metadata?.notes), others]
    .flatMap((list) => (Array.isArray(list) ? list : []))
    .filter((n) => n && typeof n.text === "string");
  const taken = new Set<string>();
  return found.map((n) => ({
    id: freshId("note", taken),
    text: n.text,
    x: number(n.x, 0),
    y: number(n.y, 0),
    width: Math.max(smallestNote, number(n.width, 240)),
    height: Math.max(smallestNote / 2, number(n.height, 120)),
    ...(noteColors.includes(n.color) && n.color && { color: n.color }),
  }));
}

/** Returns a node with changed metadata; undefined removes a key. */
export function setMetadata(node: GraphNode, changes: Metadata): GraphNode {
  const entries = Object.entries({ ...node.metadata, ...changes }).filter(([, value]) => value !== undefined);
  const { metadata: _, ...rest } = node;
  return entries.length ? { ...node, metadata: Object.fromEntries(entries) } : (rest as GraphNode);
}

const withoutNotes = (node: GraphNode) =>
  node.metadata?.notes === undefined ? node : setMetadata(node, { notes: undefined });

/** Reads the graph of a workflow; edges without an id get one for the editor. */
export function readGraph(w: StoredGraph): Graph {
  const seen = new Set<string>();
  const edges = (w.edges ?? []).map((e) => {
    let id = text(e.id) || `${generatedIdPrefix}${e.source}:${e.sourceHandle ?? ""}:${e.target}`;
    while (seen.has(id)) id += "'";
    seen.add(id);
    return { ...e, id };
  });
  const nodes = w.nodes ?? [];
  return { nodes: nodes.map(withoutNotes), edges, notes: readNotes(nodes, w.notes) };
}

// What the canvas adds to nodes and edges and the service does not need.
const canvasProperties = ["selected", "dragging", "measured"];

/** The graph as it is saved. */
export function writeGraph({ nodes, edges, notes }: Graph): { nodes: GraphNode[]; edges: Omit<GraphEdge, "id">[] } {
  const clean = <T extends object>(o: T) =>
    Object.fromEntries(Object.entries(o).filter(([k]) => !canvasProperties.includes(k))) as T;
  const held = (n: GraphNode, i: number) =>
    i === 0 && notes?.length ? { metadata: { ...n.metadata, notes: notes.map(({ id: _, ...note }) => note) } } : {};
  return {
    nodes: nodes.map((n, i) =>
      clean({
        ...n,
        ...held(n, i),
        ...(n.position && { position: { x: Math.round(n.position.x), y: Math.round(n.position.y) } }),
      }),
    ),
    edges: edges.map(({ id, ...e }) => clean(id.startsWith(generatedIdPrefix) ? e : { id, ...e })),
  };
}

const sorted = (_: string, value: unknown) =>
  value && typeof value === "object" && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
    : value;

const written = new WeakMap<object, string>(); // of nodes and edges, which are never changed in place

/** A text that is the same for equal documents. */
export function fingerprint(doc: Doc): string {
  const { notes, ...graph } = doc;
  const texts = (list: (GraphNode | GraphEdge)[], write: (one: GraphNode | GraphEdge) => unknown) =>
    list.map((one) => {
      let text = written.get(one);
      if (text === undefined) written.set(one, (text = JSON.stringify(write(one), sorted)));
      return text;
    });
  return JSON.stringify(
    [
      graph.name,
      graph.description,
      graph.settings,
      notes?.map(({ id: _, ...note }) => note) ?? [],
      texts(graph.nodes, (n) => writeGraph({ nodes: [n as GraphNode], edges: [] }).nodes),
      texts(graph.edges, (e) => writeGraph({ nodes: [], edges: [e as GraphEdge] }).edges),
    ],
    sorted,
  );
}

const caseIds = (node: GraphNode, field: string): string[] =>
  (Array.isArray(node.data?.[field]) ? node.data![field] : [])
    .map((c: { id?: unknown } | null) => text(c?.id))
    .filter(Boolean);

/** The outputs of a node beside error; [defaultHandle] where it has one. */
export function outputHandles(node: GraphNode, type?: NodeType): string[] {
  if (!type || (!type.handles.length && !type.handles_from)) return [defaultHandle];
  return [...(type.handles_from ? caseIds(node, type.handles_from) : []), ...type.handles];
}

/** The handle of the canvas by which an edge leaves its node. */
export function sourceHandleOf(edge: GraphEdge, node: GraphNode | undefined, type?: NodeType): string {
  if (edge.sourceHandle === "error") return "error";
  if (!type || (!type.handles.length && !type.handles_from)) return defaultHandle;
  return edge.sourceHandle || type.normal_handle || type.handles[0];
}

/** A new id for a node of a type, which no other node has: http, http2, … */
export function freshId(type: string, taken: Set<string>): string {
  const base = type.replace(/[^a-z0-9]+/gi, "_").toLowerCase() || "node";
  let id = base;
  for (let n = 2; taken.has(id); n++) id = `${base}${n}`;
  taken.add(id);
  return id;
}

/** An edge between two nodes. */
export function newEdge(source: string, handle: string, target: string, taken: Set<string>): GraphEdge {
  const edge: GraphEdge = { id: freshId("e", taken), source, target };
  if (handle !== defaultHandle) edge.sourceHandle = handle;
  return edge;
}

const copyFormat = "workflow/1";

/** Nodes, the edges between them, and notes, as text for other editors. */
export function copyText(graph: Graph, ids: Set<string>): string {
  const notes = (graph.notes ?? []).filter((n) => ids.has(noteNodeId(n.id)));
  const part = writeGraph({
    nodes: graph.nodes.filter((n) => ids.has(n.id)),
    edges: graph.edges.filter((e) => ids.has(e.source) && ids.has(e.target)),
  });
  return JSON.stringify({ satchel: copyFormat, ...part, ...(notes.length && { notes }) }, null, 2);
}

/** Reads what copyText wrote, or an exported workflow; null when the text is neither. */
export function readCopy(
  copied: string,
): (Graph & { name?: string; description?: string; settings?: Settings }) | null {
  try {
    const value = JSON.parse(copied);
    if (!value || value.satchel !== copyFormat || !Array.isArray(value.nodes)) return null;
    return { ...value, ...readGraph(value) };
  } catch {
    return null;
  }
}

/** Removes nodes, notes and edges; the neighbours of one removed node in a row are joined. */
export function removeFrom(graph: Graph, ids: Set<string>, edgeIds: Set<string>): Graph {
  let edges = graph.edges.filter((e) => !edgeIds.has(e.id));
  if (ids.size === 1) {
    const [id] = ids;
    const into = edges.filter((e) => e.target === id && e.source !== id);
    const out = edges.filter((e) => e.source === id && e.target !== id && e.sourceHandle !== "error");
    if (into.length === 1 && out.length === 1)
      edges = edges.map((e) => (e === into[0] ? { ...e, target: out[0].target } : e));
  }
  return {
    ...graph,
    notes: graph.notes?.filter((n) => !ids.has(noteNodeId(n.id))),
    nodes: graph.nodes.filter((n) => !ids.has(n.id)),
    edges: edges.filter((e) => !ids.has(e.source) && !ids.has(e.target)),
  };
}

/** The nodes that lead to one, the nearest first. */
export function upstream(graph: Graph, id: string): GraphNode[] {
  const byId = new Map(graph.nodes.map((n) => [n.id, n]));
  const found: string[] = [];
  const seen = new Set([id]);
  for (let next = [id]; next.length;) {
    next = next.flatMap((at) =>
      graph.edges.filter((e) => e.target === at && !seen.has(e.source)).map((e) => (seen.add(e.source), e.source)),
    );
    found.push(...next);
  }
  return found.map((f) => byId.get(f)).filter(Boolean) as GraphNode[];
}
