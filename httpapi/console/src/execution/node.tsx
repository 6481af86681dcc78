// The outcome of one node, in each of its iterations.
import { useEffect, useState } from "preact/hooks";

import { agentId, ApiError, asError, get, post } from "../data";
import {
  Badge,
  Button,
  Dialog,
  ErrorCard,
  Icon,
  JsonTree,
  Name,
  openDialog,
  Pager,
  size,
  span,
  tell,
  When,
} from "../ui";
import {
  type Execution,
  executionPath,
  type GraphNode,
  groupClass,
  hasEnded,
  iterationLabel,
  iterationPath,
  type NodeResult,
  resultKey,
  typeName,
  typeOf,
} from "../editor";

const pageSize = 50;

export function NodeRun({
  x,
  node,
  name,
  results,
  place,
  choose,
  may,
  retry,
  close,
}: {
  x: Execution;
  node: GraphNode;
  name: string;
  results: NodeResult[];
  /** The iteration that is chosen. */ place: string;
  choose: (r: NodeResult) => void;
  may: boolean;
  retry: (from?: string) => Promise<void>;
  close: () => void;
}) {
  const type = typeOf(node.type);
  const waiting = results.find((r) => r.status === "waiting");
  const failed = results.find((r) => r.status === "error");
  const shown = results.find((r) => place && iterationPath(r) === place) ?? waiting ?? failed ?? results[0];
  const page = Math.floor(Math.max(0, results.indexOf(shown)) / pageSize) * pageSize;
  const [offset, setOffset] = useState(page);
  useEffect(() => setOffset(page), [page]);
  return (
    <aside class="editor-panel" aria-label={`Node ${name}`}>
      <header class="panel-head">
        <span class={`node-icon ${groupClass(type)}`}>
          <Icon name={type?.icon ?? "CircleHelp"} size={18} />
        </span>
        <div class="grow">
          <h2 class="clip">
            <Name>{name}</Name>
          </h2>
          <p class="muted small clip">
            {node.data?.label && (
              <>
                <Name>{typeName(node.type)}</Name> ·{" "}
              </>
            )}
            <code>{node.id}</code>
          </p>
        </div>
        <Button kind="quiet" icon="X" label="Close" onClick={close} />
      </header>
      <div class="panel-body stack">
        {results.length > 1 && (
          <section class="iterations">
            <h3>{results.length.toLocaleString()} iterations</h3>
            <div class="row">
              {results.slice(offset, offset + pageSize).map((r) => (
                <button
                  type="button"
                  key={resultKey(r)}
                  class={`iteration ${r.status}`}
                  aria-pressed={shown === r}
                  title={`${r.status}, ${span(r.duration_ms)}`}
                  onClick={() => choose(r)}
                >
                  {iterationLabel(r)}
                </button>
              ))}
            </div>
            <Pager meta={{ total: results.length, limit: pageSize, offset }} go={setOffset} />
          </section>
        )}
        {shown ? (
          <Result key={resultKey(shown)} x={x} r={shown} may={may} retry={retry} />
        ) : (
          <p class="muted">{hasEnded(x) ? "Did not run." : "Not started yet."}</p>
        )}
      </div>
    </aside>
  );
}

function Result({
  x,
  r,
  may,
  retry,
}: {
  x: Execution;
  r: NodeResult;
  may: boolean;
  retry: (from?: string) => Promise<void>;
}) {
  const [tab, setTab] = useState(r.error ? "resolved" : "output");
  const facts = [
    iterationPath(r) !== "" && `iteration ${iterationLabel(r)}`,
    r.attempt > 1 && `attempt ${r.attempt}`,
    r.handle && `left by ${r.handle}`,
    !["running", "waiting", "skipped"].includes(r.status) && span(r.duration_ms),
  ]
    .filter(Boolean)
    .join(" · ");
  const tabs = [
    ["output", "Output"],
    ["input", "Input"],
    ["resolved", "Resolved"],
    ["log", `Log${r.logs?.length ? ` ${r.logs.length}` : ""}`],
  ];
  return (
    <>
      <p class="row">
        <Badge>{r.status}</Badge>
        <span class="muted small grow">{facts}</span>
        {may && hasEnded(x) && x.trigger !== "test" && r.status !== "skipped" && (
          <Button icon="RotateCcw" onClick={() => retry(r.node_id)}>
            Retry from here
          </Button>
        )}
      </p>
      {r.error && (
        <div class="card bad">
          <p>
            <bdi>{r.error.message}</bdi>
          </p>
          <p class="small muted">{r.error.code}</p>
        </div>
      )}
      {r.warnings?.map((w) => (
        <p class="card warn small">
          <bdi>{w}</bdi>
        </p>
      ))}
      {r.status === "waiting" && !hasEnded(x) && <Waiting x={x} r={r} may={may} />}
      <nav class="tabs" aria-label="Result">
        {tabs.map(([t, title]) => (
          <button type="button" aria-current={tab === t ? "page" : undefined} onClick={() => setTab(t)}>
            {title}
          </button>
        ))}
      </nav>
      {tab === "output" && <Part key="output" x={x} r={r} part="output" />}
      {tab === "input" && <Part key="input" x={x} r={r} part="input" />}
      {tab === "resolved" && (
        <>
          <p class="muted small">The node's fields with their templates filled in. Credentials are masked.</p>
          <Part key="resolved" x={x} r={r} part="resolved" />
        </>
      )}
      {tab === "log" &&
        (r.logs?.length ? (
          <ol class="log-lines">
            {r.logs.map((l) => (
              <li class={l.level}>
                <bdi>
                  {l.level === "log" ? "" : `${l.level}: `}
                  {l.message}
                </bdi>
              </li>
            ))}
          </ol>
        ) : (
          <p class="muted">Nothing was logged.</p>
        ))}
    </>
  );
}

