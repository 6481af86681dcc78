// The page of an execution, which is updated while it runs: its graph with the outcome of each
// node, and the selected node beside it.
import { useEffect, useRef, useState } from "preact/hooks";

import { agentId, go, href, listHref, mayEdit, post, route, setQuery } from "../data";
import { Canvas, Outline } from "../editor/components";
import { type Execution, executionPath, hasEnded, iterationPath, type NodeResult, resultKey } from "../editor/run";
import { useSelectionInAddress } from "../editor/selection";
import type { Editor } from "../editor/state";
import { ViewSegments } from "../editor/viewsegments";
import { useKeys } from "../parts/keys";
import { terminate } from "../parts/stop";
import { Badge, Button, ErrorCard, Icon, Name, Skeleton, When } from "../ui";
import { took } from "../workflows/executions";
import { type LoadedExecution, useExecution } from "./data";
import { ExecutionDetails } from "./details";
import { NodeRun } from "./node";

const noActions = {};

const isPhone = () => matchMedia("(max-width: 48rem)").matches;
const waits = (result: NodeResult) => result.status === "waiting";
const isOpenApproval = (result: NodeResult) => waits(result) && result.type === "approval";

/** Reports whether an execution can be retried; tests cannot. */
const isRetryable = (execution: Execution) =>
  hasEnded(execution) && execution.status !== "complete" && execution.trigger !== "test";

/** The address of the workflow's editor, with a node selected. */
const editorHref = (workflow: string, node?: string) =>
  `${href(agentId.value, "workflows", workflow)}${node ? `?node=${encodeURIComponent(node)}` : ""}`;

/** Loads an execution and shows it. */
export function ExecutionPage({ id }: { id: string }) {
  const { loaded, error, retry } = useExecution(id);
  if (error)
    return (
      <div class="page">
        <p class="crumb">
          <a href={listHref(agentId.value, "workflows")}>Workflows</a>
        </p>
        <h1 tabIndex={-1}>Execution</h1>
        <ErrorCard error={error} retry={retry} />
      </div>
    );
  if (!loaded)
    return (
      <div class="page">
        <Skeleton lines={6} title="Execution" />
      </div>
    );
  return <ExecutionView {...loaded} />;
}

function ExecutionView({ execution, name, results, editor }: LoadedExecution) {
  const { query } = route.value;
  const [outline, setOutline] = useState(isPhone);
  const written = useSelectionInAddress(editor);
  useNotableResult(execution, results, editor);
  const editable = mayEdit.value;
  const node = editor.selectedNode.value;

  const choose = (result: NodeResult) => {
    written.current = result.node_id;
    setQuery({ node: result.node_id, at: iterationPath(result) || null });
    editor.select([result.node_id]);
  };
  const retry = async (from?: string) => {
    const body = from ? { from_node: from } : {};
    const retried = await post(executionPath(agentId.value, execution.id, "retry"), body);
    go(href(agentId.value, "workflows", "executions", retried.id));
  };
  useKeys({
    j: () => selectRelative(editor, results, 1),
    k: () => selectRelative(editor, results, -1),
    e: () => go(editorHref(execution.workflow_id, node?.id)),
    r: editable && isRetryable(execution) && retry,
    Escape: () => editor.select([]),
  });

  return (
    <div class="page full editor-page execution-page">
      <ExecutionHeader execution={execution} name={name} results={results} node={node?.id} retry={retry} />
      <ExecutionFailure execution={execution} editor={editor} />
      <div class={`editor-body ${node ? "with-panel" : ""} ${outline ? "as-outline" : ""}`}>
        <div class="editor-center">
          <ExecutionGraph editor={editor} outline={outline} setOutline={setOutline} />
          <section class="editor-bottom open" aria-label="Details">
            <ExecutionDetails execution={execution} results={results} editor={editor} choose={choose} />
          </section>
        </div>
        {node && (
          <NodeRun
            key={node.id}
            execution={execution}
            node={node}
            name={editor.nameOf(node)}
            results={results.filter((result) => result.node_id === node.id)}
            iteration={query.get("at") ?? ""}
            choose={choose}
            editable={editable}
            retry={retry}
            close={() => editor.select([])}
          />
        )}
      </div>
    </div>
  );
}

/** Selects the node before or after the selected one among those that ran. */
function selectRelative(editor: Editor, results: NodeResult[], offset: number) {
  const ran = results.filter((result) => result.status !== "skipped").map((result) => result.node_id);
  const ids = [...new Set(ran)];
  const index = ids.indexOf(editor.selectedNode.value?.id ?? "");
  if (ids.length) editor.select([ids[(index + offset + ids.length) % ids.length]]);
}

