// Sends the request of a node that is edited, and shows the response.
import { useEffect, useRef, useState } from "preact/hooks";

import { agentId, href, useQuery } from "../data";
import { Badge, Button, ErrorCard, JsonTree, span } from "../ui";
import type { GraphNode } from "./graph";
import { PathTree } from "./pathtree";
import { executionPath, type NodeResult } from "./run";
import type { tests, TestState } from "./starttest";
import type { Editor } from "./state";

/** Loads what starts a test; refresh is called with its state. */
export type LoadTests = (refresh: (state: TestState) => void) => Promise<ReturnType<typeof tests>>;

type Response = { status?: number; body?: unknown };

/** Returns the first list in a body and its path: the body itself, or one of its values. */
function firstList(body: unknown): { path: string[]; list: unknown[] } | undefined {
  if (Array.isArray(body)) return { path: [], list: body };
  const entry = Object.entries(body && typeof body === "object" ? body : {}).find(([, value]) => Array.isArray(value));
  return entry && { path: [entry[0]], list: entry[1] as unknown[] };
}

type TryNodeProps = { editor: Editor; node: GraphNode; load: LoadTests };

/** A button that sends the request once, and the response below it. */
export function TryNode({ editor, node, load }: TryNodeProps) {
  const [state, setState] = useState<TestState>({ running: false, results: [] });
  const stop = useRef<() => void>(undefined);
  useEffect(() => () => stop.current?.(), []);
  const run = async () => {
    const tests = await load(setState);
    stop.current = tests.stop;
    await tests.run("node", editor.payload.value ?? {}, node.id);
  };
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
        {!state.running && state.execution && <TryResult node={node} state={state} />}
      </div>
    </section>
  );
}

function TryResult({ node, state: { execution, results } }: { node: GraphNode; state: TestState }) {
  const result = results.find((other) => other.node_id === node.id);
  const { id, error } = execution!;
  return (
    <>
      {result && <Outcome execution={id!} node={node} result={result} />}
      {!result && error && (
        <p class="issue">
          <bdi>{error.message}</bdi>
        </p>
      )}
      {id && (
        <a class="small" href={href(agentId.value, "workflows", "executions", id)}>
          Open execution
        </a>
      )}
    </>
  );
}

type OutcomeProps = { execution: string; node: GraphNode; result: NodeResult };

/** The status and the output of a node. An output that is too long for the result is loaded. */
function Outcome({ execution, node, result }: OutcomeProps) {
  const isLong = result.output === undefined && Boolean(result.output_bytes);
  const stored = useQuery(isLong ? executionPath(agentId.value, execution, "nodes", node.id) : null, {
    part: "output",
  });
  const output = isLong ? stored.data.value?.value : result.output;
  const { status, body } = (output ?? {}) as Response;
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
      {stored.error.value && <ErrorCard error={stored.error.value} retry={stored.reload} />}
      {output !== undefined && status === undefined && <JsonTree value={output} />}
      {status !== undefined && <ResponseBody node={node} body={body} />}
    </>
  );
}

/** The body of a response, or the first item of the list in it, whose values can be copied as templates. */
function ResponseBody({ node, body }: { node: GraphNode; body: unknown }) {
  const path = ["nodes", node.id, "body"];
  const found = firstList(body);
  if (found?.list.length === 0) return <p class="muted small">The list in the response is empty.</p>;
  return (
    <>
      <h3>{found ? `First of ${found.list.length}` : "Response"}</h3>
      <p class="muted small">Choose a value to copy its template for the nodes that follow.</p>
      <div class="card">
        {found ? (
          <PathTree copies value={found.list[0]} path={[...path, ...found.path, 0]} />
        ) : (
          <PathTree copies value={body} path={path} />
        )}
      </div>
    </>
  );
}
