// Fields for times. Native ones follow the language of the browser, with AM and PM in some; these have 24 hours.
import type { ComponentChildren } from "preact";
import { useId, useState } from "preact/hooks";

import { ApiError } from "../data";
import { useTyped } from "./typed";
import { instantOf } from "./zone";

/** Reads a time of day such as 9, 0900, 9:00 or 9:00 pm as 09:00; undefined if it is none. */
export function readClock(text: string): string | undefined {
  const [match, hours, minutes = "00", half] =
    /^(\d{1,2})(?:[:.h]?(\d\d))?\s*(?:([ap])\.?m?\.?)?$/i.exec(text.trim()) ?? [];
  if (!match || Number(minutes) > 59) return;
  let hour = Number(hours);
  if (half && (hour < 1 || hour > 12)) return;
  if (half) hour = (hour % 12) + (half.toLowerCase() === "p" ? 12 : 0);
  return hour > 23 ? undefined : `${String(hour).padStart(2, "0")}:${minutes}`;
}

/** What is wrong with a time of day. */
export const clockIssue = (text: string) =>
  readClock(text) ? undefined : "Enter a time, such as 09:00, 0900 or 9 pm.";

/** What is wrong with a wall time of a field, of which a part may be missing; an empty one is right. */
export function wallIssue(wall: string): string | undefined {
  const [date, clock = ""] = wall.split("T");
  if (!wall) return;
  return date ? clockIssue(clock) : "Enter a date too.";
}

/** The error of a field, as the service answers it. */
export const fieldError = (field: string, issue: string) =>
  new ApiError(400, { error: { message: issue, details: { field, issue } } });

/** The moment of a wall time that was entered into a field; undefined for an empty one. */
export function momentOf(field: string, wall: string, zone: string): string | undefined {
  const issue = wallIssue(wall);
  if (issue) throw fieldError(field, issue);
  return wall ? instantOf(wall, zone).toISOString() : undefined;
}

type FieldProps = {
  label: string;
  value: string;
  onInput: (value: string) => void;
  hint?: ComponentChildren;
  error?: string;
  required?: boolean;
};

type FrameProps = Pick<FieldProps, "label" | "hint" | "error"> & {
  id: string;
  /** What is wrong with the value; shown once the field was left. */
  issue?: string;
  /** The label stands beside the inputs. */
  inline?: boolean;
  onLeave?: (field: HTMLElement) => void;
  children: ComponentChildren;
};

function Frame({ id, label, hint, error, issue, inline, onLeave, children }: FrameProps) {
  const [left, setLeft] = useState(false);
  const shown = (left ? issue : undefined) ?? error;
  return (
    <div
      class={`${inline ? "time-limit" : "field"} ${shown ? "wrong" : ""}`}
      onFocusOut={({ currentTarget, relatedTarget }) => {
        if (currentTarget.contains(relatedTarget as Node | null)) return;
        onLeave?.(currentTarget);
        setLeft(true);
      }}
    >
      <label class={inline ? "muted small" : undefined} for={id}>
        {label}
      </label>
      {children}
      {shown ? (
        <small class="issue" id={`${id}-issue`} role="alert">
          {shown}
        </small>
      ) : (
        hint && <small class="muted">{hint}</small>
      )}
    </div>
  );
}

type ClockProps = Pick<FieldProps, "value" | "onInput" | "required"> & { id?: string; name?: string; issueId: string };

/** The time of day as it is typed; it is written as 09:00 when it is left. */
function ClockInput({ id, name, issueId, value, onInput, required }: ClockProps) {
  const [text, setText] = useTyped(value, String);
  return (
    <input
      id={id}
      aria-label={name}
      type="text"
      autocomplete="off"
      placeholder="09:00"
      size={6}
      required={required}
      value={text}
      aria-invalid={Boolean(text && clockIssue(text))}
      aria-describedby={issueId}
      onInput={({ currentTarget: { value: typed } }) => {
        const read = readClock(typed) ?? typed;
        setText(typed, read);
        onInput(read);
      }}
      onBlur={() => setText(value, value)}
    />
  );
}

/** A time of day. Its value is a time such as 09:00, or what was typed if that is none. */
export function ClockField({ label, value, onInput, ...frame }: FieldProps) {
  const id = useId();
  return (
    <Frame {...frame} id={id} label={label} issue={clockIssue(value)}>
      <ClockInput id={id} value={value} onInput={onInput} required issueId={`${id}-issue`} />
    </Frame>
  );
}

type DateTimeProps = FieldProps & {
  inline?: boolean;
  /** The time of day that a date gets that is entered without one. */
  usual?: string;
};

/**
 * A date and a time of day. Its value is a wall time such as 2027-01-04T09:00, empty, or what was entered if that is
 * neither: see momentOf.
 */
export function DateTimeField({ label, value, onInput, usual = "09:00", required, ...frame }: DateTimeProps) {
  const id = useId();
  const [date, clock = ""] = value.split("T");
  const set = (newDate: string, newClock: string) => onInput(newDate || newClock ? `${newDate}T${newClock}` : "");
  const checkDate = (field: HTMLElement) => {
    // A date of which parts are missing counts as none, without an event.
    if (field.querySelector("input")!.validity.badInput) onInput(`T${clock}`);
    else if (value === "T") onInput("");
  };
  return (
    <Frame {...frame} id={id} label={label} issue={wallIssue(value)} onLeave={checkDate}>
      <div class="row nowrap">
        <input
          id={id}
          class="grow"
          type="date"
          max="9999-12-31"
          required={required}
          value={date}
          aria-describedby={`${id}-issue`}
          onInput={(e) => set(e.currentTarget.value, e.currentTarget.value && !clock ? usual : clock)}
        />
        <ClockInput
          name={`${label}: time`}
          value={clock}
          onInput={(typed) => set(date, typed)}
          required={required}
          issueId={`${id}-issue`}
        />
      </div>
    </Frame>
  );
}
