// The panel of a node of an execution: its results, one for each iteration.
import { useEffect, useState } from "preact/hooks";

import { agentId, ApiError, asError, get } from "../data";
import type { GraphNode } from "../editor/graph";
import {
  type Execution,
  executionPath,
  hasEnded,
  iterationLabel,
  iterationPath,
  type NodeResult,
  resultKey,
} from "../editor/run";
import { PanelHead } from "../editor/panelhead";
import { Badge, Button, ErrorCard, JsonTree, Pager, size, span } from "../ui";
import { WaitingNode } from "./waiting";

const pageSize = 50;

type NodeRunProps = {
  execution: Execution;
  node: GraphNode;
  name: string;
  results: NodeResult[];
  /** The path of the iteration that is chosen. */
  iteration: string;
  choose: (result: NodeResult) => void;
  editable: boolean;
  retry: (from?: string) => Promise<void>;
  close: () => void;
};

/** The panel of a node: its iterations, and the result of the chosen one. */
export function NodeRun({ execution, node, name, results, iteration, choose, editable, retry, close }: NodeRunProps) {
  const shown: NodeResult | undefined =
    results.find((result) => iteration && iterationPath(result) === iteration) ??
    results.find((result) => result.status === "waiting") ??
    results.find((result) => result.status === "error") ??
    results[0];
  return (
    <aside class="editor-panel" aria-label={`Node ${name}`}>
      <PanelHead node={node} name={name} close={close} />
      <div class="panel-body stack">
        {results.length > 1 && <Iterations results={results} shown={shown} choose={choose} />}
        {shown ? (
          <Result key={resultKey(shown)} execution={execution} result={shown} editable={editable} retry={retry} />
        ) : (
          <p class="muted">{hasEnded(execution) ? "Did not run." : "Not started yet."}</p>
        )}
      </div>
    </aside>
  );
}

type IterationsProps = { results: NodeResult[]; shown: NodeResult; choose: (result: NodeResult) => void };

/** The iterations of a node in pages, beginning with that of the chosen one. */
function Iterations({ results, shown, choose }: IterationsProps) {
  const shownOffset = Math.floor(Math.max(0, results.indexOf(shown)) / pageSize) * pageSize;
  const [offset, setOffset] = useState(shownOffset);
  useEffect(() => setOffset(shownOffset), [shownOffset]);
  return (
    <section class="iterations">
      <h3>{results.length.toLocaleString()} iterations</h3>
      <div class="row">
        {results.slice(offset, offset + pageSize).map((result) => (
          <button
            type="button"
            key={resultKey(result)}
            class={`iteration ${result.status}`}
            aria-pressed={result === shown}
            title={`${result.status}, ${span(result.duration_ms)}`}
            onClick={() => choose(result)}
          >
            {iterationLabel(result)}
          </button>
        ))}
      </div>
      <Pager meta={{ total: results.length, limit: pageSize, offset }} go={setOffset} />
    </section>
  );
}

type ResultProps = {
  execution: Execution;
  result: NodeResult;
  editable: boolean;
  retry: (from?: string) => Promise<void>;
};

function Result({ execution, result, editable, retry }: ResultProps) {
  const isRetryable = editable && hasEnded(execution) && execution.trigger !== "test" && result.status !== "skipped";
  return (
    <>
      <p class="row">
        <Badge>{result.status}</Badge>
        <span class="muted small grow">{resultFacts(result)}</span>
        {isRetryable && (
          <Button icon="RotateCcw" onClick={() => retry(result.node_id)}>
            Retry from here
          </Button>
        )}
      </p>
      {result.error && (
        <div class="card bad">
          <p>
            <bdi>{result.error.message}</bdi>
          </p>
          <p class="small muted">{result.error.code}</p>
        </div>
      )}
      {result.warnings?.map((warning) => (
        <p class="card warn small">
          <bdi>{warning}</bdi>
        </p>
      ))}
      {result.status === "waiting" && !hasEnded(execution) && (
        <WaitingNode execution={execution.id} result={result} editable={editable} />
      )}
      <ResultTabs execution={execution} result={result} />
    </>
  );
}

/** Returns the iteration, attempt, output and duration of a result as text. */
function resultFacts(result: NodeResult): string {
  const isTimed = !["running", "waiting", "skipped"].includes(result.status);
  const facts = [
    iterationPath(result) !== "" && `iteration ${iterationLabel(result)}`,
    result.attempt > 1 && `attempt ${result.attempt}`,
    result.handle && `left by ${result.handle}`,
    isTimed && span(result.duration_ms),
  ];
  return facts.filter(Boolean).join(" · ");
}

function ResultTabs({ execution, result }: { execution: Execution; result: NodeResult }) {
  const [tab, setTab] = useState(result.error ? "resolved" : "output");
  const tabs = [
    ["output", "Output"],
    ["input", "Input"],
    ["resolved", "Resolved"],
    ["log", `Log${result.logs?.length ? ` ${result.logs.length}` : ""}`],
  ];
  return (
    <>
      <nav class="tabs" aria-label="Result">
        {tabs.map(([id, title]) => (
          <button type="button" aria-current={tab === id ? "page" : undefined} onClick={() => setTab(id)}>
            {title}
          </button>
        ))}
      </nav>
      {tab === "resolved" && (
        <p class="muted small">The node's fields with their templates filled in. Credentials are masked.</p>
      )}
      {(tab === "output" || tab === "input" || tab === "resolved") && (
        <ResultPart key={tab} execution={execution} result={result} part={tab} />
      )}
      {tab === "log" && <Log lines={result.logs ?? []} />}
    </>
  );
}

function Log({ lines }: { lines: { level: string; message: string }[] }) {
  if (!lines.length) return <p class="muted">Nothing was logged.</p>;
  return (
    <ol class="log-lines">
      {lines.map(({ level, message }) => (
        <li class={level}>
          <bdi>
            {level === "log" ? "" : `${level}: `}
            {message}
          </bdi>
        </li>
      ))}
    </ol>
  );
}

type ResultPartProps = { execution: Execution; result: NodeResult; part: "input" | "resolved" | "output" };

/** A part of a result. The input and resolved fields, and a long output, are loaded when they are shown. */
function ResultPart({ execution, result, part }: ResultPartProps) {
  const included = part === "output" ? result.output : undefined;
  const [value, setValue] = useState<unknown>(included);
  const [error, setError] = useState<Error>();
  const load = async () => {
    setError(undefined);
    const address = executionPath(agentId.value, execution.id, "nodes", result.node_id);
    try {
      setValue((await get(address, { path: iterationPath(result), part })).value);
    } catch (thrown) {
      setError(asError(thrown));
    }
  };
  useEffect(() => {
    setValue(included);
  }, [included]);
  useEffect(() => {
    if (part !== "output") void load();
  }, [part, result.status]);
  if (error instanceof ApiError && error.status === 404) {
    const reason = result.status === "skipped" ? "The node was skipped." : "This can no longer be computed.";
    return <p class="muted">{reason}</p>;
  }
  if (error) return <ErrorCard error={error} retry={load} />;
  if (value !== undefined) return <JsonTree value={value} />;
  if (part !== "output") return <p class="muted">Loading…</p>;
  if (result.output_bytes) return <Button onClick={load}>{`Show the output, ${size(result.output_bytes)}`}</Button>;
  return <p class="muted">There is none.</p>;
}
