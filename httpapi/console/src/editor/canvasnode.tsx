// How the canvas draws a node and an edge.
import {
  BaseEdge,
  type EdgeProps,
  type EdgeTypes,
  EdgeLabelRenderer,
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

import { Icon, Name, span, type IconName } from "../ui";
import { Editor, type Mark, defaultHandle } from "./index";
import { detailOf } from "./detail";
import { NoteNode } from "./notes";
import { shownHandles, type EdgeShape, type NodeShape } from "./shapes";

/** What the canvas does with nodes; without add it is read-only. */
export type CanvasActions = {
  /** Asks for a node behind another, or in an edge. */
  add?: (to: { after?: string; handle?: string; edge?: string; at?: { x: number; y: number } }) => void;
  open?: (id: string) => void;
  /** Shows what can be done with a node. */
  menu?: (id: string, at: MouseEvent) => void;
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
  return (
    <span class={`node-mark ${mark.status}`} title={mark.error ?? mark.status}>
      <Icon name={markIcons[mark.status] ?? "Check"} size={12} label={mark.status} />
      {mark.count > 1 && <span>{mark.count}×</span>}
      {mark.status === "waiting" ? (
        <span>waiting</span>
      ) : (
        mark.ms !== undefined && mark.status !== "running" && <span>{span(mark.ms)}</span>
      )}
    </span>
  );
}

/** The handle for failures. Few nodes use theirs, and each of the library's handles follows every change of the canvas: it is one only when it is needed. */
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

const CanvasNode = memo(function CanvasNode({ data, selected }: NodeProps<NodeShape>) {
  const { editor, actions } = useContext(Shared);
  const { node, type, name } = data;
  const { handles, stale } = shownHandles(data);
  const used = data.used.split("\n");
  const [near, setNear] = useState(false);
  // Only a node whose own mark or issues change is drawn again.
  const mark = useComputed(() => editor.marks.value.get(node.id)).value;
  const issues = useComputed(() => editor.issuesByNode.value.get(node.id)).value;
  const wrong = issues?.some((i) => i.severity !== "warning");
  const many = handles.length + stale.length > 1;
  const writable = !editor.readonly.value && actions.add;
  const detail = detailOf(node, type);
  const exit = (handle: string, old = false) => (
    <div
      class={old ? "node-way stale" : "node-way"}
      key={handle}
      title={old ? "This output no longer exists" : undefined}
    >
      {handle !== defaultHandle && <span>{handle}</span>}
      <Handle type="source" position={Position.Right} id={handle} />
      {writable && !used.includes(handle) && (
        <button
          type="button"
          class="node-add nodrag nopan"
          tabIndex={-1}
          aria-label={`Add a node after ${name}`}
          title="Add a node"
          onClick={(e) => {
            e.stopPropagation();
            actions.add!({ after: node.id, handle });
          }}
        />
      )}
    </div>
  );
  return (
    <div
      class={`node ${mark?.status ?? ""} ${selected ? "selected" : ""} ${issues ? (wrong ? "wrong" : "doubt") : ""} ${node.data?.disabled ? "disabled" : ""} ${node.metadata?.pin !== undefined ? "pinned" : ""} group-${(type?.group ?? "none").toLowerCase()}`}
      onPointerEnter={() => setNear(true)}
    >
      {node.type !== "trigger" && <Handle type="target" position={Position.Left} id="in" />}
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
        {issues && (
          <span class="node-wrong" title={issues.map((i) => i.issue).join("\n")}>
            <Icon
              name={wrong ? "CircleAlert" : "TriangleAlert"}
              size={16}
              label={wrong ? "Has a problem" : "Has a warning"}
            />
          </span>
        )}
        {node.metadata?.pin !== undefined && (
          <span class="node-pin" title="Tests use the pinned output">
            <Icon name="Pin" size={13} label="Pinned" />
          </span>
        )}
        {!many && exit(handles[0] ?? stale[0] ?? defaultHandle, !handles.length && stale.length > 0)}
      </div>
      {many && (
        <div class="node-ways">
          {handles.map((w) => exit(w))}
          {stale.map((w) => exit(w, true))}
        </div>
      )}
      {typeof node.metadata?.note === "string" && node.metadata.note && (
        <div class="node-note">
          <bdi>{node.metadata.note}</bdi>
        </div>
      )}
      <ErrorHandle node={node.id} used={used.includes("error")} near={near || selected} />
      {mark && mark.status !== "skipped" && <NodeMark mark={mark} />}
    </div>
  );
});

const CanvasEdge = memo(function CanvasEdge({
  id,
  sourceX,
  sourceY,
  targetX,
  targetY,
  sourcePosition,
  targetPosition,
  selected,
  markerEnd,
}: EdgeProps<EdgeShape>) {
  const { editor, actions } = useContext(Shared);
  const back = targetX < sourceX; // an edge that leads back passes below the nodes
  const shape = { sourceX, sourceY, targetX, targetY, sourcePosition, targetPosition };
  const [d, x, y] = back
    ? getSmoothStepPath({ ...shape, borderRadius: 16, offset: 26, centerY: Math.max(sourceY, targetY) + 80 })
    : getBezierPath(shape);
  return (
    <>
      <BaseEdge id={id} path={d} markerEnd={markerEnd} interactionWidth={22} />
      {selected && actions.add && !editor.readonly.value && (
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
            <button
              type="button"
              aria-label="Remove edge"
              title="Remove edge"
              onClick={() => {
                editor.change({ edges: editor.doc.value.edges.filter((e) => e.id !== id) });
                editor.selectedEdge.value = "";
              }}
            >
              <Icon name="X" size={14} />
            </button>
          </div>
        </EdgeLabelRenderer>
      )}
    </>
  );
});

/** The components of nodes, by type. */
export const nodeTypes: NodeTypes = { step: CanvasNode, note: NoteNode };
/** The components of edges, by type. */
export const edgeTypes: EdgeTypes = { step: CanvasEdge };