/** A part of a result. What is not stored, or is long, is asked for when it is wanted. */
function Part({ x, r, part }: { x: Execution; r: NodeResult; part: "input" | "resolved" | "output" }) {
  const own = part === "output" ? r.output : undefined;
  const [value, setValue] = useState<unknown>(own);
  const [error, setError] = useState<Error>();
  const load = async () => {
    setError(undefined);
    try {
      setValue(
        (await get(executionPath(agentId.value, x.id, "nodes", r.node_id), { path: iterationPath(r), part })).value,
      );
    } catch (e) {
      setError(asError(e));
    }
  };
  useEffect(() => {
    setValue(own);
  }, [own]);
  useEffect(() => {
    if (part !== "output") void load();
  }, [part, r.status]);
  if (error)
    return error instanceof ApiError && error.status === 404 ? (
      <p class="muted">{r.status === "skipped" ? "The node was skipped." : "This can no longer be computed."}</p>
    ) : (
      <ErrorCard error={error} retry={load} />
    );
  if (value === undefined && r.output_bytes && part === "output")
    return <Button onClick={load}>{`Show the output, ${size(r.output_bytes)}`}</Button>;
  if (value === undefined) return <p class="muted">{part === "output" ? "There is none." : "Loading…"}</p>;
  return <JsonTree value={value} />;
}

/** How a node that waits is answered. */
function Waiting({ x, r, may }: { x: Execution; r: NodeResult; may: boolean }) {
  const [comment, setComment] = useState("");
  const resume = (data: unknown) =>
    post(executionPath(agentId.value, x.id, "resume"), {
      node_id: r.node_id,
      path: iterationPath(r) || undefined,
      data,
    });
  if (r.type === "workflow") return <p class="muted">Waiting for the execution it started.</p>;
  if (r.type !== "approval")
    return may ? (
      <Button
        icon="Play"
        onClick={() => {
          openDialog((close) => <GoOn close={close} resume={resume} />);
        }}
      >
        Continue now
      </Button>
    ) : null;
  const decide = (decision: string) => async () => {
    await resume({ decision, comment });
    tell(decision === "approved" ? "Approved" : "Rejected");
  };
  return (
    <section class="card approval stack" aria-label="Decision">
      {r.approval?.title && (
        <h3>
          <bdi>{r.approval.title}</bdi>
        </h3>
      )}
      {r.approval?.message && (
        <p class="approval-text">
          <bdi>{r.approval.message}</bdi>
        </p>
      )}
      <p class="muted small">
        Waiting since <When time={r.started_at} full />.
      </p>
      {may && (
        <>
          <input
            aria-label="Comment"
            placeholder="Comment"
            maxLength={10_000}
            value={comment}
            onInput={(e) => setComment(e.currentTarget.value)}
          />
          <div class="row">
            <Button kind="primary" icon="Check" onClick={decide("approved")}>
              Approve
            </Button>
            <Button icon="X" onClick={decide("rejected")}>
              Reject
            </Button>
          </div>
        </>
      )}
    </section>
  );
}

function GoOn({ close, resume }: { close: () => void; resume: (data: unknown) => Promise<unknown> }) {
  const [typed, setTyped] = useState("{}");
  const [wrong, setWrong] = useState("");
  const run = async () => {
    let data: unknown;
    try {
      data = JSON.parse(typed);
    } catch {
      setWrong("Not valid JSON.");
      return;
    }
    try {
      await resume(data);
      close();
    } catch (error) {
      setWrong(asError(error).message);
    }
  };
  return (
    <Dialog title="Continue now" close={close}>
      <form
        class="stack"
        onSubmit={(e) => {
          e.preventDefault();
          void run();
        }}
      >
        <div class={wrong ? "field wrong" : "field"}>
          <label for="resume-data">Data</label>
          <textarea
            id="resume-data"
            class="code"
            rows={4}
            value={typed}
            onInput={(e) => setTyped(e.currentTarget.value)}
          />
          {wrong ? (
            <small class="issue" role="alert">
              {wrong}
            </small>
          ) : (
            <small class="muted">A JSON object; it becomes data in the node's output.</small>
          )}
        </div>
        <div class="row end">
          <Button onClick={close}>Cancel</Button>
          <Button kind="primary" submit>
            Go on
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
