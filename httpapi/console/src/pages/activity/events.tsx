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
  showToast,
  type Column,
} from "../../ui";
import { aboutEvent, eventGroups } from "../../parts/events";
import { ExportMenu } from "../../parts/export";
import { useFollow } from "../../parts/follow";
import { aboutRecord, recordLinks } from "../../parts/records";
import { Follow, TimeRange } from "./filters";

type Event = API.EventDetails;
type State = { events: Event[]; next: string | null; error?: Error; loading: boolean };

const pageSize = 50;
const exportPageSize = 200;
const maxShown = 2_000;

/** The most pages that are loaded for a click: pages of a rare event may be empty. */
const maxEmptyPages = 5;

/** What the address asks for. */
function listOptions() {
  const { query } = route.value;
  const [type, search, gateway, from, to] = ["type", "q", "gateway", "from", "to"].map((name) => query.get(name) ?? "");
  return {
    filters: { type, search, gateway_id: gateway, from, to },
    follow: query.get("follow") !== "no" && !to,
    opened: Number(query.get("event")) || 0,
  };
}

type Filters = ReturnType<typeof listOptions>["filters"];

const eventsAt = () => path("agents", agentId.value, "events");

/** Yields all events that match filters, page by page. */
async function* allEvents(filters: Filters) {
  for (let cursor: string | null | undefined; cursor !== null;) {
    const page: API.EventList = await get(eventsAt(), { ...filters, limit: exportPageSize, cursor });
    yield page.events;
    cursor = page.meta.next_cursor;
  }
}

/** Loads the events that match filters, and newer ones as they happen. */
function useEvents(filters: Filters, follow: boolean) {
  const [list, setList] = useState<State>({ events: [], next: null, loading: true });
  const key = JSON.stringify(filters);
  const load = (cursor?: string) => get(eventsAt(), { ...filters, limit: pageSize, cursor });
  const fail = (error: Error) => setList((shown) => ({ ...shown, error, loading: false }));
  const loadFirst = () =>
    load().then(({ events, meta }) => setList({ events, next: meta.next_cursor, loading: false }), fail);
  useEffect(() => {
    setList({ events: [], next: null, loading: true });
    void loadFirst();
  }, [key, agentId.value]);
  const loadNewer = useCallback(
    () => load().then((page) => setList((shown) => withNewer(shown, page)), fail),
    [key, agentId.value],
  );
  useFollow("*", loadNewer, follow);
  const loadOlder = async () => {
    let { next } = list;
    for (let pages = 0; next && pages < maxEmptyPages; pages++) {
      const { events, meta } = await load(next);
      next = meta.next_cursor;
      setList((shown) => ({ ...shown, events: [...shown.events, ...events], next: meta.next_cursor }));
      if (events.length) break;
    }
  };
  return { list, loadFirst, loadOlder };
}

/**
 * Adds the newest page to a list. If all of the page is new, events between it and the list may be missing, and the
 * page replaces the list.
 */
function withNewer(shown: State, { events, meta }: API.EventList): State {
  const newestSeq = shown.events[0]?.seq ?? 0;
  const added = events.filter(({ seq }) => seq > newestSeq);
  if (added.length === events.length) return { events, next: meta.next_cursor, loading: false };
  return { ...shown, events: [...added, ...shown.events].slice(0, maxShown), error: undefined };
}

/** The tab of events; the event of the address is shown beside it. */
export function Events() {
  const { filters, follow, opened } = listOptions();
  const { list, loadFirst, loadOlder } = useEvents(filters, follow);
  const { events, next, error, loading } = list;
  return (
    <div class={opened ? "beside open" : "beside"}>
      <div class="stack">
        <FilterRow filters={filters} follow={follow} />
        {error && <ErrorCard error={error} retry={() => void loadFirst()} />}
        {loading && <Skeleton lines={8} />}
        {!loading && events.length > 0 && (
          <>
            <div class="activity-table event-names">
              <Table rows={events} keyOf={({ seq }) => seq} columns={columns(opened)} />
            </div>
            {next && (
              <div class="row center">
                <Button onClick={loadOlder}>Older</Button>
              </div>
            )}
          </>
        )}
        {!loading && !events.length && !error && (
          <Empty
            icon="Activity"
            title={Object.values(filters).some(Boolean) ? "No events match" : "No events yet"}
            action={next ? <Button onClick={loadOlder}>Load older</Button> : undefined}
          >
            Events record what happens: messages, executions, sources, contacts. They can start workflows and webhooks.
          </Empty>
        )}
      </div>
      {opened > 0 && <EventDrawer key={opened} seq={opened} known={events.find(({ seq }) => seq === opened)} />}
    </div>
  );
}

