// Tests of the graph that is edited: of all nodes, of those up to the selected node, or of that node alone.
import type { RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import { agentId, get, href, path, post } from "../data";
import { Badge, Button, ErrorCard, JsonTree, Name, Segments, span, showToast } from "../ui";
import { Decision } from "../parts/decision";
import { typeOf } from "./catalog";
import type { GraphNode } from "./graph";
import { inOrder } from "./order";
import { executionPath, iterationLabel, iterationPath, type NodeResult, readExecution, resultKey } from "./run";
import type { TestMode, TestState } from "./starttest";
import type { Editor } from "./state";

const maxResults = 200;
const maxNames = 5; // names of nodes with effects that are listed

// Types of nodes whose tests reach other people or systems, or change data.
const typesWithEffects = new Set(["http-request", "tool", "sql", "workflow"]);
const readingStatement = /^\s*(select|with|pragma|explain)\b/i;

/** Reports whether a node sends or writes something when it is tested. */
function hasEffect({ type, data, metadata }: GraphNode): boolean {
  if (data?.disabled || metadata?.pin !== undefined) return false;
  if (typeOf(type)?.group === "Messages") return true;
  if (!typesWithEffects.has(type)) return false;
  if (type === "http-request") return !["GET", "HEAD"].includes(String(data?.method ?? "GET"));
  if (type === "sql") return !readingStatement.test(String(data?.query ?? ""));
  return true;
}

/** Returns the nodes that a test runs. */
function testedNodes(editor: Editor, mode: TestMode, id?: string): GraphNode[] {
  const { nodes, edges } = editor.doc.value;
  if (mode === "all") return nodes;
  const ids = new Set(id ? [id] : []);
  if (mode === "to")
    for (const target of ids) for (const edge of edges) if (edge.target === target) ids.add(edge.source);
  return nodes.filter((node) => ids.has(node.id));
}

const format = (payload: unknown) => JSON.stringify(payload, null, 2);

/** Parses the payload of a test; issue says what is wrong with it. */
function parsePayload(text: string): { input: Record<string, unknown>; issue?: string } {
  try {
    const input = JSON.parse(text.trim() || "{}");
    if (input && typeof input === "object" && !Array.isArray(input)) return { input };
    return { input: {}, issue: "The payload must be an object." };
  } catch {
    return { input: {}, issue: "Not valid JSON." };
  }
}

/** Returns the input of the latest execution; undefined if there is none. */
async function latestInput(workflow: string): Promise<Record<string, unknown> | undefined> {
  const list = path("agents", agentId.value, "workflows", "executions");
  const { executions } = await get(list, { workflow_id: workflow, limit: 1 });
  if (!executions.length) return undefined;
  const execution = await readExecution(agentId.value, executions[0].id);
  return execution.input ?? {};
}

type TestPanelProps = {
  editor: Editor;
  workflow: string;
  state: TestState;
  run: (mode: TestMode, input: Record<string, unknown>, nodeId?: string) => Promise<void>;
  compact?: boolean;
};

/** The tab for tests: the payload, what is tested, and the results. */
export function TestPanel({ editor, workflow, state, run, compact }: TestPanelProps) {
  const [mode, setMode] = useState<TestMode>("all");
  const [typed, setTyped] = useState(() => format(editor.payload.value ?? {}));
  const payload = editor.payload.value;
  useEffect(() => {
    if (payload !== undefined) setTyped(format(payload));
  }, [payload]);
  const results = useRef<HTMLElement>(null);
  useEffect(() => {
    // On phones the results are below the payload.
    if (compact && (state.execution || state.error)) results.current?.scrollIntoView({ block: "start" });
  }, [state.execution?.id, state.error]);
  const node = editor.selectedNode.value;
  const currentMode = node ? mode : "all";
  const { input, issue } = parsePayload(typed);
  return (
    <div class={compact ? "stack pad" : "test-panel"}>
      <section class="stack">
        <div class="row">
          <Button
            kind="primary"
            icon="Play"
            disabled={Boolean(issue) || state.running || editor.readonly.value}
            onClick={() => run(currentMode, input, currentMode === "all" ? undefined : node?.id)}
          >
            {state.running ? "Running…" : "Run the test"}
          </Button>
          {state.running && state.execution?.id && <StopButton execution={state.execution.id} />}
          {node && <ModeSegments mode={mode} setMode={setMode} />}
        </div>
        <PayloadField typed={typed} setTyped={setTyped} issue={issue} rows={compact ? 6 : 5} />
        <PayloadButtons editor={editor} workflow={workflow} setTyped={setTyped} />
        <EffectsWarning editor={editor} nodes={testedNodes(editor, currentMode, node?.id)} />
      </section>
      <TestResults editor={editor} state={state} element={results} />
    </div>
  );
}

function StopButton({ execution }: { execution: string }) {
  return (
    <Button icon="CircleStop" onClick={() => post(executionPath(agentId.value, execution, "terminate"))}>
      Stop
    </Button>
  );
}

function ModeSegments({ mode, setMode }: { mode: TestMode; setMode: (mode: TestMode) => void }) {
  return (
    <Segments
      label="What to test"
      value={mode}
      options={[
        ["all", "All"],
        ["to", "To here"],
        ["node", "This node"],
      ]}
      onChange={(chosen) => setMode(chosen as TestMode)}
    />
  );
}

type PayloadFieldProps = { typed: string; setTyped: (text: string) => void; issue?: string; rows: number };

function PayloadField({ typed, setTyped, issue, rows }: PayloadFieldProps) {
  return (
    <div class="field">
      <label for="test-payload">Trigger payload</label>
      <textarea
        id="test-payload"
        class="code"
        rows={rows}
        spellcheck={false}
        value={typed}
        onInput={(event) => setTyped(event.currentTarget.value)}
      />
      {issue && (
        <small class="issue" role="alert">
          {issue}
        </small>
      )}
    </div>
  );
}

type PayloadButtonsProps = { editor: Editor; workflow: string; setTyped: (text: string) => void };

/** Buttons that fill in a payload: that of the latest execution, or an example. */
function PayloadButtons({ editor, workflow, setTyped }: PayloadButtonsProps) {
  const takeLatestInput = async () => {
    const input = await latestInput(workflow);
    if (!input) return showToast("Not executed yet.");
    setTyped(format(input));
    editor.payload.value = input;
  };
  return (
    <div class="row">
      <Button icon="History" onClick={takeLatestInput} label="Use the input of the latest execution">
        Latest input
      </Button>
      <Button
        label="Use the example of the trigger"
        onClick={() => setTyped(format(typeOf("trigger")?.output.example ?? {}))}
      >
        Example
      </Button>
    </div>
  );
}

function EffectsWarning({ editor, nodes }: { editor: Editor; nodes: GraphNode[] }) {
  const names = nodes.filter(hasEffect).map((node) => editor.nameOf(node));
  if (!names.length) return null;
  const others = names.length - maxNames;
  return (
    <p class="small warn-text">
      These nodes really send or write: <bdi>{names.slice(0, maxNames).join(", ")}</bdi>
      {others > 0 && ` and ${others} more`}. Pin their outputs to skip them.
    </p>
  );
}

type TestResultsProps = { editor: Editor; state: TestState; element: RefObject<HTMLElement | null> };

function TestResults({ editor, state, element }: TestResultsProps) {
  const { execution, error, results } = state;
  const waiting = state.running && results.some((result) => result.status === "waiting");
  const shown = results.filter((result) => result.status !== "skipped");
  return (
    <section ref={element} class="stack test-results" aria-live="polite">
      {error && <ErrorCard error={error} />}
      {execution && (
        <p class="row">
          {waiting ? <Badge tone="warn">waiting</Badge> : <Badge>{execution.status ?? ""}</Badge>}
          {execution.error && <span class="issue">{execution.error.message}</span>}
          <a href={href(agentId.value, "workflows", "executions", execution.id!)}>Open execution</a>
        </p>
      )}
      <ul class="plain">
        {inOrder(shown, editor.doc.value.nodes)
          .slice(0, maxResults)
          .map((result) => (
            <li key={resultKey(result)}>
              <ResultDetails result={result} name={editor.nameOf(result.node_id)} />
              {state.running && result.status === "waiting" && result.type === "approval" && (
                <TestDecision execution={execution!.id!} result={result} />
              )}
            </li>
          ))}
      </ul>
    </section>
  );
}

function ResultDetails({ result, name }: { result: NodeResult; name: string }) {
  return (
    <details>
      <summary class="row">
        <span class="grow clip">
          <strong>
            <Name>{name}</Name>
          </strong>{" "}
          <span class="muted">{iterationLabel(result)}</span>
        </span>
        <Badge>{result.status}</Badge>
        <span class="muted small">{span(result.duration_ms)}</span>
      </summary>
      {result.error && <p class="issue">{result.error.message}</p>}
      {result.warnings?.map((warning) => (
        <p class="muted small">{warning}</p>
      ))}
      {result.output !== undefined && <JsonTree value={result.output} />}
    </details>
  );
}

/** Decides an approval for which the test waits. */
function TestDecision({ execution, result }: { execution: string; result: NodeResult }) {
  return (
    <div class="test-decision stack">
      <bdi>{result.approval?.title}</bdi>
      <Decision
        execution={execution}
        node={result.node_id}
        iterations={iterationPath(result)}
        answer={result.approval?.comment_required}
      />
    </div>
  );
}
