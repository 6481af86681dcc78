// Sends the request of a node as it is being edited, and shows what came back.
import { useEffect, useRef, useState } from "preact/hooks";

import { agentId, href, useQuery } from "../data";
import { Badge, Button, ErrorCard, JsonTree, span } from "../ui";
import { type Editor, executionPath, type GraphNode, type NodeResult } from "./index";
import { PathTree } from "./pathtree";
import type { tests, TestState } from "./starttest";

/** Loads what starts a test, and calls back with what becomes of it. */
export type LoadTests = (refresh: (s: TestState) => void) => Promise<ReturnType<typeof tests>>;

type Answer = { status?: number; body?: unknown };

/** The first list in a body, with where it is: the body itself, or one of its values. */
function firstList(body: unknown): { at: string[]; list: unknown[] } | undefined {
  if (Array.isArray(body)) return { at: [], list: body };
  const found = Object.entries(body && typeof body === "object" ? body : {}).find(([, v]) => Array.isArray(v));
  return found && { at: [found[0]], list: found[1] as unknown[] };
}

/** A button that sends the request once, and below it the status and the first item of the response. */
export function TryNode({ editor, node, load }: { editor: Editor; node: GraphNode; load: LoadTests }) {
  const [state, setState] = useState<TestState>({ running: false, results: [] });
  const stop = useRef<() => void>(undefined);
  useEffect(() => () => stop.current?.(), []);
  const run = async () => {
    const mine = await load(setState);
    stop.current = mine.stop;
    await mine.run("node", editor.payload.value ?? {}, node.id);
  };
  const result = state.results.find((r) => r.node_id === node.id);
  return (
    <section class="stack try-node" aria-label="Try">
      <div class="row">
        <Button icon="Play" disabled={state.running} onClick={run}>
          {state.running ? "Sending…" : "Try"}
        </Button>
        <span class="muted small grow">Sends the request once, with the values of the newest execution.</span>
      </div>
      <div class="stack" aria-live="polite">
        {state.error && <ErrorCard error={state.error} />}
        {!state.running &&
          (result ? (
            <Outcome execution={state.execution!.id!} node={node} result={result} />
          ) : (
            state.execution?.error && (
              <p class="issue">
                <bdi>{state.execution.error.message}</bdi>
              </p>
            )
          ))}
        {!state.running && state.execution?.id && (
          <a class="small" href={href(agentId.value, "workflows", "executions", state.execution.id)}>
            Open execution
          </a>
        )}
      </div>
    </section>
  );
}

/** The status, and what came back: the first item where there is a list. An output that is too long to come along is read. */
function Outcome({ execution, node, result }: { execution: string; node: GraphNode; result: NodeResult }) {
  const long = result.output === undefined && Boolean(result.output_bytes);
  const whole = useQuery(long ? executionPath(agentId.value, execution, "nodes", node.id) : null, { part: "output" });
  const output = long ? whole.data.value?.value : result.output;
  const { status, body } = (output ?? {}) as Answer;
  const found = firstList(body);
  const path = ["nodes", node.id, "body", ...(found?.at ?? [])];
  return (
    <>
      <p class="row">
        {status === undefined ? (
          <Badge>{result.status}</Badge>
        ) : (
          <Badge tone={status < 400 ? "good" : "bad"}>{String(status)}</Badge>
        )}
        <span class="muted small">{span(result.duration_ms)}</span>
      </p>
      {result.error && (
        <p class="issue">
          <bdi>{result.error.message}</bdi>
        </p>
      )}
      {whole.error.value && <ErrorCard error={whole.error.value} retry={whole.reload} />}
      {output !== undefined &&
        (status === undefined ? (
          <JsonTree value={output} />
        ) : found && !found.list.length ? (
          <p class="muted small">The list in the response is empty.</p>
        ) : (
          <>
            <h3>{found ? `First of ${found.list.length}` : "Response"}</h3>
            <p class="muted small">Choose a value to copy its template for the nodes that follow.</p>
            <div class="card">
              <PathTree copies value={found ? found.list[0] : body} path={found ? [...path, 0] : path} />
            </div>
          </>
        ))}
    </>
  );
}
