// One execution, live while it runs: its graph with what became of each node,
// and beside it the node that is chosen.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { agentId, get, go, href, listHref, mayEdit, path, post, route, setQuery } from "../data";
import { Badge, Button, CopyButton, ErrorCard, Icon, JsonTree, Name, Segments, size, Skeleton, When } from "../ui";
import {
  Canvas,
  Compare,
  Editor,
  type Execution,
  executionPath,
  follow,
  hasEnded,
  iterationPath,
  loadCatalog,
  marksOf,
  type NodeResult,
  oncePerFrame,
  Outline,
  type Preview,
  readExecution,
  readGraph,
  resultKey,
  withPositions,
} from "../editor";
import { useKeys } from "../parts/keys";
import { terminate } from "../parts/stop";
import { triggerWord } from "../workflows/words";
import { took } from "../workflows/executions";
import { NodeRun } from "./node";
import { Waterfall } from "./waterfall";

/** The graph as it was when the execution started; when that is gone, as it is. */
async function graphOf(x: Execution, signal: AbortSignal) {
  if (x.nodes) return { name: "", ...x };
  const at = <const M extends (string | number)[]>(...more: M) =>
    path("agents", agentId.value, "workflows", x.workflow_id, ...more);
  return get(at("versions", x.version), {}, signal).catch((e) => {
    if (e.name === "AbortError") throw e;
    return get(at(), {}, signal);
  });
}

export function ExecutionPage({ id }: { id: string }) {
  const [x, setX] = useState<Execution>();
  const [error, setError] = useState<Error>();
  const [name, setName] = useState("");
  const [results, setResults] = useState<NodeResult[]>([]);
  const editor = useMemo(() => {
    const e = new Editor();
    e.readonly.value = true;
    return e;
  }, [id]);
  const [tries, setTries] = useState(0);
  useEffect(() => {
    const abort = new AbortController();
    const agent = agentId.value;
    const found = new Map<string, NodeResult>();
    const show = oncePerFrame(() => {
      if (abort.signal.aborted) return;
      editor.marks.value = marksOf(found.values(), editor.marks.value);
      setResults([...found.values()]);
    });
    const run = async () => {
      setError(undefined);
      const [first] = await Promise.all([readExecution(agent, id, abort.signal), loadCatalog()]);
      const graph = await graphOf(first, abort.signal).catch((e) => {
        if (e.name === "AbortError") throw e;
        return { name: "", nodes: [], edges: [] };
      });
      if (abort.signal.aborted) return;
      const doc = readGraph(graph);
      editor.doc.value = { ...editor.doc.value, ...(await withPositions(doc)), name: graph.name };
      setName(graph.name);
      for (const r of first.node_results) found.set(resultKey(r), r);
      setX(first);
      show();
      if (hasEnded(first)) return;
      await follow(agent, id, abort.signal, {
        node: (r) => {
          found.set(resultKey(r), r);
          setX((was) => (was?.status === "queued" ? { ...was, status: "running" } : was));
          show();
        },
        end: (last) => {
          setX((was) => ({ ...was!, ...last }));
          show();
        },
      });
    };
    run().catch((e) => {
      if (e.name !== "AbortError" && !abort.signal.aborted) setError(e);
    });
    return () => abort.abort();
  }, [id, tries]);
  const crumb = (
    <p class="crumb">
      <a href={listHref(agentId.value, "workflows")}>Workflows</a>
    </p>
  );
  if (error)
    return (
      <div class="page">
        {crumb}
        <h1 tabIndex={-1}>Execution</h1>
        <ErrorCard error={error} retry={() => setTries(tries + 1)} />
      </div>
    );
  if (!x)
    return (
      <div class="page">
        <Skeleton lines={6} title="Execution" />
      </div>
    );
  return <Shown x={x} name={name} results={results} editor={editor} />;
}

const noActions = {};

