// The canvas: the graph as nodes and edges that are moved, joined and removed.
import {
  applyNodeChanges,
  Background,
  type Connection,
  type EdgeChange,
  type FinalConnectionState,
  type NodeChange,
  ReactFlow,
  type ReactFlowInstance,
  ReactFlowProvider,
  SelectionMode,
  useReactFlow,
  useStoreApi,
  useUpdateNodeInternals,
} from "@xyflow/react";
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";

import {
  catalog,
  type Editor,
  isNote,
  makeLink,
  nodeHeight,
  nodeWidth,
  noteNode,
  onlyWay,
  type Step,
  typeOf,
  waysOut,
} from "./base";
import { GraphMap } from "./map";
import { edgeShapes, type EdgeShape, nodeShapes, type Shape } from "./shapes";
import { type CanvasActions, edgeTypes, nodeTypes, Shared } from "./step";

export { detailOf } from "./detail";
export { edgeShapes, nodeShapes };
export type { CanvasActions };
/** The library's canvas, by which its view is moved. */
export type Flow = ReactFlowInstance<Shape, EdgeShape>;
type Props = { editor: Editor; actions: CanvasActions; minimap?: boolean; onReady?: (flow: Flow) => void };

// Settings that are the same objects at every drawing: the library compares
// them by identity, and draws every node again when one changes.
const fixed = {
  nodeTypes,
  edgeTypes,
  proOptions: { hideAttribution: false },
  selectNodesOnDrag: false,
  nodeDragThreshold: 3,
  nodeClickDistance: 3,
  snapToGrid: true,
  snapGrid: [10, 10] as [number, number],
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

const onDragOver = (e: DragEvent) => {
  if (e.dataTransfer!.types.includes("application/x-satchel-node")) e.preventDefault();
};

function Inner({ editor, actions, minimap, onReady }: Props) {
  const flow = useReactFlow<Shape, EdgeShape>();
  const store = useStoreApi<Shape, EdgeShape>();
  useKnownSizes();
  const [nodes, setNodes] = useState<Shape[]>(() => nodeShapes(editor, []));
  const moving = useRef(false);
  const onMap = useRef(nodes); // the map follows when they are dropped: it is drawn whole
  if (!moving.current) onMap.current = nodes;
  const frame = useRef<HTMLDivElement>(null);
  const docNow = editor.doc.value;
  const selectedNow = editor.selected.value;
  const catalogNow = catalog.value;
  useEffect(() => {
    if (!moving.current) setNodes((old) => nodeShapes(editor, old));
  }, [docNow, selectedNow, catalogNow]);
  const edgesBefore = useRef<EdgeShape[]>([]);
  const edges = (edgesBefore.current = useMemo(
    () => edgeShapes(editor, edgesBefore.current),
    [docNow.edges, docNow.nodes, editor.marks.value, editor.selectedEdge.value, catalogNow],
  ));
  useEffect(() => {
    onReady?.(flow);
  }, []);
  const measure = useUpdateNodeInternals();
  const handles = useRef(new Map<string, string>());
  useEffect(() => {
    // handles that came, went or were renamed are measured again, and those that were missed
    if (moving.current) return; // dragging changes no handle
    const stale = nodes
      .filter((n) => {
        if (n.type === "note") return false;
        const ways = `${waysOut(n.data.node, n.data.type).join("\n")}\n\n${n.data.used}`;
        const before = handles.current.get(n.id);
        handles.current.set(n.id, ways);
        return (
          (before !== undefined && before !== ways) ||
          (n.measured && !n.handles && !flow.getInternalNode(n.id)?.internals.handleBounds)
        );
      })
      .map((n) => n.id);
    if (stale.length) measure(stale);
  }, [nodes]);
  useEffect(() => {
    // the middle stays in the middle when a panel opens beside the graph
    const el = frame.current;
    if (!el) return;
    let before = { w: 0, h: 0 };
    const seen = new ResizeObserver(([e]) => {
      const now = { w: e.contentRect.width, h: e.contentRect.height };
      if (before.w && now.w) {
        const v = flow.getViewport();
        flow.setViewport({ ...v, x: v.x + (now.w - before.w) / 2, y: v.y + (now.h - before.h) / 2 });
      }
      if (now.w) before = now;
    });
    seen.observe(el);
    return () => seen.disconnect();
  }, []);
  useEffect(() => {
    // a node that was chosen elsewhere is brought into sight
    const one = editor.one.value;
    if (!one?.position) return;
    const timer = setTimeout(() => bringIntoSight(flow, frame.current, one), 60); // after the panel opened
    return () => clearTimeout(timer);
  }, [selectedNow]);
  const shared = useMemo(() => ({ editor, actions }), [editor, actions]);
  const readonly = editor.readonly.value;

  const onNodesChange = useCallback(
    (changes: NodeChange<Shape>[]) => {
      const picks = changes.filter((c) => c.type === "select");
      if (picks.length) {
        const { multiSelectionActive, userSelectionActive } = store.getState();
        const chosen = picks.some((c) => c.selected) && !multiSelectionActive && !userSelectionActive; // in place of what was: the library may not know yet what was selected elsewhere
        const next = new Set(chosen ? [] : editor.selected.value);
        for (const c of picks)
          if (c.selected) next.add(c.id);
          else next.delete(c.id);
        editor.select(next);
      }
      const others = changes.filter((c) => c.type === "position" || c.type === "dimensions");
      const resized = new Set(others.map((c) => c.type === "dimensions" && c.id)); // the places of their handles were not what they were taken to be
      if (others.length)
        setNodes((old) =>
          applyNodeChanges(others, old).map((n) => {
            if (!resized.has(n.id) || !n.handles) return n;
            const { handles: _, ...rest } = n;
            return rest as Shape;
          }),
        );
    },
    [editor],
  );

  const still = useRef<ReturnType<typeof setTimeout>>(undefined); // making a layer costs more than a move: it stays for the next ones
  const onMoveStart = useCallback(() => {
    clearTimeout(still.current);
    frame.current?.classList.add("panning");
  }, []);
  const onMoveEnd = useCallback(() => {
    clearTimeout(still.current);
    still.current = setTimeout(() => frame.current?.classList.remove("panning"), 600);
  }, []);
  const onDragStart = useCallback(() => {
    moving.current = true;
    frame.current?.classList.add("moving");
  }, []);
  const onDragStop = useCallback(
    (event: Pointed, _: unknown, dragged: Shape[]) => {
      moving.current = false;
      frame.current?.classList.remove("moving");
      const at = new Map(dragged.map((n) => [n.id, n.position]));
      const { nodes: steps, edges: links } = editor.doc.value;
      const notes = editor.doc.value.notes?.map((n) => {
        const to = at.get(noteNode(n.id));
        return to && (to.x !== n.x || to.y !== n.y) ? { ...n, x: to.x, y: to.y } : n;
      });
      if (notes?.some((n, i) => n !== editor.doc.value.notes![i])) editor.change({ notes }, "move");
      const moved = (s: Step) => {
        const to = at.get(s.id);
        return to && (to.x !== s.position?.x || to.y !== s.position?.y) ? { x: to.x, y: to.y } : undefined;
      };
      if (steps.some(moved)) {
        editor.change(
          {
            nodes: steps.map((s) => {
              const position = moved(s);
              return position ? { ...s, position } : s;
            }),
          },
          "move",
        );
      }
      const point = pointOf(event);
      const edge = edgeAt(point.clientX, point.clientY);
      if (edge && dragged.length === 1 && !links.some((e) => e.source === dragged[0].id || e.target === dragged[0].id))
        insertInto(editor, edge, dragged[0].id);
    },
    [editor],
  );
  const onSelectionDragStop = useCallback((event: Pointed, all: Shape[]) => onDragStop(event, null, all), [onDragStop]);
  const onDoubleClick = useCallback(
    (_: unknown, n: Shape) => {
      if (!isNote(n.id)) actions.open?.(n.id);
    },
    [actions],
  );
  const onContextMenu = useCallback(
    (e: MouseEvent, n: Shape) => {
      if (!actions.menu || isNote(n.id)) return;
      e.preventDefault();
      actions.menu(n.id, e);
    },
    [actions],
  );
  const onConnect = useCallback(
    (c: Connection) => editor.connect(c.source, c.sourceHandle ?? onlyWay, c.target),
    [editor],
  );
  const onConnectEnd = useCallback(
    (event: Pointed, state: FinalConnectionState) => {
      if (state.isValid || state.toNode || !state.fromNode || state.fromHandle?.type !== "source" || !actions.add)
        return;
      const point = pointOf(event);
      actions.add({
        after: state.fromNode.id,
        way: state.fromHandle.id ?? onlyWay,
        at: flow.screenToFlowPosition({ x: point.clientX, y: point.clientY - 28 }),
      });
    },
    [actions],
  );
  const onEdgesChange = useCallback(
    (changes: EdgeChange<EdgeShape>[]) => {
      const picks = changes.filter((c) => c.type === "select");
      if (picks.length) editor.selectedEdge.value = picks.find((c) => c.selected)?.id ?? "";
    },
    [editor],
  );
  const onDrop = useCallback(
    (e: DragEvent) => {
      const type = typeOf(e.dataTransfer?.getData("application/x-satchel-node") ?? "");
      if (!type) return;
      e.preventDefault();
      const edge = edgeAt(e.clientX, e.clientY);
      const at = flow.screenToFlowPosition({ x: e.clientX - nodeWidth / 2, y: e.clientY - 28 });
      editor.add(type, edge ? { edge } : { at: { x: Math.round(at.x / 10) * 10, y: Math.round(at.y / 10) * 10 } });
    },
    [editor],
  );

  return (
    <Shared.Provider value={shared}>
      <ReactFlow
        ref={frame}
        {...fixed}
        nodes={nodes}
        edges={edges}
        onNodesChange={onNodesChange}
        onEdgesChange={onEdgesChange}
        onNodeDragStart={onDragStart}
        onSelectionDragStart={onDragStart}
        onNodeDragStop={onDragStop}
        onSelectionDragStop={onSelectionDragStop}
        onConnect={onConnect}
        onConnectEnd={onConnectEnd}
        onNodeDoubleClick={onDoubleClick}
        onNodeContextMenu={onContextMenu}
        onDrop={onDrop}
        onMoveStart={onMoveStart}
        onMoveEnd={onMoveEnd}
        onDragOver={onDragOver}
        nodesDraggable={!readonly}
        nodesConnectable={!readonly}
        onlyRenderVisibleElements={nodes.length > 300}
      >
        <Background gap={20} size={1} />
        {minimap && nodes.length > 6 && <GraphMap nodes={onMap.current} />}
      </ReactFlow>
    </Shared.Provider>
  );
}

/** Keeps the library from measuring the nodes whose size and handles are known and right: it would draw each of them twice. */
function useKnownSizes() {
  const store = useStoreApi<Shape, EdgeShape>();
  useState(() => {
    const { updateNodeInternals, nodeLookup } = store.getState();
    let first = true; // one is measured, after which the library fits the view to the graph
    const unknown = (id: string, el: HTMLElement) => {
      const node = nodeLookup.get(id);
      return !node?.handles || el.offsetWidth !== node.measured.width || el.offsetHeight !== node.measured.height;
    };
    store.setState({
      updateNodeInternals: (updates, params) => {
        const left = new Map([...updates].filter(([id, u], i) => (first && i === 0) || unknown(id, u.nodeElement)));
        first = false;
        if (left.size) updateNodeInternals(left, params);
      },
    });
  });
}

const besideNode = 60; // for the button that adds a node behind it

/** Moves the view when a node, or what adds one behind it, lies outside of it. */
function bringIntoSight(flow: Flow, frame: HTMLElement | null, node: Step) {
  const box = frame?.getBoundingClientRect();
  if (!box?.width) return;
  const at = node.position!,
    height = nodeHeight(waysOut(node, typeOf(node.type)).length);
  const zoom = Math.max(flow.getZoom(), 0.35);
  const from = flow.flowToScreenPosition(at);
  const [w, h] = [(nodeWidth + besideNode) * zoom, height * zoom];
  if (
    zoom === flow.getZoom() &&
    from.x >= box.left &&
    from.y >= box.top &&
    from.x + w <= box.right &&
    from.y + h <= box.bottom
  )
    return;
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  flow.setCenter(at.x + nodeWidth / 2, at.y + height / 2, { zoom, duration: calm ? 0 : 200 });
}

type Pointed = MouseEvent | TouchEvent;

/** Where a pointer or the first finger is. */
const pointOf = (event: Pointed): { clientX: number; clientY: number } =>
  "changedTouches" in event ? event.changedTouches[0] : event;

/** The edge under a point of the window. */
function edgeAt(x: number, y: number): string | undefined {
  for (const el of document.elementsFromPoint(x, y)) {
    const edge = el.closest?.(".react-flow__edge");
    if (edge) return (edge as HTMLElement).dataset.id;
  }
  return undefined;
}

/** Puts a node without edges into an edge. */
function insertInto(editor: Editor, edgeId: string, id: string) {
  const { edges } = editor.doc.value;
  const edge = edges.find((e) => e.id === edgeId);
  const node = editor.node(id);
  if (!edge || !node || node.type === "trigger") return;
  const type = typeOf(node.type);
  const way = type?.normal_handle ?? waysOut(node, type)[0];
  const taken = new Set(edges.map((e) => e.id));
  editor.change(
    { edges: [...edges.map((e) => (e === edge ? { ...e, target: id } : e)), makeLink(id, way, edge.target, taken)] },
    "move",
  ); // undone with the move
}

/** The graph of an editor, to be changed unless it is read-only. */
export function Canvas(props: Props) {
  return (
    <ReactFlowProvider>
      <Inner {...props} />
    </ReactFlowProvider>
  );
}
