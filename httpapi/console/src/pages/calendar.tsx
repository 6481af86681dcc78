// Calendar and schedules: tasks with a time, and what runs by the clock.

import { agentId, download, href, mayEdit, route, setQuery } from "../data";
import { Button, Empty, Icon, LinkButton, Load, openDialog, Segments } from "../ui";
import { useKeys } from "../parts/keys";
import { style } from "../parts/styles";
import { addDays, addMonths, deviceZone, sinceMonday, wallTimeOf, writeDate } from "../parts/zone";
import { itemsOf, useDays, useZone } from "./calendar/data";
import { Agenda, datesOf, Day, Month, usePhone, Week } from "./calendar/grid";
import { AddDialog } from "./calendar/lazy";
import { TaskDrawer } from "./calendar/task";
import { ScheduleList } from "./calendar/schedules";
import { ScheduleRecord } from "./calendar/schedule";
import { tasksAt } from "./calendar/labels";
import "../css/calendar.css";

export const styles = style("./calendar.css");

export default function CalendarAndSchedules() {
  const [part, id] = route.value.rest;
  const zone = useZone();
  if (part === "schedules" && id) return <ScheduleRecord key={id} id={id} />;
  if (part && part !== "schedules" && part !== "tasks")
    return (
      <div class="page">
        <Empty
          icon="CircleHelp"
          title="Page not found"
          action={
            <LinkButton href={href(agentId.value, "calendar")} kind="primary">
              Back to calendar
            </LinkButton>
          }
        />
      </div>
    );
  const add = (date?: string, minute?: number, kind: "task" | "schedule" = "task") => {
    openDialog((close) => <AddDialog zone={zone} date={date} minute={minute} kind={kind} close={close} />);
  };
  return (
    <div class="page wide" key={part === "schedules" ? part : "calendar"}>
      <div class="page-head">
        <h1 class="grow" tabIndex={-1}>
          Calendar & schedules
        </h1>
        {part !== "schedules" && (
          <Button class="desk" icon="Download" onClick={() => download("GET", `${tasksAt()}.ics`)}>
            Export .ics
          </Button>
        )}
        {mayEdit.value && (
          <>
            <Button
              class={part === "schedules" ? "" : "desk"}
              icon="Plus"
              kind={part === "schedules" ? "primary" : undefined}
              onClick={() => add(undefined, undefined, "schedule")}
            >
              New schedule
            </Button>
            <Button
              class={part === "schedules" ? "desk" : ""}
              icon="Plus"
              kind={part === "schedules" ? undefined : "primary"}
              onClick={() => add()}
            >
              New task
            </Button>
          </>
        )}
      </div>
      <nav class="tabs" aria-label="Calendar and schedules">
        <a href={href(agentId.value, "calendar")} aria-current={part === "schedules" ? undefined : "page"}>
          Calendar
        </a>
        <a href={href(agentId.value, "calendar", "schedules")} aria-current={part === "schedules" ? "page" : undefined}>
          Schedules
        </a>
      </nav>
      {part === "schedules" ? (
        <ScheduleList add={() => add(undefined, undefined, "schedule")} />
      ) : (
        <Calendar zone={zone} task={part === "tasks" ? id : undefined} add={add} />
      )}
    </div>
  );
}

