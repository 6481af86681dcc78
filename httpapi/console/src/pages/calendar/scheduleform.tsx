import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";

import { agentId, ApiError, invalidate, path, post, put, useQuery, type API } from "../../data";
import { FormDialog, SelectField, showOnce, TextArea, TextField, type FormState, type Values } from "../../ui";
import { type Schema, ArgumentsForm } from "../../parts/arguments";
import { PayloadField } from "../../parts/payload";
import { PickField } from "../../parts/pick";
import { ClockField, clockIssue, DateTimeField, fieldError, momentOf } from "../../parts/timefield";
import { wallTimeOf, zones } from "../../parts/zone";
import { cronOf, hasTime, hourSteps, minuteSteps, ruleOf, usualRule, type Rule } from "./rule";
import { NextRuns } from "./nextruns";
import { DayButtons } from "./taskform";
import { calls, misfires, overlaps, schedulesAt, weekdays } from "./labels";

const delays: [string, string, number][] = [
  ["minutes", "minutes", 60],
  ["hours", "hours", 3600],
  ["days", "days", 86_400],
  ["seconds", "seconds", 1],
];

function initialOf(s: API.Schedule | undefined, zone: string, start?: string) {
  const home = s?.timezone ?? zone;
  const rule = s?.cron_expression ? ruleOf(s.cron_expression) : undefined;
  const delay =
    delays.find(
      ([, , n]) =>
        s?.delay_seconds && s.delay_seconds % n === 0 && (n !== 60 || s.delay_seconds < 3600 || s.delay_seconds % 3600),
    ) ?? delays[1];
  const payload: Values = s && s.callback_type !== "agent" ? s.payload : {};
  return {
    name: s?.name ?? "",
    type: s ? (s.type === "cron" ? (rule ? "every" : "cron") : s.type) : start ? "once" : "every",
    rule: rule ?? usualRule,
    cron_expression: s?.cron_expression ?? "",
    next_run: s?.type === "once" && s.next_run ? wallTimeOf(s.next_run, home) : (start ?? ""),
    delay_seconds: String(s?.delay_seconds ? s.delay_seconds / delay[2] : 1),
    unit: delay[0],
    timezone: home,
    callback_type: s?.callback_type ?? "workflow",
    callback_id: s?.callback_id ?? "",
    "payload.prompt": s?.callback_type === "agent" ? String(s.payload.prompt ?? "") : "",
    payload,
    misfire_policy: s?.misfire_policy ?? "run_once",
    overlap: s?.overlap ?? "skip",
  };
}

type ScheduleValues = ReturnType<typeof initialOf>;

/** What the form says about when, as the service takes it. */
function timing(v: ScheduleValues, zone: string) {
  const timezone = v.timezone || undefined;
  if (v.type === "once")
    return {
      type: "once",
      next_run: momentOf("next_run", v.next_run, v.timezone || zone),
      timezone,
    };
  if (v.type === "delayed")
    return {
      type: "delayed",
      delay_seconds: Math.round(Number(v.delay_seconds) * delays.find(([u]) => u === v.unit)![2]) || 0,
      timezone,
    };
  const issue = v.type === "every" && hasTime(v.rule) && clockIssue(v.rule.time);
  if (issue) throw fieldError("rule", issue);
  return { type: "cron", cron_expression: v.type === "every" ? cronOf(v.rule) : v.cron_expression, timezone };
}

/** What the next runs are asked for with; nothing while a time is not whole. */
function previewOf(v: ScheduleValues, zone: string): Values {
  try {
    return timing(v, zone);
  } catch {
    return {};
  }
}

