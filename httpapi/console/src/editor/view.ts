// The editor's page as its actions see it.
import type { Point } from "./graph";
import type { Flow } from "./shapes";
import type { TestMode } from "./starttest";
import type { Editor } from "./state";

/** The editor's page, as far as actions need it: values that change are read when an action runs. */
export type EditorView = {
  editor: Editor;
  /** The canvas's view of the graph; null while the outline is shown. */
  flow: () => Flow | null;
  /** The element that shows the graph. */
  element: () => HTMLElement | null | undefined;
  /** The position of the mouse over the graph, in the window. */
  mouse: () => Point;
  editable: boolean;
  runTest: (mode: TestMode, nodeId?: string) => unknown;
};
