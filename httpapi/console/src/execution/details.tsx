// The panel below the graph of an execution: its steps, input and output, a comparison, and facts.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

import { agentId, get, href, route, setQuery } from "../data";
import { type Execution, executionPath, hasEnded, type NodeResult } from "../editor/run";
import type { Editor } from "../editor/state";
import { lazy } from "../parts/lazy";
import { Button, CopyButton, JsonTree, size, When } from "../ui";
import { triggerLabel } from "../workflows/triggerlabels";
import { Waterfall } from "./waterfall";

/** Compares two executions. */
const Compare = lazy(() => import("./compare").then((m) => m.Compare));

const previewLength = 2000; // characters

const tabs: [tab: string, title: string][] = [
  ["time", "Steps"],
  ["input", "Input"],
  ["output", "Output"],
  ["compare", "Compare"],
  ["about", "About"],
];

const executionHref = (id: string) => href(agentId.value, "workflows", "executions", id);

type ExecutionDetailsProps = {
  execution: Execution;
  results: NodeResult[];
  editor: Editor;
  choose: (result: NodeResult) => void;
};

/** The tabs below the graph, and the one that is open. */
export function ExecutionDetails({ execution, results, editor, choose }: ExecutionDetailsProps) {
  const { query } = route.value;
  const tab = query.get("tab") ?? "time";
  const open = (next: string) => setQuery({ tab: next === "time" ? null : next });
  return (
    <>
      <nav class="tabs">
        {tabs.map(([id, title]) => (
          <button type="button" aria-current={tab === id ? "page" : undefined} onClick={() => open(id)}>
            {title}
          </button>
        ))}
      </nav>
      <div class="bottom-body">
        {tab === "time" && (
          <>
            <Waterfall
              execution={execution}
              results={results}
              editor={editor}
              iteration={query.get("at") ?? ""}
              choose={choose}
            />
            {execution.retried_from && <RetryNote from={execution.retried_from} />}
          </>
        )}
        {(tab === "input" || tab === "output") && <Value key={tab} execution={execution} part={tab} />}
        {tab === "compare" && <Compare execution={execution} results={results} editor={editor} />}
        {tab === "about" && <Facts execution={execution} />}
      </div>
    </>
  );
}

function RetryNote({ from }: { from: string }) {
  return (
    <p class="muted small pad">
      It repeats <a href={executionHref(from)}>another execution</a>.
    </p>
  );
}

/** The input or the output of an execution. */
function Value({ execution, part }: { execution: Execution; part: "input" | "output" }) {
  const isMissing = part === "output" && execution.output === undefined && !execution.output_preview;
  const reason = hasEnded(execution) ? "No output." : "Not available yet.";
  return (
    <div class="pad">
      {isMissing ? <p class="muted">{reason}</p> : <StoredValue execution={execution} part={part} />}
    </div>
  );
}

/** A value of an execution. If it is long, only its beginning is shown until the rest is loaded. */
function StoredValue({ execution, part }: { execution: Execution; part: "input" | "output" }) {
  const [loaded, setLoaded] = useState<unknown>();
  const preview = execution[`${part}_preview`];
  if (!preview || loaded !== undefined) return <JsonTree value={loaded ?? execution[part] ?? {}} />;
  const load = async () => setLoaded((await get(executionPath(agentId.value, execution.id)))[part]);
  return (
    <>
      <pre class="json preview">
        <bdi>{preview.head.slice(0, previewLength)}</bdi>…
      </pre>
      <Button onClick={load}>{`Show all, ${size(preview.bytes)}`}</Button>
    </>
  );
}

function Facts({ execution }: { execution: Execution }) {
  const { completed_at, retried_from, parent_id } = execution;
  return (
    <dl class="facts-list pad">
      <Fact title="Trigger">
        <bdi>{triggerLabel(execution.trigger)}</bdi>
      </Fact>
      <Fact title="Started">
        <When time={execution.started_at ?? execution.created_at} full />
      </Fact>
      {completed_at && (
        <Fact title="Ended">
          <When time={completed_at} full />
        </Fact>
      )}
      <Fact title="Version">{execution.version}</Fact>
      {retried_from && (
        <Fact title="Repeats">
          <a href={executionHref(retried_from)}>another execution</a>
        </Fact>
      )}
      {parent_id && (
        <Fact title="Part of">
          <a href={executionHref(parent_id)}>another execution</a>
        </Fact>
      )}
      <dt>ID</dt>
      <dd class="row nowrap">
        <code>{execution.id}</code>
        <CopyButton text={execution.id} />
      </dd>
    </dl>
  );
}

function Fact({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <>
      <dt>{title}</dt>
      <dd>{children}</dd>
    </>
  );
}
