// The agent's own log: what went wrong, and who changed what.
import { agentId, get, path, route, setQuery, useQuery, type API } from "../../data";
import { Author, Badge, Drawer, Empty, JsonTree, Load, Moment, Pager, SearchField, Table } from "../../ui";
import { ExportMenu } from "../../parts/export";
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

/** Who did what an entry tells; empty if it was no person. */
const doer = (data: API.LogEntry["data"]) => String(data?.by ?? data?.email ?? data?.key ?? "");

export function Log() {
  const { query } = route.value;
  const [level, source, search, from, to, open] = ["level", "source", "q", "from", "to", "entry"].map(
    (n) => query.get(n) ?? "",
  );
  const offset = Number(query.get("offset")) || 0;
  const follow = query.get("follow") !== "no" && !to && !offset;
  const at = path("agents", agentId.value, "logs");
  const filters = { level, source, search, from, to };
  const found = useQuery(at, { ...filters, limit: 50, offset });
  useFollow("*", found.reload, follow);
  async function* pages() {
    for (let start = 0, more = true; more; start += 200) {
      const page = await get(at, { ...filters, limit: 200, offset: start });
      yield page.logs;
      more = start + 200 < page.meta.total;
    }
  }
  const shown = found.data.value?.logs.find((l) => l.id === open);
  const { by: _, ...rest } = shown?.data ?? {};
  return (
    <div class={shown ? "beside open" : "beside"}>
      <div class="stack">
        <div class="row filters" role="search">
          <select
            aria-label="Level"
            value={level}
            onChange={(e) => setQuery({ level: e.currentTarget.value, offset: null })}
          >
            {levels.map(([v, t]) => (
              <option value={v} selected={v === level}>
                {t}
              </option>
            ))}
          </select>
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
            {[...new Set([source, ...(found.data.value?.logs ?? []).map((l) => l.source)])]
              .filter((s) => s && s !== "audit")
              .sort()
              .map((s: string) => (
                <option value={s} selected={s === source}>
                  {s}
                </option>
              ))}
          </select>
          <SearchField
            value={search}
            label="Search the log"
            placeholder="Search the log"
            onInput={(q) => setQuery({ q, offset: null })}
          />
          <TimeRange from={from} to={to} />
          <span class="row nowrap filters-end">
            <Follow
              on={follow}
              reason={to ? "It ends at a given time." : offset ? "Showing older entries." : undefined}
            />
            <ExportMenu name="log" pages={pages} />
          </span>
        </div>
        <Load of={found} lines={8}>
          {({ logs, meta }) =>
            logs.length ? (
              <>
                <div class="activity-table">
                  <Table
                    rows={logs}
                    keyOf={(l) => l.id}
                    columns={[
                      { title: "Time", cell: (l) => <Moment time={l.created_at} /> },
                      { title: "Level", cell: (l) => <Badge tone={tones[l.level]}>{l.level}</Badge> },
                      { title: "Source", cell: (l) => l.source },
                      {
                        title: "Message",
                        cell: (l) => (
                          <button
                            type="button"
                            class="link"
                            aria-expanded={open === l.id}
                            onClick={() => setQuery({ entry: l.id })}
                          >
                            <bdi>{l.message}</bdi>
                          </button>
                        ),
                      },
                      {
                        title: "By",
                        class: "wide",
                        cell: (l) => (
                          <span class="muted small">
                            <Author who={doer(l.data)} />
                          </span>
                        ),
                      },
                    ]}
                  />
                </div>
                <Pager meta={meta} go={(o) => setQuery({ offset: o || null })} />
              </>
            ) : (
              <Empty
                icon="FileText"
                title={level || source || search || from || to ? "No entries match" : "No log entries yet"}
              />
            )
          }
        </Load>
      </div>
      {shown && (
        <Drawer title="Log entry" close={() => setQuery({ entry: null })}>
          <div class="stack">
            <p>
              <bdi>{shown.message}</bdi>
            </p>
            <dl class="facts-list">
              <dt>Time</dt>
              <dd>
                <Moment time={shown.created_at} />
              </dd>
              <dt>Level</dt>
              <dd>
                <Badge tone={tones[shown.level]}>{shown.level}</Badge>
              </dd>
              <dt>Source</dt>
              <dd>{shown.source}</dd>
              {doer(shown.data) && (
                <>
                  <dt>By</dt>
                  <dd>
                    <Author who={doer(shown.data)} />
                  </dd>
                </>
              )}
            </dl>
            {Object.keys(rest).length > 0 && <JsonTree value={rest} />}
          </div>
        </Drawer>
      )}
    </div>
  );
}
