// Starts tests of the graph that is edited, and follows them.
import { useEffect, useRef } from "preact/hooks";

import { agentId, ApiError, asError, path, post } from "../data";
import { type Editor, type Execution, follow, isOver, keyOf, marksOf, type NodeResult, onceAFrame, readExecution } from "./base";

/** What is tested: the whole graph, what leads to a node, or one node. */
export type TestMode = "all" | "to" | "node";
export type TestState = { running: boolean; execution?: Partial<Execution>; results: NodeResult[]; error?: Error };

/** Starts tests and keeps what the last one came to. */
export function useTest(editor: Editor, workflow: string, refresh: (s: TestState) => void) {
  const abort = useRef<AbortController | undefined>(undefined);
  useEffect(() => () => abort.current?.abort(), []);
  return async (mode: TestMode, input: Record<string, unknown>, nodeId?: string) => {
    abort.current?.abort();
    const mine = abort.current = new AbortController();
    const agent = agentId.value;
    const pins = Object.fromEntries(editor.doc.value.nodes.filter((n) => n.metadata?.pin !== undefined && !(mode === "node" && n.id === nodeId)).map((n) => [n.id, n.metadata!.pin]));
    const results = new Map<string, NodeResult>();
    const state: TestState = { running: true, results: [] };
    editor.marks.value = new Map();
    refresh({ ...state });
    const show = onceAFrame(() => {
      if (mine.signal.aborted) return;
      editor.marks.value = marksOf(results.values(), editor.marks.value);
      const outputs = [...results.values()].filter((r) => r.output !== undefined).map((r) => [r.node_id, r.output]);
      editor.samples.value = { ...editor.samples.value, ...Object.fromEntries(outputs) };
      refresh({ ...state, results: [...results.values()] });
    });
    try {
      const started = await post(path("agents", agent, "workflows", "test"), { workflow_id: workflow, ...editor.written(), input, mode, node_id: nodeId, pins }, mine.signal) as unknown as Execution;
      state.execution = started;
      editor.payload.value = input;
      if (!isOver(started)) await follow(agent, started.id, mine.signal, { node: (r) => { results.set(keyOf(r), r); show(); }, end: (x) => { state.execution = { ...state.execution, ...x }; } });
      const last = await readExecution(agent, started.id, mine.signal).catch(() => null);
      if (last) { state.execution = last; for (const r of last.node_results) results.set(keyOf(r), r); }
    } catch (error) {
      if (asError(error).name === "AbortError") return;
      if (error instanceof ApiError && error.details?.errors?.some((e) => e.node_id)) editor.issues.value = error.details.errors;
      state.error = error instanceof ApiError && [404, 405].includes(error.status) && !error.details?.field ? new Error("This server can only test saved graphs.") : asError(error);
    }
    state.running = false;
    show();
    refresh({ ...state, results: [...results.values()] });
  };
}
