// The parts of the editor and of executions that have files of their own.
import { later } from "../parts/later";
import { style } from "../parts/styles";
import { Skeleton } from "../ui";

const PanelFrame = () => (
  <aside class="editor-panel" aria-label="Node">
    <div class="panel-body">
      <Skeleton />
    </div>
  </aside>
);

/** The graph, to be changed unless its editor is read-only; with the library that draws it. */
export const Canvas = later(
  () => Promise.all([import("./canvas"), style("../lib/xyflow.css")]).then(([m]) => m.Canvas),
  () => null,
);
/** The graph as a list. */
export const Outline = later(() => import("./outline").then((m) => m.Outline));
export const NodePanel = later(() => import("./panel").then((m) => m.NodePanel), PanelFrame);
/** The types of nodes, to be dragged onto the canvas. */
export const NodeShelf = later(
  () => import("./palette").then((m) => m.NodeShelf),
  () => <aside class="node-shelf" aria-label="Nodes" />,
);
export const DraftOffer = later(
  () => import("./dialogs").then((m) => m.DraftOffer),
  () => null,
);
/** Asks whether a graph that the model drafted is kept. */
export const AIDraftBanner = later(
  () => import("./ai").then((m) => m.AIDraftBanner),
  () => null,
);
export const OutputSchemaField = later(() => import("./schemafield").then((m) => m.OutputSchemaField));
export const TestPanel = later(() => import("./testpanel").then((m) => m.TestPanel));
/** How the webhook of a workflow is called. */
export const WebhookCall = later(() => import("./webhook").then((m) => m.WebhookCall));
export const Problems = later(() => import("./problems").then((m) => m.Problems));
export const TryNode = later(() => import("./trynode").then((m) => m.TryNode));
export const Versions = later(() => import("./versions").then((m) => m.Versions));
export const GraphJson = later(() => import("./dialogs").then((m) => m.GraphJson));
export const Compare = later(() => import("../execution/compare").then((m) => m.Compare));
