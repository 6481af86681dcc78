// The canvas: the graph as nodes and edges that are moved, connected and removed.
import {
  Background,
  type Connection,
  type FinalConnectionState,
  ReactFlow,
  ReactFlowProvider,
  SelectionMode,
  useReactFlow,
} from "@xyflow/react";
import type { RefObject } from "preact";
import { useCallback, useEffect, useMemo, useRef } from "preact/hooks";

import {
  useCenteredView,
  useEdges,
  useHandleMeasurement,
  useKnownSizes,
  useNodes,
  usePanning,
  useSelectionInView,
} from "./canvashooks";
import { type CanvasActions, edgeTypes, nodeTypes, Shared } from "./canvasnode";
import { nodeDataType, typeOf } from "./catalog";
import { defaultHandle, isNote, newEdge, noteNodeId, outputHandles } from "./graph";
import { nodeWidth } from "./layout";
import { GraphMap } from "./minimap";
import { type CanvasItem, type EdgeShape, edgeShapes, type Flow, nodeShapes } from "./shapes";
import type { Editor } from "./state";

export { detailOf } from "./detail";
export { edgeShapes, nodeShapes };
type CanvasProps = { editor: Editor; actions: CanvasActions; minimap?: boolean; onReady?: (flow: Flow) => void };

const grid = 10;
const dropOffset = 28; // from the top of a node to the pointer that drops it

// The library compares settings by identity, and renders every node again when one changes.
const settings = {
  nodeTypes,
  edgeTypes,
  proOptions: { hideAttribution: false },
  selectNodesOnDrag: false,
  nodeDragThreshold: 3,
  nodeClickDistance: 3,
  snapToGrid: true,
  snapGrid: [grid, grid] as [number, number],
  minZoom: 0.1,
  maxZoom: 2,
  fitView: true,
  fitViewOptions: { maxZoom: 1, padding: 0.15 },
  panOnDrag: [1, 2],
  panOnScroll: true,
  panActivationKeyCode: "Space",
  selectionOnDrag: true,
  selectionMode: SelectionMode.Partial,
  selectionKeyCode: null,
  multiSelectionKeyCode: ["Shift", "Control", "Meta"],
  deleteKeyCode: null,
  disableKeyboardA11y: true,
  nodesFocusable: false,
  edgesFocusable: false,
  edgesReconnectable: false,
  elementsSelectable: true,
  connectionRadius: 30,
  colorMode: "light" as const,
};

const onDragOver = (event: DragEvent) => {
  if (event.dataTransfer!.types.includes(nodeDataType)) event.preventDefault();
};

const onGrid = (value: number) => Math.round(value / grid) * grid;

function FlowCanvas({ editor, actions, minimap, onReady }: CanvasProps) {
  const flow = useReactFlow<CanvasItem, EdgeShape>();
  const canvas = useRef<HTMLDivElement>(null);
  const dragging = useRef(false);
  useKnownSizes();
  const { nodes, onNodesChange } = useNodes(editor, dragging);
  const { edges, onEdgesChange } = useEdges(editor);
  // The map is one drawing of the whole graph: it follows when dragged nodes are dropped.
  const mapNodes = useRef(nodes);
  if (!dragging.current) mapNodes.current = nodes;
  useEffect(() => {
    onReady?.(flow);
  }, []);
  useHandleMeasurement(flow, nodes, dragging);
  useCenteredView(flow, canvas);
  useSelectionInView(flow, canvas, editor);
  const dragHandlers = useDragging(editor, canvas, dragging);
  const connectHandlers = useConnecting(editor, actions, flow);
  const openHandlers = useOpening(actions);
  const dropHandlers = useDropping(editor, flow);
  const panHandlers = usePanning(canvas);
  const shared = useMemo(() => ({ editor, actions }), [editor, actions]);
  const readonly = editor.readonly.value;
  return (
    <Shared.Provider value={shared}>
      <ReactFlow
        ref={canvas}
        {...settings}
        nodes={nodes}
        edges={edges}
        onNodesChange={onNodesChange}
        onEdgesChange={onEdgesChange}
        {...dragHandlers}
        {...connectHandlers}
        {...openHandlers}
        {...dropHandlers}
        {...panHandlers}
        nodesDraggable={!readonly}
        nodesConnectable={!readonly}
        onlyRenderVisibleElements={nodes.length > 300}
      >
        <Background gap={20} size={1} />
        {minimap && nodes.length > 6 && <GraphMap nodes={mapNodes.current} />}
      </ReactFlow>
    </Shared.Provider>
  );
}

/** Moves nodes and notes in the document when they are dropped. */
function useDragging(editor: Editor, canvas: RefObject<HTMLElement | null>, dragging: RefObject<boolean>) {
  const onNodeDragStart = useCallback(() => {
    dragging.current = true;
    canvas.current?.classList.add("moving");
  }, []);
  const onNodeDragStop = useCallback(
    (event: PointerOrTouch, _: unknown, dragged: CanvasItem[]) => {
      dragging.current = false;
      canvas.current?.classList.remove("moving");
      moveDragged(editor, dragged);
      const { clientX, clientY } = pointOf(event);
      const edge = edgeAt(clientX, clientY);
      if (edge && dragged.length === 1) insertIntoEdge(editor, edge, dragged[0].id);
    },
    [editor],
  );
  const onSelectionDragStop = useCallback(
    (event: PointerOrTouch, dragged: CanvasItem[]) => onNodeDragStop(event, null, dragged),
    [onNodeDragStop],
  );
  return { onNodeDragStart, onSelectionDragStart: onNodeDragStart, onNodeDragStop, onSelectionDragStop };
}

