// How the canvas draws a node and an edge.
import {
  BaseEdge,
  EdgeLabelRenderer,
  type EdgeProps,
  type EdgeTypes,
  getBezierPath,
  getSmoothStepPath,
  Handle,
  type NodeProps,
  type NodeTypes,
  Position,
} from "@xyflow/react";
import { useComputed } from "@preact/signals";
import { createContext } from "preact";
import { memo } from "preact/compat";
import { useContext, useState } from "preact/hooks";

import { Icon, type IconName, Name, span } from "../ui";
import { groupClass } from "./catalog";
import { detailOf } from "./detail";
import { defaultHandle, type GraphNode } from "./graph";
import { NoteNode } from "./notes";
import { type EdgeShape, type NodeData, type NodeShape, shownHandles } from "./shapes";
import { type AddTarget, Editor, type Issue, type Mark } from "./state";

/** What the canvas does with nodes; without add it is read-only. */
export type CanvasActions = {
  /** Asks for a node to add. */
  add?: (target: AddTarget) => void;
  open?: (id: string) => void;
  /** Shows what can be done with a node. */
  menu?: (id: string, event: MouseEvent) => void;
};

/** What nodes and edges need of the canvas that shows them. */
export const Shared = createContext<{ editor: Editor; actions: CanvasActions }>({ editor: new Editor(), actions: {} });

const markIcons: Record<string, IconName> = {
  success: "Check",
  error: "X",
  running: "LoaderCircle",
  waiting: "Hand",
  cancelled: "Square",
  skipped: "ArrowRight",
  added: "Plus",
  changed: "Pencil",
  removed: "Trash2",
};

/** The outcome of a node, in its corner. */
function NodeMark({ mark }: { mark: Mark }) {
  const { status, count, ms } = mark;
  const hasDuration = ms !== undefined && status !== "running" && status !== "waiting";
  return (
    <span class={`node-mark ${status}`} title={mark.error ?? status}>
      <Icon name={markIcons[status] ?? "Check"} size={12} label={status} />
      {count > 1 && <span>{count}×</span>}
      {status === "waiting" && <span>waiting</span>}
      {hasDuration && <span>{span(ms)}</span>}
    </span>
  );
}

/**
 * The handle for failures. Few nodes use it, and each of the library's handles is rendered again with every
 * change of the canvas, so it is a plain element until it is needed.
 */
function ErrorHandle({ node, used, near }: { node: string; used: boolean; near: boolean }) {
  const look = used ? "handle-error used" : "handle-error";
  if (used || near)
    return <Handle type="source" position={Position.Bottom} id="error" className={look} title="When it fails" />;
  return (
    <div
      class={`react-flow__handle react-flow__handle-bottom source ${look}`}
      data-nodeid={node}
      data-handleid="error"
      data-handlepos="bottom"
    />
  );
}

type OutputProps = { data: NodeData; handle: string; stale?: boolean };

/** An output of a node, and the button that adds a node after it. */
function Output({ data, handle, stale }: OutputProps) {
  const { editor, actions } = useContext(Shared);
  const isUsed = data.used.split("\n").includes(handle);
  return (
    <div class={stale ? "node-way stale" : "node-way"} title={stale ? "This output no longer exists" : undefined}>
      {handle !== defaultHandle && <span>{handle}</span>}
      <Handle type="source" position={Position.Right} id={handle} />
      {actions.add && !editor.readonly.value && !isUsed && (
        <button
          type="button"
          class="node-add nodrag nopan"
          tabIndex={-1}
          aria-label={`Add a node after ${data.name}${handle === defaultHandle ? "" : `: ${handle}`}`}
          title="Add a node"
          onClick={(event) => {
            event.stopPropagation();
            actions.add!({ after: data.node.id, handle });
          }}
        />
      )}
    </div>
  );
}

/** The icon, name and detail of a node, and its only output if it has no others. */
function NodeHead({ data, issues, only }: { data: NodeData; issues?: Issue[]; only?: OutputProps }) {
  const { node, type, name } = data;
  const detail = detailOf(node, type);
  return (
    <div class="node-head">
      <span class="node-icon">
        <Icon name={type?.icon ?? "CircleHelp"} size={18} />
      </span>
      <span class="node-text clip">
        <strong>
          <Name>{name}</Name>
        </strong>
        {detail && (
          <>
            <br />
            <small>
              <Name>{detail}</Name>
            </small>
          </>
        )}
      </span>
      {issues && <NodeIssues issues={issues} />}
      {isPinned(node) && (
        <span class="node-pin" title="Tests use the pinned output">
          <Icon name="Pin" size={13} label="Pinned" />
        </span>
      )}
      {only && <Output {...only} />}
    </div>
  );
}

