// Chooses events, by what they are about.
import { eventGroups, matches } from "./events";

/** Names and patterns of events, picked from groups; patterns that no group offers stay. */
export function EventPicker({
  value,
  onChange,
  disabled,
  error,
}: {
  value: string[];
  onChange: (value: string[]) => void;
  disabled?: boolean;
  error?: string;
}) {
  const every = value.includes("*");
  const has = (name: string) => value.some((p) => matches(p, name));
  const known = new Set(["*", ...eventGroups.flatMap((g) => [g.pattern, ...g.events.map(([n]) => n)])]);
  const all = (pattern: string, on: boolean) =>
    onChange([...value.filter((p) => p !== pattern && !matches(pattern, p)), ...(on ? [pattern] : [])]);
  const one = (pattern: string, names: string[], name: string, on: boolean) => {
    const split = value.includes(pattern) ? [...value.filter((p) => p !== pattern), ...names] : value;
    onChange(on ? [...split, name] : split.filter((p) => p !== name));
  };
  return (
    <div class="stack">
      <label class="row">
        <input
          type="checkbox"
          checked={every}
          disabled={disabled}
          onChange={(e) => onChange(e.currentTarget.checked ? ["*"] : [])}
        />{" "}
        Every event
      </label>
      {!every && (
        <div class="picker">
          {eventGroups.map(({ title, pattern, events }) => (
            <fieldset key={pattern} disabled={disabled}>
              <legend>
                <label class="row nowrap">
                  <input
                    type="checkbox"
                    aria-label={`All of ${title}`}
                    checked={value.includes(pattern)}
                    onChange={(e) => all(pattern, e.currentTarget.checked)}
                  />{" "}
                  <b>{title}</b>
                </label>
              </legend>
              {events.map(([name, about]) => (
                <label key={name}>
                  <input
                    type="checkbox"
                    checked={has(name)}
                    onChange={(e) =>
                      one(
                        pattern,
                        events.map(([n]) => n),
                        name,
                        e.currentTarget.checked,
                      )
                    }
                  />
                  <span>{name}</span>
                  <small class="muted">{about}</small>
                </label>
              ))}
            </fieldset>
          ))}
        </div>
      )}
      {value
        .filter((p) => !known.has(p))
        .map((p) => (
          <label class="row">
            <input
              type="checkbox"
              checked
              disabled={disabled}
              onChange={() => onChange(value.filter((x) => x !== p))}
            />{" "}
            <code>{p}</code>
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