/** Makes a schedule, or changes one. */
export function ScheduleForm({
  schedule: s,
  zone,
  start,
  top,
  close,
  made,
}: {
  schedule?: API.Schedule;
  zone: string;
  start?: string;
  top?: ComponentChildren;
  close: () => void;
  made?: (s: API.Schedule) => void;
}) {
  const run = async (v: ScheduleValues) => {
    const payload =
      v.callback_type === "agent"
        ? { ...(s?.callback_type === "agent" ? s.payload : {}), prompt: v["payload.prompt"] }
        : v.payload;
    const when: Record<string, unknown> = timing(v, zone);
    if (s && when.type === "once" && s.type === "once" && v.next_run === initialOf(s, zone).next_run)
      delete when.next_run;
    const body = {
      name: v.name,
      ...when,
      callback_type: v.callback_type,
      callback_id: v.callback_type === "agent" ? "" : v.callback_id,
      payload,
      misfire_policy: v.misfire_policy,
      overlap: v.overlap,
    };
    const stored = await (s ? put(schedulesAt(s.id), body) : post(schedulesAt(), body));
    invalidate(schedulesAt());
    if (stored.secret) void showOnce("Webhook secret", "It signs the calls. It's shown only once.", stored.secret);
    made?.(stored);
  };
  return (
    <FormDialog
      title={s ? "Edit schedule" : "New schedule"}
      close={close}
      action={s ? "Save" : "Create"}
      initial={initialOf(s, zone, start)}
      run={run}
      wide
    >
      {(f) => (
        <>
          {top}
          <div class="schedule-form">
            <div class="stack">
              <TextField label="Name" required autoFocus {...f.text("name")} />
              <SelectField
                label="Runs"
                options={[
                  ["every", "Regularly"],
                  ["cron", "Cron expression"],
                  ["once", "Once, at a set time"],
                  ["delayed", "Once, after a delay"],
                ]}
                {...f.choice("type")}
              />
              <When f={f} />
              <TextField label="Time zone" list={zones()} {...f.text("timezone")} />
              <Preview query={previewOf(f.values, zone)} zone={f.values.timezone || zone} />
            </div>
            <div class="stack">
              <Target f={f} />
              <details class="more-fields">
                <summary>Missed and overlapping runs</summary>
                <div class="stack">
                  <SelectField label="Missed runs" options={misfires} {...f.choice("misfire_policy")} />
                  <SelectField label="If the previous run is still going" options={overlaps} {...f.choice("overlap")} />
                </div>
              </details>
            </div>
          </div>
        </>
      )}
    </FormDialog>
  );
}

function When({ f }: { f: FormState<ScheduleValues> }) {
  const v = f.values;
  if (v.type === "cron")
    return (
      <TextField
        label="Cron expression"
        placeholder="0 9 * * MON-FRI"
        required
        hint="Minute, hour, day of the month, month, day of the week."
        {...f.text("cron_expression")}
      />
    );
  if (v.type === "once") return <DateTimeField label="At" required {...f.text("next_run")} />;
  if (v.type === "delayed")
    return (
      <div class="row">
        <TextField label="After" type="number" required {...f.text("delay_seconds")} />
        <SelectField label="Unit" options={delays.map(([u, title]) => [u, title])} {...f.choice("unit")} />
      </div>
    );
  return <Regularly rule={v.rule} set={(r) => f.set("rule", r)} issue={f.issue("rule")} />;
}

const units: [string, string][] = [
  ["minutes", "Every few minutes"],
  ["hours", "Every few hours"],
  ["day", "Every day"],
  ["workdays", "Monday to Friday"],
  ["week", "Every week"],
  ["month", "Every month"],
];
const choices = (all: number[]): [string, string][] => all.map((n) => [String(n), String(n)]);

function Regularly({ rule: r, set, issue }: { rule: Rule; set: (r: Rule) => void; issue?: string }) {
  const put = (change: Partial<Rule>) => set({ ...r, ...change });
  return (
    <>
      <div class="row">
        <SelectField
          label="How often"
          options={units}
          value={r.unit}
          onChange={(unit) => put({ unit: unit as Rule["unit"], every: unit === "hours" ? 1 : 15 })}
        />
        {r.unit === "minutes" && (
          <SelectField
            label="Minutes"
            options={choices(minuteSteps)}
            value={String(r.every)}
            onChange={(n) => put({ every: Number(n) })}
          />
        )}
        {r.unit === "hours" && (
          <>
            <SelectField
              label="Hours"
              options={choices(hourSteps)}
              value={String(r.every)}
              onChange={(n) => put({ every: Number(n) })}
            />
            <SelectField
              label="At minute"
              options={choices([...new Set([0, 5, 10, 15, 20, 30, 40, 45, 50, 55, r.minute])].sort((a, b) => a - b))}
              value={String(r.minute)}
              onChange={(n) => put({ minute: Number(n) })}
            />
          </>
        )}
        {r.unit === "month" && (
          <SelectField
            label="On day"
            options={choices(Array.from({ length: 31 }, (_, i) => i + 1))}
            value={String(r.day)}
            onChange={(n) => put({ day: Number(n) })}
            hint={r.day > 28 ? "Months without this day are skipped." : undefined}
          />
        )}
        {hasTime(r) && <ClockField label="Time" value={r.time} onInput={(time) => put({ time })} error={issue} />}
      </div>
      {r.unit === "week" && (
        <DayButtons
          label="On"
          days={[1, 2, 3, 4, 5, 6, 0].map((d) => [d, weekdays[d].slice(0, 2), weekdays[d]])}
          chosen={r.days}
          toggle={(d) => put({ days: r.days.includes(d) ? r.days.filter((x) => x !== d) : [...r.days, d] })}
        />
      )}
    </>
  );
}

