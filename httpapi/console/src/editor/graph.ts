// The graph of a workflow in the editor. Properties of nodes and edges that the editor does not
// know are kept.
import type { API } from "../data";
import type { Data, NodeType } from "./catalog";

/** A position on the canvas, in pixels. */
export type Point = { x: number; y: number };
/**
 * What the editor stores with a node: its pinned output, which tests use instead of running it, a note below it, and
 * with the first node the notes on the canvas.
 */
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
/** A graph as it is stored: its edges need no id. */
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
/** The parts of a workflow that the editor changes. */
export type Doc = Graph & { name: string; description: string; settings: Settings };

/** The canvas's name for the output of a node that has only one. */
export const defaultHandle = "out";

/** The colours of notes; the first is the default. */
export const noteColors = ["", "blue", "green", "red"];
/** The smallest width of a note, in pixels; its height can be half of that. */
export const minNoteWidth = 100;

const generatedIdPrefix = "~"; // of the ids that the editor gives to edges without one; these are not saved
const noteIdPrefix = "~note:";
const canvasProperties = ["selected", "dragging", "measured"]; // which the canvas adds to nodes and edges
const copyFormat = "workflow/1";

const textOf = (value: unknown) => (typeof value === "string" || typeof value === "number" ? String(value) : "");
const numberOf = (value: unknown, fallback: number) => (Number.isFinite(value) ? (value as number) : fallback);
const withoutId = <T extends { id: string }>({ id: _, ...rest }: T) => rest;

/** Returns the id of the canvas's node that shows a note. */
export const noteNodeId = (id: string) => noteIdPrefix + id;
/** Reports whether an id is that of a canvas's node that shows a note. */
export const isNote = (id: string) => id.startsWith(noteIdPrefix);

/** Returns a new id for a node of a type: http, http2 and so on. */
export function freshId(type: string, taken: Set<string>): string {
  const base = type.replace(/[^a-z0-9]+/gi, "_").toLowerCase() || "node";
  let id = base;
  for (let n = 2; taken.has(id); n++) id = `${base}${n}`;
  taken.add(id);
  return id;
}

