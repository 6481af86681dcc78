// When each node ran, by depth and iteration; only the rows in sight are made
// when there are many.
import { useState } from "preact/hooks";

import { Icon, Name, span } from "../ui";
import {
  type Editor,
  type Execution,
  hasEnded,
  iterationLabel,
  iterationPath,
  type NodeResult,
  resultKey,
  typeOf,
} from "../editor";
import { inOrder } from "../editor/order";

const rowHeight = 30;
const windowed = 300;

export function Waterfall({
  x,
  results,
  editor,
  place: chosen,
  choose,
}: {
  x: Execution;
  results: NodeResult[];
  editor: Editor;
  /** The iteration that is chosen. */ place: string;
  choose: (r: NodeResult) => void;
}) {
  const [top, setTop] = useState(0);
  const ran = results.filter((r) => r.status !== "skipped");
  const skipped = results.length - ran.length;
  if (!results.length) return <p class="muted pad">No node has started yet.</p>;
  const start = Date.parse(x.started_at ?? x.created_at);
  const kept = (r: NodeResult) => Boolean(x.retried_from) && Date.parse(r.started_at) + r.duration_ms < start; // by the execution that this one repeats
  const end = Math.max(
    start + 1,
    hasEnded(x) && x.completed_at ? Date.parse(x.completed_at) : 0,
    ...ran.map((r) => Date.parse(r.started_at) + r.duration_ms),
  );
  const beginning = (r: NodeResult) => Math.max(0, Date.parse(r.started_at) - start);
  const sorted = inOrder(ran, editor.doc.value.nodes);
  const many = sorted.length > windowed;
  const from = many ? Math.max(0, Math.floor(top / rowHeight) - 10) : 0;
  const shown = many ? sorted.slice(from, from + 60) : sorted;
  const share = (ms: number) => `${(ms / (end - start)) * 100}%`;
  return (
    <div class="waterfall" onScroll={(e) => many && setTop(e.currentTarget.scrollTop)}>
      <ol
        aria-label="Steps"
        style={many ? { height: `${sorted.length * rowHeight}px`, position: "relative" } : undefined}
      >
        {shown.map((r, i) => {
          const place = iterationPath(r);
          const node = editor.node(r.node_id);
          return (
            <li
              key={resultKey(r)}
              style={many ? { position: "absolute", top: `${(from + i) * rowHeight}px`, insetInline: 0 } : undefined}
            >
              <button
                type="button"
                class={r.status}
                aria-current={
                  editor.selectedNode.value?.id === r.node_id && (!chosen || chosen === place) ? "true" : undefined
                }
                onClick={() => choose(r)}
              >
                <span
                  class="fall-name clip"
                  style={{ paddingInlineStart: `${place === "" ? 0 : place.split(".").length * 0.9}rem` }}
                >
                  <Icon name={typeOf(r.type)?.icon ?? "CircleHelp"} size={14} /> <Name>{editor.nameOf(r.node_id)}</Name>
                  {place !== "" && <span class="muted"> {iterationLabel(r)}</span>}
                </span>
                <span class="fall-line">
                  {!kept(r) && (
                    <i style={{ insetInlineStart: share(beginning(r)), width: `max(3px, ${share(r.duration_ms)})` }} />
                  )}
                </span>
                <span class="fall-time muted small">
                  {["running", "waiting"].includes(r.status) ? r.status : kept(r) ? "kept" : span(r.duration_ms)}
                </span>
              </button>
            </li>
          );
        })}
      </ol>
      {skipped > 0 && (
        <p class="muted small pad">
          {skipped} skipped {skipped === 1 ? "node is" : "nodes are"} not shown.
        </p>
      )}
    </div>
  );
}
