// Two executions of a workflow side by side: what became of each node, and
// where their outputs differ.
import { useEffect, useState } from "preact/hooks";

import { agentId, type API, get, href, path, route, setQuery, useQuery } from "../data";
import { Badge, Empty, ErrorCard, JsonTree, Load, Name, SelectField, Skeleton, span } from "../ui";
import { type Editor, type Execution, iterationLabel, type NodeResult, readExecution, resultKey } from "../editor";

const listed = 50;

const title = (x: API.ExecutionItem) =>
  `${new Date(x.created_at).toLocaleString()}, ${x.status}${x.trigger === "test" ? ", a test" : ""}`;

export function Compare({ x, results, editor }: { x: Execution; results: NodeResult[]; editor: Editor }) {
  const found = useQuery(path("agents", agentId.value, "workflows", "executions"), {
    workflow_id: x.workflow_id,
    limit: listed,
    tests: true,
  });
  return (
    <div class="pad stack">
      <Load of={found} lines={3}>
        {({ executions }) => {
          const others = executions.filter((o) => o.id !== x.id);
          const wanted = route.value.query.get("with") ?? "";
          const known = others.some((o) => o.id === wanted);
          const id = wanted || x.retried_from || others[0]?.id;
          if (!id) return <Empty title="Nothing to compare with">This workflow has no other executions.</Empty>;
          const options: [string, string][] = others.map((o) => [o.id, title(o)]);
          if (!known && !others.some((o) => o.id === id)) options.unshift([id, "An older execution"]);
          return (
            <>
              <SelectField
                label="Compared with"
                value={id}
                options={options}
                onChange={(to) => setQuery({ with: to })}
              />
              <Against key={id} x={x} results={results} id={id} editor={editor} />
            </>
          );
        }}
      </Load>
    </div>
  );
}

const output = (r?: NodeResult) => JSON.stringify(r?.output ?? null);

/** What is the same of a node in both: nothing to say when all is. */
function difference(a?: NodeResult, b?: NodeResult): string {
  if (!a || !b) return a ? "only here" : "only there";
  if (a.status !== b.status) return "status";
  if (output(a) !== output(b) || (a.output_bytes ?? 0) !== (b.output_bytes ?? 0)) return "output";
  return "";
}

function Against({ x, results, id, editor }: { x: Execution; results: NodeResult[]; id: string; editor: Editor }) {
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
  const [mine, theirs] = [
    new Map(results.map((r) => [resultKey(r), r])),
    new Map(other.node_results.map((r) => [resultKey(r), r])),
  ];
  const rows = [...new Set([...mine.keys(), ...theirs.keys()])].map((key) => ({
    key,
    a: mine.get(key),
    b: theirs.get(key),
    what: difference(mine.get(key), theirs.get(key)),
  }));
  const shown = rows.filter((r) => all || r.what).slice(0, 200);
  const differing = rows.filter((r) => r.what).length;
  return (
    <>
      <p class="row">
        <span class="grow">
          {differing ? `${differing} of ${rows.length} results differ.` : "All results are identical."}
          {other.version !== x.version &&
            ` This one is of version ${x.version}, the other of version ${other.version}.`}{" "}
          <a href={href(agentId.value, "workflows", "executions", id)}>Open the other</a>
        </span>
        <label class="switch">
          <input type="checkbox" role="switch" checked={all} onChange={(e) => setAll(e.currentTarget.checked)} />
          <span>Show identical results too</span>
        </label>
      </p>
      {JSON.stringify(x.input ?? null) !== JSON.stringify(other.input ?? null) && (
        <Side title="Input" a={x.input} b={other.input} />
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
        {shown.map(({ key, a, b, what }) => {
          const r = (a ?? b)!;
          return (
            <li key={key}>
              <details>
                <summary>
                  <span class="compare-name clip">
                    <Name>{editor.nameOf(r.node_id)}</Name>
                    <span class="muted"> {iterationLabel(r)}</span>
                  </span>
                  <Outcome r={a} />
                  <Outcome r={b} />
                  <span class={what ? "warn-text small" : "muted small"}>
                    {what === "status" || what === "output" ? `${what} differs` : what || "same"}
                  </span>
                </summary>
                <div class="compare-sides">
                  <JsonTree value={a?.error ?? a?.output ?? "–"} />
                  <JsonTree value={b?.error ?? b?.output ?? "–"} />
                </div>
              </details>
            </li>
          );
        })}
      </ul>
      {rows.length > 200 && shown.length === 200 && <p class="muted small">Showing the first 200.</p>}
    </>
  );
}

const Outcome = ({ r }: { r?: NodeResult }) => (
  <span class="row nowrap">
    {r ? (
      <>
        <Badge>{r.status}</Badge>
        <span class="muted small desk">{span(r.duration_ms)}</span>
      </>
    ) : (
      <span class="muted">–</span>
    )}
  </span>
);

const Side = ({ title: words, a, b }: { title: string; a: unknown; b: unknown }) => (
  <details>
    <summary>{words} differs</summary>
    <div class="compare-sides">
      <JsonTree value={a ?? "–"} />
      <JsonTree value={b ?? "–"} />
    </div>
  </details>
);
