// The workflow as the service has it: loading, saving, copying, and changes made elsewhere.
import { useEffect, useRef, useState } from "preact/hooks";

import { agentId, type API, ApiError, get, go, href, onChange, path, post, put, setQuery } from "../data";
import { openDialog, tell } from "../ui";
import { type Doc, type Editor, fingerprint, readGraph, withPositions, workflowPath, writeGraph } from "./index";
import type { OpenDraft } from "./drafts";
import { issuesOf } from "./issues";

/** How a workflow is saved: the status it gets, the version it replaces, and a note about the change. */
export type SaveOptions = { status?: string; version?: number; note?: string };

/** The stored workflow of an editor, with the requests that change it. */
export type StoredWorkflow = {
  workflow: API.Workflow;
  /** Shows the newest version in the editor; announce says which one in a message. */
  reload: (announce?: boolean) => Promise<void>;
  save: (options?: SaveOptions) => Promise<void>;
  /** Saves the document as another workflow and opens that. */
  saveCopy: () => Promise<void>;
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
    if (announce) tell(`Showing version ${stored.version}`);
  };
  useEffect(
    () =>
      onChange("workflow", async ({ id, op, row }) => {
        if (id !== initial.id || op !== "update") return;
        await latest.current.saving; // the event of this tab's own save arrives before its response
        const known = latest.current.workflow;
        const isKnown =
          row && (row.version < known.version || (row.version === known.version && row.status === known.status));
        if (!isKnown && !editor.dirty.value) await reload(false);
      }),
    [initial.id],
  );

  const saveCopy = async () => {
    const doc = editor.doc.value;
    const copy = await post(path("agents", agentId.value, "workflows"), {
      ...requestBody(doc),
      name: `${doc.name} (copy)`,
    });
    await draft.drop();
    editor.saved.value = fingerprint(doc);
    go(href(agentId.value, "workflows", copy.id));
  };
  const openConflict = async (status?: string) => {
    const { ConflictDialog } = await import("./conflict");
    openDialog((close) => (
      <ConflictDialog
        editor={editor}
        base={workflow}
        close={close}
        reload={reload}
        overwrite={(merged, version) => {
          editor.change(merged);
          return save({ status, version });
        }}
        copy={saveCopy}
      />
    ));
  };
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
      tell(savedMessage(workflow, saved, status));
    } catch (error) {
      if (isConflict(error)) return openConflict(status);
      const issues = issuesOf(error);
      if (!issues.length) throw error;
      editor.issues.value = issues;
      setQuery({ tab: "problems" });
      tell(error);
    }
  };
  return { workflow, reload, save, saveCopy };
}
