// The calendar by month and by week, as CSS grids, and the list.
import { useEffect, useRef, useState } from "preact/hooks";

import { href, mayEdit, route, setQuery } from "../../data";
import { Badge, Button, Dialog, Empty, Icon, LinkButton, Name } from "../../ui";
import { addDays, sinceMonday, wallTimeOf, writeDate } from "../../parts/zone";
import type { Days, Item, Task } from "./data";
import { movable, moveTask } from "./move";
import { recurs } from "./labels";

type View = {
  items: Map<string, Item[]>;
  dates: string[];
  zone: string;
  today: string;
  days: Days;
  add: (date: string, minute?: number) => void;
};

const clock = (minute: number) =>
  `${String(Math.floor(minute / 60) % 24).padStart(2, "0")}:${String(minute % 60).padStart(2, "0")}`;

/** What is dragged: its data cannot be read before it is dropped. */
let dragged: { task: Task; offset: number } | undefined;

/** Keeps the filters of the calendar in an address that leads to a task. */
export const withQuery = (to: string) => {
  const [before, mine] = to.split("?", 2);
  const query = new URLSearchParams(route.value.query);
  query.delete("at");
  query.delete("day"); // what is opened takes its place
  for (const [k, v] of new URLSearchParams(mine)) query.set(k, v);
  return query.size ? `${before}?${query}` : before;
};

function Chip({
  item: i,
  view,
  style,
  tall,
  narrow,
}: {
  item: Item;
  view: View;
  style?: Record<string, string>;
  tall?: boolean;
  /** There is no room for the time. */ narrow?: boolean;
}) {
  const drag = mayEdit.value && i.kind === "task" && !i.continued && movable(i.task);
  return (
    <a
      class={`chip ${i.kind} ${i.status} ${tall && i.to - i.from <= 45 ? "short" : ""} ${narrow ? "narrow" : ""}`}
      style={style}
      href={i.kind === "task" ? withQuery(i.href) : i.href}
      draggable={drag}
      data-task={i.task?.id}
      title={[clock(i.from), i.title, i.note].filter(Boolean).join(" · ")}
      onClick={(e) => e.stopPropagation()}
      onDragStart={(e) => {
        if (!drag || !i.task) return e.preventDefault();
        dragged = { task: i.task, offset: tall ? e.offsetY : 0 };
        e.dataTransfer!.effectAllowed = "move";
        e.dataTransfer!.setData("text/plain", i.title);
      }}
      onDragEnd={() => {
        dragged = undefined;
      }}
      onKeyDown={(e) => {
        const days = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: tall ? 0 : -7, ArrowDown: tall ? 0 : 7 }[e.key];
        if (days === undefined || !e.altKey || !drag || !i.task) return;
        e.preventDefault();
        const { id } = i.task;
        const minute = days ? undefined : Math.max(0, Math.min(1425, i.from + (e.key === "ArrowUp" ? -15 : 15)));
        const follow = () =>
          requestAnimationFrame(() => {
            if (document.activeElement === document.body)
              document.querySelector<HTMLElement>(`.chip[data-task="${id}"]`)?.focus();
          });
        void moveTask(view.days, i.task, view.zone, addDays(i.date, days), minute).then(follow);
        follow();
      }}
    >
      {i.kind === "run" ? (
        <Icon name="CalendarClock" size={12} />
      ) : (
        i.task?.recurrence !== "none" && <Icon name="Repeat" size={12} />
      )}
      {!i.times && <span class="chip-time">{i.continued ? "…" : clock(i.from)}</span>}{" "}
      <bdi class="chip-title">{i.title}</bdi>
      {i.times && <span class="chip-note">{i.times}</span>}
    </a>
  );
}

/** What makes an element a day that tasks can be dropped on. */
function dropOn(view: View, date: string, minuteAt?: (e: DragEvent, offset: number) => number) {
  const mark = (e: DragEvent, on: boolean) => (e.currentTarget as Element).classList.toggle("over", on);
  return {
    onDragOver: (e: DragEvent) => {
      if (dragged) {
        e.preventDefault();
        mark(e, true);
      }
    },
    onDragLeave: (e: DragEvent) => mark(e, false),
    onDrop: (e: DragEvent) => {
      mark(e, false);
      if (!dragged) return;
      e.preventDefault();
      const { task, offset } = dragged;
      dragged = undefined;
      void moveTask(view.days, task, view.zone, date, minuteAt?.(e, offset));
    },
  };
}

const shownInDay = 4;

