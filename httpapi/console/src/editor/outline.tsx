// The graph as a nested list, for phones and screen readers.
import { Button, Icon, Name } from "../ui";
import {
  type Editor,
  type GraphEdge,
  defaultHandle,
  type GraphNode,
  typeOf,
  sourceHandleOf,
  outputHandles,
} from "./index";
import { detailOf } from "./detail";

type Row = { node: GraphNode; handle: string; depth: number; again: boolean };

/** The nodes in the order of their paths; a decision's branches are one deeper. */
export function outlineRows(editor: Editor): Row[] {
  const { nodes, edges } = editor.doc.value;
  const byId = new Map(nodes.map((n) => [n.id, n]));
  const out = new Map<string, GraphEdge[]>();
  for (const e of edges)
    if (byId.has(e.source) && byId.has(e.target)) out.set(e.source, [...(out.get(e.source) ?? []), e]);
  const into = new Set(edges.filter((e) => byId.has(e.source)).map((e) => e.target));
  const seen = new Set<string>();
  const rows: Row[] = [];
  const walk = (node: GraphNode, handle: string, depth: number) => {
    for (let now: GraphNode | undefined = node, by = handle; now;) {
      const again = seen.has(now.id);
      rows.push({ node: now, handle: by, depth, again });
      if (again) return;
      seen.add(now.id);
      const type = typeOf(now.type);
      const edges = out.get(now.id) ?? [];
      const at: GraphNode = now;
      if (
        edges.length === 1 &&
        outputHandles(now, type).length === 1 &&
        sourceHandleOf(edges[0], now, type) !== "error"
      ) {
        now = byId.get(edges[0].target);
        by = "";
        continue;
      }
      for (const l of edges) {
        const w = sourceHandleOf(l, at, type);
        walk(byId.get(l.target)!, w === defaultHandle ? "" : w, depth + 1);
      }
      return;
    }
  };
  for (const n of nodes) if (n.type === "trigger") walk(n, "", 0);
  for (const n of nodes) if (!seen.has(n.id) && !into.has(n.id)) walk(n, "", 0);
  for (const n of nodes) if (!seen.has(n.id)) walk(n, "", 0);
  return rows;
}

/** The graph as a list, which shows the same nodes and actions as the canvas. */
export function Outline({
  editor,
  open,
  menu,
  add,
}: {
  editor: Editor;
  open: (id: string) => void;
  menu?: (id: string, at: MouseEvent) => void;
  add?: (to: { after?: string; handle?: string }) => void;
}) {
  const rows = outlineRows(editor);
  const marks = editor.marks.value;
  const issues = editor.issuesByNode.value;
  return (
    <ol class="outline" aria-label="Outline">
      {rows.map(({ node, handle, depth, again }, i) => {
        const type = typeOf(node.type);
        const mark = marks.get(node.id);
        const used = new Set(
          editor.doc.value.edges.filter((e) => e.source === node.id).map((e) => sourceHandleOf(e, node, type)),
        );
        const open_ = outputHandles(node, type).filter((w) => !used.has(w));
        return (
          <li key={`${node.id}/${i}`} style={{ paddingInlineStart: `${Math.min(depth, 6) * 1.1}rem` }}>
            {handle && <span class="outline-way">{handle}</span>}
            <button
              type="button"
              class={`outline-node group-${(type?.group ?? "none").toLowerCase()} ${mark?.status ?? ""} ${node.data?.disabled ? "disabled" : ""}`}
              aria-current={editor.selected.value.has(node.id) ? "true" : undefined}
              onClick={() => open(node.id)}
              onContextMenu={(e) => {
                if (!menu) return;
                e.preventDefault();
                menu(node.id, e);
              }}
            >
              <span class="node-icon">
                <Icon name={type?.icon ?? "CircleHelp"} size={16} />
              </span>
              <span class="grow">
                <strong>
                  <Name>{editor.nameOf(node)}</Name>
                </strong>
                <small class="muted clip">
                  <Name>{again ? "continues above" : detailOf(node, type)}</Name>
                </small>
              </span>
              {issues.has(node.id) && <Icon name="CircleAlert" size={16} label="Has a problem" />}
              {mark && mark.status !== "skipped" && (
                <span
                  class={`badge ${{ success: "good", error: "bad", running: "busy", waiting: "warn" }[mark.status] ?? ""}`}
                >
                  {mark.status}
                </span>
              )}
            </button>
            {add && !again && open_.length > 0 && (
              <span class="row outline-add">
                {open_.map((w) => (
                  <Button
                    kind="quiet"
                    icon="Plus"
                    label={`Add after ${editor.nameOf(node)}`}
                    onClick={() => add({ after: node.id, handle: w })}
                  >
                    {w === defaultHandle ? undefined : w}
                  </Button>
                ))}
              </span>
            )}
          </li>
        );
      })}
      {editor.doc.value.notes?.map(
        (n) =>
          n.text && (
            <li key={n.id} class={`outline-note ${n.color ?? ""}`}>
              <bdi>{n.text}</bdi>
            </li>
          ),
      )}
    </ol>
  );
}
