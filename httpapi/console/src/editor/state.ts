// What the editor holds of one workflow: the document with its history, the
// selection, what is wrong, and what the last test came to.
import { computed, signal } from "@preact/signals";

import type { API } from "../data";
import { newData, type NodeType, typeOf } from "./catalog";
import {
  type Data,
  type Doc,
  fingerprint,
  type Graph,
  freshId,
  newEdge,
  type Note,
  noteNodeId,
  defaultHandle,
  type GraphNode,
  outputHandles,
  writeGraph,
} from "./graph";
import { nodeHeight, nodeWidth } from "./layout";
import { nameOf, namesOf } from "./names";

/** A problem of the graph that the service found. */
export type Issue = API.GraphIssue;
/** What became of a node, over its iterations. */
export type Mark = { status: string; ms?: number; count: number; error?: string };

const heightOf = (n: GraphNode) => nodeHeight(outputHandles(n, typeOf(n.type)).length);

const historySteps = 200;
const mergeTime = 1000;

/** The state of one editor, in signals: components that read one are rendered again when it changes. */
export class Editor {
  doc = signal<Doc>({
    name: "",
    description: "",
    settings: { concurrency: 1, on_conflict: "reject", strict_templates: false },
    nodes: [],
    edges: [],
  });
  /** The document as it is stored. */
  saved = signal("");
  selected = signal<ReadonlySet<string>>(new Set());
  selectedEdge = signal("");
  issues = signal<Issue[]>([]);
  marks = signal<ReadonlyMap<string, Mark>>(new Map());
  /** The output of nodes, of the last test or the newest execution, by id. */
  samples = signal<Record<string, unknown>>({});
  payload = signal<Record<string, unknown> | undefined>(undefined);
  readonly = signal(false);
  /** The field to focus: the path within the node that is shown. */
  focus = signal<{ field: string; at: number } | null>(null);

  dirty = computed(() => fingerprint(this.doc.value) !== this.saved.value);
  selectedNode = computed(() => (this.selected.value.size === 1 ? this.node([...this.selected.value][0]) : undefined));
  issuesByNode = computed(() => {
    const by = new Map<string, Issue[]>();
    for (const i of this.issues.value) if (i.node_id) by.set(i.node_id, [...(by.get(i.node_id) ?? []), i]);
    for (const [id, list] of by) {
      const was = this.#issuesBefore.get(id);
      if (JSON.stringify(was) === JSON.stringify(list)) by.set(id, was!);
    }
    return (this.#issuesBefore = by);
  });
  canUndo = signal(false);
  canRedo = signal(false);

  #issuesBefore = new Map<string, Issue[]>(); // the lists of nodes whose issues stay are kept, so that only others are drawn again
  #past: Doc[] = [];
  #future: Doc[] = [];
  #merge = { key: "", at: 0 };

  /** What the nodes are called, by id. */
  names = computed(() => namesOf(this.doc.value.nodes));
  /** The name of a node, given the node or its id. */
  nameOf = (at: GraphNode | string): string => {
    const id = typeof at === "string" ? at : at.id;
    return this.names.value.get(id) ?? (typeof at === "string" ? id : nameOf(at));
  };
  node = (id: string) => this.doc.value.nodes.find((n) => n.id === id);

  /** Shows another document, such as one that was loaded; the history begins anew. */
  load(doc: Doc, saved = doc) {
    this.#past = [];
    this.#future = [];
    this.doc.value = doc;
    this.saved.value = fingerprint(saved);
    this.#noteHistory();
  }

  /** Makes a change that can be undone; changes with one key in a row are undone together. */
  change(next: Partial<Doc>, key = "") {
    if (this.readonly.value) return;
    const now = Date.now();
    if (!key || key !== this.#merge.key || now - this.#merge.at > mergeTime)
      this.#past = [...this.#past.slice(1 - historySteps), this.doc.value];
    this.#merge = { key, at: now };
    this.#future = [];
    this.doc.value = { ...this.doc.value, ...next };
    this.#noteHistory();
  }

  #restore(from: Doc[], to: Doc[]) {
    const doc = from.pop();
    if (!doc || this.readonly.value) return;
    to.push(this.doc.value);
    this.#merge = { key: "", at: 0 };
    this.doc.value = doc;
    this.selected.value = new Set([...this.selected.value].filter((id) => doc.nodes.some((n) => n.id === id)));
    this.#noteHistory();
  }
  undo() {
    this.#restore(this.#past, this.#future);
  }
  redo() {
    this.#restore(this.#future, this.#past);
  }
  #noteHistory() {
    this.canUndo.value = this.#past.length > 0;
    this.canRedo.value = this.#future.length > 0;
  }

  select(ids: Iterable<string>) {
    const next = new Set(ids);
    const now = this.selected.value;
    if (next.size === now.size && [...next].every((id) => now.has(id))) return;
    this.selected.value = next;
    if (next.size) this.selectedEdge.value = "";
  }

  changeNode(id: string, change: (n: GraphNode) => GraphNode, key = "") {
    this.change({ nodes: this.doc.value.nodes.map((n) => (n.id === id ? change(n) : n)) }, key && `${id}/${key}`);
  }

  /** Sets a value of a node's data by its path; undefined removes the key. */
  setData(id: string, path: (string | number)[], value: unknown) {
    this.changeNode(id, (n) => ({ ...n, data: setIn(n.data ?? {}, path, value) as Data }), path.join("."));
  }