function FilterRow({ filters, follow }: { filters: Filters; follow: boolean }) {
  const { search, gateway_id, from, to } = filters;
  return (
    <div class="row filters" role="search">
      <TypeSelect type={filters.type} />
      <SearchField value={search} label="Search events" placeholder="Search events" onInput={(q) => setQuery({ q })} />
      <TimeRange from={from} to={to} />
      {gateway_id && (
        <Button icon="X" onClick={() => setQuery({ gateway: null })}>
          From one channel
        </Button>
      )}
      <span class="row nowrap filters-end">
        <Follow on={follow} reason={to ? "It ends at a given time." : undefined} />
        <ExportMenu name="events" pages={() => allEvents(filters)} />
      </span>
    </div>
  );
}

function TypeSelect({ type }: { type: string }) {
  return (
    <select aria-label="Event" value={type} onChange={(e) => setQuery({ type: e.currentTarget.value })}>
      <option value="" selected={!type}>
        All events
      </option>
      {eventGroups.map(({ title, pattern, events }) => (
        <optgroup label={title}>
          {events.length > 1 && (
            <option value={pattern} selected={type === pattern}>
              All of {title.toLowerCase()}
            </option>
          )}
          {events.map(([name]) => (
            <option value={name} selected={type === name}>
              {name}
            </option>
          ))}
        </optgroup>
      ))}
    </select>
  );
}

/** The columns of the list; opened is the number of the event that is shown beside it. */
function columns(opened: number): Column<Event>[] {
  return [
    { title: "Time", cell: ({ created_at }) => <Moment time={created_at} /> },
    {
      title: "Event",
      cell: ({ type, seq }) => (
        <button
          type="button"
          class="link"
          title={aboutEvent(type)}
          aria-expanded={opened === seq}
          onClick={() => setQuery({ event: seq })}
        >
          {type}
        </button>
      ),
    },
    { title: "About", cell: (event) => <bdi class="about">{aboutRecord(event)}</bdi> },
  ];
}

/** One event, which is loaded if the list does not have it. */
function EventDrawer({ seq, known }: { seq: number; known?: Event }) {
  const [event, setEvent] = useState<Event | null | undefined>(known);
  useEffect(() => {
    if (event) return;
    get(eventsAt(), { cursor: seq + 1, limit: 1 }).then(
      ({ events }) => setEvent(events[0]?.seq === seq ? events[0] : null),
      showToast,
    );
  }, [seq]);
  return (
    <Drawer title={event?.type ?? "Event"} close={() => setQuery({ event: null })}>
      {event === undefined && <Skeleton />}
      {event === null && <p class="muted">No longer kept.</p>}
      {event && <EventFacts event={event} />}
    </Drawer>
  );
}

function EventFacts({ event }: { event: Event }) {
  const { type, created_at, seq, id, data } = event;
  return (
    <div class="stack">
      <p class="muted">{aboutEvent(type)}</p>
      <dl class="facts-list">
        <dt>Time</dt>
        <dd>
          <Moment time={created_at} />
        </dd>
        <dt>Number</dt>
        <dd>{seq}</dd>
        <dt>ID</dt>
        <dd>
          <code>{id}</code>
        </dd>
      </dl>
      <div class="row">
        {recordLinks(event).map(([title, href]) => (
          <LinkButton href={href}>{title}</LinkButton>
        ))}
      </div>
      <h3>Data</h3>
      <JsonTree value={data} />
    </div>
  );
}
