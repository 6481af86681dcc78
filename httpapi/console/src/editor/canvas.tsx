// The canvas: the graph as nodes and edges that are moved, joined and removed.
import { applyNodeChanges, Background, BaseEdge, EdgeLabelRenderer, getBezierPath, getSmoothStepPath, Handle, MiniMap, Position, ReactFlow, ReactFlowProvider, SelectionMode, useReactFlow, useUpdateNodeInternals } from "@xyflow/react";
import { createContext } from "preact";
import { memo } from "preact/compat";
import { useCallback, useContext, useEffect, useMemo, useRef, useState } from "preact/hooks";

import { Icon, Name, span, type IconName } from "../ui";
import { catalog, type Editor, isNote, nameOf, noteNode, type NodeType, nodeWidth, onlyWay, type Step, typeOf, wayOf, waysOut } from "./base";
import { NoteNode, noteNodes } from "./notes";

export type CanvasActions = {
  /** Asks for a node behind another, or in an edge. */
  add?: (to: { after?: string; way?: string; edge?: string; at?: { x: number; y: number } }) => void;
  open?: (id: string) => void;
  /** Shows what can be done with a node. */
  menu?: (id: string, at: MouseEvent) => void;
};

const Shared = createContext<{ editor: Editor; actions: CanvasActions }>(null as any);

const markIcons: Record<string, IconName> = { success: "Check", error: "X", running: "LoaderCircle", waiting: "Hand", cancelled: "Square", skipped: "ArrowRight" };

/** What became of a node, in a corner of it. */
function NodeMark({ id, editor }: { id: string; editor: Editor }) {
  const mark = editor.marks.value.get(id);
  if (!mark || mark.status === "skipped") return null;
  return (
    <span class={`node-mark ${mark.status}`} title={mark.error ?? mark.status}>
      <Icon name={markIcons[mark.status] ?? "Check"} size={12} label={mark.status} />
      {mark.count > 1 && <span>{mark.count}×</span>}
      {mark.status === "waiting" ? <span>waiting</span> : mark.ms !== undefined && mark.status !== "running" && <span>{span(mark.ms)}</span>}
    </span>
  );
}

const StepNode = memo(function StepNode({ data, selected }: { data: { node: Step; type?: NodeType; used: string }; selected?: boolean }) {
  const { editor, actions } = useContext(Shared);
  const { node, type } = data;
  const ways = waysOut(node, type);
  const used = data.used.split("\n");
  const extra = used.filter((w) => w && w !== "error" && !ways.includes(w));
  const issues = editor.issuesOf.value.get(node.id);
  const wrong = issues?.some((i) => i.severity !== "warning");
  const mark = editor.marks.value.get(node.id);
  const many = ways.length + extra.length > 1;
  const writable = !editor.readonly.value && actions.add;
  const exit = (way: string, stale = false) => (
    <div class={stale ? "node-way stale" : "node-way"} key={way} title={stale ? "This output no longer exists" : undefined}>
      {way !== onlyWay && <span>{way}</span>}
      <Handle type="source" position={Position.Right} id={way} />
      {writable && !used.includes(way) && <button type="button" class="node-add nodrag nopan" tabIndex={-1} aria-label={`Add a node after ${nameOf(node)}`} title="Add a node" onClick={(e) => { e.stopPropagation(); actions.add!({ after: node.id, way }); }} />}
    </div>
  );
  return (
    <div class={`node ${mark?.status ?? ""} ${selected ? "selected" : ""} ${issues ? (wrong ? "wrong" : "doubt") : ""} ${node.data?.disabled ? "disabled" : ""} ${node.metadata?.pin !== undefined ? "pinned" : ""} group-${(type?.group ?? "none").toLowerCase()}`}>
      {node.type !== "trigger" && <Handle type="target" position={Position.Left} id="in" />}
      <div class="node-head">
        <span class="node-icon"><Icon name={type?.icon ?? "CircleHelp"} size={18} /></span>
        <span class="node-text"><strong class="clip"><Name>{nameOf(node)}</Name></strong><span class="clip"><Name>{type?.label ?? node.type}</Name></span></span>
        {issues && <span class="node-wrong" title={issues.map((i) => i.issue).join("\n")}><Icon name={wrong ? "CircleAlert" : "TriangleAlert"} size={16} label={wrong ? "Has a problem" : "Has a warning"} /></span>}
        {node.metadata?.pin !== undefined && <span class="node-pin" title="Tests use the pinned output"><Icon name="Pin" size={13} label="Pinned" /></span>}
        {!many && exit(ways[0] ?? onlyWay)}
      </div>
      {many && <div class="node-ways">{ways.map((w) => exit(w))}{extra.map((w) => exit(w, true))}</div>}
      {typeof node.metadata?.note === "string" && node.metadata.note && <div class="node-note"><bdi>{node.metadata.note}</bdi></div>}
      <Handle type="source" position={Position.Bottom} id="error" className={used.includes("error") ? "handle-error used" : "handle-error"} title="When it fails" />
      <NodeMark id={node.id} editor={editor} />
    </div>
  );
});