  /** Adds a node: behind another by an output, into an edge, or at a place. */
  add(
    type: NodeType,
    to: { after?: string; handle?: string; edge?: string; at?: { x: number; y: number } } = {},
  ): string {
    const { nodes, edges } = this.doc.value;
    const id = freshId(type.type, new Set(nodes.map((n) => n.id)));
    const data = newData(type);
    const taken = new Set(edges.map((e) => e.id));
    const edge = edges.find((e) => e.id === to.edge);
    const before = this.node(edge?.source ?? to.after ?? "");
    const node: GraphNode = { id, type: type.type, data };
    node.position = to.at ?? this.#placeBehind(node, before, to.handle);
    const exit = outputHandles(node, type)[0];
    let links = edges;
    let moved = nodes;
    if (edge) {
      links = edges
        .map((e) => (e === edge ? { ...e, target: id } : e))
        .concat(newEdge(id, type.normal_handle ?? exit, edge.target, taken));
      if (!to.at) moved = this.#makeRoom(node, edge.target);
    } else if (to.after) links = [...edges, newEdge(to.after, to.handle ?? defaultHandle, id, taken)];
    this.change({ nodes: [...moved, node], edges: links });
    this.select([id]);
    return id;
  }

  #placeBehind(node: GraphNode, before: GraphNode | undefined, handle = defaultHandle) {
    const { nodes, edges } = this.doc.value;
    if (!before) {
      const right = nodes.reduce((m, n) => Math.max(m, (n.position?.x ?? 0) + nodeWidth + 80), 0);
      return { x: right, y: nodes.at(-1)?.position?.y ?? 0 };
    }
    const handles = outputHandles(before, typeOf(before.type));
    const place = {
      x: (before.position?.x ?? 0) + nodeWidth + 80,
      y: (before.position?.y ?? 0) + Math.max(0, handles.indexOf(handle)) * 110 + (handle === "error" ? 130 : 0),
    };
    const height = heightOf(node);
    const inTheWay = () =>
      nodes.find(
        (n) =>
          n.position &&
          Math.abs(n.position.x - place.x) < nodeWidth &&
          n.position.y - height < place.y &&
          place.y < n.position.y + heightOf(n) &&
          !edges.some((e) => e.source === n.id && e.target === before.id),
      );
    for (let n = inTheWay(); n; n = inTheWay()) place.y = Math.ceil((n.position!.y + heightOf(n)) / 10) * 10 + 30;
    return place;
  }

  /** Moves what stands behind a place to the right, so that a node fits in. */
  #makeRoom(node: GraphNode, target: string) {
    const { nodes, edges } = this.doc.value;
    const next = this.node(target);
    if (!next?.position || next.position.x - node.position!.x >= nodeWidth + 60) return nodes;
    const behind = new Set([target]);
    for (const id of behind)
      for (const e of edges)
        if (e.source === id && (this.node(e.target)?.position?.x ?? 0) > next.position.x) behind.add(e.target);
    return nodes.map((n) =>
      behind.has(n.id) && n.position ? { ...n, position: { ...n.position, x: n.position.x + nodeWidth + 80 } } : n,
    );
  }

  connect(source: string, handle: string, target: string) {
    const { edges } = this.doc.value;
    const sourceHandle = handle === defaultHandle ? undefined : handle;
    if (edges.some((e) => e.source === source && e.target === target && e.sourceHandle === sourceHandle)) return;
    this.change({ edges: [...edges, newEdge(source, handle, target, new Set(edges.map((e) => e.id)))] });
  }

  /** The graph as it is sent. */
  written = () => writeGraph(this.doc.value);
  set = (graph: Graph) =>
    this.change({ nodes: graph.nodes, edges: graph.edges, ...(graph.notes && { notes: graph.notes }) });

  /** Adds an empty note at a place, or below what stands there, and selects it. */
  addNote(x: number, y: number) {
    const { nodes, notes = [] } = this.doc.value;
    const id = freshId("note", new Set(notes.map((n) => n.id)));
    const note = { id, text: "", x: Math.round(x), y: Math.round(y), width: 240, height: 120 };
    const boxes = [
      ...notes,
      ...nodes.map((n) => ({ x: 0, y: 0, ...n.position, width: nodeWidth, height: heightOf(n) })),
    ];
    const over = () =>
      boxes.find(
        (b) =>
          note.x < b.x + b.width && b.x < note.x + note.width && note.y < b.y + b.height && b.y < note.y + note.height,
      );
    for (let b = over(); b; b = over()) note.y = Math.round(b.y + b.height + 20);
    this.change({ notes: [...notes, note] });
    this.select([noteNodeId(id)]);
  }
  changeNote(id: string, part: Partial<Note>, key = "") {
    this.change(
      { notes: this.doc.value.notes?.map((n) => (n.id === id ? { ...n, ...part } : n)) },
      key && `${id}/${key}`,
    );
  }
  removeNote(id: string) {
    this.change({ notes: this.doc.value.notes?.filter((n) => n.id !== id) });
  }
}

/** A copy of a value with another at a path; undefined removes it. */
export function setIn(value: unknown, path: (string | number)[], to: unknown): unknown {
  if (!path.length) return to;
  const [key, ...rest] = path;
  if (Array.isArray(value)) {
    const list = [...value];
    const inner = setIn(list[key as number], rest, to);
    if (inner === undefined && !rest.length) list.splice(key as number, 1);
    else list[key as number] = inner;
    return list;
  }
  const object: Record<string, unknown> = value && typeof value === "object" ? { ...value } : {};
  const inner = setIn(object[key], rest, to);
  if (inner === undefined) delete object[key];
  else object[key] = inner;
  return object;
}