/** Returns the notes that are stored with the metadata of nodes, and others of the graph. */
function readNotes(nodes: GraphNode[], others: unknown): Note[] {
  const taken = new Set<string>();
  return [...nodes.map((node) => node.metadata?.notes), others]
    .flatMap((list) => (Array.isArray(list) ? list : []))
    .filter((note) => note && typeof note.text === "string")
    .map((note) => ({
      id: freshId("note", taken),
      text: note.text,
      x: numberOf(note.x, 0),
      y: numberOf(note.y, 0),
      width: Math.max(minNoteWidth, numberOf(note.width, 240)),
      height: Math.max(minNoteWidth / 2, numberOf(note.height, 120)),
      ...(noteColors.includes(note.color) && note.color && { color: note.color }),
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

/** Reads a stored graph; edges without an id get one. */
export function readGraph({ nodes = [], edges = [], notes }: StoredGraph): Graph {
  const ids = new Set<string>();
  const withIds = edges.map((edge) => {
    let id = textOf(edge.id) || `${generatedIdPrefix}${edge.source}:${edge.sourceHandle ?? ""}:${edge.target}`;
    while (ids.has(id)) id += "'";
    ids.add(id);
    return { ...edge, id };
  });
  return { nodes: nodes.map(withoutNotes), edges: withIds, notes: readNotes(nodes, notes) };
}

const withoutCanvasProperties = <T extends object>(item: T) =>
  Object.fromEntries(Object.entries(item).filter(([key]) => !canvasProperties.includes(key))) as T;

function writeNode(node: GraphNode): GraphNode {
  const { position } = node;
  const rounded = position && { position: { x: Math.round(position.x), y: Math.round(position.y) } };
  return withoutCanvasProperties({ ...node, ...rounded });
}

const writeEdge = (edge: GraphEdge): Omit<GraphEdge, "id"> =>
  withoutCanvasProperties(edge.id.startsWith(generatedIdPrefix) ? withoutId(edge) : edge);

/** Returns the graph as it is stored: the notes are in the metadata of the first node. */
export function writeGraph({ nodes, edges, notes }: Graph): { nodes: GraphNode[]; edges: Omit<GraphEdge, "id">[] } {
  const written = nodes.map(writeNode);
  if (written.length && notes?.length) {
    const [first] = written;
    first.metadata = { ...first.metadata, notes: notes.map(withoutId) };
  }
  return { nodes: written, edges: edges.map(writeEdge) };
}

const sortKeys = (_: string, value: unknown) =>
  value && typeof value === "object" && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
    : value;

const texts = new WeakMap<object, string>(); // of nodes and edges, which are replaced when they change

/** Returns the text of a node or an edge for fingerprint. */
function cachedText<T extends object>(item: T, write: (item: T) => unknown): string {
  let text = texts.get(item);
  if (text === undefined) {
    text = JSON.stringify(write(item), sortKeys);
    texts.set(item, text);
  }
  return text;
}

/** Returns a text that is the same for equal documents. */
export function fingerprint({ name, description, settings, nodes, edges, notes = [] }: Doc): string {
  const nodeTexts = nodes.map((node) => cachedText(node, writeNode));
  const edgeTexts = edges.map((edge) => cachedText(edge, writeEdge));
  return JSON.stringify([name, description, settings, notes.map(withoutId), nodeTexts, edgeTexts], sortKeys);
}

/** Reports whether nodes of a type have named outputs. */
const hasNamedOutputs = (type?: NodeType): type is NodeType =>
  Boolean(type && (type.handles.length || type.handles_from));

/** Returns the outputs of a node apart from error; [defaultHandle] if it has only one. */
export function outputHandles(node: GraphNode, type?: NodeType): string[] {
  if (!hasNamedOutputs(type)) return [defaultHandle];
  const cases = type.handles_from && node.data?.[type.handles_from];
  const ids = Array.isArray(cases) ? cases.map((item: { id?: unknown } | null) => textOf(item?.id)) : [];
  return [...ids.filter(Boolean), ...type.handles];
}

/** Returns the output by which an edge leaves its source. */
export function sourceHandleOf(edge: GraphEdge, source: GraphNode | undefined, type?: NodeType): string {
  if (edge.sourceHandle === "error") return "error";
  if (!hasNamedOutputs(type)) return defaultHandle;
  return edge.sourceHandle || type.normal_handle || type.handles[0];
}

/** Returns a new edge between two nodes. */
export function newEdge(source: string, handle: string, target: string, taken: Set<string>): GraphEdge {
  const edge: GraphEdge = { id: freshId("e", taken), source, target };
  if (handle !== defaultHandle) edge.sourceHandle = handle;
  return edge;
}

/** Returns nodes, the edges between them, and notes as text, which readCopy reads. */
export function copyText(graph: Graph, ids: Set<string>): string {
  const notes = (graph.notes ?? []).filter((note) => ids.has(noteNodeId(note.id)));
  const part = writeGraph({
    nodes: graph.nodes.filter((node) => ids.has(node.id)),
    edges: graph.edges.filter((edge) => ids.has(edge.source) && ids.has(edge.target)),
  });
  return JSON.stringify({ satchel: copyFormat, ...part, ...(notes.length && { notes }) }, null, 2);
}

/** Reads the text of copyText, or an exported workflow; returns null for other text. */
export function readCopy(text: string): (Graph & { name?: string; description?: string; settings?: Settings }) | null {
  try {
    const value = JSON.parse(text);
    if (!value || value.satchel !== copyFormat || !Array.isArray(value.nodes)) return null;
    return { ...value, ...readGraph(value) };
  } catch {
    return null;
  }
}

/** Removes nodes, notes and edges. If one node between two others is removed, these are connected. */
export function removeFrom(graph: Graph, ids: Set<string>, edgeIds: Set<string>): Graph {
  let edges = graph.edges.filter((edge) => !edgeIds.has(edge.id));
  if (ids.size === 1) {
    const [id] = ids;
    const incoming = edges.filter((edge) => edge.target === id && edge.source !== id);
    const outgoing = edges.filter((edge) => edge.source === id && edge.target !== id && edge.sourceHandle !== "error");
    if (incoming.length === 1 && outgoing.length === 1)
      edges = edges.map((edge) => (edge === incoming[0] ? { ...edge, target: outgoing[0].target } : edge));
  }
  return {
    ...graph,
    notes: graph.notes?.filter((note) => !ids.has(noteNodeId(note.id))),
    nodes: graph.nodes.filter((node) => !ids.has(node.id)),
    edges: edges.filter((edge) => !ids.has(edge.source) && !ids.has(edge.target)),
  };
}
