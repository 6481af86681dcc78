// Effects of the editor's page: validation, unsaved drafts, sample values and tests.
import { useEffect, useRef, useState } from "preact/hooks";

import { agentId, type API, get, path, post } from "../data";
import { whenIdle } from "../parts/lazy";
import { fieldsOf, typeOf } from "./catalog";
import type { OpenDraft } from "./drafts";
import { loadExecute, loadPalette, loadPasting, loadTesting, startTests } from "./lazy";
import { GraphJson, NodePanel, Problems, TestPanel, Versions } from "./panels";
import { type Preview, readExecution } from "./run";
import type { TestMode, TestState } from "./starttest";
import type { Editor, Issue } from "./state";

const validationDelay = 400; // milliseconds after the last change
const draftDelay = 250;

/** Names the fields in a problem of a node as its panel does. */
function withLabels(editor: Editor, found: Issue): Issue {
  const names = /^needs one of (.+)$/.exec(found.issue)?.[1].split(", ");
  const node = found.node_id && editor.node(found.node_id);
  if (!names || !node) return found;
  const fields = Object.fromEntries(fieldsOf(typeOf(node.type)?.data));
  return { ...found, issue: `needs ${names.map((name) => fields[name]?.title ?? name).join(" or ")}` };
}

/** Validates the graph shortly after each change and save, by the rules of activation. */
export function useValidation(editor: Editor, saved: API.Workflow) {
  const { nodes, edges } = editor.doc.value;
  useEffect(() => {
    if (editor.readonly.value) return;
    const abort = new AbortController();
    const timer = setTimeout(() => {
      post(path("agents", agentId.value, "workflows", "validate"), editor.written(), abort.signal).then(
        (response) => {
          editor.issues.value = (response.issues ?? []).map((issue) => withLabels(editor, issue));
        },
        () => {
          /* it is validated when it is saved */
        },
      );
    }, validationDelay);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [nodes, edges, saved]);
}

/** Keeps unsaved changes in this browser: shortly after each change, and when the editor closes. */
export function useDraft(editor: Editor, workflow: { version: number }, draft: OpenDraft) {
  const doc = editor.doc.value;
  const version = useRef(workflow.version);
  version.current = workflow.version;
  const kept = useRef({ doc, version: workflow.version });
  const keep = () => {
    // Reads the editor itself: the effect of the last change may not have run when the editor closes.
    const current = { doc: editor.doc.peek(), version: version.current };
    const unchanged = current.doc === kept.current.doc && current.version === kept.current.version;
    if (editor.readonly.peek() || unchanged) return;
    kept.current = current;
    void (editor.dirty.peek() ? draft.keep(current.version, current.doc) : draft.drop());
  };
  useEffect(() => {
    const timer = setTimeout(keep, draftDelay);
    return () => clearTimeout(timer);
  }, [doc, workflow.version]);
  useEffect(
    () => () => {
      keep();
      draft.release();
    },
    [],
  );
}

const isPreview = (output: unknown) => {
  const preview = output as Partial<Preview> | null;
  return preview?.truncated === true && typeof preview.head === "string";
};

/** Reads the newest execution, so that templates are shown with real values. */
export function useSamples(editor: Editor, id: string) {
  useEffect(() => {
    const abort = new AbortController();
    const load = async () => {
      const { executions } = await get(
        path("agents", agentId.value, "workflows", "executions"),
        { workflow_id: id, limit: 1 },
        abort.signal,
      );
      if (!executions.length) return;
      const execution = await readExecution(agentId.value, executions[0].id, abort.signal);
      if (editor.payload.value === undefined) editor.payload.value = execution.input ?? {};
      const outputs = execution.node_results
        .filter((result) => result.output !== undefined && !isPreview(result.output))
        .map((result) => [result.node_id, result.output]);
      editor.samples.value = { ...Object.fromEntries(outputs), ...editor.samples.value };
    };
    load().catch(() => {
      /* the catalogue's examples are shown */
    });
    return () => abort.abort();
  }, [id]);
}

/** Loads the other files of the editor while the browser is idle. */
export function usePreload() {
  useEffect(
    () =>
      whenIdle(() => {
        const loaders = [
          loadPalette,
          loadPasting,
          loadTesting,
          loadExecute,
          Problems.preload,
          NodePanel.preload,
          TestPanel.preload,
          Versions.preload,
          GraphJson.preload,
        ];
        for (const load of loaders)
          load().catch(() => {
            /* it is loaded when it is shown */
          });
      }),
    [],
  );
}

/** Starts a test of the graph, or of one node of it, with an input. */
export type RunTest = (mode: TestMode, input: Record<string, unknown>, nodeId?: string) => Promise<void>;

/** Returns the state of the last test and what starts one; the last test is stopped when the editor closes. */
export function useTests(editor: Editor, id: string): { state: TestState; run: RunTest } {
  const [state, setState] = useState<TestState>({ running: false, results: [] });
  const tests = useRef<ReturnType<typeof startTests>>(undefined);
  useEffect(
    () => () =>
      void tests.current?.then(
        ({ stop }) => stop(),
        () => {
          /* none was started */
        },
      ),
    [],
  );
  const run: RunTest = async (...args) => {
    tests.current ??= startTests(editor, id, setState).catch((error) => {
      tests.current = undefined;
      throw error;
    });
    await (await tests.current).run(...args);
  };
  return { state, run };
}