function NodeIssues({ issues }: { issues: Issue[] }) {
  const [icon, label] = hasError(issues)
    ? (["CircleAlert", "Has a problem"] as const)
    : (["TriangleAlert", "Has a warning"] as const);
  return (
    <span class="node-wrong" title={issues.map((issue) => issue.issue).join("\n")}>
      <Icon name={icon} size={16} label={label} />
    </span>
  );
}

const isPinned = (node: GraphNode) => node.metadata?.pin !== undefined;
const hasError = (issues: Issue[]) => issues.some((issue) => issue.severity !== "warning");

function nodeClass({ node, type }: NodeData, state: { mark?: Mark; issues?: Issue[]; selected: boolean }): string {
  const { mark, issues, selected } = state;
  const classes = [
    "node",
    mark?.status,
    selected && "selected",
    issues && (hasError(issues) ? "wrong" : "doubt"),
    node.data?.disabled && "disabled",
    isPinned(node) && "pinned",
    groupClass(type),
  ];
  return classes.filter(Boolean).join(" ");
}

const CanvasNode = memo(function CanvasNode({ data, selected }: NodeProps<NodeShape>) {
  const { editor } = useContext(Shared);
  const { node } = data;
  const { handles, stale } = shownHandles(data);
  const outputs = [...handles.map((handle) => ({ handle })), ...stale.map((handle) => ({ handle, stale: true }))];
  const [hovered, setHovered] = useState(false);
  // Only a node whose own mark or issues change is rendered again.
  const mark = useComputed(() => editor.marks.value.get(node.id)).value;
  const issues = useComputed(() => editor.issuesByNode.value.get(node.id)).value;
  const single = outputs.length > 1 ? undefined : { data, ...(outputs[0] ?? { handle: defaultHandle }) };
  const note = node.metadata?.note;
  return (
    <div class={nodeClass(data, { mark, issues, selected })} onPointerEnter={() => setHovered(true)}>
      {node.type !== "trigger" && <Handle type="target" position={Position.Left} id="in" />}
      <NodeHead data={data} issues={issues} only={single} />
      {!single && (
        <div class="node-ways">
          {outputs.map((output) => (
            <Output key={output.handle} data={data} {...output} />
          ))}
        </div>
      )}
      {typeof note === "string" && note && (
        <div class="node-note">
          <bdi>{note}</bdi>
        </div>
      )}
      <ErrorHandle node={node.id} used={data.used.split("\n").includes("error")} near={hovered || selected} />
      {mark && mark.status !== "skipped" && <NodeMark mark={mark} />}
    </div>
  );
});

const CanvasEdge = memo(function CanvasEdge(props: EdgeProps<EdgeShape>) {
  const { id, sourceX, sourceY, targetX, targetY, sourcePosition, targetPosition, selected, markerEnd } = props;
  const { editor, actions } = useContext(Shared);
  const isBackward = targetX < sourceX; // such an edge passes below the nodes
  const ends = { sourceX, sourceY, targetX, targetY, sourcePosition, targetPosition };
  const [edgePath, labelX, labelY] = isBackward
    ? getSmoothStepPath({ ...ends, borderRadius: 16, offset: 26, centerY: Math.max(sourceY, targetY) + 80 })
    : getBezierPath(ends);
  return (
    <>
      <BaseEdge id={id} path={edgePath} markerEnd={markerEnd} interactionWidth={22} />
      {selected && actions.add && !editor.readonly.value && <EdgeTools id={id} x={labelX} y={labelY} />}
    </>
  );
});

/** The buttons in the middle of the selected edge. */
function EdgeTools({ id, x, y }: { id: string; x: number; y: number }) {
  const { editor, actions } = useContext(Shared);
  const remove = () => {
    editor.change({ edges: editor.doc.value.edges.filter((edge) => edge.id !== id) });
    editor.selectedEdge.value = "";
  };
  return (
    <EdgeLabelRenderer>
      <div class="edge-tools nodrag nopan" style={{ transform: `translate(-50%, -50%) translate(${x}px, ${y}px)` }}>
        <button
          type="button"
          aria-label="Add a node here"
          title="Add a node here"
          onClick={() => actions.add!({ edge: id })}
        >
          <Icon name="Plus" size={14} />
        </button>
        <button type="button" aria-label="Remove edge" title="Remove edge" onClick={remove}>
          <Icon name="X" size={14} />
        </button>
      </div>
    </EdgeLabelRenderer>
  );
}

/** The components of nodes, by type. */
export const nodeTypes: NodeTypes = { step: CanvasNode, note: NoteNode };
/** The components of edges, by type. */
export const edgeTypes: EdgeTypes = { step: CanvasEdge };
