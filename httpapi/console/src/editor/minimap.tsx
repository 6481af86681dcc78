// A map of the graph in a corner of the canvas. The library's own has a
// component for each node; this is one drawing.
import { Panel, useReactFlow, useStore, useViewport } from "@xyflow/react";
import { memo } from "preact/compat";
import { useMemo, useRef } from "preact/hooks";

import { nodeWidth } from "./index";
import type { CanvasItem } from "./shapes";

const width = 150,
  height = 100;

type Box = { x: number; y: number; w: number; h: number };

const rect = ({ x, y, w, h }: Box) => `M${x},${y}h${w}v${h}h${-w}z`;

/** The smallest box around boxes. */
function around(boxes: Box[]): Box {
  const x = Math.min(...boxes.map((b) => b.x)),
    y = Math.min(...boxes.map((b) => b.y));
  return { x, y, w: Math.max(...boxes.map((b) => b.x + b.w)) - x, h: Math.max(...boxes.map((b) => b.y + b.h)) - y };
}

/** The map: a drag moves the view, a click outside of the view brings it there, the wheel zooms. */
export const GraphMap = memo(function GraphMap({ nodes }: { nodes: CanvasItem[] }) {
  const flow = useReactFlow();
  const { x, y, zoom } = useViewport();
  const [w, h] = [useStore((s) => s.width), useStore((s) => s.height)];
  const drag = useRef<{ x: number; y: number } | undefined>(undefined);
  const boxes = useMemo(
    () =>
      nodes.map((n) => ({
        x: n.position.x,
        y: n.position.y,
        w: n.measured?.width ?? nodeWidth,
        h: n.measured?.height ?? 58,
      })),
    [nodes],
  );
  const all = useMemo(() => around(boxes), [boxes]);
  const drawn = useMemo(() => boxes.map(rect).join(""), [boxes]);
  const view = { x: -x / zoom, y: -y / zoom, w: w / zoom, h: h / zoom };
  const bounds = around([all, view]);
  const scale = Math.max(bounds.w / width, bounds.h / height) || 1;
  const box = {
    x: bounds.x - (scale * width - bounds.w) / 2 - 5 * scale,
    y: bounds.y - (scale * height - bounds.h) / 2 - 5 * scale,
    w: scale * (width + 10),
    h: scale * (height + 10),
  };
  const down = (e: PointerEvent) => {
    const svg = e.currentTarget as SVGSVGElement;
    const at = new DOMPoint(e.clientX, e.clientY).matrixTransform(svg.getScreenCTM()!.inverse());
    if (at.x < view.x || at.y < view.y || at.x > view.x + view.w || at.y > view.y + view.h)
      void flow.setCenter(at.x, at.y, { zoom });
    svg.setPointerCapture(e.pointerId);
    drag.current = { x: e.clientX, y: e.clientY };
  };
  const move = (e: PointerEvent) => {
    if (!drag.current) return;
    const by = scale * zoom,
      v = flow.getViewport();
    void flow.setViewport({
      ...v,
      x: v.x - (e.clientX - drag.current.x) * by,
      y: v.y - (e.clientY - drag.current.y) * by,
    });
    drag.current = { x: e.clientX, y: e.clientY };
  };
  const wheel = (e: WheelEvent) => {
    e.preventDefault();
    void flow.zoomTo(flow.getZoom() * 2 ** (-e.deltaY * 0.002));
  };
  const end = () => {
    drag.current = undefined;
  };
  return (
    <Panel position="bottom-right" className="graph-map">
      <svg
        width={width}
        height={height}
        viewBox={`${box.x} ${box.y} ${box.w} ${box.h}`}
        role="img"
        aria-label="Map of the graph"
        onPointerDown={down}
        onPointerMove={move}
        onPointerUp={end}
        onPointerCancel={end}
        onWheel={wheel}
      >
        <path class="map-nodes" d={drawn} />
        <path class="map-mask" fill-rule="evenodd" d={rect(box) + rect(view)} />
      </svg>
    </Panel>
  );
});
