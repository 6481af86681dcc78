// Starts tests of the graph that is edited, and follows them.
import { agentId, ApiError, asError, path, post } from "../data";
import { plural } from "../ui";
import { issuesOf } from "./issues";
import {
  type Execution,
  follow,
  hasEnded,
  marksOf,
  type NodeResult,
  oncePerFrame,
  readExecution,
  resultKey,
} from "./run";
import type { Editor, Issue } from "./state";

/** What is tested: the whole graph, what leads to a node, or one node. */
export type TestMode = "all" | "to" | "node";
/** The state of the last test. */
export type TestState = { running: boolean; execution?: Partial<Execution>; results: NodeResult[]; error?: Error };

/** Returns functions that start a test and stop following the last one; refresh is called with each new state. */
export function tests(editor: Editor, workflow: string, refresh: (state: TestState) => void) {
  let last: AbortController | undefined;
  const stop = () => last?.abort();
  const run = (mode: TestMode, input: Record<string, unknown>, nodeId?: string) => {
    stop();
    last = new AbortController();
    return runTest({ editor, workflow, mode, input, nodeId, refresh, signal: last.signal });
  };
  return { run, stop };
}

type TestRun = {
  editor: Editor;
  workflow: string;
  mode: TestMode;
  input: Record<string, unknown>;
  nodeId?: string;
  refresh: (state: TestState) => void;
  signal: AbortSignal;
};

/** Starts a test and follows it until it ends. */
async function runTest({ editor, workflow, mode, input, nodeId, refresh, signal }: TestRun) {
  const agent = agentId.value;
  const results = new Map<string, NodeResult>();
  const state: TestState = { running: true, results: [] };
  editor.marks.value = new Map();
  refresh({ ...state });
  const update = () => refresh({ ...state, results: [...results.values()] });
  const show = oncePerFrame(() => {
    if (signal.aborted) return;
    showResults(editor, [...results.values()]);
    update();
  });
  try {
    const pins = pinnedOutputs(editor, mode === "node" ? nodeId : undefined);
    const body = { workflow_id: workflow, ...editor.written(), input, mode, node_id: nodeId, pins };
    const started = (await post(path("agents", agent, "workflows", "test"), body, signal)) as unknown as Execution;
    state.execution = started;
    editor.payload.value = input;
    if (!hasEnded(started))
      await follow(agent, started.id, signal, {
        node: (result) => {
          results.set(resultKey(result), result);
          show();
        },
        end: (execution) => {
          state.execution = { ...state.execution, ...execution };
        },
      });
    const ended = await readExecution(agent, started.id, signal).catch(() => null);
    if (ended) {
      state.execution = ended;
      for (const result of ended.node_results) results.set(resultKey(result), result);
    }
  } catch (error) {
    if (asError(error).name === "AbortError") return;
    state.error = testError(editor, error);
  }
  state.running = false;
  show();
  update();
}

/** Returns the pinned outputs by the ids of their nodes, without that of a node that is tested alone. */
function pinnedOutputs(editor: Editor, testedAlone?: string): Record<string, unknown> {
  const pinned = editor.doc.value.nodes.filter((node) => node.metadata?.pin !== undefined && node.id !== testedAlone);
  return Object.fromEntries(pinned.map((node) => [node.id, node.metadata!.pin]));
}

/** Shows results on the canvas, and their outputs as samples. */
function showResults(editor: Editor, results: NodeResult[]) {
  editor.marks.value = marksOf(results, editor.marks.value);
  const withOutput = results.filter((result) => result.output !== undefined);
  const outputs = Object.fromEntries(withOutput.map((result) => [result.node_id, result.output]));
  editor.samples.value = { ...editor.samples.value, ...outputs };
}

/** Returns why a test could not be started. Problems of nodes are shown in the editor. */
function testError(editor: Editor, error: unknown): Error {
  const issues = issuesOf(error).filter((issue) => issue.node_id);
  if (issues.length) {
    editor.issues.value = issues;
    return new Error(firstIssue(editor, issues));
  }
  const unsupported = error instanceof ApiError && [404, 405].includes(error.status) && !error.details.field;
  return unsupported ? new Error("This server can only test saved graphs.") : asError(error);
}

/** Returns the first of some issues as text, with the name of its node. */
function firstIssue(editor: Editor, [first, ...others]: Issue[]): string {
  const field = first.field.replace(/^(nodes\[\d+\]\.?)?(data(\.|$))?/, "");
  const text = `${editor.nameOf(first.node_id!)}: ${[field, first.issue].filter(Boolean).join(" ")}`;
  return others.length ? `${text}. ${plural(others.length, "more problem")} in Problems.` : text;
}
