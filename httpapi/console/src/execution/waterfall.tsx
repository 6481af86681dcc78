// When each node ran. Of many results only the rows in view are rendered.
import { useState } from "preact/hooks";

import { typeOf } from "../editor/catalog";
import { type Execution, hasEnded, iterationLabel, iterationPath, type NodeResult, resultKey } from "../editor/run";
import type { Editor } from "../editor/state";
import { inOrder } from "../editor/order";
import { Icon, Name, span } from "../ui";

const rowHeight = 30; // pixels
const maxRows = 300; // rendered at once
const windowRows = 60; // rendered of more rows
const rowsAbove = 10; // rendered above those in view

type WaterfallProps = {
  execution: Execution;
  results: NodeResult[];
  editor: Editor;
  /** The path of the iteration that is chosen. */
  iteration: string;
  choose: (result: NodeResult) => void;
};

/** The results of an execution by time. */
export function Waterfall({ execution, results, editor, iteration, choose }: WaterfallProps) {
  const [scrollTop, setScrollTop] = useState(0);
  if (!results.length) return <p class="muted pad">No node has started yet.</p>;
  const ran = results.filter((result) => result.status !== "skipped");
  const skipped = results.length - ran.length;
  const period = periodOf(execution, ran);
  const rows = inOrder(ran, editor.doc.value.nodes);
  const isWindowed = rows.length > maxRows;
  const first = isWindowed ? Math.max(0, Math.floor(scrollTop / rowHeight) - rowsAbove) : 0;
  const shown = isWindowed ? rows.slice(first, first + windowRows) : rows;
  const listStyle = { height: `${rows.length * rowHeight}px`, position: "relative" };
  const rowStyle = (index: number) => ({ position: "absolute", top: `${index * rowHeight}px`, insetInline: 0 });
  return (
    <div class="waterfall" onScroll={(event) => isWindowed && setScrollTop(event.currentTarget.scrollTop)}>
      <ol aria-label="Steps" style={isWindowed ? listStyle : undefined}>
        {shown.map((result, index) => (
          <li key={resultKey(result)} style={isWindowed ? rowStyle(first + index) : undefined}>
            <Row
              execution={execution}
              result={result}
              name={editor.nameOf(result.node_id)}
              period={period}
              current={
                result.node_id === editor.selectedNode.value?.id && (!iteration || iteration === iterationPath(result))
              }
              choose={choose}
            />
          </li>
        ))}
      </ol>
      {skipped > 0 && (
        <p class="muted small pad">
          {skipped} skipped {skipped === 1 ? "node is" : "nodes are"} not shown.
        </p>
      )}
    </div>
  );
}

const startOf = (execution: Execution) => Date.parse(execution.started_at ?? execution.created_at);
const endOf = (result: NodeResult) => Date.parse(result.started_at) + result.duration_ms;

/** The time that the waterfall shows, in milliseconds since 1970. */
type Period = { start: number; end: number };

function periodOf(execution: Execution, results: NodeResult[]): Period {
  const start = startOf(execution);
  const completed = hasEnded(execution) && execution.completed_at ? Date.parse(execution.completed_at) : 0;
  return { start, end: Math.max(start + 1, completed, ...results.map(endOf)) };
}

type RowProps = {
  execution: Execution;
  result: NodeResult;
  name: string;
  period: Period;
  current: boolean;
  choose: (result: NodeResult) => void;
};

function Row({ execution, result, name, period, current, choose }: RowProps) {
  const path = iterationPath(result);
  const depth = path === "" ? 0 : path.split(".").length;
  // A retry keeps results of the execution that it repeats.
  const isKept = Boolean(execution.retried_from) && endOf(result) < startOf(execution);
  const share = (ms: number) => `${(ms / (period.end - period.start)) * 100}%`;
  const begin = Math.max(0, Date.parse(result.started_at) - period.start);
  return (
    <button
      type="button"
      class={result.status}
      aria-current={current ? "true" : undefined}
      onClick={() => choose(result)}
    >
      <span class="fall-name clip" style={{ paddingInlineStart: `${depth * 0.9}rem` }}>
        <Icon name={typeOf(result.type)?.icon ?? "CircleHelp"} size={14} /> <Name>{name}</Name>
        {path !== "" && <span class="muted"> {iterationLabel(result)}</span>}
      </span>
      <span class="fall-line">
        {!isKept && <i style={{ insetInlineStart: share(begin), width: `max(3px, ${share(result.duration_ms)})` }} />}
      </span>
      <span class="fall-time muted small">{timeText(result, isKept)}</span>
    </button>
  );
}

function timeText({ status, duration_ms }: NodeResult, isKept: boolean): string {
  if (status === "running" || status === "waiting") return status;
  return isKept ? "kept" : span(duration_ms);
}