const StepEdge = memo(function StepEdge({ id, sourceX, sourceY, targetX, targetY, sourcePosition, targetPosition, selected, markerEnd }: any) {
  const { editor, actions } = useContext(Shared);
  const back = targetX < sourceX; // an edge that leads back passes below the nodes
  const shape = { sourceX, sourceY, targetX, targetY, sourcePosition, targetPosition };
  const [d, x, y] = back ? getSmoothStepPath({ ...shape, borderRadius: 16, offset: 26, centerY: Math.max(sourceY, targetY) + 80 }) : getBezierPath(shape);
  return (
    <>
      <BaseEdge id={id} path={d} markerEnd={markerEnd} interactionWidth={22} />
      {selected && actions.add && !editor.readonly.value && (
        <EdgeLabelRenderer>
          <div class="edge-tools nodrag nopan" style={{ transform: `translate(-50%, -50%) translate(${x}px, ${y}px)` }}>
            <button type="button" aria-label="Add a node here" title="Add a node here" onClick={() => actions.add!({ edge: id })}><Icon name="Plus" size={14} /></button>
            <button type="button" aria-label="Remove edge" title="Remove edge" onClick={() => { editor.change({ edges: editor.doc.value.edges.filter((e) => e.id !== id) }); editor.selectedEdge.value = ""; }}><Icon name="X" size={14} /></button>
          </div>
        </EdgeLabelRenderer>
      )}
    </>
  );
});

const nodeTypes: any = { step: StepNode, note: NoteNode };
const edgeTypes: any = { step: StepEdge };
// Settings that are the same objects at every drawing: the library compares
// them by identity, and draws every node again when one changes.
const fixed = {
  nodeTypes, edgeTypes, proOptions: { hideAttribution: false }, snapToGrid: true, snapGrid: [10, 10] as [number, number], minZoom: 0.1, maxZoom: 2, fitView: true, fitViewOptions: { maxZoom: 1, padding: 0.15 },
  panOnDrag: [1, 2], panOnScroll: true, panActivationKeyCode: "Space", selectionOnDrag: true, selectionMode: SelectionMode.Partial, selectionKeyCode: null, multiSelectionKeyCode: ["Shift", "Control", "Meta"],
  deleteKeyCode: null, disableKeyboardA11y: true, nodesFocusable: false, edgesFocusable: false, edgesReconnectable: false, elementsSelectable: true, connectionRadius: 30, colorMode: "light" as const,
};

const onDragOver = (e: any) => { if (e.dataTransfer.types.includes("application/x-satchel-node")) e.preventDefault(); };

/** The nodes of the canvas; one whose step has not changed stays the same object. */
function flowNodes(editor: Editor, before: any[]): any[] {
  const doc = editor.doc.value;
  const types = catalog.value.byType;
  const selected = editor.selected.value;
  const known = new Map(before.map((n) => [n.id, n]));
  const byId = new Map(doc.nodes.map((n) => [n.id, n]));
  const used = new Map<string, Set<string>>();
  for (const e of doc.edges) {
    const at = byId.get(e.source);
    if (at) used.set(e.source, (used.get(e.source) ?? new Set()).add(wayOf(e, at, types.get(at.type))));
  }
  return [...noteNodes(editor, known), ...doc.nodes.map((node) => {
    const old = known.get(node.id);
    const ways = [...(used.get(node.id) ?? [])].sort().join("\n");
    const type = types.get(node.type);
    const on = selected.has(node.id);
    if (old && old.data.node === node && old.data.used === ways && old.data.type === type && old.selected === on) return old;
    const data = old && old.data.node === node && old.data.used === ways && old.data.type === type ? old.data : { node, used: ways, type };
    return { ...old, id: node.id, type: "step", position: node.position ?? { x: 0, y: 0 }, data, selected: on, ariaLabel: `${nameOf(node)}, ${type?.label ?? node.type}` };
  })];
}