/** A month: each day lists its first items, and how many more there are. */
export function Month({ view, month }: { view: View; month: string }) {
  return (
    <div class="month" role="group" aria-label={writeDate(`${month}-01`, { month: "long", year: "numeric" })}>
      {view.dates.slice(0, 7).map((d) => (
        <span class="month-head" key={d}>
          {writeDate(d, { weekday: "short" })}
        </span>
      ))}
      {view.dates.map((date) => {
        const items = view.items.get(date) ?? [];
        const shown = items.length > shownInDay + 1 ? items.slice(0, shownInDay) : items;
        return (
          <section
            key={date}
            class={`day ${date === view.today ? "today" : ""} ${date.startsWith(month) ? "" : "outside"}`}
            aria-label={writeDate(date, { weekday: "long", day: "numeric", month: "long" })}
            data-date={date}
            onClick={() => {
              if (mayEdit.value) view.add(date);
            }}
            {...dropOn(view, date)}
          >
            <header>
              <time dateTime={date}>{Number(date.slice(8))}</time>
              {mayEdit.value && (
                <button
                  type="button"
                  class="day-add"
                  aria-label={`Add on ${writeDate(date, { day: "numeric", month: "long" })}`}
                  onClick={(e) => {
                    e.stopPropagation();
                    view.add(date);
                  }}
                >
                  <Icon name="Plus" size={13} />
                </button>
              )}
            </header>
            {shown.map((i) => (
              <Chip key={i.key} view={view} item={i} />
            ))}
            {items.length > shown.length && (
              <button
                type="button"
                class="day-more link"
                aria-label={[
                  `${items.length - shown.length} more on`,
                  writeDate(date, { day: "numeric", month: "long" }),
                ].join(" ")}
                onClick={(e) => {
                  e.stopPropagation();
                  setQuery({ day: date });
                }}
              >
                {items.length - shown.length} more
              </button>
            )}
          </section>
        );
      })}
    </div>
  );
}

/** All of a day, over the calendar. */
export function Day({ view, date }: { view: View; date: string }) {
  const close = () => setQuery({ day: null });
  const items = view.items.get(date) ?? [];
  return (
    <Dialog title={writeDate(date, { weekday: "long", day: "numeric", month: "long" })} close={close}>
      <div class="agenda">{items.length > 0 ? <Items items={items} /> : <p class="muted">Nothing planned</p>}</div>
      <div class="row end">
        <LinkButton href={`${href(route.value.agent, "calendar")}?view=week&date=${date}`}>Show the week</LinkButton>
        {mayEdit.value && (
          <Button
            kind="primary"
            icon="Plus"
            onClick={() => {
              close();
              view.add(date);
            }}
          >
            Add
          </Button>
        )}
      </div>
    </Dialog>
  );
}

const dayHeight = 24 * 44; // pixels

/** Puts items beside each other that overlap: each gets a lane of so many. */
function lanes(items: Item[]): { item: Item; lane: number; of: number }[] {
  const out: { item: Item; lane: number; of: number }[] = [];
  let group: typeof out = [];
  let end = -1;
  const close = () => {
    const of = Math.max(0, ...group.map((g) => g.lane)) + 1;
    for (const g of group) g.of = of;
    group = [];
  };
  const until = (i: Item) => Math.max(i.to, i.from + 30);
  for (const item of items) {
    if (item.from >= end) close();
    const taken = new Set(group.filter((g) => until(g.item) > item.from).map((g) => g.lane));
    let lane = 0;
    while (taken.has(lane)) lane++;
    const placed = { item, lane, of: 1 };
    group.push(placed);
    out.push(placed);
    end = Math.max(end, until(item));
  }
  close();
  return out;
}

