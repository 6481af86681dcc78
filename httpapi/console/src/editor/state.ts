// The state of the editor of a workflow: the document with its history, the
// selection, problems, and the results of the last test.
import { computed, signal } from "@preact/signals";

import type { API } from "../data";
import { type Data, newData, type NodeType, typeOf } from "./catalog";
import {
  defaultHandle,
  type Doc,
  fingerprint,
  freshId,
  type Graph,
  type GraphNode,
  newEdge,
  type Note,
  noteNodeId,
  outputHandles,
  type Point,
  writeGraph,
} from "./graph";
import { heightOf, nodeWidth } from "./layout";
import { nameOf, namesOf } from "./names";

/** A problem of the graph that the service found. */
export type Issue = API.GraphIssue;
/** The outcome of a node over its iterations. */
export type Mark = { status: string; ms?: number; count: number; error?: string };

const historyLength = 200; // documents that can be restored
const mergeTime = 1000; // milliseconds within which changes of one field are undone together
const nodeGap = 80; // pixels between a node and the next one

/** Where a node is added: after an output of another node, in an edge, or at a position. */
export type AddTarget = { after?: string; handle?: string; edge?: string; at?: Point };

/** The state of one editor, in signals: components that read one are rendered again when it changes. */
export class Editor {
  doc = signal<Doc>({
    name: "",
    description: "",
    settings: { concurrency: 1, on_conflict: "reject", strict_templates: false },
    nodes: [],
    edges: [],
  });
  /** The fingerprint of the stored document. */
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

  /** Reports whether the document differs from the stored one. */
  dirty = computed(() => fingerprint(this.doc.value) !== this.saved.value);
  /** The selected node, if exactly one is. */
  selectedNode = computed(() => (this.selected.value.size === 1 ? this.node([...this.selected.value][0]) : undefined));
  /**
   * The issues of nodes by node id. A list that has not changed stays the same object, so that its node is not rendered
   * again.
   */
  issuesByNode = computed(() => {
    const lists = new Map<string, Issue[]>();
    for (const issue of this.issues.value)
      if (issue.node_id) lists.set(issue.node_id, [...(lists.get(issue.node_id) ?? []), issue]);
    for (const [id, list] of lists) {
      const before = this.#issuesBefore.get(id);
      if (before && JSON.stringify(before) === JSON.stringify(list)) lists.set(id, before);
    }
    return (this.#issuesBefore = lists);
  });
  canUndo = signal(false);
  canRedo = signal(false);

  #issuesBefore = new Map<string, Issue[]>();
  #past: Doc[] = [];
  #future: Doc[] = [];
  #merge = { key: "", at: 0 };

  /** The names of the nodes by id. */
  names = computed(() => namesOf(this.doc.value.nodes));
  /** The name of a node, given the node or its id. */
  nameOf = (node: GraphNode | string): string => {
    if (typeof node === "string") return this.names.value.get(node) ?? node;
    return this.names.value.get(node.id) ?? nameOf(node);
  };
  /** Returns a node by its id. */
  node = (id: string) => this.doc.value.nodes.find((n) => n.id === id);

  /** Replaces the document, such as when it is loaded, and clears the history. */
  load(doc: Doc, saved = doc) {
    this.#past = [];
    this.#future = [];
    this.doc.value = doc;
    this.saved.value = fingerprint(saved);
    this.#updateHistoryState();
  }

  /** Makes a change that can be undone; consecutive changes with the same key are undone together. */
  change(next: Partial<Doc>, key = "") {
    if (this.readonly.value) return;
    const now = Date.now();
    if (!key || key !== this.#merge.key || now - this.#merge.at > mergeTime)
      this.#past = [...this.#past.slice(1 - historyLength), this.doc.value];
    this.#merge = { key, at: now };
    this.#future = [];
    this.doc.value = { ...this.doc.value, ...next };
    this.#updateHistoryState();
  }

  /** Replaces the document by the last one of a list, and adds the current one to the other list. */
  #restore(from: Doc[], to: Doc[]) {
    const doc = from.pop();
    if (!doc || this.readonly.value) return;
    to.push(this.doc.value);
    this.#merge = { key: "", at: 0 };
    this.doc.value = doc;
    this.selected.value = new Set([...this.selected.value].filter((id) => doc.nodes.some((n) => n.id === id)));
    this.#updateHistoryState();
  }
  undo() {
    this.#restore(this.#past, this.#future);
  }
  redo() {
    this.#restore(this.#future, this.#past);
  }
  #updateHistoryState() {
    this.canUndo.value = this.#past.length > 0;
    this.canRedo.value = this.#future.length > 0;
  }

  /** Selects nodes and notes, and no others. */
  select(ids: Iterable<string>) {
    const next = new Set(ids);
    const current = this.selected.value;
    if (next.size === current.size && [...next].every((id) => current.has(id))) return;
    this.selected.value = next;
    if (next.size) this.selectedEdge.value = "";
  }

  /** Changes a node; a key is as that of change. */
  changeNode(id: string, change: (n: GraphNode) => GraphNode, key = "") {
    this.change({ nodes: this.doc.value.nodes.map((n) => (n.id === id ? change(n) : n)) }, key && `${id}/${key}`);
  }

  /** Sets a value of a node's data by its path; undefined removes the key. */
  setData(id: string, path: (string | number)[], value: unknown) {
    this.changeNode(id, (n) => ({ ...n, data: setIn(n.data ?? {}, path, value) as Data }), path.join("."));
  }

