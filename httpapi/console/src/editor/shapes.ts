// The nodes and edges of a graph as the canvas's library renders them. Those that have not
// changed stay the same objects, because the library compares by identity.
import { type Edge, MarkerType, type Node, Position, type ReactFlowInstance } from "@xyflow/react";

import { catalog, type NodeType } from "./catalog";
import {
  defaultHandle,
  type GraphEdge,
  type GraphNode,
  type Note,
  noteNodeId,
  outputHandles,
  sourceHandleOf,
} from "./graph";
import { nodeHeight, nodeWidth } from "./layout";
import { typeName } from "./names";
import type { Editor } from "./state";

/** What the canvas needs to show a node. */
export type NodeData = {
  node: GraphNode;
  type?: NodeType;
  name: string;
  /** The outputs that have edges, one per line. */
  used: string;
};
/** A node of the workflow, as the library renders it. */
export type NodeShape = Node<NodeData, "step">;
/** A note, as the library renders it. */
export type NoteShape = Node<{ note: Note; editor: Editor }, "note">;
/** A node or a note on the canvas. */
export type CanvasItem = NodeShape | NoteShape;
/** An edge of the canvas. */
export type EdgeShape = Edge<Record<string, unknown>, "step">;
/** The instance of the library, which moves the view. */
export type Flow = ReactFlowInstance<CanvasItem, EdgeShape>;

// Sizes in pixels, as in editor.css.
const handleSize = 12;
const errorHandleSize = 10;
const headHeight = 56;
const outputHeight = 24;

/** Returns the outputs of a node: those of its type, and as stale those that it no longer has but that have edges. */
export function shownHandles({ node, type, used }: NodeData): { handles: string[]; stale: string[] } {
  const handles = outputHandles(node, type);
  const isStale = (handle: string) => handle && handle !== "error" && !handles.includes(handle);
  return { handles, stale: used.split("\n").filter(isStale) };
}

type NodeHandle = NonNullable<NodeShape["handles"]>[number];

const handleAt = (type: "source" | "target", position: Position, id: string, x: number, y: number): NodeHandle => ({
  type,
  position,
  id,
  x,
  y,
  width: handleSize,
  height: handleSize,
});

/**
 * Returns the size of a node and the positions of its handles as editor.css makes them, so that
 * the library draws a graph at once, without measuring it first. The library measures nodes
 * without a fixed size, and those whose size turns out to be another.
 */
function measurements(data: NodeData): Pick<NodeShape, "measured" | "handles"> {
  if (data.node.metadata?.note) return {};
  const { handles, stale } = shownHandles(data);
  const outputs = [...handles, ...stale];
  const height = nodeHeight(outputs.length);
  const input = handleAt("target", Position.Left, "in", 1 - handleSize / 2, (height - handleSize) / 2);
  const outputAt = (id: string, middle: number) =>
    handleAt("source", Position.Right, id, nodeWidth - 1 - handleSize / 2, middle - handleSize / 2);
  const outputShapes =
    outputs.length > 1
      ? outputs.map((id, index) => outputAt(id, 1 + headHeight + outputHeight * (index + 0.5)))
      : [outputAt(outputs[0] ?? defaultHandle, 1 + headHeight / 2)];
  const error: NodeHandle = {
    type: "source",
    position: Position.Bottom,
    id: "error",
    x: (nodeWidth - errorHandleSize) / 2,
    y: height - 1 - errorHandleSize / 2,
    width: errorHandleSize,
    height: errorHandleSize,
  };
  return {
    measured: { width: nodeWidth, height },
    handles: [...(data.node.type === "trigger" ? [] : [input]), ...outputShapes, error],
  };
}

const sameData = (a: NodeData, b: NodeData) =>
  a.node === b.node && a.used === b.used && a.type === b.type && a.name === b.name;

function nodeShape(data: NodeData, selected: boolean, before?: NodeShape): NodeShape {
  if (before && sameData(before.data, data)) return before.selected === selected ? before : { ...before, selected };
  const { node, type, name } = data;
  const typeLabel = type?.label ?? node.type;
  const isMeasured = before && !before.handles; // then it is measured again
  const { handles: _, ...rest } = before ?? {};
  return {
    ...rest,
    ...(isMeasured ? {} : measurements(data)),
    id: node.id,
    type: "step",
    position: node.position ?? { x: 0, y: 0 },
    data,
    selected,
    ariaLabel: name.startsWith(typeLabel) ? name : `${name}, ${typeLabel}`,
  };
}

