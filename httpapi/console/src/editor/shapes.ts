// A graph as the nodes and edges of the library that draws it. What has not
// changed stays the same object: the library compares by identity.
import { type Edge, MarkerType, type Node, Position } from "@xyflow/react";

import {
  catalog,
  type Editor,
  type GraphEdge,
  nodeHeight,
  nodeWidth,
  type NodeType,
  type Note,
  noteNodeId,
  defaultHandle,
  type GraphNode,
  typeName,
  sourceHandleOf,
  outputHandles,
} from "./index";

/** What the canvas needs to show a node. */
export type NodeData = {
  node: GraphNode;
  type?: NodeType;
  /** What it is called. */ name: string;
  /** The outputs by which edges leave it, a line each. */ used: string;
};
/** A node of the workflow, as the library renders it. */
export type NodeShape = Node<NodeData, "step">;
/** A note, as the library renders it. */
export type NoteShape = Node<{ note: Note; editor: Editor }, "note">;
/** A node of the canvas. */
export type CanvasItem = NodeShape | NoteShape;
/** An edge of the canvas. */
export type EdgeShape = Edge<Record<string, unknown>, "step">;

const handleSize = 12,
  errorHandleSize = 10; // as editor.css draws them
const head = 56,
  handleRowHeight = 24;

/** The outputs of a node that are shown: those of its type, and those that edges still use. */
export function shownHandles({ node, type, used }: NodeData): { handles: string[]; stale: string[] } {
  const handles = outputHandles(node, type);
  return { handles, stale: used.split("\n").filter((w) => w && w !== "error" && !handles.includes(w)) };
}

/**
 * The size of a node and the places of its handles as editor.css makes them, so
 * that the library draws a graph at once, not once to measure it and again. It
 * measures what has no fixed size, and what turns out to have another.
 */
function known(data: NodeData): Pick<NodeShape, "measured" | "handles"> {
  if (data.node.metadata?.note) return {};
  const { handles, stale } = shownHandles(data);
  const all = [...handles, ...stale];
  const height = nodeHeight(all.length);
  const right = nodeWidth - 1 - handleSize / 2;
  const outputs =
    all.length > 1
      ? all.map((id, i) => ({ id, y: 1 + head + handleRowHeight * (i + 0.5) }))
      : [{ id: all[0] ?? defaultHandle, y: 1 + head / 2 }];
  const at = (type: "source" | "target", position: Position, id: string, x: number, y: number, size = handleSize) => ({
    type,
    position,
    id,
    x,
    y,
    width: size,
    height: size,
  });
  return {
    measured: { width: nodeWidth, height },
    handles: [
      ...(data.node.type === "trigger"
        ? []
        : [at("target", Position.Left, "in", 1 - handleSize / 2, (height - handleSize) / 2)]),
      ...outputs.map((e) => at("source", Position.Right, e.id, right, e.y - handleSize / 2)),
      at(
        "source",
        Position.Bottom,
        "error",
        (nodeWidth - errorHandleSize) / 2,
        height - 1 - errorHandleSize / 2,
        errorHandleSize,
      ),
    ],
  };
}

const sameData = (a: NodeData, b: NodeData) =>
  a.node === b.node && a.used === b.used && a.type === b.type && a.name === b.name;
const spot = (x: number, y: number) => ({ x, y });

function nodeShape(data: NodeData, selected: boolean, old?: NodeShape): NodeShape {
  if (old && sameData(old.data, data)) return old.selected === selected ? old : { ...old, selected };
  const { node, type, name } = data;
  const kind = type?.label ?? node.type;
  const size = !old || old.handles ? known(data) : {}; // one that was measured is measured again
  const { handles: _, ...rest } = old ?? {};
  return {
    ...rest,
    ...size,
    id: node.id,
    type: "step",
    position: node.position ?? spot(0, 0),
    data,
    selected,
    ariaLabel: name.startsWith(kind) ? name : `${name}, ${kind}`,
  };
}

function noteShape(note: Note, editor: Editor, selected: boolean, old?: NoteShape): NoteShape {
  if (old?.data.note === note && old.selected === selected) return old;
  const data = old?.data.note === note ? old.data : { note, editor };
  return {
    ...old,
    id: noteNodeId(note.id),
    type: "note",
    position: spot(note.x, note.y),
    width: note.width,
    height: note.height,
    zIndex: -1,
    data,
    selected,
    ariaLabel: `Note: ${note.text.slice(0, 80)}`,
  };
}

/** The same list when nothing in it is new. */
const kept = <T>(now: T[], before: T[]): T[] =>
  now.length === before.length && now.every((v, i) => v === before[i]) ? before : now;

/** The notes and steps of an editor as nodes. */
export function nodeShapes(editor: Editor, before: CanvasItem[]): CanvasItem[] {
  const doc = editor.doc.value,
    names = editor.names.value,
    selected = editor.selected.value;
  const types = catalog.value.byType;
  const old = new Map(before.map((n) => [n.id, n]));
  const byId = new Map(doc.nodes.map((n) => [n.id, n]));
  const used = new Map<string, Set<string>>();
  for (const e of doc.edges) {
    const from = byId.get(e.source);
    if (from) used.set(e.source, (used.get(e.source) ?? new Set()).add(sourceHandleOf(e, from, types.get(from.type))));
  }
  const notes = (doc.notes ?? []).map((note) =>
    noteShape(note, editor, selected.has(noteNodeId(note.id)), old.get(noteNodeId(note.id)) as NoteShape | undefined),
  );
  const steps = doc.nodes.map((node) =>
    nodeShape(
      {
        node,
        type: types.get(node.type),
        name: names.get(node.id) ?? typeName(node.type),
        used: [...(used.get(node.id) ?? [])].sort().join("\n"),
      },
      selected.has(node.id),
      old.get(node.id) as NodeShape | undefined,
    ),
  );
  return kept([...notes, ...steps], before);
}

const arrow = { type: MarkerType.ArrowClosed, width: 16, height: 16 };

/** The edges of an editor. */
export function edgeShapes(editor: Editor, before: EdgeShape[]): EdgeShape[] {
  const { nodes, edges } = editor.doc.value;
  const byId = new Map(nodes.map((n) => [n.id, n]));
  const old = new Map(before.map((e) => [e.id, e]));
  const names = editor.names.value,
    marks = editor.marks.value,
    chosen = editor.selectedEdge.value;
  const went = (e: GraphEdge) =>
    marks.get(e.source)?.status === "success" && marks.has(e.target) && marks.get(e.target)!.status !== "skipped";
  return kept(
    edges
      .filter((e) => byId.has(e.source) && byId.has(e.target))
      .map((e) => {
        const from = byId.get(e.source)!;
        const handle = sourceHandleOf(e, from, catalog.value.byType.get(from.type));
        const now: EdgeShape = {
          id: e.id,
          type: "step",
          source: e.source,
          target: e.target,
          sourceHandle: handle,
          targetHandle: "in",
          selected: chosen === e.id,
          className: [handle === "error" && "of-error", went(e) && "went"].filter(Boolean).join(" "),
          markerEnd: arrow,
          ariaLabel: `Edge from ${names.get(e.source)} to ${names.get(e.target)}`,
        };
        const was = old.get(e.id);
        return was && (Object.keys(now) as (keyof EdgeShape)[]).every((k) => was[k] === now[k]) ? was : now;
      }),
    before,
  );
}
