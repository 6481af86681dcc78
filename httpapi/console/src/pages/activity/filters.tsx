import { setQuery } from "../../data";
import { Button } from "../../ui";

/** A time of the address as a field shows it, in the reader's own zone. */
const local = (time: string) => {
  const date = new Date(time);
  if (!time || isNaN(date.getTime())) return "";
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
};

/** From when and until when, kept in the address. */
export function TimeRange({ from, to }: { from: string; to: string }) {
  const set = (name: string) => (e: { currentTarget: HTMLInputElement }) =>
    setQuery({
      [name]: e.currentTarget.value ? new Date(e.currentTarget.value).toISOString() : null,
      offset: null,
      cursor: null,
    });
  return (
    <span class="row time-range">
      <label class="time-limit">
        <span class="muted small">From</span>
        <input type="datetime-local" value={local(from)} onChange={set("from")} />
      </label>
      <label class="time-limit">
        <span class="muted small">Until</span>
        <input type="datetime-local" value={local(to)} onChange={set("to")} />
      </label>
      {(from || to) && (
        <Button kind="quiet" icon="X" label="Any time" onClick={() => setQuery({ from: null, to: null })} />
      )}
    </span>
  );
}

/** Whether the list grows while it is shown. */
export function Follow({ on, reason }: { on: boolean; reason?: string }) {
  return (
    <Button
      icon={on ? "Pause" : "Play"}
      pressed={on}
      disabled={Boolean(reason)}
      reason={reason}
      onClick={() => setQuery({ follow: on ? "no" : null })}
    >
      {on ? "Following" : "Follow"}
    </Button>
  );
}