function flowEdges(editor: Editor): any[] {
  const { nodes, edges } = editor.doc.value;
  const byId = new Map(nodes.map((n) => [n.id, n]));
  const marks = editor.marks.value;
  return edges.filter((e) => byId.has(e.source) && byId.has(e.target)).map((e) => {
    const from = byId.get(e.source)!;
    const way = wayOf(e, from, typeOf(from.type));
    const went = marks.size > 0 && marks.get(e.source)?.status === "success" && marks.has(e.target) && marks.get(e.target)!.status !== "skipped";
    return { id: e.id, type: "step", source: e.source, target: e.target, sourceHandle: way, targetHandle: "in", selected: editor.selectedEdge.value === e.id,
      class: undefined, className: [way === "error" && "of-error", went && "went"].filter(Boolean).join(" "), markerEnd: { type: "arrowclosed", width: 16, height: 16 } };
  });
}

function Inner({ editor, actions, minimap, onReady }: { editor: Editor; actions: CanvasActions; minimap?: boolean; onReady?: (flow: any) => void }) {
  const flow = useReactFlow();
  const [nodes, setNodes] = useState<any[]>(() => flowNodes(editor, []));
  const moving = useRef(false);
  const frame = useRef<HTMLDivElement>(null);
  const docNow = editor.doc.value;
  const selectedNow = editor.selected.value;
  const catalogNow = catalog.value;
  useEffect(() => { if (!moving.current) setNodes((old) => flowNodes(editor, old)); }, [docNow, selectedNow, catalogNow]);
  const edges = useMemo(() => flowEdges(editor), [docNow.edges, docNow.nodes, editor.marks.value, editor.selectedEdge.value, catalogNow]);
  useEffect(() => { onReady?.(flow); }, []);
  const measure = useUpdateNodeInternals();
  const handles = useRef(new Map<string, string>());
  useEffect(() => { // handles that came, went or were renamed are measured again, and those that were missed
    if (moving.current) return; // dragging changes no handle
    const stale = nodes.filter((n) => {
      if (n.type === "note") return false;
      const ways = `${waysOut(n.data.node, n.data.type).join("\n")}\n\n${n.data.used}`;
      const before = handles.current.get(n.id);
      handles.current.set(n.id, ways);
      return (before !== undefined && before !== ways) || (n.measured && !flow.getInternalNode(n.id)?.internals.handleBounds);
    }).map((n) => n.id);
    if (stale.length) measure(stale);
  }, [nodes]);
  useEffect(() => { // the middle stays in the middle when a panel opens beside the graph
    const el = frame.current;
    if (!el) return;
    let before = { w: 0, h: 0 };
    const seen = new ResizeObserver(([e]) => {
      const now = { w: e.contentRect.width, h: e.contentRect.height };
      if (before.w && now.w) { const v = flow.getViewport(); flow.setViewport({ ...v, x: v.x + (now.w - before.w) / 2, y: v.y + (now.h - before.h) / 2 }); }
      if (now.w) before = now;
    });
    seen.observe(el);
    return () => seen.disconnect();
  }, []);
  useEffect(() => { // a node that was chosen elsewhere is brought into sight
    const one = editor.one.value;
    if (!one?.position) return;
    const timer = setTimeout(() => bringIntoSight(flow, frame.current, one.position!), 60); // after the panel opened
    return () => clearTimeout(timer);
  }, [selectedNow]);
  const shared = useMemo(() => ({ editor, actions }), [editor, actions]);
  const readonly = editor.readonly.value;

  const onNodesChange = useCallback((changes: any[]) => {
    const picks = changes.filter((c) => c.type === "select");
    if (picks.length) {
      const next = new Set(editor.selected.value);
      for (const c of picks) if (c.selected) next.add(c.id); else next.delete(c.id);
      editor.select(next);
    }
    const others = changes.filter((c) => c.type === "position" || c.type === "dimensions");
    if (others.length) setNodes((old) => applyNodeChanges(others, old));
  }, [editor]);

  const onDragStart = useCallback(() => { moving.current = true; frame.current?.classList.add("moving"); }, []);
  const onDragStop = useCallback((event: any, _: any, dragged: any[]) => {
    moving.current = false;
    frame.current?.classList.remove("moving");
    const at = new Map(dragged.map((n) => [n.id, n.position]));
    const { nodes: steps, edges: links } = editor.doc.value;
    const notes = editor.doc.value.notes?.map((n) => { const to = at.get(noteNode(n.id)); return to && (to.x !== n.x || to.y !== n.y) ? { ...n, x: to.x, y: to.y } : n; });
    if (notes?.some((n, i) => n !== editor.doc.value.notes![i])) editor.change({ notes }, "move");
    if (steps.some((s) => at.has(s.id) && (at.get(s.id).x !== s.position?.x || at.get(s.id).y !== s.position?.y))) {
      editor.change({ nodes: steps.map((s) => (at.has(s.id) ? { ...s, position: { x: at.get(s.id).x, y: at.get(s.id).y } } : s)) }, "move");
    }
    const edge = edgeAt(event.clientX ?? event.changedTouches?.[0]?.clientX, event.clientY ?? event.changedTouches?.[0]?.clientY);
    if (edge && dragged.length === 1 && !links.some((e) => e.source === dragged[0].id || e.target === dragged[0].id)) insertInto(editor, edge, dragged[0].id);
  }, [editor]);
  const onSelectionDragStop = useCallback((event: any, all: any[]) => onDragStop(event, null, all), [onDragStop]);
  const onDoubleClick = useCallback((_: any, n: any) => { if (!isNote(n.id)) actions.open?.(n.id); }, [actions]);
  const onContextMenu = useCallback((e: MouseEvent, n: any) => {
    if (!actions.menu || isNote(n.id)) return;
    e.preventDefault();
    actions.menu(n.id, e);
  }, [actions]);
  const onConnect = useCallback((c: any) => editor.connect(c.source, c.sourceHandle ?? onlyWay, c.target), [editor]);
  const onConnectEnd = useCallback((event: any, state: any) => {
    if (state.isValid || state.toNode || !state.fromNode || state.fromHandle?.type !== "source" || !actions.add) return;
    const point = event.changedTouches?.[0] ?? event;
    actions.add({ after: state.fromNode.id, way: state.fromHandle.id, at: flow.screenToFlowPosition({ x: point.clientX, y: point.clientY - 28 }) });
  }, [actions]);
  const onEdgesChange = useCallback((changes: any[]) => {
    const pick = changes.filter((c) => c.type === "select").at(-1);
    if (pick) {
      const on = changes.find((c) => c.type === "select" && c.selected);
      editor.selectedEdge.value = on?.id ?? "";
    }
  }, [editor]);
  const onDrop = useCallback((e: DragEvent) => {
    const type = typeOf(e.dataTransfer?.getData("application/x-satchel-node") ?? "");
    if (!type) return;
    e.preventDefault();
    const edge = edgeAt(e.clientX, e.clientY);
    const at = flow.screenToFlowPosition({ x: e.clientX - nodeWidth / 2, y: e.clientY - 28 });
    editor.add(type, edge ? { edge } : { at: { x: Math.round(at.x / 10) * 10, y: Math.round(at.y / 10) * 10 } });
  }, [editor]);

  return (
    <Shared.Provider value={shared}>
      <ReactFlow ref={frame} {...fixed} nodes={nodes} edges={edges} onNodesChange={onNodesChange} onEdgesChange={onEdgesChange}
        onNodeDragStart={onDragStart} onSelectionDragStart={onDragStart} onNodeDragStop={onDragStop} onSelectionDragStop={onSelectionDragStop}
        onConnect={onConnect} onConnectEnd={onConnectEnd} onNodeDoubleClick={onDoubleClick} onNodeContextMenu={onContextMenu as any} onDrop={onDrop as any} onDragOver={onDragOver}
        nodesDraggable={!readonly} nodesConnectable={!readonly} onlyRenderVisibleElements={nodes.length > 300}>
        <Background gap={20} size={1} />
        {minimap && nodes.length > 6 && <MiniMap pannable zoomable ariaLabel="Map of the graph" />}
      </ReactFlow>
    </Shared.Provider>
  );
}

/** Moves the view when a node lies outside of it, or too close to its edge. */
function bringIntoSight(flow: any, frame: HTMLElement | null, at: { x: number; y: number }) {
  const box = frame?.getBoundingClientRect();
  if (!box?.width) return;
  const zoom = Math.max(flow.getZoom(), 0.35);
  const from = flow.flowToScreenPosition(at);
  const [w, h] = [nodeWidth * zoom, 60 * zoom];
  if (zoom === flow.getZoom() && from.x >= box.left && from.y >= box.top && from.x + w <= box.right && from.y + h <= box.bottom) return;
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  flow.setCenter(at.x + nodeWidth / 2, at.y + 30, { zoom, duration: calm ? 0 : 200 });
}

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
  editor.change({ edges: edges.map((e) => (e === edge ? { ...e, target: id } : e)) }, "insert");
  editor.connect(id, way, edge.target);
}

/** The graph of an editor, to be changed unless it is read-only. */
export function Canvas(props: { editor: Editor; actions: CanvasActions; minimap?: boolean; onReady?: (flow: any) => void }) {
  return <ReactFlowProvider><Inner {...props} /></ReactFlowProvider>;
}