  /** Adds a node of a type, selects it and returns its id. */
  add(type: NodeType, target: AddTarget = {}): string {
    const { nodes, edges } = this.doc.value;
    const id = freshId(type.type, new Set(nodes.map((n) => n.id)));
    const edgeIds = new Set(edges.map((e) => e.id));
    const edge = edges.find((e) => e.id === target.edge);
    const previous = this.node(edge?.source ?? target.after ?? "");
    const node: GraphNode = { id, type: type.type, data: newData(type) };
    node.position = target.at ?? this.#freePosition(node, previous, target.handle);
    if (edge) {
      const output = type.normal_handle ?? outputHandles(node, type)[0];
      const before = edges.map((e) => (e === edge ? { ...e, target: id } : e));
      this.change({
        nodes: [...(target.at ? nodes : this.#makeRoom(node, edge.target)), node],
        edges: [...before, newEdge(id, output, edge.target, edgeIds)],
      });
    } else {
      const added = target.after && newEdge(target.after, target.handle ?? defaultHandle, id, edgeIds);
      this.change({ nodes: [...nodes, node], edges: added ? [...edges, added] : edges });
    }
    this.select([id]);
    return id;
  }

  /** Returns a position for a node: to the right of the previous one, or of the graph, where no other node is. */
  #freePosition(node: GraphNode, previous: GraphNode | undefined, handle = defaultHandle): Point {
    const { nodes, edges } = this.doc.value;
    if (!previous) {
      const right = nodes.reduce((max, n) => Math.max(max, (n.position?.x ?? 0) + nodeWidth + nodeGap), 0);
      return { x: right, y: nodes.at(-1)?.position?.y ?? 0 };
    }
    const index = Math.max(0, outputHandles(previous, typeOf(previous.type)).indexOf(handle));
    const position = {
      x: (previous.position?.x ?? 0) + nodeWidth + nodeGap,
      y: (previous.position?.y ?? 0) + index * 110 + (handle === "error" ? 130 : 0),
    };
    const height = heightOf(node);
    const overlapping = () =>
      nodes.find(
        (n) =>
          n.position &&
          Math.abs(n.position.x - position.x) < nodeWidth &&
          n.position.y - height < position.y &&
          position.y < n.position.y + heightOf(n) &&
          !edges.some((e) => e.source === n.id && e.target === previous.id),
      );
    for (let n = overlapping(); n; n = overlapping())
      position.y = Math.ceil((n.position!.y + heightOf(n)) / 10) * 10 + 30;
    return position;
  }

  /** Returns the nodes with those after a new node moved to the right, if there is no room for it. */
  #makeRoom(node: GraphNode, target: string) {
    const { nodes, edges } = this.doc.value;
    const next = this.node(target);
    if (!next?.position || next.position.x - node.position!.x >= nodeWidth + 60) return nodes;
    const moved = new Set([target]);
    for (const id of moved)
      for (const e of edges)
        if (e.source === id && (this.node(e.target)?.position?.x ?? 0) > next.position.x) moved.add(e.target);
    return nodes.map((n) =>
      moved.has(n.id) && n.position ? { ...n, position: { ...n.position, x: n.position.x + nodeWidth + nodeGap } } : n,
    );
  }

  /** Adds an edge from an output of a node to another node, unless there is one. */
  connect(source: string, handle: string, target: string) {
    const { edges } = this.doc.value;
    const sourceHandle = handle === defaultHandle ? undefined : handle;
    if (edges.some((e) => e.source === source && e.target === target && e.sourceHandle === sourceHandle)) return;
    this.change({ edges: [...edges, newEdge(source, handle, target, new Set(edges.map((e) => e.id)))] });
  }

  /** Returns the graph as it is sent to the service. */
  written = () => writeGraph(this.doc.value);
  /** Replaces the graph, as a change that can be undone. */
  set = (graph: Graph) =>
    this.change({ nodes: graph.nodes, edges: graph.edges, ...(graph.notes && { notes: graph.notes }) });

  /** Adds an empty note at a position, or below what is there, and selects it. */
  addNote(x: number, y: number) {
    const { nodes, notes = [] } = this.doc.value;
    const id = freshId("note", new Set(notes.map((n) => n.id)));
    const note = { id, text: "", x: Math.round(x), y: Math.round(y), width: 240, height: 120 };
    const boxes = [
      ...notes,
      ...nodes.map((n) => ({ x: 0, y: 0, ...n.position, width: nodeWidth, height: heightOf(n) })),
    ];
    const overlapping = () =>
      boxes.find(
        (box) =>
          note.x < box.x + box.width &&
          box.x < note.x + note.width &&
          note.y < box.y + box.height &&
          box.y < note.y + note.height,
      );
    for (let box = overlapping(); box; box = overlapping()) note.y = Math.round(box.y + box.height + 20);
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

/** Returns a copy of a value in which the value at a path is replaced; undefined removes it. */
export function setIn(value: unknown, path: (string | number)[], replacement: unknown): unknown {
  if (!path.length) return replacement;
  const [key, ...rest] = path;
  if (Array.isArray(value)) {
    const list = [...value];
    const inner = setIn(list[key as number], rest, replacement);
    if (inner === undefined && !rest.length) list.splice(key as number, 1);
    else list[key as number] = inner;
    return list;
  }
  const object: Record<string, unknown> = value && typeof value === "object" ? { ...value } : {};
  const inner = setIn(object[key], rest, replacement);
  if (inner === undefined) delete object[key];
  else object[key] = inner;
  return object;
}