/** When a schedule will run, in words and times, while its form is filled. */
function Preview({ query, zone }: { query: Values; zone: string }) {
  const key = JSON.stringify(query);
  const [asked, setAsked] = useState(key);
  useEffect(() => {
    const timer = setTimeout(() => setAsked(key), 300);
    return () => clearTimeout(timer);
  }, [key]);
  const q = JSON.parse(asked);
  const empty = q.type === "cron" ? !q.cron_expression : q.type === "once" ? !q.next_run : !q.delay_seconds;
  const found = useQuery(empty ? null : schedulesAt("preview"), q);
  if (empty) return <p class="preview muted small">The next runs appear here.</p>;
  const error = found.error.value;
  if (error && found.data.value === undefined)
    return (
      <p class="preview issue small" role="status">
        {error instanceof ApiError
          ? Object.entries(error.issues)
              .map(([field, issue]) => `${fieldNames[field] ?? field} ${issue}`)
              .join(". ") || error.message
          : error.message}
      </p>
    );
  if (!found.data.value) return <p class="preview muted small">…</p>;
  return <NextRuns words={found.data.value.words} next={found.data.value.next} zone={zone} />;
}

const fieldNames: Record<string, string> = {
  cron_expression: "The expression",
  timezone: "The time zone",
  next_run: "The time",
  delay_seconds: "The delay",
};

/** What a schedule calls, with what goes along. */
function Target({ f }: { f: FormState<ScheduleValues> }) {
  const v = f.values;
  const tool = useQuery(
    v.callback_type === "tool" && v.callback_id ? path("agents", agentId.value, "tools", v.callback_id) : null,
  );
  const pick = (kind: "workflows" | "tools" | "sources", label: string) => (
    <PickField
      label={label}
      kind={kind}
      value={v.callback_id}
      onChange={(id) => f.set("callback_id", id)}
      error={f.issue("callback_id")?.replace(/^is required.*/, "is required")}
    />
  );
  return (
    <>
      <SelectField
        label="Calls"
        options={calls}
        value={v.callback_type}
        error={f.issue("callback_type")}
        onChange={(t) => {
          f.set("callback_type", t as ScheduleValues["callback_type"]);
          f.set("callback_id", "");
        }}
      />
      {v.callback_type === "workflow" && pick("workflows", "Workflow")}
      {v.callback_type === "tool" && pick("tools", "Tool")}
      {v.callback_type === "source" && pick("sources", "Source")}
      {v.callback_type === "webhook" && (
        <TextField
          label="Address"
          type="url"
          required
          placeholder="https://example.com/hook"
          hint="It receives a signed POST."
          {...f.text("callback_id")}
          error={f.issue("callback_id")?.replace(/^is required.*/, "is required")}
        />
      )}
      {v.callback_type === "agent" && (
        <TextArea
          label="Prompt"
          rows={5}
          hint="Answered with the agent's knowledge and tools. Prompt and answer are kept in their own conversation."
          {...f.text("payload.prompt")}
        />
      )}
      {v.callback_type === "tool" && tool.data.value && (
        <ArgumentsForm
          key={v.callback_id}
          schema={tool.data.value.config.parameters as Schema | undefined}
          value={v.payload}
          onChange={(p) => f.set("payload", p)}
          issue={f.issue("payload")}
        />
      )}
      {["workflow", "webhook"].includes(v.callback_type) && (
        <PayloadField
          key={v.callback_type}
          label="Payload"
          value={v.payload}
          onChange={(p) => f.set("payload", p)}
          error={f.issue("payload")}
          hint={
            v.callback_type === "workflow" ? "Nodes read it in templates such as {{report}}." : "The body of the call."
          }
        />
      )}
    </>
  );
}
