// Components that several files of the editor and of executions show, and load when they are first shown.
import { lazy } from "../parts/lazy";
import { style } from "../parts/styles";

/** The graph as a canvas, and the library that draws it. */
export const Canvas = lazy(
  () => Promise.all([import("./canvas"), style("../lib/xyflow.css")]).then(([m]) => m.Canvas),
  () => null,
);
/** The graph as a list. */
export const Outline = lazy(() => import("./outline").then((m) => m.Outline));
/** How the webhook of a workflow is called. */
export const IncomingWebhook = lazy(() => import("./incomingwebhook").then((m) => m.IncomingWebhook));
