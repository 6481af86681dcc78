// The events of the agent, newest first, as they happen.
import { useCallback, useEffect, useState } from "preact/hooks";

import { agentId, type API, get, path, route, setQuery } from "../../data";
import {
  Button,
  Drawer,
  Empty,
  ErrorCard,
  JsonTree,
  LinkButton,
  Moment,
  SearchField,
  Skeleton,
  Table,
  tell,
} from "../../ui";
import { aboutEvent, eventGroups } from "../../parts/events";
import { ExportMenu } from "../../parts/export";
import { useFollow } from "../../parts/follow";
import { aboutRecord, recordLinks } from "../../parts/records";
import { Follow, TimeRange } from "./filters";

type Event = API.EventDetails;
type State = { events: Event[]; next: string | null; error?: Error; loading: boolean };

const pageSize = 50;
const maxShown = 2_000;

export function Events() {
  const { query } = route.value;
  const [type, search, gateway, from, to] = ["type", "q", "gateway", "from", "to"].map((n) => query.get(n) ?? "");
  const follow = query.get("follow") !== "no" && !to;
  const filters = { type, search, gateway_id: gateway, from, to };
  const key = JSON.stringify(filters);
  const [list, setList] = useState<State>({ events: [], next: null, loading: true });
  const ask = (more: object) => get(path("agents", agentId.value, "events"), { ...filters, limit: pageSize, ...more });
  const fail = (error: Error) => setList((l) => ({ ...l, error, loading: false }));
  const first = () =>
    ask({}).then(({ events, meta }) => setList({ events, next: meta.next_cursor, loading: false }), fail);
  useEffect(() => {
    setList({ events: [], next: null, loading: true });
    void first();
  }, [key, agentId.value]);
  const newer = useCallback(
    () =>
      ask({}).then(
        ({ events, meta }) =>
          setList((l) => {
            const fresh = (events as Event[]).filter((e) => e.seq > (l.events[0]?.seq ?? 0));
            if (fresh.length === events.length) return { events, next: meta.next_cursor, loading: false }; // there may be a gap
            return { ...l, events: [...fresh, ...l.events].slice(0, maxShown), error: undefined };
          }),
        fail,
      ),
    [key, agentId.value],
  );
  useFollow("*", newer, follow);
  const older = async () => {
    let { next } = list;
    for (let tries = 0; next && tries < 5; tries++) {
      // pages of a rare event may be empty
      const { events, meta } = await ask({ cursor: next });
      next = meta.next_cursor;
      setList((l) => ({ ...l, events: [...l.events, ...events], next: meta.next_cursor }));
      if (events.length) break;
    }
  };
  async function* pages() {
    for (let cursor: string | null | undefined; cursor !== null;) {
      const page: API.EventList = await ask({ limit: 200, cursor });
      yield page.events;
      cursor = page.meta.next_cursor;
    }
  }
  const open = Number(query.get("event")) || 0;
  const filtered = Boolean(type || search || gateway || from || to);
  return (
    <div class={open ? "beside open" : "beside"}>
      <div class="stack">
        <div class="row filters" role="search">
          <select aria-label="Event" value={type} onChange={(e) => setQuery({ type: e.currentTarget.value })}>
            <option value="" selected={!type}>
              All events
            </option>
            {eventGroups.map((g) => (
              <optgroup label={g.title}>
                {g.events.length > 1 && (
                  <option value={g.pattern} selected={type === g.pattern}>
                    All of {g.title.toLowerCase()}
                  </option>
                )}
                {g.events.map(([n]) => (
                  <option value={n} selected={type === n}>
                    {n}
                  </option>
                ))}
              </optgroup>
            ))}
          </select>
          <SearchField
            value={search}
            label="Search events"
            placeholder="Search events"
            onInput={(q) => setQuery({ q })}
          />
          <TimeRange from={from} to={to} />
          {gateway && (
            <Button icon="X" onClick={() => setQuery({ gateway: null })}>
              From one channel
            </Button>
          )}
          <span class="row nowrap filters-end">
            <Follow on={follow} reason={to ? "It ends at a given time." : undefined} />
            <ExportMenu name="events" pages={pages} />
          </span>
        </div>
        {list.error && <ErrorCard error={list.error} retry={() => void first()} />}
        {list.loading ? (
          <Skeleton lines={8} />
        ) : list.events.length ? (
          <>
            <div class="activity-table event-names">
              <Table
                rows={list.events}
                keyOf={(e) => e.seq}
                columns={[
                  { title: "Time", cell: (e) => <Moment time={e.created_at} /> },
                  {
                    title: "Event",
                    cell: (e) => (
                      <button
                        type="button"
                        class="link"
                        title={aboutEvent(e.type)}
                        aria-expanded={open === e.seq}
                        onClick={() => setQuery({ event: e.seq })}
                      >
                        {e.type}
                      </button>
                    ),
                  },
                  { title: "About", cell: (e) => <bdi class="about">{aboutRecord(e)}</bdi> },
                ]}
              />
            </div>
            {list.next && (
              <div class="row center">
                <Button onClick={older}>Older</Button>
              </div>
            )}
          </>
        ) : (
          !list.error && (
            <Empty
              icon="Activity"
              title={filtered ? "No events match" : "No events yet"}
              action={list.next ? <Button onClick={older}>Load older</Button> : undefined}
            >
              Events record what happens: messages, executions, sources, contacts. They can start workflows and
              webhooks.
            </Empty>
          )
        )}
      </div>
      {open > 0 && <One key={open} seq={open} known={list.events.find((e) => e.seq === open)} />}
    </div>
  );
}

function One({ seq, known }: { seq: number; known?: Event }) {
  const [found, setFound] = useState<Event | null | undefined>(known);
  useEffect(() => {
    if (found) return;
    get(path("agents", agentId.value, "events"), { cursor: seq + 1, limit: 1 }).then(
      ({ events }) => setFound(events[0]?.seq === seq ? events[0] : null),
      tell,
    );
  }, [seq]);
  return (
    <Drawer title={found?.type ?? "Event"} close={() => setQuery({ event: null })}>
      {found === undefined ? (
        <Skeleton />
      ) : found === null ? (
        <p class="muted">No longer kept.</p>
      ) : (
        <div class="stack">
          <p class="muted">{aboutEvent(found.type)}</p>
          <dl class="facts-list">
            <dt>Time</dt>
            <dd>
              <Moment time={found.created_at} />
            </dd>
            <dt>Number</dt>
            <dd>{found.seq}</dd>
            <dt>ID</dt>
            <dd>
              <code>{found.id}</code>
            </dd>
          </dl>
          <div class="row">
            {recordLinks(found).map(([title, to]) => (
              <LinkButton href={to}>{title}</LinkButton>
            ))}
          </div>
          <h3>Data</h3>
          <JsonTree value={found.data} />
        </div>
      )}
    </Drawer>
  );
}
