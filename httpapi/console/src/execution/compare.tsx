// Compares two executions of a workflow: the status and output of each node.
import { useEffect, useState } from "preact/hooks";

import { agentId, type API, href, path, route, setQuery, useQuery } from "../data";
import { type Execution, iterationLabel, type NodeResult, readExecution, resultKey } from "../editor/run";
import type { Editor } from "../editor/state";
import { Badge, Empty, ErrorCard, JsonTree, Load, Name, SelectField, Skeleton, span } from "../ui";
import { secondTime, writeTime } from "../parts/zone";

const maxListed = 50; // executions to choose from
const maxRows = 200;

type CompareProps = { execution: Execution; results: NodeResult[]; editor: Editor };

function titleOf({ created_at, status, trigger }: API.ExecutionItem): string {
  return `${writeTime(created_at, undefined, secondTime)}, ${status}${trigger === "test" ? ", a test" : ""}`;
}

/** Compares an execution with another one of its workflow, which is chosen from a list. */
export function Compare(props: CompareProps) {
  const { execution } = props;
  const list = useQuery(path("agents", agentId.value, "workflows", "executions"), {
    workflow_id: execution.workflow_id,
    limit: maxListed,
    tests: true,
  });
  return (
    <div class="pad stack">
      <Load of={list} lines={3}>
        {({ executions }) => (
          <CompareWith {...props} others={executions.filter((other) => other.id !== execution.id)} />
        )}
      </Load>
    </div>
  );
}

function CompareWith({ others, ...props }: CompareProps & { others: API.ExecutionItem[] }) {
  const id = route.value.query.get("with") || props.execution.retried_from || others[0]?.id;
  if (!id) return <Empty title="Nothing to compare with">This workflow has no other executions.</Empty>;
  const options: [id: string, title: string][] = others.map((other) => [other.id, titleOf(other)]);
  if (!others.some((other) => other.id === id)) options.unshift([id, "An older execution"]);
  return (
    <>
      <SelectField
        label="Compared with"
        value={id}
        options={options}
        onChange={(chosen) => setQuery({ with: chosen })}
      />
      <Comparison key={id} {...props} id={id} />
    </>
  );
}

/** The results of a node in both executions, and what differs. */
type Row = { key: string; mine?: NodeResult; theirs?: NodeResult; difference: string };

const outputOf = (result: NodeResult) => JSON.stringify([result.output ?? null, result.output_bytes ?? 0]);

/** Returns what differs between two results; empty if they are identical. */
function differenceOf(mine?: NodeResult, theirs?: NodeResult): string {
  if (!mine || !theirs) return mine ? "only here" : "only there";
  if (mine.status !== theirs.status) return "status differs";
  return outputOf(mine) === outputOf(theirs) ? "" : "output differs";
}

function compareResults(mine: NodeResult[], theirs: NodeResult[]): Row[] {
  const byKey = (results: NodeResult[]) => new Map(results.map((result) => [resultKey(result), result]));
  const myResults = byKey(mine);
  const theirResults = byKey(theirs);
  return [...new Set([...myResults.keys(), ...theirResults.keys()])].map((key) => {
    const row = { key, mine: myResults.get(key), theirs: theirResults.get(key) };
    return { ...row, difference: differenceOf(row.mine, row.theirs) };
  });
}

function Comparison({ execution, results, id, editor }: CompareProps & { id: string }) {
  const [other, setOther] = useState<Execution>();
  const [error, setError] = useState<Error>();
  const [all, setAll] = useState(false);
  const load = () => {
    setError(undefined);
    readExecution(agentId.value, id).then(setOther, setError);
  };
  useEffect(load, [id]);
  if (error) return <ErrorCard error={error} retry={load} />;
  if (!other) return <Skeleton lines={3} />;
  const rows = compareResults(results, other.node_results);
  const differing = rows.filter((row) => row.difference);
  const shown = (all ? rows : differing).slice(0, maxRows);
  const sameInput = JSON.stringify(execution.input ?? null) === JSON.stringify(other.input ?? null);
  return (
    <>
      <p class="row">
        <span class="grow">
          {differing.length ? `${differing.length} of ${rows.length} results differ.` : "All results are identical."}
          {other.version !== execution.version &&
            ` This one is of version ${execution.version}, the other of version ${other.version}.`}{" "}
          <a href={href(agentId.value, "workflows", "executions", id)}>Open the other</a>
        </span>
        <label class="switch">
          <input
            type="checkbox"
            role="switch"
            checked={all}
            onChange={(event) => setAll(event.currentTarget.checked)}
          />
          <span>Show identical results too</span>
        </label>
      </p>
      {!sameInput && (
        <details>
          <summary>Input differs</summary>
          <Sides mine={execution.input} theirs={other.input} />
        </details>
      )}
      {shown.length > 0 && (
        <p class="compare-head muted small" aria-hidden="true">
          <span />
          <span>Node</span>
          <span>This one</span>
          <span>The other</span>
        </p>
      )}
      <ul class="plain compare">
        {shown.map((row) => (
          <li key={row.key}>
            <ComparedResults row={row} editor={editor} />
          </li>
        ))}
      </ul>
      {rows.length > maxRows && shown.length === maxRows && <p class="muted small">Showing the first {maxRows}.</p>}
    </>
  );
}

function ComparedResults({ row: { mine, theirs, difference }, editor }: { row: Row; editor: Editor }) {
  const result = (mine ?? theirs)!;
  return (
    <details>
      <summary>
        <span class="compare-name clip">
          <Name>{editor.nameOf(result.node_id)}</Name>
          <span class="muted"> {iterationLabel(result)}</span>
        </span>
        <Outcome result={mine} />
        <Outcome result={theirs} />
        <span class={difference ? "warn-text small" : "muted small"}>{difference || "same"}</span>
      </summary>
      <Sides mine={mine?.error ?? mine?.output} theirs={theirs?.error ?? theirs?.output} />
    </details>
  );
}

const Outcome = ({ result }: { result?: NodeResult }) => (
  <span class="row nowrap">
    {result ? (
      <>
        <Badge>{result.status}</Badge>
        <span class="muted small desk">{span(result.duration_ms)}</span>
      </>
    ) : (
      <span class="muted">–</span>
    )}
  </span>
);

/** Two values side by side. */
const Sides = ({ mine, theirs }: { mine: unknown; theirs: unknown }) => (
  <div class="compare-sides">
    <JsonTree value={mine ?? "–"} />
    <JsonTree value={theirs ?? "–"} />
  </div>
);
