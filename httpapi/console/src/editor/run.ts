// Executions as they happen: results of nodes by place, and what they make of
// the marks on the canvas.
import { get, path, stream } from "../data";
import type { StoredGraph } from "./graph";
import type { Mark } from "./state";

/** The result of one run of a node; path or iteration says in which loop iteration it ran. */
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
  approval?: { title?: string; message?: string };
};
/** The beginning of a value that is too long to come along. */
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
/** Returns the path of an execution in the API, or of a resource below it. */
export const executionPath = <const M extends string[]>(agent: string, id: string, ...more: M) =>
  path("agents", agent, "workflows", "executions", id, ...more);

/** The numbers of the iterations that a result belongs to, from 1, the outermost first. */
export const iterationLabel = (r: NodeResult) =>
  iterationPath(r) === ""
    ? ""
    : iterationPath(r)
        .split(".")
        .map((n) => Number(n) + 1)
        .join(".");
// What became of a node over its iterations is the last of these that one came to.
const weight = ["skipped", "success", "cancelled", "running", "waiting", "error"];

/** What became of each node over its iterations; a mark that has not changed stays the same object. */
export function marksOf(
  results: Iterable<NodeResult>,
  before: ReadonlyMap<string, Mark> = new Map(),
): Map<string, Mark> {
  const found = new Map<string, Mark>();
  for (const r of results) {
    const before = found.get(r.node_id);
    const worse = !before || weight.indexOf(r.status) > weight.indexOf(before.status);
    const counts = r.status === "skipped" ? 0 : 1;
    found.set(r.node_id, {
      status: worse ? r.status : before.status,
      count: (before?.count ?? 0) + counts,
      ms: (before?.ms ?? 0) + (r.duration_ms ?? 0),
      error: r.error?.message ?? before?.error,
    });
  }
  for (const [id, mark] of found) {
    const was = before.get(id);
    if (JSON.stringify(was) === JSON.stringify(mark)) found.set(id, was!);
  }
  return found;
}

/** Follows an execution until it ends; a broken stream is opened again and replays what was. */
export async function follow(
  agent: string,
  id: string,
  signal: AbortSignal,
  on: { node: (r: NodeResult) => void; end: (x: Partial<Execution>) => void },
) {
  let over = false;
  for (let wait = 1000; !over && !signal.aborted; wait = Math.min(wait * 2, 30_000)) {
    await stream<NodeResult | Partial<Execution>>(executionPath(agent, id, "events"), signal, (name, data) => {
      wait = 1000;
      if (name.startsWith("node.")) on.node(data as NodeResult);
      else if (name !== "ping") {
        over = true;
        on.end(data as Partial<Execution>);
      }
    }).catch(() => {});
    if (!over && !signal.aborted) await new Promise((done) => setTimeout(done, wait));
  }
}

/** Calls run once a frame at most. */
export function oncePerFrame(run: () => void): () => void {
  let due = 0;
  return () => {
    due ||= requestAnimationFrame(() => {
      due = 0;
      run();
    });
  };
}

/** Reads an execution; values longer than 32 KB come as previews. */
export const readExecution = (agent: string, id: string, signal?: AbortSignal): Promise<Execution> =>
  get(executionPath(agent, id), { preview: 32768 }, signal) as Promise<unknown> as Promise<Execution>;
