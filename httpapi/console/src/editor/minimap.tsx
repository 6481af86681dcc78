// A map of the graph in a corner of the canvas. The library's own map renders a component per
// node; this one is a single path.
import { Panel, useReactFlow, useStore, useViewport } from "@xyflow/react";
import { memo } from "preact/compat";
import { useMemo, useRef } from "preact/hooks";

import type { Point } from "./graph";
import { nodeHeight, nodeWidth } from "./layout";
import type { CanvasItem } from "./shapes";

const mapWidth = 150;
const mapHeight = 100;
const margin = 5;

type Box = { x: number; y: number; width: number; height: number };

const boxPath = ({ x, y, width, height }: Box) => `M${x},${y}h${width}v${height}h${-width}z`;

const isInside = ({ x, y }: Point, box: Box) =>
  x >= box.x && y >= box.y && x <= box.x + box.width && y <= box.y + box.height;

/** Returns the smallest box that contains all boxes. */
function boundsOf(boxes: Box[]): Box {
  const x = Math.min(...boxes.map((box) => box.x));
  const y = Math.min(...boxes.map((box) => box.y));
  const right = Math.max(...boxes.map((box) => box.x + box.width));
  const bottom = Math.max(...boxes.map((box) => box.y + box.height));
  return { x, y, width: right - x, height: bottom - y };
}

const boxOf = ({ position, measured }: CanvasItem): Box => ({
  x: position.x,
  y: position.y,
  width: measured?.width ?? nodeWidth,
  height: measured?.height ?? nodeHeight(1),
});

/** Returns the part of the canvas that the map shows, and how many of its pixels are one of the map. */
function mapArea(content: Box): { area: Box; scale: number } {
  const scale = Math.max(content.width / mapWidth, content.height / mapHeight) || 1;
  const area = {
    x: content.x - (scale * mapWidth - content.width) / 2 - margin * scale,
    y: content.y - (scale * mapHeight - content.height) / 2 - margin * scale,
    width: scale * (mapWidth + 2 * margin),
    height: scale * (mapHeight + 2 * margin),
  };
  return { area, scale };
}

/** The map. Dragging it moves the view, a click outside of the view centers the view there, and the wheel zooms. */
export const GraphMap = memo(function GraphMap({ nodes }: { nodes: CanvasItem[] }) {
  const { x, y, zoom } = useViewport();
  const width = useStore((store) => store.width);
  const height = useStore((store) => store.height);
  const boxes = useMemo(() => nodes.map(boxOf), [nodes]);
  const graphBounds = useMemo(() => boundsOf(boxes), [boxes]);
  const nodesPath = useMemo(() => boxes.map(boxPath).join(""), [boxes]);
  const view = { x: -x / zoom, y: -y / zoom, width: width / zoom, height: height / zoom };
  const { area, scale } = mapArea(boundsOf([graphBounds, view]));
  const handlers = useMapPointer(view, scale * zoom);
  return (
    <Panel position="bottom-right" className="graph-map">
      <svg
        width={mapWidth}
        height={mapHeight}
        viewBox={`${area.x} ${area.y} ${area.width} ${area.height}`}
        role="img"
        aria-label="Map of the graph"
        {...handlers}
      >
        <path class="map-nodes" d={nodesPath} />
        <path class="map-mask" fill-rule="evenodd" d={boxPath(area) + boxPath(view)} />
      </svg>
    </Panel>
  );
});

/** Returns the handlers that move the view; speed is by how many pixels of the window for one on the map. */
function useMapPointer(view: Box, speed: number) {
  const flow = useReactFlow();
  const last = useRef<Point>(undefined);
  const onPointerDown = (event: PointerEvent) => {
    const map = event.currentTarget as SVGSVGElement;
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(map.getScreenCTM()!.inverse());
    if (!isInside(point, view)) void flow.setCenter(point.x, point.y, { zoom: flow.getZoom() });
    map.setPointerCapture(event.pointerId);
    last.current = { x: event.clientX, y: event.clientY };
  };
  const onPointerMove = (event: PointerEvent) => {
    if (!last.current) return;
    const { x, y, zoom } = flow.getViewport();
    void flow.setViewport({
      x: x - (event.clientX - last.current.x) * speed,
      y: y - (event.clientY - last.current.y) * speed,
      zoom,
    });
    last.current = { x: event.clientX, y: event.clientY };
  };
  const onWheel = (event: WheelEvent) => {
    event.preventDefault();
    void flow.zoomTo(flow.getZoom() * 2 ** (-event.deltaY * 0.002));
  };
  const onPointerUp = () => {
    last.current = undefined;
  };
  return { onPointerDown, onPointerMove, onPointerUp, onPointerCancel: onPointerUp, onWheel };
}
