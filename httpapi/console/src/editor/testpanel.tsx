// Tests of the graph that is edited: whole, to a node, or one node alone.
import { useEffect, useRef, useState } from "preact/hooks";

import { agentId, get, href, path, post } from "../data";
import { Badge, Button, ErrorCard, JsonTree, Name, Segments, span, tell } from "../ui";
import {
  type Editor,
  executionPath,
  iterationLabel,
  iterationPath,
  type NodeResult,
  readExecution,
  resultKey,
  typeOf,
} from "./index";
import { inOrder } from "./order";
import type { TestMode, TestState } from "./starttest";

// Node types whose test reaches other people or systems, or changes data.
const acting = new Set(["http-request", "tool", "sql", "workflow"]);

/** The nodes that a test would send or write with. */
function acts(editor: Editor, mode: TestMode, id?: string): string[] {
  const doc = editor.doc.value;
  const within = new Set<string>(mode === "node" && id ? [id] : []);
  if (mode === "to" && id) {
    within.add(id);
    for (const at of within) for (const e of doc.edges) if (e.target === at) within.add(e.source);
  }
  return doc.nodes
    .filter((n) => (mode === "all" || within.has(n.id)) && !n.data?.disabled && n.metadata?.pin === undefined)
    .filter(
      (n) =>
        typeOf(n.type)?.group === "Messages" ||
        (acting.has(n.type) &&
          !(n.type === "http-request" && ["GET", "HEAD"].includes(String(n.data?.method ?? "GET"))) &&
          !(n.type === "sql" && /^\s*(select|with|pragma|explain)\b/i.test(String(n.data?.query ?? "")))),
    )
    .map((n) => editor.nameOf(n));
}

/** The tab for tests: the payload, what is tested, and the results. */
export function TestPanel({
  editor,
  workflow,
  state,
  run,
  compact,
}: {
  editor: Editor;
  workflow: string;
  state: TestState;
  run: (mode: TestMode, input: Record<string, unknown>, nodeId?: string) => Promise<void>;
  compact?: boolean;
}) {
  const [typed, setTyped] = useState(() => JSON.stringify(editor.payload.value ?? {}, null, 2));
  const [mode, setMode] = useState<TestMode>("all");
  const payload = editor.payload.value;
  useEffect(() => {
    if (payload !== undefined) setTyped(JSON.stringify(payload, null, 2));
  }, [payload]);
  const results = useRef<HTMLElement>(null);
  useEffect(() => {
    if (compact && (state.execution || state.error)) results.current?.scrollIntoView({ block: "start" });
  }, [state.execution?.id, state.error]); // they stand below the payload
  const one = editor.selectedNode.value;
  const current = one ? mode : "all";
  let input: Record<string, unknown> = {};
  let wrong = "";
  try {
    input = JSON.parse(typed.trim() || "{}");
    if (!input || typeof input !== "object" || Array.isArray(input)) wrong = "The payload must be an object.";
  } catch {
    wrong = "Not valid JSON.";
  }
  const sends = acts(editor, current, one?.id);
  const newest = async () => {
    const { executions } = await get(path("agents", agentId.value, "workflows", "executions"), {
      workflow_id: workflow,
      limit: 1,
    });
    if (!executions.length) {
      tell("Not executed yet.");
      return;
    }
    const x = await readExecution(agentId.value, executions[0].id);
    setTyped(JSON.stringify(x.input ?? {}, null, 2));
    editor.payload.value = x.input ?? {};
  };
  const waiting = state.running && state.results.some((r) => r.status === "waiting");
  const example = () => setTyped(JSON.stringify(typeOf("trigger")?.output.example ?? {}, null, 2));
  return (
    <div class={compact ? "stack pad" : "test-panel"}>
      <section class="stack">
        <div class="row">
          <Button
            kind="primary"
            icon="Play"
            disabled={Boolean(wrong) || state.running || editor.readonly.value}
            onClick={() => run(current, input, current === "all" ? undefined : one?.id)}
          >
            {state.running ? "Running…" : "Run the test"}
          </Button>
          {state.running && state.execution?.id && (
            <Button
              icon="CircleStop"
              onClick={() => post(executionPath(agentId.value, state.execution!.id!, "terminate"))}
            >
              Stop
            </Button>
          )}
          {one && (
            <Segments
              label="What to test"
              value={mode}
              options={[
                ["all", "All"],
                ["to", "To here"],
                ["node", "This node"],
              ]}
              onChange={(v) => setMode(v as TestMode)}
            />
          )}
        </div>
        <div class="field">
          <label for="test-payload">Trigger payload</label>
          <textarea
            id="test-payload"
            class="code"
            rows={compact ? 6 : 5}
            spellcheck={false}
            value={typed}
            onInput={(e) => setTyped(e.currentTarget.value)}
          />
          {wrong && (
            <small class="issue" role="alert">
              {wrong}
            </small>
          )}
        </div>
        <div class="row">
          <Button icon="History" onClick={newest} label="Use the input of the latest execution">
            Latest input
          </Button>
          <Button label="Use the example of the trigger" onClick={example}>
            Example
          </Button>
        </div>
        {sends.length > 0 && (
          <p class="small warn-text">
            These nodes really send or write: <bdi>{sends.slice(0, 5).join(", ")}</bdi>
            {sends.length > 5 && ` and ${sends.length - 5} more`}. Pin their outputs to skip them.
          </p>
        )}
      </section>
      <section ref={results} class="stack test-results" aria-live="polite">
        {state.error && <ErrorCard error={state.error} />}
        {state.execution && (
          <p class="row">
            {waiting ? <Badge tone="warn">waiting</Badge> : <Badge>{state.execution.status ?? ""}</Badge>}
            {state.execution.error && <span class="issue">{state.execution.error.message}</span>}
            <a href={href(agentId.value, "workflows", "executions", state.execution.id!)}>Open execution</a>
          </p>
        )}
        <ul class="plain">
          {inOrder(
            state.results.filter((r) => r.status !== "skipped"),
            editor.doc.value.nodes,
          )
            .slice(0, 200)
            .map((r) => (
              <li key={resultKey(r)}>
                <details>
                  <summary class="row">
                    <span class="grow clip">
                      <strong>
                        <Name>{editor.nameOf(r.node_id)}</Name>
                      </strong>{" "}
                      <span class="muted">{iterationLabel(r)}</span>
                    </span>
                    <Badge>{r.status}</Badge>
                    <span class="muted small">{span(r.duration_ms)}</span>
                  </summary>
                  {r.error && <p class="issue">{r.error.message}</p>}
                  {r.warnings?.map((w) => (
                    <p class="muted small">{w}</p>
                  ))}
                  {r.output !== undefined && <JsonTree value={r.output} />}
                </details>
                {state.running && r.status === "waiting" && r.type === "approval" && (
                  <Decide execution={state.execution!.id!} r={r} />
                )}
              </li>
            ))}
        </ul>
      </section>
    </div>
  );
}

/** Decides an approval that the test waits for. */
function Decide({ execution, r }: { execution: string; r: NodeResult }) {
  const decide = (decision: string) => () =>
    post(executionPath(agentId.value, execution, "resume"), {
      node_id: r.node_id,
      path: iterationPath(r) || undefined,
      data: { decision },
    });
  return (
    <div class="row test-decision" role="group" aria-label="Decision">
      <span class="grow">
        <bdi>{r.approval?.title}</bdi>
      </span>
      <Button icon="Check" onClick={decide("approved")}>
        Approve
      </Button>
      <Button icon="X" onClick={decide("rejected")}>
        Reject
      </Button>
    </div>
  );
}