function Shown({ x, name, results, editor }: { x: Execution; name: string; results: NodeResult[]; editor: Editor }) {
  const { query } = route.value;
  const wanted = query.get("node") ?? "";
  const [outline, setOutline] = useState(() => matchMedia("(max-width: 48rem)").matches);
  const selected = editor.selectedNode.value?.id ?? "";
  const first = useRef(true);
  const written = useRef(""); // what this page itself put into the address is not followed
  useEffect(() => {
    // what a reader looks for first: what waits, else what failed
    if (wanted && wanted !== written.current && editor.node(wanted)) editor.select([wanted]);
    written.current = wanted;
  }, [wanted]);
  const turned = useRef("");
  const notable =
    results.find((r) => r.status === "waiting" && r.type === "approval") ??
    (hasEnded(x)
      ? (results.find((r) => r.status === "error" && r.node_id === x.error?.node_id) ??
        results.find((r) => r.status === "error"))
      : undefined);
  useEffect(() => {
    const key = notable && resultKey(notable);
    if (
      !key ||
      (query.get("tab") && matchMedia("(max-width: 48rem)").matches) ||
      turned.current === key ||
      (turned.current === "" && wanted)
    )
      return;
    if (!editor.selectedNode.value || editor.selectedNode.value.id === turned.current.split("@")[1])
      editor.select([notable.node_id]);
    turned.current = key;
  }, [notable]);
  useEffect(() => {
    if (first.current) {
      first.current = false;
      if (wanted) return;
    }
    if ((route.value.query.get("node") ?? "") === selected) return;
    written.current = selected;
    setQuery({ node: selected || null, at: null });
  }, [selected]);
  const choose = (r: NodeResult) => {
    written.current = r.node_id;
    setQuery({ node: r.node_id, at: iterationPath(r) || null });
    editor.select([r.node_id]);
  };
  const step = (by: number) => {
    const ran = [...new Set(results.filter((r) => r.status !== "skipped").map((r) => r.node_id))];
    if (ran.length)
      editor.select([ran[(ran.indexOf(editor.selectedNode.value?.id ?? "") + by + ran.length) % ran.length]]);
  };
  const may = mayEdit.value;
  const repeatable = hasEnded(x) && x.status !== "complete" && x.trigger !== "test";
  const over = hasEnded(x);
  const waiting = !over && results.some((r) => r.status === "waiting");
  const person = !over && results.some((r) => r.status === "waiting" && r.type === "approval");
  const open = (other: string) => go(href(agentId.value, "workflows", "executions", other));
  const retry = async (from?: string) => {
    const made = await post(executionPath(agentId.value, x.id, "retry"), from ? { from_node: from } : {});
    open(made.id);
  };
  useKeys({
    j: () => step(1),
    k: () => step(-1),
    e: () =>
      go(
        `${href(agentId.value, "workflows", x.workflow_id)}${editor.selectedNode.value ? `?node=${encodeURIComponent(editor.selectedNode.value.id)}` : ""}`,
      ),
    r: may && repeatable && retry,
    Escape: () => editor.select([]),
  });
  const node = editor.selectedNode.value;
  const failedNode = x.error?.node_id ? editor.node(x.error.node_id) : undefined;

  return (
    <div class="page full editor-page execution-page">
      <header class="editor-bar">
        <a
          class="button quiet only"
          href={`${href(agentId.value, "workflows")}?tab=executions&workflow=${encodeURIComponent(x.workflow_id)}`}
          aria-label="Executions of this workflow"
          title="Executions of this workflow"
        >
          <Icon name="ArrowLeft" size={16} />
        </a>
        <h1 class="clip" tabIndex={-1}>
          <a href={href(agentId.value, "workflows", x.workflow_id)}>
            <Name>{name || "Workflow"}</Name>
          </a>{" "}
          <span class="muted">
            / <When time={x.started_at ?? x.created_at} full />
          </span>
        </h1>
        {waiting ? (
          <Badge
            tone="warn"
            title={`Running, and waiting for ${person ? "a person" : "a time, an event or another execution"}`}
          >
            waiting
          </Badge>
        ) : (
          <Badge>{x.status}</Badge>
        )}
        <span class="muted small">{took(x)}</span>
        <span class="grow" />
        {may && !over && (
          <Button kind="danger" icon="CircleStop" onClick={() => terminate(x.id)}>
            Terminate
          </Button>
        )}
        {may && repeatable && (
          <Button kind="primary" icon="RotateCcw" onClick={() => retry()}>
            Retry
          </Button>
        )}
        <a
          class="button"
          href={`${href(agentId.value, "workflows", x.workflow_id)}${node ? `?node=${encodeURIComponent(node.id)}` : ""}`}
        >
          <Icon name="Pencil" size={16} />
          <span>Edit</span>
        </a>
      </header>
      {x.error && (
        <div class="card bad execution-error">
          <p>
            {failedNode && (
              <>
                <button type="button" class="link" onClick={() => editor.select([failedNode.id])}>
                  <Name>{editor.nameOf(failedNode)}</Name>:
                </button>{" "}
              </>
            )}
            <bdi>{x.error.message}</bdi>
          </p>
          <p class="small muted">
            {x.error.code}
            {may && repeatable && " · A retry begins at the node that failed, by the workflow as it is now."}
          </p>
        </div>
      )}
      <div class={`editor-body ${node ? "with-panel" : ""} ${outline ? "as-outline" : ""}`}>
        <div class="editor-center">
          <div class="editor-view">
            {outline ? (
              <Outline editor={editor} open={(n) => editor.select([n])} />
            ) : (
              <Canvas editor={editor} actions={noActions} minimap />
            )}
            <div class="canvas-tools">
              <Segments
                label="View"
                value={outline ? "outline" : "canvas"}
                options={[
                  ["canvas", <Icon name="Workflow" size={16} label="Canvas" />],
                  ["outline", <Icon name="ListTree" size={16} label="Outline" />],
                ]}
                onChange={(v) => setOutline(v === "outline")}
              />
            </div>
          </div>
          <section class="editor-bottom open" aria-label="Details">
            <Below x={x} results={results} editor={editor} choose={choose} />
          </section>
        </div>
        {node && (
          <NodeRun
            key={node.id}
            x={x}
            node={node}
            name={editor.nameOf(node)}
            results={results.filter((r) => r.node_id === node.id)}
            place={query.get("at") ?? ""}
            choose={choose}
            may={may}
            retry={retry}
            close={() => editor.select([])}
          />
        )}
      </div>
    </div>
  );
}

