// What the editor loads when it is first used: dialogs, the palette, pasting and tests.
import type { VNode } from "preact";

import { openDialog, showToast } from "../ui";
import type { NodeType } from "./catalog";
import type { TestState } from "./starttest";
import type { Editor } from "./state";

/** Loads the smaller dialogs of the editor. */
export const loadDialogs = () => import("./dialogs");

/** Loads what pastes nodes, also those copied in n8n, and renames them. */
export const loadPasting = () => import("./pasting");

/** Loads what starts tests. */
export const loadTesting = () => import("./starttest");

/** Loads the dialog that finds a type of node. */
export const loadPalette = () => import("./palette");

/** Loads the dialog that executes the workflow. */
export const loadExecute = () => import("../workflows/execute");

type Dialogs = Awaited<ReturnType<typeof loadDialogs>>;

/** Opens one of the smaller dialogs. */
export const openEditorDialog = (render: (dialogs: Dialogs, close: () => void) => VNode) =>
  loadDialogs().then((dialogs) => {
    openDialog((close) => render(dialogs, close));
  }, showToast);

/** Opens the dialog that finds a type of node; triggers are listed too if there is none yet. */
export const openPalette = (triggers: boolean, pick: (type: NodeType) => void) =>
  loadPalette().then(({ NodePalette }) => {
    openDialog((close) => <NodePalette title="Add a node" triggers={triggers} close={close} pick={pick} />);
  }, showToast);

/** Loads what runs tests of a workflow; refresh gets their state. */
export const startTests = (editor: Editor, id: string, refresh: (state: TestState) => void) =>
  loadTesting().then((testing) => testing.tests(editor, id, refresh));