/** A week by the hour; what takes a day or more stands above. */
export function Week({ view }: { view: View }) {
  const ref = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (ref.current) ref.current.scrollTop = 7 * 44 - 10;
  }, []);
  const now = wallTimeOf(Date.now(), view.zone);
  const whole = (i: Item) =>
    i.task !== undefined && Date.parse(i.task.end_time) - Date.parse(i.task.start_time) >= 20 * 3_600_000;
  const minuteAt = (e: MouseEvent, offset: number, step: number) =>
    Math.max(
      0,
      Math.min(
        1440 - step,
        Math.round(
          (((e.clientY - (e.currentTarget as Element).getBoundingClientRect().top - offset) / dayHeight) * 1440) / step,
        ) * step,
      ),
    );
  return (
    <div class="week" ref={ref} tabIndex={0} role="group" aria-label="Week by hour">
      <div class="week-head">
        <span />
        {view.dates.map((d) => (
          <div key={d} class={d === view.today ? "today" : ""} {...dropOn(view, d)}>
            <b>{writeDate(d, { weekday: "short", day: "numeric" })}</b>
            {(view.items.get(d) ?? []).filter(whole).map((i) => (
              <Chip key={i.key} view={view} item={i} />
            ))}
          </div>
        ))}
      </div>
      <div class="week-body" style={{ height: `${dayHeight}px` }}>
        <div class="hours" aria-hidden="true">
          {Array.from({ length: 23 }, (_, h) => (
            <span style={{ top: `${((h + 1) / 24) * 100}%` }}>{clock((h + 1) * 60)}</span>
          ))}
        </div>
        {view.dates.map((date) => (
          <section
            key={date}
            class={`hours-day ${date === view.today ? "today" : ""}`}
            data-date={date}
            aria-label={writeDate(date, { weekday: "long", day: "numeric", month: "long" })}
            onClick={(e) => {
              if (mayEdit.value) view.add(date, minuteAt(e, 0, 30));
            }}
            {...dropOn(view, date, (e, offset) => minuteAt(e, offset, 15))}
          >
            {date === view.today && (
              <i
                class="now"
                style={{ top: `${((Number(now.slice(11, 13)) * 60 + Number(now.slice(14))) / 1440) * 100}%` }}
              />
            )}
            {lanes((view.items.get(date) ?? []).filter((i) => !whole(i))).map(({ item: i, lane, of }) => (
              <Chip
                key={i.key}
                view={view}
                item={i}
                tall
                narrow={of > 1}
                style={{
                  top: `${(i.from / 1440) * 100}%`,
                  height: `${(Math.max(30, i.to - i.from) / 1440) * 100}%`,
                  left: `${(lane / of) * 100}%`,
                  width: `${100 / of}%`,
                }}
              />
            ))}
          </section>
        ))}
      </div>
    </div>
  );
}

/** The items of a day, one below the other. */
function Items({ items }: { items: Item[] }) {
  return (
    <ul>
      {items.map((i) => (
        <li key={i.key} class={`${i.kind} ${i.status}`}>
          <span class="agenda-time">
            {i.continued
              ? "all day"
              : i.kind === "task" && i.to !== i.from
                ? `${clock(i.from)} – ${i.to === 1440 ? "24:00" : clock(i.to)}`
                : clock(i.from)}
          </span>
          <span class="grow">
            <a href={i.kind === "task" ? withQuery(i.href) : i.href}>
              {i.kind === "run" && <Icon name="CalendarClock" size={14} />} <Name>{i.title}</Name>
            </a>
            <span class="muted small"> {i.task ? recurs(i.task) : i.note}</span>
          </span>
          {i.status !== "pending" && i.status !== "planned" && <Badge>{i.status}</Badge>}
        </li>
      ))}
    </ul>
  );
}

/** The days on which there is something, one below the other. */
export function Agenda({ view }: { view: View }) {
  const dates = view.dates.filter((d) => view.items.get(d)?.length);
  if (!dates.length)
    return (
      <Empty icon="Calendar" title="Nothing planned">
        Tasks have a time and can start a workflow. Schedules run automatically.
      </Empty>
    );
  return (
    <div class="agenda">
      {dates.map((date) => (
        <section key={date} aria-label={writeDate(date, { weekday: "long", day: "numeric", month: "long" })}>
          <h3 class={date === view.today ? "today" : ""}>
            {date === view.today && "Today, "}
            {writeDate(date, { weekday: "long", day: "numeric", month: "long" })}
          </h3>
          <Items items={view.items.get(date)!} />
        </section>
      ))}
    </div>
  );
}

/** Reports whether the window is as narrow as a phone's. */
export function usePhone() {
  const query = "(max-width: 48rem)";
  const [phone, setPhone] = useState(matchMedia(query).matches);
  useEffect(() => {
    const list = matchMedia(query);
    const change = () => setPhone(list.matches);
    list.addEventListener("change", change);
    return () => list.removeEventListener("change", change);
  }, []);
  return phone;
}

/** The dates of a view around a date. */
export function datesOf(view: string, date: string): string[] {
  const span = (from: string, n: number) => Array.from({ length: n }, (_, i) => addDays(from, i));
  if (view === "week") return span(addDays(date, -sinceMonday(date)), 7);
  if (view === "list") return span(date, 31);
  const first = `${date.slice(0, 7)}-01`;
  const days = new Date(Date.UTC(Number(date.slice(0, 4)), Number(date.slice(5, 7)), 0)).getUTCDate();
  return span(addDays(first, -sinceMonday(first)), Math.ceil((sinceMonday(first) + days) / 7) * 7);
}
