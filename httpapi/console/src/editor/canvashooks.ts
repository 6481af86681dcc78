// Hooks of the canvas: the nodes and edges that it shows, and where its view is.
import { applyNodeChanges, type EdgeChange, type NodeChange, useStoreApi, useUpdateNodeInternals } from "@xyflow/react";
import type { RefObject } from "preact";
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";

import { catalog } from "./catalog";
import { type GraphNode, outputHandles } from "./graph";
import { heightOf, nodeWidth } from "./layout";
import { type CanvasItem, type EdgeShape, edgeShapes, type Flow, nodeShapes } from "./shapes";
import type { Editor } from "./state";

const revealDelay = 60; // milliseconds, after which the panel of the node is open
const panDuration = 200;
const layerTime = 600; // milliseconds for which the layer of a moved view is kept
const smallestRevealZoom = 0.35;
const addButtonWidth = 60; // of the button beside a node that adds another

/**
 * The nodes of the canvas. They follow the document, except while some are
 * dragged: then the library moves them, and the document changes when they are
 * dropped.
 */
export function useNodes(editor: Editor, dragging: RefObject<boolean>) {
  const store = useStoreApi<CanvasItem, EdgeShape>();
  const [nodes, setNodes] = useState<CanvasItem[]>(() => nodeShapes(editor, []));
  useEffect(() => {
    if (!dragging.current) setNodes((before) => nodeShapes(editor, before));
  }, [editor.doc.value, editor.selected.value, catalog.value]);

  const applySelection = (changes: { id: string; selected: boolean }[]) => {
    const { multiSelectionActive, userSelectionActive } = store.getState();
    // A click replaces the selection. The library may not know yet what was selected elsewhere.
    const replaces = changes.some((change) => change.selected) && !multiSelectionActive && !userSelectionActive;
    const selection = new Set(replaces ? [] : editor.selected.value);
    for (const { id, selected } of changes)
      if (selected) selection.add(id);
      else selection.delete(id);
    editor.select(selection);
  };
  const onNodesChange = useCallback(
    (changes: NodeChange<CanvasItem>[]) => {
      const selections = changes.filter((change) => change.type === "select");
      if (selections.length) applySelection(selections);
      const moves = changes.filter((change) => change.type === "position" || change.type === "dimensions");
      if (!moves.length) return;
      const resized = new Set(moves.filter((change) => change.type === "dimensions").map((change) => change.id));
      setNodes((before) =>
        applyNodeChanges(moves, before).map((node) => (resized.has(node.id) ? withoutHandles(node) : node)),
      );
    },
    [editor],
  );
  return { nodes, onNodesChange };
}

/** Returns a node without the positions of its handles, which are wrong if its size is not the computed one. */
function withoutHandles(node: CanvasItem): CanvasItem {
  if (!node.handles) return node;
  const { handles: _, ...rest } = node;
  return rest as CanvasItem;
}

/** The edges of the canvas. Those that have not changed stay the same objects. */
export function useEdges(editor: Editor) {
  const { nodes, edges: graphEdges } = editor.doc.value;
  const previous = useRef<EdgeShape[]>([]);
  const edges = useMemo(
    () => edgeShapes(editor, previous.current),
    [graphEdges, nodes, editor.marks.value, editor.selectedEdge.value, catalog.value],
  );
  previous.current = edges;
  const onEdgesChange = useCallback(
    (changes: EdgeChange<EdgeShape>[]) => {
      const selections = changes.filter((change) => change.type === "select");
      if (selections.length) editor.selectedEdge.value = selections.find((change) => change.selected)?.id ?? "";
    },
    [editor],
  );
  return { edges, onEdgesChange };
}

