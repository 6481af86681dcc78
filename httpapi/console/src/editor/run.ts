// Executions: their types, how they are read and followed, and the marks on the canvas that
// follow from their results.
import { agentId, events, get, path } from "../data";
import type { StoredGraph } from "./graph";
import type { Mark } from "./state";

/** The result of one run of a node. In loops, path or iteration is the iteration in which it ran. */
export type NodeResult = {
  node_id: string;
  type: string;
  status: string;
  started_at: string;
  duration_ms: number;
  attempt: number;
  iteration?: number;
  path?: string;
  handle?: string;
  output?: unknown;
  output_bytes?: number;
  error?: { message: string; code: string; node_id?: string };
  warnings?: string[];
  logs?: { level: string; message: string }[];
  approval?: { title?: string; message?: string; comment_required?: boolean };
};
/** The beginning of a value that is too long for the response. */
export type Preview = { truncated: true; bytes: number; head: string };
/** An execution of a workflow with the results of its nodes. */
export type Execution = {
  id: string;
  workflow_id: string;
  version: number;
  status: string;
  trigger: string;
  input?: Record<string, unknown>;
  output?: unknown;
  error?: { message: string; code: string; node_id?: string };
  input_preview?: Preview;
  output_preview?: Preview;
  retried_from?: string;
  parent_id?: string;
  created_at: string;
  started_at?: string;
  completed_at?: string;
  node_results: NodeResult[];
  nodes?: StoredGraph["nodes"];
  edges?: StoredGraph["edges"];
};

/** Reports whether an execution has ended. */
export const hasEnded = (x: { status: string }) => !["queued", "running"].includes(x.status);
/** Returns the loop iterations of a result, such as 0.2; empty outside of loops. */
export const iterationPath = (r: NodeResult) => r.path ?? (r.iteration === undefined ? "" : String(r.iteration));
/** Returns the key of a result within its execution. */
export const resultKey = (r: NodeResult) => `${iterationPath(r)}@${r.node_id}`;
/** Returns the path of a workflow of the agent in the API, or of a resource below it. */
export const workflowPath = <const M extends (string | number)[]>(id: string, ...more: M) =>
  path("agents", agentId.value, "workflows", id, ...more);
/** Returns the path of an execution in the API, or of a resource below it. */
export const executionPath = <const M extends string[]>(agent: string, id: string, ...more: M) =>
  path("agents", agent, "workflows", "executions", id, ...more);

/** Returns the loop iterations of a result counted from 1, such as 1.3; empty outside of loops. */
export const iterationLabel = (r: NodeResult) => iterationPath(r).replace(/\d+/g, (index) => String(Number(index) + 1));
// A node that ran in several iterations has the status of these that comes last here.
const weight = ["skipped", "success", "cancelled", "running", "waiting", "error"];

/** Returns the outcome of each node over its iterations. A mark that has not changed stays the same object. */
export function marksOf(
  results: Iterable<NodeResult>,
  before: ReadonlyMap<string, Mark> = new Map(),
): Map<string, Mark> {
  const marks = new Map<string, Mark>();
  for (const { node_id, status, duration_ms, error } of results) {
    const mark: Mark = marks.get(node_id) ?? { status, count: 0, ms: 0 };
    marks.set(node_id, {
      status: weight.indexOf(status) > weight.indexOf(mark.status) ? status : mark.status,
      count: mark.count + (status === "skipped" ? 0 : 1),
      ms: mark.ms! + (duration_ms ?? 0),
      error: error?.message ?? mark.error,
    });
  }
  for (const [id, mark] of marks) {
    const markBefore = before.get(id);
    if (markBefore && JSON.stringify(markBefore) === JSON.stringify(mark)) marks.set(id, markBefore);
  }
  return marks;
}

/** Follows an execution until it ends. A broken stream is opened again and repeats its events. */
export async function follow(
  agent: string,
  id: string,
  signal: AbortSignal,
  on: { node: (result: NodeResult) => void; end: (execution: Partial<Execution>) => void },
) {
  let ended = false;
  for (let delay = 1000; !ended && !signal.aborted; delay = Math.min(delay * 2, 30_000)) {
    await events("GET", executionPath(agent, id, "events"), { signal }, ({ event, data }) => {
      delay = 1000;
      if (event.startsWith("node.")) on.node(data as NodeResult);
      else if (event !== "ping") {
        ended = true;
        on.end(data as Partial<Execution>);
      }
    }).catch(() => {});
    if (!ended && !signal.aborted) await new Promise((resolve) => setTimeout(resolve, delay));
  }
}

/** Returns a function that calls run with the next frame, however often it is called before. */
export function oncePerFrame(run: () => void): () => void {
  let frame = 0;
  return () => {
    frame ||= requestAnimationFrame(() => {
      frame = 0;
      run();
    });
  };
}

/** Reads an execution; values longer than 32 KB come as previews. */
export const readExecution = (agent: string, id: string, signal?: AbortSignal): Promise<Execution> =>
  get(executionPath(agent, id), { preview: 32768 }, signal) as Promise<unknown> as Promise<Execution>;
