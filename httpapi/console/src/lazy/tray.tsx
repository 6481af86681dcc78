// What runs now: files being sent, sources being read, and executions.
import { useEffect } from "preact/hooks";

import {
  agentId,
  counts,
  href,
  mayEdit,
  onChange,
  path,
  progress,
  running,
  type Result,
  type Upload,
  uploads,
  useQuery,
  type API,
} from "../data";
import { Badge, Button, Dialog, Icon, Name, openDialog, plural, When } from "../ui";
import { stopSource, terminate, wasStopped } from "../parts/stop";
import { timeLeft } from "../parts/timeleft";

const shown = 20; // of each kind

const readVerbs: Record<string, string> = { crawling: "Crawling", processing: "Indexing", updating: "Updating" };

/** Keeps a list of what is at work in step with the stream. */
function useWork<T extends { id: string }, D>(
  kind: "source" | "execution",
  found: Result<D>,
  of: (d: D) => T[],
  make: (d: D, list: T[]) => D,
  works: (row: T) => boolean,
): T[] {
  useEffect(
    () =>
      onChange(kind, (c) => {
        if (found.loading.value) found.soon(); // the answer may be older
        found.set((d) => {
          const others = of(d).filter((x) => x.id !== c.id),
            row = c.row as T | undefined;
          if (c.op === "delete" || !row || !works(row)) return make(d, others);
          return make(
            d,
            of(d).some((x) => x.id === c.id) ? of(d).map((x) => (x.id === c.id ? row : x)) : [row, ...others],
          );
        });
      }),
    [found],
  );
  return found.data.value === undefined ? [] : of(found.data.value);
}

const isRead = (s: API.Source) => s.status in readVerbs;
const isRunning = (x: API.ExecutionItem) => (x.status === "running" || x.status === "queued") && x.trigger !== "test";

/** The sources and executions of the agent that are at work; those that wait for a person are apart. */
function useRunning() {
  const id = agentId.value;
  const sources = useWork(
    "source",
    useQuery(id ? path("agents", id, "sources") : null, { status: Object.keys(readVerbs), limit: shown }),
    (d) => d.sources,
    (d, sources) => ({ ...d, sources }),
    isRead,
  );
  const executions = useWork(
    "execution",
    useQuery(id ? path("agents", id, "workflows", "executions") : null, {
      status: ["queued", "running"],
      limit: shown,
    }),
    (d) => d.executions,
    (d, executions) => ({ ...d, executions }),
    isRunning,
  );
  const waiting = useQuery(id && executions.length ? path("agents", id, "waiting") : null);
  useEffect(() => {
    if (executions.length) waiting.soon();
  }, [counts.value.waiting, executions.length]);
  const waits = new Set((waiting.data.value?.waiting ?? []).map((w) => w.execution_id));
  return { sources, executions, waits };
}

const onTheirWay = () => uploads.value.filter((u) => u.state === "sending" || u.state === "waiting");

/** How much runs, which opens the list of it; nothing while nothing runs. */
export function Tray() {
  const { sources, executions, waits } = useRunning();
  const n = onTheirWay().length + sources.length + executions.filter((x) => !waits.has(x.id)).length;
  useEffect(() => {
    running.value = n;
  }, [n]);
  if (!n) return null;
  return (
    <button type="button" class="tray-button" onClick={openTray}>
      <Icon name="LoaderCircle" size={14} />
      {n} running now
    </button>
  );
}

/** Opens the list of what runs. */
export const openTray = () => {
  openDialog((close) => <List close={close} />);
};

function List({ close }: { close: () => void }) {
  const { sources, executions, waits } = useRunning();
  const sent = onTheirWay();
  const names = useQuery(executions.length ? path("agents", agentId.value, "workflows") : null, {
    limit: 200,
    sort: "name",
  });
  const nameOf = (w: string) => names.data.value?.workflows.find((x) => x.id === w)?.name ?? "Workflow";
  return (
    <Dialog title="Running now" close={close} more="tray">
      {sent.length + sources.length + executions.length === 0 && <p class="muted">Nothing is running.</p>}
      <ul
        class="plain stack"
        onClick={(e) => {
          if ((e.target as Element).closest("a")) close();
        }}
      >
        {sent.length > 0 && <Sending files={sent} />}
        {sources.map((s) => (
          <Reading key={s.id} s={s} />
        ))}
        {executions.map((x) => (
          <li key={x.id} class="row nowrap">
            <Icon name="Workflow" />
            <div class="grow">
              <a href={href(agentId.value, "workflows", "executions", x.id)}>
                <Name>{nameOf(x.workflow_id)}</Name>
              </a>
              <p class="muted small">
                Started <When time={x.started_at ?? x.created_at} />
              </p>
            </div>
            {waits.has(x.id) ? (
              <Badge tone="warn" title="Waiting for a person">
                waiting
              </Badge>
            ) : (
              <Badge>{x.status}</Badge>
            )}
            {mayEdit.value && (
              <Button
                kind="quiet"
                icon="CircleStop"
                label={`Terminate ${nameOf(x.workflow_id)}`}
                onClick={() => terminate(x.id)}
              />
            )}
          </li>
        ))}
      </ul>
    </Dialog>
  );
}

function Sending({ files }: { files: Upload[] }) {
  const share = files.reduce((sum, u) => sum + u.share, 0) / files.length;
  return (
    <li class="row nowrap">
      <Icon name="Upload" />
      <div class="grow">
        <a href={href(files[0].agent, "knowledge")}>
          {files.length === 1 ? <Name>{files[0].name}</Name> : plural(files.length, "file")}
        </a>
        <p class="row nowrap">
          <progress max={1} value={share} aria-label="Sent so far" />
          <span class="muted small">Sending</span>
        </p>
      </div>
    </li>
  );
}

function Reading({ s }: { s: API.Source }) {
  const now = progress.value[s.id] ?? s.progress;
  return (
    <li class="row nowrap">
      <Icon name={s.type === "crawl" || s.type === "url" ? "Globe" : "FileText"} />
      <div class="grow">
        <a href={href(agentId.value, "knowledge", s.id)}>
          <Name>{s.name}</Name>
        </a>
        {now?.total > 0 && (
          <p>
            <progress max={now.total} value={now.done} aria-label={`Progress of ${s.name}`} />
          </p>
        )}
        <p class="muted small">
          {[
            wasStopped(s) ? "Stopped; indexing what was read" : readVerbs[s.status],
            now?.total > 0 && `${now.done} of ${now.total}`,
            timeLeft(progress.value[s.id]?.seconds_left),
          ]
            .filter(Boolean)
            .join(" · ")}
        </p>
      </div>
      {mayEdit.value && (
        <Button kind="quiet" icon="CircleStop" label={`Stop ${s.name}`} onClick={() => stopSource(s)} />
      )}
    </li>
  );
}