/** The input or the output of an execution; a long one is asked for when it is wanted. */
function Whole({ x, part, preview }: { x: Execution; part: "input" | "output"; preview?: Preview }) {
  const [value, setValue] = useState<unknown>();
  if (!preview || value !== undefined) return <JsonTree value={value ?? x[part] ?? {}} />;
  return (
    <>
      <pre class="json preview">
        <bdi>{preview.head.slice(0, 2000)}</bdi>…
      </pre>
      <Button
        onClick={async () => setValue((await get(executionPath(agentId.value, x.id)))[part])}
      >{`Show all, ${size(preview.bytes)}`}</Button>
    </>
  );
}

/** The waterfall, the input and the output, and what the execution belongs to. */
function Below({
  x,
  results,
  editor,
  choose,
}: {
  x: Execution;
  results: NodeResult[];
  editor: Editor;
  choose: (r: NodeResult) => void;
}) {
  const tab = route.value.query.get("tab") ?? "time";
  const setTab = (t: string) => setQuery({ tab: t === "time" ? null : t });
  const other = (id: string | undefined, words: string) =>
    id && (
      <>
        <dt>{words}</dt>
        <dd>
          <a href={href(agentId.value, "workflows", "executions", id)}>another execution</a>
        </dd>
      </>
    );
  return (
    <>
      <nav class="tabs">
        {[
          ["time", "Steps"],
          ["input", "Input"],
          ["output", "Output"],
          ["compare", "Compare"],
          ["about", "About"],
        ].map(([t, title]) => (
          <button type="button" aria-current={tab === t ? "page" : undefined} onClick={() => setTab(t)}>
            {title}
          </button>
        ))}
      </nav>
      <div class="bottom-body">
        {tab === "time" && (
          <Waterfall
            x={x}
            results={results}
            editor={editor}
            place={route.value.query.get("at") ?? ""}
            choose={choose}
          />
        )}
        {tab === "input" && (
          <div class="pad">
            <Whole x={x} part="input" preview={x.input_preview} />
          </div>
        )}
        {tab === "output" && (
          <div class="pad">
            {x.output === undefined && !x.output_preview ? (
              <p class="muted">{hasEnded(x) ? "No output." : "Not available yet."}</p>
            ) : (
              <Whole x={x} part="output" preview={x.output_preview} />
            )}
          </div>
        )}
        {tab === "compare" && <Compare x={x} results={results} editor={editor} />}
        {tab === "about" && (
          <dl class="facts-list pad">
            <dt>Trigger</dt>
            <dd>
              <bdi>{triggerWord(x.trigger)}</bdi>
            </dd>
            <dt>Started</dt>
            <dd>
              <When time={x.started_at ?? x.created_at} full />
            </dd>
            {x.completed_at && (
              <>
                <dt>Ended</dt>
                <dd>
                  <When time={x.completed_at} full />
                </dd>
              </>
            )}
            <dt>Version</dt>
            <dd>{x.version}</dd>
            {other(x.retried_from, "Repeats")}
            {other(x.parent_id, "Part of")}
            <dt>ID</dt>
            <dd class="row nowrap">
              <code>{x.id}</code>
              <CopyButton text={x.id} />
            </dd>
          </dl>
        )}
        {tab === "time" && x.retried_from && (
          <p class="muted small pad">
            It repeats <a href={href(agentId.value, "workflows", "executions", x.retried_from)}>another execution</a>.
          </p>
        )}
      </div>
    </>
  );
}
