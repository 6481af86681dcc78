// The panels of the editor's page, which are loaded when they are first shown.
import { lazy } from "../parts/lazy";
import { Skeleton } from "../ui";

/** The panel while it is loaded. */
const PanelSkeleton = () => (
  <aside class="editor-panel" aria-label="Node">
    <div class="panel-body">
      <Skeleton />
    </div>
  </aside>
);

/** The panel of the selected node. */
export const NodePanel = lazy(() => import("./panel").then((m) => m.NodePanel), PanelSkeleton);
/** The types of nodes, to be dragged onto the canvas. */
export const NodeShelf = lazy(
  () => import("./palette").then((m) => m.NodeShelf),
  () => <aside class="node-shelf" aria-label="Nodes" />,
);
/** Offers changes that were not saved when the editor was closed. */
export const DraftOffer = lazy(
  () => import("./dialogs").then((m) => m.DraftOffer),
  () => null,
);
/** Asks whether a graph that the model drafted is kept. */
export const AIDraftBanner = lazy(
  () => import("./ai").then((m) => m.AIDraftBanner),
  () => null,
);
/** The tab for tests. */
export const TestPanel = lazy(() => import("./testpanel").then((m) => m.TestPanel));
/** The list of problems. */
export const Problems = lazy(() => import("./problems").then((m) => m.Problems));
/** The versions of the workflow. */
export const Versions = lazy(() => import("./versions").then((m) => m.Versions));
/** The nodes and edges as JSON. */
export const GraphJson = lazy(() => import("./dialogs").then((m) => m.GraphJson));
