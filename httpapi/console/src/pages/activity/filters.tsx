import { setQuery } from "../../data";
import { Button } from "../../ui";
import { DateTimeField, wallIssue } from "../../parts/timefield";
import { useTyped } from "../../parts/typed";
import { deviceZone, instantOf, wallTimeOf } from "../../parts/zone";

type LimitProps = { label: string; name: "from" | "to"; time: string; usual: string };

/** A limit of the times, in the reader's own zone, kept in the address. */
function TimeLimit({ label, name, time, usual }: LimitProps) {
  const zone = deviceZone();
  const [wall, setWall] = useTyped(isNaN(Date.parse(time)) ? "" : wallTimeOf(time, zone), String);
  const set = (entered: string) => {
    setWall(entered, entered);
    if (wallIssue(entered)) return;
    setQuery({ [name]: entered ? instantOf(entered, zone).toISOString() : null, offset: null, cursor: null });
  };
  return <DateTimeField inline label={label} value={wall} usual={usual} onInput={set} />;
}

/** From when and until when, kept in the address. */
export function TimeRange({ from, to }: { from: string; to: string }) {
  return (
    <span class="row time-range">
      <TimeLimit label="From" name="from" time={from} usual="00:00" />
      <TimeLimit label="Until" name="to" time={to} usual="23:59" />
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
