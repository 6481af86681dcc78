// What is running: uploads, sources that are read, and executions.
import { useEffect } from "preact/hooks";

import {
  agentId,
  type API,
  counts,
  href,
  mayEdit,
  onChange,
  path,
  progress,
  type Result,
  running,
  type Upload,
  uploads,
  useQuery,
} from "../data";
import { Badge, Button, Dialog, Icon, Name, openDialog, plural, When } from "../ui";
import { stopSource, terminate, wasStopped } from "../parts/stop";
import { timeLeft } from "../parts/timeleft";

const maxShown = 20; // of each kind

const readVerbs: Record<string, string> = { crawling: "Crawling", processing: "Indexing", updating: "Updating" };

/** How a list of running records is read from the data of a query, and written to it. */
type WorkList<T, D> = {
  kind: "source" | "execution";
  rowsOf: (data: D) => T[];
  withRows: (data: D, rows: T[]) => D;
  isRunning: (row: T) => boolean;
};

/** Returns the running records of a query, which follow the event stream. */
function useWork<T extends { id: string }, D>(query: Result<D>, list: WorkList<T, D>): T[] {
  const { kind, rowsOf, withRows, isRunning } = list;
  useEffect(
    () =>
      onChange(kind, (change) => {
        if (query.loading.value) query.reloadThrottled(); // the response may be older
        query.set((data) => {
          const rows = rowsOf(data);
          const others = rows.filter((other) => other.id !== change.id);
          const row = change.row as T | undefined;
          if (change.op === "delete" || !row || !isRunning(row)) return withRows(data, others);
          if (others.length === rows.length) return withRows(data, [row, ...rows]);
          return withRows(
            data,
            rows.map((other) => (other.id === change.id ? row : other)),
          );
        });
      }),
    [query],
  );
  return query.data.value === undefined ? [] : rowsOf(query.data.value);
}

const sourceList: WorkList<API.Source, API.SourceList> = {
  kind: "source",
  rowsOf: (data) => data.sources,
  withRows: (data, sources) => ({ ...data, sources }),
  isRunning: (source) => source.status in readVerbs,
};

const executionList: WorkList<API.ExecutionItem, API.ExecutionList> = {
  kind: "execution",
  rowsOf: (data) => data.executions,
  withRows: (data, executions) => ({ ...data, executions }),
  isRunning: ({ status, trigger }) => (status === "running" || status === "queued") && trigger !== "test",
};

/** Returns the running sources and executions of the agent, and the ids of executions that wait for a person. */
function useRunning() {
  const id = agentId.value;
  const sources = useWork(
    useQuery(id ? path("agents", id, "sources") : null, { status: Object.keys(readVerbs), limit: maxShown }),
    sourceList,
  );
  const executions = useWork(
    useQuery(id ? path("agents", id, "workflows", "executions") : null, {
      status: ["queued", "running"],
      limit: maxShown,
    }),
    executionList,
  );
  const waiting = useQuery(id && executions.length ? path("agents", id, "waiting") : null);
  useEffect(() => {
    if (executions.length) waiting.reloadThrottled();
  }, [counts.value.waiting, executions.length]);
  const waitingIds = new Set((waiting.data.value?.waiting ?? []).map((item) => item.execution_id));
  return { sources, executions, waitingIds };
}

const unfinishedUploads = () => uploads.value.filter(({ state }) => state === "sending" || state === "waiting");

/** How much is running, as a button that opens the list; nothing while nothing is running. */
export function Tray() {
  const { sources, executions, waitingIds } = useRunning();
  const active = executions.filter((execution) => !waitingIds.has(execution.id));
  const count = unfinishedUploads().length + sources.length + active.length;
  useEffect(() => {
    running.value = count;
  }, [count]);
  if (!count) return null;
  return (
    <button type="button" class="tray-button" onClick={openTray}>
      <Icon name="LoaderCircle" size={14} />
      {count} running now
    </button>
  );
}

/** Opens the list of what is running. */
export const openTray = () => {
  openDialog((close) => <RunningDialog close={close} />);
};

function RunningDialog({ close }: { close: () => void }) {
  const { sources, executions, waitingIds } = useRunning();
  const files = unfinishedUploads();
  const names = useQuery(executions.length ? path("agents", agentId.value, "workflows") : null, {
    limit: 200,
    sort: "name",
  });
  const nameOf = (id: string) => names.data.value?.workflows.find((workflow) => workflow.id === id)?.name ?? "Workflow";
  return (
    <Dialog title="Running now" close={close} more="tray">
      {files.length + sources.length + executions.length === 0 && <p class="muted">Nothing is running.</p>}
      <ul
        class="plain stack"
        onClick={(event) => {
          if ((event.target as Element).closest("a")) close();
        }}
      >
        {files.length > 0 && <UploadRow files={files} />}
        {sources.map((source) => (
          <SourceRow key={source.id} source={source} />
        ))}
        {executions.map((execution) => (
          <ExecutionRow
            key={execution.id}
            execution={execution}
            name={nameOf(execution.workflow_id)}
            waiting={waitingIds.has(execution.id)}
          />
        ))}
      </ul>
    </Dialog>
  );
}

type ExecutionRowProps = { execution: API.ExecutionItem; name: string; waiting: boolean };

function ExecutionRow({ execution: { id, status, started_at, created_at }, name, waiting }: ExecutionRowProps) {
  return (
    <li class="row nowrap">
      <Icon name="Workflow" />
      <div class="grow">
        <a href={href(agentId.value, "workflows", "executions", id)}>
          <Name>{name}</Name>
        </a>
        <p class="muted small">
          Started <When time={started_at ?? created_at} />
        </p>
      </div>
      {waiting ? (
        <Badge tone="warn" title="Waiting for a person">
          waiting
        </Badge>
      ) : (
        <Badge>{status}</Badge>
      )}
      {mayEdit.value && (
        <Button kind="quiet" icon="CircleStop" label={`Terminate ${name}`} onClick={() => terminate(id)} />
      )}
    </li>
  );
}

function UploadRow({ files }: { files: Upload[] }) {
  const share = files.reduce((sum, file) => sum + file.share, 0) / files.length;
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

function SourceRow({ source }: { source: API.Source }) {
  const { id, type, name, status } = source;
  const current = progress.value[id] ?? source.progress;
  const facts = [
    wasStopped(source) ? "Stopped; indexing what was read" : readVerbs[status],
    current?.total > 0 && `${current.done} of ${current.total}`,
    timeLeft(progress.value[id]?.seconds_left),
  ];
  return (
    <li class="row nowrap">
      <Icon name={type === "crawl" || type === "url" ? "Globe" : "FileText"} />
      <div class="grow">
        <a href={href(agentId.value, "knowledge", id)}>
          <Name>{name}</Name>
        </a>
        {current?.total > 0 && (
          <p>
            <progress max={current.total} value={current.done} aria-label={`Progress of ${name}`} />
          </p>
        )}
        <p class="muted small">{facts.filter(Boolean).join(" · ")}</p>
      </div>
      {mayEdit.value && (
        <Button kind="quiet" icon="CircleStop" label={`Stop ${name}`} onClick={() => stopSource(source)} />
      )}
    </li>
  );
}
