// Starts tests of the graph that is edited, and follows them.
import { agentId, ApiError, asError, path, post } from "../data";
import { plural } from "../ui";
import {
  type Editor,
  type Execution,
  follow,
  hasEnded,
  type Issue,
  marksOf,
  type NodeResult,
  oncePerFrame,
  readExecution,
  resultKey,
} from "./index";
import { issuesOf } from "./issues";

/** What is tested: the whole graph, what leads to a node, or one node. */
export type TestMode = "all" | "to" | "node";
/** The state of the last test. */
export type TestState = { running: boolean; execution?: Partial<Execution>; results: NodeResult[]; error?: Error };

/** Returns what starts tests and follows the last one, and what ends that. */
export function tests(editor: Editor, workflow: string, refresh: (s: TestState) => void) {
  let last: AbortController | undefined;
  const stop = () => last?.abort();
  const run = async (mode: TestMode, input: Record<string, unknown>, nodeId?: string) => {
    stop();
    const mine = (last = new AbortController());
    const agent = agentId.value;
    const pins = Object.fromEntries(
      editor.doc.value.nodes
        .filter((n) => n.metadata?.pin !== undefined && !(mode === "node" && n.id === nodeId))
        .map((n) => [n.id, n.metadata!.pin]),
    );
    const results = new Map<string, NodeResult>();
    const state: TestState = { running: true, results: [] };
    editor.marks.value = new Map();
    refresh({ ...state });
    const show = oncePerFrame(() => {
      if (mine.signal.aborted) return;
      editor.marks.value = marksOf(results.values(), editor.marks.value);
      const outputs = [...results.values()].filter((r) => r.output !== undefined).map((r) => [r.node_id, r.output]);
      editor.samples.value = { ...editor.samples.value, ...Object.fromEntries(outputs) };
      refresh({ ...state, results: [...results.values()] });
    });
    try {
      const started = (await post(
        path("agents", agent, "workflows", "test"),
        { workflow_id: workflow, ...editor.written(), input, mode, node_id: nodeId, pins },
        mine.signal,
      )) as unknown as Execution;
      state.execution = started;
      editor.payload.value = input;
      if (!hasEnded(started))
        await follow(agent, started.id, mine.signal, {
          node: (r) => {
            results.set(resultKey(r), r);
            show();
          },
          end: (x) => {
            state.execution = { ...state.execution, ...x };
          },
        });
      const last = await readExecution(agent, started.id, mine.signal).catch(() => null);
      if (last) {
        state.execution = last;
        for (const r of last.node_results) results.set(resultKey(r), r);
      }
    } catch (error) {
      if (asError(error).name === "AbortError") return;
      const issues = issuesOf(error).filter((e) => e.node_id);
      if (issues.length) editor.issues.value = issues;
      state.error = issues.length
        ? new Error(whatToFix(editor, issues))
        : error instanceof ApiError && [404, 405].includes(error.status) && !error.details.field
          ? new Error("This server can only test saved graphs.")
          : asError(error);
    }
    state.running = false;
    show();
    refresh({ ...state, results: [...results.values()] });
  };
  return { run, stop };
}

/** Says of the first of some issues which node has it, by its name. */
function whatToFix(editor: Editor, [first, ...others]: Issue[]): string {
  const field = first.field.replace(/^(nodes\[\d+\]\.?)?(data(\.|$))?/, "");
  return `${editor.nameOf(first.node_id!)}: ${[field, first.issue].filter(Boolean).join(" ")}${others.length ? `. ${plural(others.length, "more problem")} in Problems.` : ""}`;
}