/** Sets the positions of dragged nodes and notes; those that did not move stay the same objects. */
function moveDragged(editor: Editor, dragged: CanvasItem[]) {
  const positions = new Map(dragged.map((node) => [node.id, node.position]));
  const newPosition = (id: string, before?: { x: number; y: number }) => {
    const after = positions.get(id);
    return after && (after.x !== before?.x || after.y !== before?.y) ? { x: after.x, y: after.y } : undefined;
  };
  const { nodes, notes = [] } = editor.doc.value;
  const movedNotes = notes.map((note) => {
    const position = newPosition(noteNodeId(note.id), note);
    return position ? { ...note, ...position } : note;
  });
  if (movedNotes.some((note, i) => note !== notes[i])) editor.change({ notes: movedNotes }, "move");
  const movedNodes = nodes.map((node) => {
    const position = newPosition(node.id, node.position);
    return position ? { ...node, position } : node;
  });
  if (movedNodes.some((node, i) => node !== nodes[i])) editor.change({ nodes: movedNodes }, "move");
}

/** Connects two nodes, or adds a node where a connection is dropped on the canvas. */
function useConnecting(editor: Editor, actions: CanvasActions, flow: Flow) {
  const onConnect = useCallback(
    ({ source, sourceHandle, target }: Connection) => editor.connect(source, sourceHandle ?? defaultHandle, target),
    [editor],
  );
  const onConnectEnd = useCallback(
    (event: PointerOrTouch, { isValid, toNode, fromNode, fromHandle }: FinalConnectionState) => {
      if (isValid || toNode || !fromNode || fromHandle?.type !== "source" || !actions.add) return;
      const { clientX, clientY } = pointOf(event);
      actions.add({
        after: fromNode.id,
        handle: fromHandle.id ?? defaultHandle,
        at: flow.screenToFlowPosition({ x: clientX, y: clientY - dropOffset }),
      });
    },
    [actions],
  );
  return { onConnect, onConnectEnd };
}

/** Opens the panel or the menu of a node. */
function useOpening(actions: CanvasActions) {
  const onNodeDoubleClick = useCallback(
    (_: unknown, node: CanvasItem) => {
      if (!isNote(node.id)) actions.open?.(node.id);
    },
    [actions],
  );
  const onNodeContextMenu = useCallback(
    (event: MouseEvent, node: CanvasItem) => {
      if (!actions.menu || isNote(node.id)) return;
      event.preventDefault();
      actions.menu(node.id, event);
    },
    [actions],
  );
  return { onNodeDoubleClick, onNodeContextMenu };
}

/** Adds a node that is dropped from the shelf: into the edge below the pointer, or at its position. */
function useDropping(editor: Editor, flow: Flow) {
  const onDrop = useCallback(
    (event: DragEvent) => {
      const type = typeOf(event.dataTransfer?.getData(nodeDataType) ?? "");
      if (!type) return;
      event.preventDefault();
      const edge = edgeAt(event.clientX, event.clientY);
      const { x, y } = flow.screenToFlowPosition({
        x: event.clientX - nodeWidth / 2,
        y: event.clientY - dropOffset,
      });
      editor.add(type, edge ? { edge } : { at: { x: onGrid(x), y: onGrid(y) } });
    },
    [editor],
  );
  return { onDrop, onDragOver };
}

type PointerOrTouch = MouseEvent | TouchEvent;

/** Returns the position of a pointer or of the first finger, in the window. */
const pointOf = (event: PointerOrTouch): { clientX: number; clientY: number } =>
  "changedTouches" in event ? event.changedTouches[0] : event;

/** Returns the id of the edge at a point of the window. */
function edgeAt(x: number, y: number): string | undefined {
  for (const element of document.elementsFromPoint(x, y)) {
    const edge = element.closest?.<HTMLElement>(".react-flow__edge");
    if (edge) return edge.dataset.id;
  }
  return undefined;
}

/** Inserts a node that has no edges yet into an edge. It is undone together with the move that dropped it there. */
function insertIntoEdge(editor: Editor, edgeId: string, nodeId: string) {
  const { edges } = editor.doc.value;
  const edge = edges.find((other) => other.id === edgeId);
  const node = editor.node(nodeId);
  const isConnected = edges.some((other) => other.source === nodeId || other.target === nodeId);
  if (!edge || !node || isConnected || node.type === "trigger") return;
  const type = typeOf(node.type);
  const handle = type?.normal_handle ?? outputHandles(node, type)[0];
  const before = edges.map((other) => (other === edge ? { ...other, target: nodeId } : other));
  const after = newEdge(nodeId, handle, edge.target, new Set(edges.map((other) => other.id)));
  editor.change({ edges: [...before, after] }, "move");
}

/** The graph of an editor; it can be changed unless the editor is read-only. */
export function Canvas(props: CanvasProps) {
  return (
    <ReactFlowProvider>
      <FlowCanvas {...props} />
    </ReactFlowProvider>
  );
}
