// The agent's own log: what went wrong, and who changed what.
import { agentId, path, route, setQuery, useQuery, type API } from "../../data";
import { Author, Badge, Drawer, Empty, JsonTree, Load, Moment, Pager, SearchField, Table, type Column } from "../../ui";
import { ExportMenu, pagesOf } from "../../parts/export";
import { useFollow } from "../../parts/follow";
import { Follow, TimeRange } from "./filters";

const levels: [string, string][] = [
  ["", "All levels"],
  ["debug", "Debug"],
  ["info", "Info"],
  ["warn", "Warnings"],
  ["error", "Errors"],
];
const tones: Record<string, "warn" | "bad"> = { warn: "warn", error: "bad" };

/** Who caused an entry; "" if it was no person. */
const authorOf = ({ data }: API.LogEntry) => String(data?.by ?? data?.email ?? data?.key ?? "");

const logsAt = () => path("agents", agentId.value, "logs");

/** What the address asks for. */
function listOptions() {
  const { query } = route.value;
  const [level, source, search, from, to] = ["level", "source", "q", "from", "to"].map((name) => query.get(name) ?? "");
  const offset = Number(query.get("offset")) || 0;
  const follow = query.get("follow") !== "no" && !to && !offset;
  return { filters: { level, source, search, from, to }, offset, follow, opened: query.get("entry") ?? "" };
}

type Filters = ReturnType<typeof listOptions>["filters"];

/** Yields all entries that match filters, page by page. */
const allEntries = (filters: Filters) => pagesOf(logsAt(), filters, (page) => page.logs);

/** The tab of the log; the entry of the address is shown beside it. */
export function Log() {
  const { filters, offset, follow, opened } = listOptions();
  const found = useQuery(logsAt(), { ...filters, limit: 50, offset });
  useFollow("*", found.reload, follow);
  const entries = found.data.value?.logs ?? [];
  const entry = entries.find(({ id }) => id === opened);
  return (
    <div class={entry ? "beside open" : "beside"}>
      <div class="stack">
        <FilterRow sources={entries.map(({ source }) => source)} />
        <Load of={found} lines={8}>
          {({ logs, meta }) => {
            const filtered = Object.values(filters).some(Boolean);
            if (!logs.length)
              return <Empty icon="FileText" title={filtered ? "No entries match" : "No log entries yet"} />;
            return (
              <>
                <div class="activity-table">
                  <Table rows={logs} keyOf={({ id }) => id} columns={columns(opened)} />
                </div>
                <Pager meta={meta} go={(to) => setQuery({ offset: to || null })} />
              </>
            );
          }}
        </Load>
      </div>
      {entry && <EntryDrawer entry={entry} />}
    </div>
  );
}

/** Why the list cannot follow the log. */
function followReason({ filters: { to }, offset }: ReturnType<typeof listOptions>) {
  if (to) return "It ends at a given time.";
  return offset ? "Showing older entries." : undefined;
}

function FilterRow({ sources }: { sources: string[] }) {
  const options = listOptions();
  const { filters, follow } = options;
  return (
    <div class="row filters" role="search">
      <select
        aria-label="Level"
        value={filters.level}
        onChange={(e) => setQuery({ level: e.currentTarget.value, offset: null })}
      >
        {levels.map(([level, title]) => (
          <option value={level} selected={level === filters.level}>
            {title}
          </option>
        ))}
      </select>
      <SourceSelect source={filters.source} sources={sources} />
      <SearchField
        value={filters.search}
        label="Search the log"
        placeholder="Search the log"
        onInput={(q) => setQuery({ q, offset: null })}
      />
      <TimeRange from={filters.from} to={filters.to} />
      <span class="row nowrap filters-end">
        <Follow on={follow} reason={followReason(options)} />
        <ExportMenu name="log" pages={() => allEntries(filters)} />
      </span>
    </div>
  );
}

/** Chooses among the sources of the entries that are shown; audit is always offered. */
function SourceSelect({ source, sources }: { source: string; sources: string[] }) {
  const others = [...new Set([source, ...sources])].filter((name) => name && name !== "audit").sort();
  return (
    <select
      aria-label="Source"
      value={source}
      onChange={(e) => setQuery({ source: e.currentTarget.value, offset: null })}
    >
      <option value="" selected={!source}>
        All sources
      </option>
      <option value="audit" selected={source === "audit"}>
        Changes by people (audit)
      </option>
      {others.map((name) => (
        <option value={name} selected={name === source}>
          {name}
        </option>
      ))}
    </select>
  );
}

/** The columns of the list; opened is the id of the entry that is shown beside it. */
function columns(opened: string): Column<API.LogEntry>[] {
  return [
    { title: "Time", cell: ({ created_at }) => <Moment time={created_at} /> },
    { title: "Level", cell: ({ level }) => <Badge tone={tones[level]}>{level}</Badge> },
    { title: "Source", cell: ({ source }) => source },
    {
      title: "Message",
      cell: ({ id, message }) => (
        <button type="button" class="link" aria-expanded={opened === id} onClick={() => setQuery({ entry: id })}>
          <bdi>{message}</bdi>
        </button>
      ),
    },
    {
      title: "By",
      class: "wide",
      cell: (entry) => (
        <span class="muted small">
          <Author who={authorOf(entry)} />
        </span>
      ),
    },
  ];
}

function EntryDrawer({ entry }: { entry: API.LogEntry }) {
  const { message, created_at, level, source, data } = entry;
  const { by: _, ...details } = data ?? {};
  const author = authorOf(entry);
  return (
    <Drawer title="Log entry" close={() => setQuery({ entry: null })}>
      <div class="stack">
        <p>
          <bdi>{message}</bdi>
        </p>
        <dl class="facts-list">
          <dt>Time</dt>
          <dd>
            <Moment time={created_at} />
          </dd>
          <dt>Level</dt>
          <dd>
            <Badge tone={tones[level]}>{level}</Badge>
          </dd>
          <dt>Source</dt>
          <dd>{source}</dd>
          {author && (
            <>
              <dt>By</dt>
              <dd>
                <Author who={author} />
              </dd>
            </>
          )}
        </dl>
        {Object.keys(details).length > 0 && <JsonTree value={details} />}
      </div>
    </Drawer>
  );
}
