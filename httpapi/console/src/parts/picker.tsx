// Choosing events in groups.
import { type EventGroup, eventGroups, matches } from "./events";

const offeredPatterns = new Set([
  "*",
  ...eventGroups.flatMap(({ pattern, events }) => [pattern, ...events.map(([name]) => name)]),
]);

type EventPickerProps = {
  value: string[];
  onChange: (value: string[]) => void;
  disabled?: boolean;
  error?: string;
};

/** Names and patterns of events, which are chosen from groups. Patterns that no group offers are kept. */
export function EventPicker({ value, onChange, disabled, error }: EventPickerProps) {
  const every = value.includes("*");
  const remove = (pattern: string) => onChange(value.filter((other) => other !== pattern));
  return (
    <div class="stack">
      <label class="row">
        <input
          type="checkbox"
          checked={every}
          disabled={disabled}
          onChange={(event) => onChange(event.currentTarget.checked ? ["*"] : [])}
        />{" "}
        Every event
      </label>
      {!every && (
        <div class="picker">
          {eventGroups.map((group) => (
            <GroupFields key={group.pattern} group={group} value={value} onChange={onChange} disabled={disabled} />
          ))}
        </div>
      )}
      {value
        .filter((pattern) => !offeredPatterns.has(pattern))
        .map((pattern) => (
          <label class="row">
            <input type="checkbox" checked disabled={disabled} onChange={() => remove(pattern)} />{" "}
            <code>{pattern}</code>
          </label>
        ))}
      {error && (
        <p class="issue small" role="alert">
          {error}
        </p>
      )}
    </div>
  );
}

function GroupFields({ group, value, onChange, disabled }: EventPickerProps & { group: EventGroup }) {
  const { title, pattern, events } = group;
  const chooseAll = (chosen: boolean) => {
    const others = value.filter((other) => other !== pattern && !matches(pattern, other));
    onChange(chosen ? [...others, pattern] : others);
  };
  const choose = (name: string, chosen: boolean) => {
    // The pattern of the group is replaced by the names that it stands for.
    const expanded = value.filter((other) => other !== pattern);
    if (value.includes(pattern)) expanded.push(...events.map(([event]) => event));
    onChange(chosen ? [...expanded, name] : expanded.filter((other) => other !== name));
  };
  return (
    <fieldset disabled={disabled}>
      <legend>
        <label class="row nowrap">
          <input
            type="checkbox"
            aria-label={`All of ${title}`}
            checked={value.includes(pattern)}
            onChange={(event) => chooseAll(event.currentTarget.checked)}
          />{" "}
          <b>{title}</b>
        </label>
      </legend>
      {events.map(([name, description]) => (
        <label key={name}>
          <input
            type="checkbox"
            checked={value.some((chosen) => matches(chosen, name))}
            onChange={(event) => choose(name, event.currentTarget.checked)}
          />
          <span>{name}</span>
          <small class="muted">{description}</small>
        </label>
      ))}
    </fieldset>
  );
}
