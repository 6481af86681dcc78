// The graph as a nested list, for phones and screen readers.
import { Button, Icon, Name } from "../ui";
import { groupClass, typeOf } from "./catalog";
import { detailOf } from "./detail";
import { defaultHandle, type GraphEdge, type GraphNode, outputHandles, sourceHandleOf } from "./graph";
import type { AddTarget, Editor } from "./state";

/** A node in the outline: the output that leads to it, and whether it is listed above already. */
type Row = { node: GraphNode; handle: string; depth: number; repeated: boolean };

const deepestIndent = 6;

const shownHandle = (handle: string) => (handle === defaultHandle ? "" : handle);

/** Returns the nodes in the order of their paths; what follows a node with several outputs is one level deeper. */
export function outlineRows(editor: Editor): Row[] {
  const { nodes, edges } = editor.doc.value;
  const nodesById = new Map(nodes.map((node) => [node.id, node]));
  const leaving = new Map<string, GraphEdge[]>();
  for (const edge of edges)
    if (nodesById.has(edge.source) && nodesById.has(edge.target))
      leaving.set(edge.source, [...(leaving.get(edge.source) ?? []), edge]);
  const listed = new Set<string>();
  const rows: Row[] = [];

  /** Lists a node and returns the one that follows it at the same depth. */
  const visit = (node: GraphNode, handle: string, depth: number): GraphNode | undefined => {
    const repeated = listed.has(node.id);
    rows.push({ node, handle, depth, repeated });
    if (repeated) return undefined;
    listed.add(node.id);
    const type = typeOf(node.type);
    const next = leaving.get(node.id) ?? [];
    const isLinear = next.length === 1 && outputHandles(node, type).length === 1;
    if (isLinear && sourceHandleOf(next[0], node, type) !== "error") return nodesById.get(next[0].target);
    for (const edge of next)
      visitPath(nodesById.get(edge.target)!, shownHandle(sourceHandleOf(edge, node, type)), depth + 1);
    return undefined;
  };
  const visitPath = (first: GraphNode, handle: string, depth: number) => {
    let node = visit(first, handle, depth);
    while (node) node = visit(node, "", depth);
  };

  const targets = new Set(edges.filter((edge) => nodesById.has(edge.source)).map((edge) => edge.target));
  for (const node of nodes) if (node.type === "trigger") visitPath(node, "", 0);
  for (const node of nodes) if (!listed.has(node.id) && !targets.has(node.id)) visitPath(node, "", 0);
  for (const node of nodes) if (!listed.has(node.id)) visitPath(node, "", 0);
  return rows;
}

type OutlineProps = {
  editor: Editor;
  open: (id: string) => void;
  menu?: (id: string, event: MouseEvent) => void;
  add?: (target: AddTarget) => void;
};

/** The graph as a list, which shows the same nodes and actions as the canvas. */
export function Outline(props: OutlineProps) {
  const { editor } = props;
  return (
    <ol class="outline" aria-label="Outline">
      {outlineRows(editor).map((row, index) => (
        <li
          key={`${row.node.id}/${index}`}
          style={{ paddingInlineStart: `${Math.min(row.depth, deepestIndent) * 1.1}rem` }}
        >
          {row.handle && <span class="outline-way">{row.handle}</span>}
          <OutlineNode row={row} {...props} />
          {props.add && !row.repeated && <AddButtons editor={editor} node={row.node} add={props.add} />}
        </li>
      ))}
      {editor.doc.value.notes?.map(
        (note) =>
          note.text && (
            <li key={note.id} class={`outline-note ${note.color ?? ""}`}>
              <bdi>{note.text}</bdi>
            </li>
          ),
      )}
    </ol>
  );
}

const badgeTones: Record<string, string> = { success: "good", error: "bad", running: "busy", waiting: "warn" };

function OutlineNode({ row, editor, open, menu }: OutlineProps & { row: Row }) {
  const { node, repeated } = row;
  const type = typeOf(node.type);
  const status = editor.marks.value.get(node.id)?.status;
  const classes = ["outline-node", groupClass(type), status, node.data?.disabled && "disabled"];
  const onContextMenu = (event: MouseEvent) => {
    if (!menu) return;
    event.preventDefault();
    menu(node.id, event);
  };
  return (
    <button
      type="button"
      class={classes.filter(Boolean).join(" ")}
      aria-current={editor.selected.value.has(node.id) ? "true" : undefined}
      onClick={() => open(node.id)}
      onContextMenu={onContextMenu}
    >
      <span class="node-icon">
        <Icon name={type?.icon ?? "CircleHelp"} size={16} />
      </span>
      <span class="grow">
        <strong>
          <Name>{editor.nameOf(node)}</Name>
        </strong>
        <small class="muted clip">
          <Name>{repeated ? "continues above" : detailOf(node, type)}</Name>
        </small>
      </span>
      {editor.issuesByNode.value.has(node.id) && <Icon name="CircleAlert" size={16} label="Has a problem" />}
      {status && status !== "skipped" && <span class={`badge ${badgeTones[status] ?? ""}`}>{status}</span>}
    </button>
  );
}

/** Buttons that add a node after each output without an edge. */
function AddButtons({ editor, node, add }: { editor: Editor; node: GraphNode; add: (target: AddTarget) => void }) {
  const type = typeOf(node.type);
  const leaving = editor.doc.value.edges.filter((edge) => edge.source === node.id);
  const used = new Set(leaving.map((edge) => sourceHandleOf(edge, node, type)));
  const free = outputHandles(node, type).filter((handle) => !used.has(handle));
  if (!free.length) return null;
  return (
    <span class="row outline-add">
      {free.map((handle) => (
        <Button
          kind="quiet"
          icon="Plus"
          label={`Add after ${editor.nameOf(node)}`}
          onClick={() => add({ after: node.id, handle })}
        >
          {shownHandle(handle) && (
            <>
              <span class="hidden">Add after {editor.nameOf(node)}: </span>
              {shownHandle(handle)}
            </>
          )}
        </Button>
      ))}
    </span>
  );
}