function Calendar({ zone, task, add }: { zone: string; task?: string; add: (date?: string, minute?: number) => void }) {
  const { query } = route.value;
  const phone = usePhone();
  const today = wallTimeOf(Date.now(), zone).slice(0, 10);
  const chosen = query.get("view") ?? "month";
  const view = phone ? "list" : ["week", "list"].includes(chosen) ? chosen : "month";
  const given = query.get("date") ?? "";
  const date = /^\d{4}-\d\d-\d\d$/.test(given) && !Number.isNaN(Date.parse(given)) ? given : today;
  const dates = datesOf(view, date);
  const days = useDays(dates[0], dates.at(-1)!);
  const step = (by: number) =>
    setQuery({ date: view === "month" ? addMonths(date, by) : addDays(date, by * (view === "week" ? 7 : 31)) });
  const show = (v: string) => setQuery({ view: v === "month" ? null : v });
  useKeys({
    t: () => setQuery({ date: null }),
    m: () => show("month"),
    w: () => show("week"),
    l: () => show("list"),
    j: () => step(1),
    k: () => step(-1),
  });
  const day = query.get("day") ?? "";
  const only = query.get("only") ?? "";
  const at = query.get("at") ?? days.data.value?.tasks.find((t) => t.id === task)?.start_time;
  // What is opened stands where the drawer would.
  const late = at !== undefined && sinceMonday(wallTimeOf(at, zone).slice(0, 10)) > 3;
  const dayOfMonth: Intl.DateTimeFormatOptions = { day: "numeric", month: "short" };
  const title =
    view === "month"
      ? writeDate(date, { month: "long", year: "numeric" })
      : `${writeDate(dates[0], dayOfMonth)} – ${writeDate(dates.at(-1)!, { ...dayOfMonth, year: "numeric" })}`;
  return (
    <div class={task ? `beside open ${view === "list" ? "" : "float"} ${late ? "late" : ""}` : "beside"}>
      <div class="stack">
        <div class="row calendar-bar">
          <Button
            onClick={() => setQuery({ date: null })}
            disabled={(dates.includes(today) && view !== "list") || date === today}
          >
            Today
          </Button>
          <span class="row nowrap tight">
            <Button kind="quiet" icon="ArrowLeft" label="Back" onClick={() => step(-1)} />
            <Button kind="quiet" icon="ArrowRight" label="Next" onClick={() => step(1)} />
          </span>
          <h2 class="grow" aria-live="polite">
            {title}
          </h2>
          <select aria-label="Show" value={only} onChange={(e) => setQuery({ only: e.currentTarget.value })}>
            {[
              ["", "Tasks and schedules"],
              ["tasks", "Tasks"],
              ["schedules", "Schedules"],
            ].map(([v, t]) => (
              <option value={v} selected={v === only}>
                {t}
              </option>
            ))}
          </select>
          {!phone && (
            <Segments
              label="View"
              value={view}
              options={[
                ["month", "Month"],
                ["week", "Week"],
                ["list", "List"],
              ]}
              onChange={show}
            />
          )}
        </div>
        <Load of={days} lines={10}>
          {(data) => {
            const items = itemsOf(
              { tasks: only === "schedules" ? [] : data.tasks, days: only === "tasks" ? [] : data.days },
              zone,
              dates[0],
              dates.at(-1)!,
            );
            const shown = { items, dates, zone, today, days, add };
            return view === "month" ? (
              <>
                <Month view={shown} month={date.slice(0, 7)} />
                {dates.includes(day) && <Day view={shown} date={day} />}
              </>
            ) : view === "week" ? (
              <Week key={dates[0]} view={shown} />
            ) : (
              <Agenda view={shown} />
            );
          }}
        </Load>
        {days.data.value && (
          <p class="muted small">
            <Icon name="Globe" size={13} /> Times are in {zone}, the agent's time zone
            {zone !== deviceZone() && `; this device is in ${deviceZone()}`}.{" "}
            {!phone && (
              <>
                <kbd>t</kbd> today, <kbd>m</kbd> month, <kbd>w</kbd> week, <kbd>l</kbd> list, <kbd>j</kbd> and{" "}
                <kbd>k</kbd> turn pages; <kbd>Alt</kbd> and an arrow move a task.
              </>
            )}
          </p>
        )}
      </div>
      {task && (
        <TaskDrawer
          key={`${task}${query.get("at")}`}
          id={task}
          start={query.get("at") ?? undefined}
          zone={zone}
          days={days}
        />
      )}
    </div>
  );
}
