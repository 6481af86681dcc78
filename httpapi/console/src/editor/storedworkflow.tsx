// The stored workflow: loading, saving and copying it, and changes made elsewhere.
import { useEffect, useRef, useState } from "preact/hooks";

import { agentId, type API, ApiError, get, go, href, onChange, path, post, put, setQuery } from "../data";
import { openDialog, showToast } from "../ui";
import type { ConflictDialogProps } from "./conflict";
import type { OpenDraft } from "./drafts";
import { type Doc, fingerprint, readGraph, writeGraph } from "./graph";
import { issuesOf } from "./issues";
import { withPositions } from "./layout";
import { workflowPath } from "./run";
import type { Editor } from "./state";

/** How a workflow is saved: the status it gets, the version it replaces, and a note about the change. */
export type SaveOptions = { status?: string; version?: number; note?: string };

/** The stored workflow of an editor, with the requests that change it. */
export type StoredWorkflow = {
  workflow: API.Workflow;
  /** Shows the newest version in the editor; announce says which one in a message. */
  reload: (announce?: boolean) => Promise<void>;
  save: (options?: SaveOptions) => Promise<void>;
};

const statusMessages: Record<string, string> = {
  active: "It is live",
  paused: "It is paused",
  draft: "Back to draft",
  archived: "It is archived",
};

/** Converts a stored workflow to the editor's document, with a position for every node. */
export async function readDoc(workflow: API.Workflow): Promise<Doc> {
  const doc: Doc = {
    name: workflow.name,
    description: workflow.description ?? "",
    settings: workflow.settings,
    ...readGraph(workflow),
  };
  return { ...doc, ...(await withPositions(doc)) };
}

const requestBody = (doc: Doc) => ({
  name: doc.name,
  description: doc.description,
  settings: doc.settings,
  ...writeGraph(doc),
});

const isConflict = (error: unknown) => error instanceof ApiError && (error.status === 409 || error.status === 412);

function savedMessage(before: API.Workflow, saved: API.Workflow, status?: string): string {
  if (status && status !== before.status) return statusMessages[status] ?? "Saved";
  return saved.version === before.version ? "Saved" : `Saved as version ${saved.version}`;
}

/** Keeps the stored workflow of an editor, and reloads it when another tab or person saves it. */
export function useStoredWorkflow(editor: Editor, initial: API.Workflow, draft: OpenDraft): StoredWorkflow {
  const [workflow, setWorkflow] = useState(initial);
  const latest = useRef({ workflow, saving: Promise.resolve() });
  latest.current.workflow = workflow;

  const setStored = (stored: API.Workflow) => {
    latest.current.workflow = stored;
    setWorkflow(stored);
  };
  const reload = async (announce = true) => {
    const stored = await get(workflowPath(initial.id));
    const doc = await readDoc(stored);
    // If only the status changed, the document and its undo history stay.
    if (editor.dirty.value || fingerprint(doc) !== editor.saved.value) editor.load(doc);
    setStored(stored);
    if (announce) showToast(`Showing version ${stored.version}`);
  };
  useEffect(
    () =>
      onChange("workflow", async ({ id, op, row }) => {
        if (id !== initial.id || op !== "update") return;
        await latest.current.saving; // the event of this tab's own save arrives before its response
        const isNew = !row || isNewer(row, latest.current.workflow);
        if (isNew && !editor.dirty.value) await reload(false);
      }),
    [initial.id],
  );

  const save = async ({ status, version = workflow.version, note }: SaveOptions = {}): Promise<void> => {
    const doc = editor.doc.value;
    const body = { ...requestBody(doc), ...(status && { status }), ...(note && { note }) };
    const request = put(workflowPath(initial.id), body, { "If-Match": `"${version}"` });
    latest.current.saving = request.then(setStored, () => {
      /* it is handled below */
    });
    try {
      const saved = await request;
      editor.saved.value = fingerprint(doc);
      await draft.drop();
      showToast(savedMessage(workflow, saved, status));
    } catch (error) {
      if (!isConflict(error)) return showIssues(editor, error);
      const overwrite = (merged: Partial<Doc>, newest: number) => {
        editor.change(merged);
        return save({ status, version: newest });
      };
      await openConflict({ editor, base: workflow, reload, overwrite, copy: () => saveCopy(editor, draft) });
    }
  };
  return { workflow, reload, save };
}

/** Reports whether a workflow as an event has it differs from the one that is shown, and is not older. */
function isNewer(row: API.WorkflowItem, shown: API.Workflow): boolean {
  return row.version > shown.version || (row.version === shown.version && row.status !== shown.status);
}

/** Saves the document as another workflow and opens that. */
async function saveCopy(editor: Editor, draft: OpenDraft) {
  const doc = editor.doc.value;
  const body = { ...requestBody(doc), name: `${doc.name} (copy)` };
  const copy = await post(path("agents", agentId.value, "workflows"), body);
  await draft.drop();
  editor.saved.value = fingerprint(doc);
  go(href(agentId.value, "workflows", copy.id));
}

/** Asks what to do after someone else saved the workflow. */
async function openConflict(props: Omit<ConflictDialogProps, "close">) {
  const { ConflictDialog } = await import("./conflict");
  openDialog((close) => <ConflictDialog {...props} close={close} />);
}

/** Shows the issues of a graph that an error lists; throws other errors. */
function showIssues(editor: Editor, error: unknown) {
  const issues = issuesOf(error);
  if (!issues.length) throw error;
  editor.issues.value = issues;
  setQuery({ tab: "problems" });
  showToast(error);
}
