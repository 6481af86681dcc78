// Components of the editor and of executions that are loaded when they are first shown.
import { later } from "../parts/later";
import { style } from "../parts/styles";
import { Skeleton } from "../ui";

/** The panel while it is loaded. */
const PanelSkeleton = () => (
  <aside class="editor-panel" aria-label="Node">
    <div class="panel-body">
      <Skeleton />
    </div>
  </aside>
);

/** The graph as a canvas, and the library that draws it. */
export const Canvas = later(
  () => Promise.all([import("./canvas"), style("../lib/xyflow.css")]).then(([m]) => m.Canvas),
  () => null,
);
/** The form of a new channel. */
export const ConnectDialog = later(() => import("../pages/channels/connect").then((m) => m.ConnectDialog));
/** The graph as a list. */
export const Outline = later(() => import("./outline").then((m) => m.Outline));
/** The panel of the selected node. */
export const NodePanel = later(() => import("./panel").then((m) => m.NodePanel), PanelSkeleton);
/** The types of nodes, to be dragged onto the canvas. */
export const NodeShelf = later(
  () => import("./palette").then((m) => m.NodeShelf),
  () => <aside class="node-shelf" aria-label="Nodes" />,
);
/** Offers changes that were not saved when the editor was closed. */
export const DraftOffer = later(
  () => import("./dialogs").then((m) => m.DraftOffer),
  () => null,
);
/** Asks whether a graph that the model drafted is kept. */
export const AIDraftBanner = later(
  () => import("./ai").then((m) => m.AIDraftBanner),
  () => null,
);
/** Builds the schema of a model's answer. */
export const OutputSchemaField = later(() => import("./schemafield").then((m) => m.OutputSchemaField));
/** The tab for tests. */
export const TestPanel = later(() => import("./testpanel").then((m) => m.TestPanel));
/** How the webhook of a workflow is called. */
export const WebhookCall = later(() => import("./webhook").then((m) => m.WebhookCall));
/** The list of problems. */
export const Problems = later(() => import("./problems").then((m) => m.Problems));
/** Sends the request of a node once. */
export const TryNode = later(() => import("./trynode").then((m) => m.TryNode));
/** The versions of the workflow. */
export const Versions = later(() => import("./versions").then((m) => m.Versions));
/** The nodes and edges as JSON. */
export const GraphJson = later(() => import("./dialogs").then((m) => m.GraphJson));
/** Compares two executions. */
export const Compare = later(() => import("../execution/compare").then((m) => m.Compare));