function noteShape(note: Note, editor: Editor, selected: boolean, before?: NoteShape): NoteShape {
  const unchanged = before?.data.note === note;
  if (unchanged && before.selected === selected) return before;
  return {
    ...before,
    id: noteNodeId(note.id),
    type: "note",
    position: { x: note.x, y: note.y },
    width: note.width,
    height: note.height,
    zIndex: -1,
    data: unchanged ? before.data : { note, editor },
    selected,
    ariaLabel: `Note: ${note.text.slice(0, 80)}`,
  };
}

/** Returns the list before if the new one has the same items. */
const reuseList = <T>(list: T[], before: T[]): T[] =>
  list.length === before.length && list.every((item, index) => item === before[index]) ? before : list;

/** Returns the outputs that have edges by the id of their node. */
function usedHandles(editor: Editor): Map<string, Set<string>> {
  const { nodes, edges } = editor.doc.value;
  const nodesById = new Map(nodes.map((node) => [node.id, node]));
  const used = new Map<string, Set<string>>();
  for (const edge of edges) {
    const source = nodesById.get(edge.source);
    if (!source) continue;
    const handles = used.get(source.id) ?? new Set();
    used.set(source.id, handles.add(sourceHandleOf(edge, source, catalog.value.byType.get(source.type))));
  }
  return used;
}

/** Returns the nodes and notes of an editor as the canvas shows them. */
export function nodeShapes(editor: Editor, before: CanvasItem[]): CanvasItem[] {
  const doc = editor.doc.value;
  const names = editor.names.value;
  const selected = editor.selected.value;
  const types = catalog.value.byType;
  const used = usedHandles(editor);
  const shapesBefore = new Map(before.map((item) => [item.id, item]));
  const notes = (doc.notes ?? []).map((note) => {
    const id = noteNodeId(note.id);
    return noteShape(note, editor, selected.has(id), shapesBefore.get(id) as NoteShape | undefined);
  });
  const nodes = doc.nodes.map((node) => {
    const data: NodeData = {
      node,
      type: types.get(node.type),
      name: names.get(node.id) ?? typeName(node.type),
      used: [...(used.get(node.id) ?? [])].sort().join("\n"),
    };
    return nodeShape(data, selected.has(node.id), shapesBefore.get(node.id) as NodeShape | undefined);
  });
  return reuseList([...notes, ...nodes], before);
}

const arrow = { type: MarkerType.ArrowClosed, width: 16, height: 16 };

/** Reports whether an execution passed an edge. */
function wasFollowed({ source, target }: GraphEdge, marks: Editor["marks"]["value"]): boolean {
  const targetStatus = marks.get(target)?.status;
  return marks.get(source)?.status === "success" && targetStatus !== undefined && targetStatus !== "skipped";
}

const sameShape = (a: EdgeShape, b: EdgeShape) =>
  (Object.keys(b) as (keyof EdgeShape)[]).every((key) => a[key] === b[key]);

/** Returns the edges of an editor as the canvas shows them. */
export function edgeShapes(editor: Editor, before: EdgeShape[]): EdgeShape[] {
  const { nodes, edges } = editor.doc.value;
  const names = editor.names.value;
  const marks = editor.marks.value;
  const selected = editor.selectedEdge.value;
  const nodesById = new Map(nodes.map((node) => [node.id, node]));
  const shapesBefore = new Map(before.map((shape) => [shape.id, shape]));
  const toShape = (edge: GraphEdge): EdgeShape => {
    const source = nodesById.get(edge.source)!;
    const sourceHandle = sourceHandleOf(edge, source, catalog.value.byType.get(source.type));
    const shape: EdgeShape = {
      id: edge.id,
      type: "step",
      source: edge.source,
      target: edge.target,
      sourceHandle,
      targetHandle: "in",
      selected: selected === edge.id,
      className: [sourceHandle === "error" && "of-error", wasFollowed(edge, marks) && "went"].filter(Boolean).join(" "),
      markerEnd: arrow,
      ariaLabel: `Edge from ${names.get(edge.source)} to ${names.get(edge.target)}`,
    };
    const shapeBefore = shapesBefore.get(edge.id);
    return shapeBefore && sameShape(shapeBefore, shape) ? shapeBefore : shape;
  };
  const complete = edges.filter((edge) => nodesById.has(edge.source) && nodesById.has(edge.target));
  return reuseList(complete.map(toShape), before);
}