/** Returns the result that matters most: an approval that waits, or else the failure. */
function notableResult(execution: Execution, results: NodeResult[]): NodeResult | undefined {
  const approval = results.find(isOpenApproval);
  if (approval || !hasEnded(execution)) return approval;
  const failures = results.filter((result) => result.status === "error");
  return failures.find((result) => result.node_id === execution.error?.node_id) ?? failures[0];
}

/** Selects the node whose result matters most, unless the reader selected another. */
function useNotableResult(execution: Execution, results: NodeResult[], editor: Editor) {
  const { query } = route.value;
  const selectedBefore = useRef<NodeResult>(undefined);
  const notable = notableResult(execution, results);
  useEffect(() => {
    const before = selectedBefore.current;
    if (!notable || (before && resultKey(before) === resultKey(notable))) return;
    const hidesTab = query.get("tab") && isPhone();
    const isRequestedElse = !before && query.get("node");
    if (hidesTab || isRequestedElse) return;
    const node = editor.selectedNode.value;
    if (!node || node.id === before?.node_id) editor.select([notable.node_id]);
    selectedBefore.current = notable;
  }, [notable]);
}

type ExecutionHeaderProps = {
  execution: Execution;
  /** The name of the workflow. */
  name: string;
  results: NodeResult[];
  /** The selected node. */
  node?: string;
  retry: () => Promise<void>;
};

function ExecutionHeader({ execution, name, results, node, retry }: ExecutionHeaderProps) {
  const { id, workflow_id: workflow } = execution;
  return (
    <header class="editor-bar">
      <a
        class="button quiet only"
        href={`${href(agentId.value, "workflows")}?tab=executions&workflow=${encodeURIComponent(workflow)}`}
        aria-label="Executions of this workflow"
        title="Executions of this workflow"
      >
        <Icon name="ArrowLeft" size={16} />
      </a>
      <h1 class="clip" tabIndex={-1}>
        <a href={editorHref(workflow)}>
          <Name>{name || "Workflow"}</Name>
        </a>{" "}
        <span class="muted">
          / <When time={execution.started_at ?? execution.created_at} full />
        </span>
      </h1>
      <StatusBadge execution={execution} results={results} />
      <span class="muted small">{took(execution)}</span>
      <span class="grow" />
      {mayEdit.value && !hasEnded(execution) && (
        <Button kind="danger" icon="CircleStop" onClick={() => terminate(id)}>
          Terminate
        </Button>
      )}
      {mayEdit.value && isRetryable(execution) && (
        <Button kind="primary" icon="RotateCcw" onClick={() => retry()}>
          Retry
        </Button>
      )}
      <a class="button" href={editorHref(workflow, node)}>
        <Icon name="Pencil" size={16} />
        <span>Edit</span>
      </a>
    </header>
  );
}

function StatusBadge({ execution, results }: { execution: Execution; results: NodeResult[] }) {
  if (hasEnded(execution) || !results.some(waits)) return <Badge>{execution.status}</Badge>;
  const awaited = results.some(isOpenApproval) ? "a person" : "a time, an event or another execution";
  return (
    <Badge tone="warn" title={`Running, and waiting for ${awaited}`}>
      waiting
    </Badge>
  );
}

/** Why an execution failed, and at which node. */
function ExecutionFailure({ execution, editor }: { execution: Execution; editor: Editor }) {
  const { error } = execution;
  if (!error) return null;
  const node = error.node_id ? editor.node(error.node_id) : undefined;
  return (
    <div class="card bad execution-error">
      <p>
        {node && (
          <>
            <button type="button" class="link" onClick={() => editor.select([node.id])}>
              <Name>{editor.nameOf(node)}</Name>:
            </button>{" "}
          </>
        )}
        <bdi>{error.message}</bdi>
      </p>
      <p class="small muted">
        {error.code}
        {mayEdit.value &&
          isRetryable(execution) &&
          " · A retry begins at the node that failed, by the workflow as it is now."}
      </p>
    </div>
  );
}

type ExecutionGraphProps = { editor: Editor; outline: boolean; setOutline: (outline: boolean) => void };

function ExecutionGraph({ editor, outline, setOutline }: ExecutionGraphProps) {
  return (
    <div class="editor-view">
      {outline ? (
        <Outline editor={editor} open={(id) => editor.select([id])} />
      ) : (
        <Canvas editor={editor} actions={noActions} minimap />
      )}
      <div class="canvas-tools">
        <ViewSegments outline={outline} setOutline={setOutline} />
      </div>
    </div>
  );
}