/** Measures nodes again whose handles were added, removed or renamed, and those that the library missed. */
export function useHandleMeasurement(flow: Flow, nodes: CanvasItem[], dragging: RefObject<boolean>) {
  const measure = useUpdateNodeInternals();
  const handlesOf = useRef(new Map<string, string>());
  useEffect(() => {
    if (dragging.current) return; // dragging changes no handle
    const isStale = (node: CanvasItem) => {
      if (node.type === "note") return false;
      const handles = `${outputHandles(node.data.node, node.data.type).join("\n")}\n\n${node.data.used}`;
      const before = handlesOf.current.get(node.id);
      handlesOf.current.set(node.id, handles);
      const changed = before !== undefined && before !== handles;
      const missed = node.measured && !node.handles && !flow.getInternalNode(node.id)?.internals.handleBounds;
      return changed || missed;
    };
    const stale = nodes.filter(isStale).map((node) => node.id);
    if (stale.length) measure(stale);
  }, [nodes]);
}

/** Keeps the middle of the view when the canvas gets another size, such as when a panel opens beside it. */
export function useCenteredView(flow: Flow, canvas: RefObject<HTMLElement | null>) {
  useEffect(() => {
    const element = canvas.current;
    if (!element) return;
    let before = { width: 0, height: 0 };
    const observer = new ResizeObserver(([entry]) => {
      const { width, height } = entry.contentRect;
      if (before.width && width) {
        const viewport = flow.getViewport();
        flow.setViewport({
          ...viewport,
          x: viewport.x + (width - before.width) / 2,
          y: viewport.y + (height - before.height) / 2,
        });
      }
      if (width) before = { width, height };
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
}

/** Moves the view to the selected node if it is not visible. */
export function useSelectionInView(flow: Flow, canvas: RefObject<HTMLElement | null>, editor: Editor) {
  useEffect(() => {
    const node = editor.selectedNode.value;
    if (!node?.position) return;
    const timer = setTimeout(() => moveIntoView(flow, canvas.current, node), revealDelay);
    return () => clearTimeout(timer);
  }, [editor.selected.value]);
}

/** Moves the view if a node, or the button beside it that adds another, is outside of it. */
function moveIntoView(flow: Flow, canvas: HTMLElement | null, node: GraphNode) {
  const box = canvas?.getBoundingClientRect();
  if (!box?.width) return;
  const position = node.position!;
  const height = heightOf(node);
  const zoom = Math.max(flow.getZoom(), smallestRevealZoom);
  const topLeft = flow.flowToScreenPosition(position);
  const isVisible =
    topLeft.x >= box.left &&
    topLeft.y >= box.top &&
    topLeft.x + (nodeWidth + addButtonWidth) * zoom <= box.right &&
    topLeft.y + height * zoom <= box.bottom;
  if (isVisible && zoom === flow.getZoom()) return;
  const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)").matches;
  flow.setCenter(position.x + nodeWidth / 2, position.y + height / 2, {
    zoom,
    duration: reducedMotion ? 0 : panDuration,
  });
}

/**
 * Marks the canvas while its view is moved, so that the graph gets a layer of its own; that is kept for the next moves.
 */
export function usePanning(canvas: RefObject<HTMLElement | null>) {
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const onMoveStart = useCallback(() => {
    clearTimeout(timer.current);
    canvas.current?.classList.add("panning");
  }, []);
  const onMoveEnd = useCallback(() => {
    clearTimeout(timer.current);
    timer.current = setTimeout(() => canvas.current?.classList.remove("panning"), layerTime);
  }, []);
  return { onMoveStart, onMoveEnd };
}

/** Keeps the library from measuring nodes whose size and handles are known: it would render each of them twice. */
export function useKnownSizes() {
  const store = useStoreApi<CanvasItem, EdgeShape>();
  useState(() => {
    const { updateNodeInternals, nodeLookup } = store.getState();
    let isFirst = true; // one node is measured, after which the library fits the view to the graph
    const isKnown = (id: string, element: HTMLElement) => {
      const node = nodeLookup.get(id);
      if (!node?.handles) return false;
      return element.offsetWidth === node.measured.width && element.offsetHeight === node.measured.height;
    };
    store.setState({
      updateNodeInternals: (updates, params) => {
        const entries = [...updates].filter(
          ([id, update], index) => (isFirst && index === 0) || !isKnown(id, update.nodeElement),
        );
        isFirst = false;
        if (entries.length) updateNodeInternals(new Map(entries), params);
      },
    });
  });
}
