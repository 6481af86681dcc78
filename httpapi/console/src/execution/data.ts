// Loading an execution, and following it while it runs.
import { useEffect, useMemo, useState } from "preact/hooks";

import { agentId, asError, get } from "../data";
import { loadCatalog } from "../editor/catalog";
import { readGraph } from "../editor/graph";
import { withPositions } from "../editor/layout";
import {
  type Execution,
  follow,
  hasEnded,
  marksOf,
  type NodeResult,
  oncePerFrame,
  readExecution,
  resultKey,
  workflowPath,
} from "../editor/run";
import { Editor } from "../editor/state";

const isAbort = (error: unknown) => asError(error).name === "AbortError";

/**
 * Returns the graph that an execution ran: the one it started with, that of its version, or the workflow's current one.
 */
async function graphOf(execution: Execution, signal: AbortSignal) {
  if (execution.nodes) return { name: "", ...execution };
  const { workflow_id: id, version } = execution;
  try {
    return await get(workflowPath(id, "versions", version), {}, signal).catch((error) => {
      if (isAbort(error)) throw error;
      return get(workflowPath(id), {}, signal);
    });
  } catch (error) {
    if (isAbort(error)) throw error;
    return { name: "", nodes: [], edges: [] };
  }
}

/** What the page of an execution shows; name is that of the workflow. */
export type LoadedExecution = { execution: Execution; name: string; results: NodeResult[]; editor: Editor };

/** Loads an execution, and follows it until it ends. */
export function useExecution(id: string): { loaded?: LoadedExecution; error?: Error; retry: () => void } {
  const [execution, setExecution] = useState<Execution>();
  const [error, setError] = useState<Error>();
  const [name, setName] = useState("");
  const [results, setResults] = useState<NodeResult[]>([]);
  const [attempt, setAttempt] = useState(0);
  const editor = useMemo(() => {
    const viewer = new Editor();
    viewer.readonly.value = true;
    return viewer;
  }, [id]);
  useEffect(() => {
    const abort = new AbortController();
    const agent = agentId.value;
    const found = new Map<string, NodeResult>();
    const show = oncePerFrame(() => {
      if (abort.signal.aborted) return;
      editor.marks.value = marksOf(found.values(), editor.marks.value);
      setResults([...found.values()]);
    });
    const run = async () => {
      setError(undefined);
      const [first] = await Promise.all([readExecution(agent, id, abort.signal), loadCatalog()]);
      const graph = await graphOf(first, abort.signal);
      if (abort.signal.aborted) return;
      const positioned = await withPositions(readGraph(graph));
      editor.doc.value = { ...editor.doc.value, ...positioned, name: graph.name };
      setName(graph.name);
      for (const result of first.node_results) found.set(resultKey(result), result);
      setExecution(first);
      show();
      if (hasEnded(first)) return;
      await follow(agent, id, abort.signal, {
        node: (result) => {
          found.set(resultKey(result), result);
          setExecution((before) => (before?.status === "queued" ? { ...before, status: "running" } : before));
          show();
        },
        end: (last) => {
          setExecution((before) => ({ ...before!, ...last }));
          show();
        },
      });
    };
    run().catch((thrown) => {
      if (!isAbort(thrown) && !abort.signal.aborted) setError(thrown);
    });
    return () => abort.abort();
  }, [id, attempt]);
  return {
    loaded: execution && { execution, name, results, editor },
    error,
    retry: () => setAttempt(attempt + 1),
  };
}
