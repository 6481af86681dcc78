// Names with values, a row each.
import { AddRow } from "./addrow";
import { Button } from "./button";

/** A name with its value. */
export type Pair = [name: string, value: string];

/** Rows of names and values, such as headers. */
export function PairsField({
  label,
  pairs,
  onChange,
  disabled,
  hint,
  error,
  placeholder = ["Name", "Value"],
}: {
  label: string;
  pairs: Pair[];
  onChange: (pairs: Pair[]) => void;
  disabled?: boolean;
  hint?: string;
  error?: string;
  placeholder?: Pair;
}) {
  const set = (i: number, pair: Pair) => onChange(pairs.map((p, j) => (j === i ? pair : p)));
  return (
    <fieldset class={error ? "field wrong plain-fieldset" : "field plain-fieldset"}>
      <legend>{label}</legend>
      {pairs.map(([name, value], i) => (
        <div class="row nowrap" key={i}>
          <input
            class="grow"
            aria-label={`${label}: name ${i + 1}`}
            placeholder={placeholder[0]}
            value={name}
            disabled={disabled}
            onInput={(e) => set(i, [e.currentTarget.value, value])}
          />
          <input
            class="grow"
            aria-label={`${label}: value ${i + 1}`}
            placeholder={placeholder[1]}
            value={value}
            disabled={disabled}
            onInput={(e) => set(i, [name, e.currentTarget.value])}
          />
          {!disabled && (
            <Button
              kind="quiet"
              icon="X"
              label={`Remove ${name || i + 1}`}
              onClick={() => onChange(pairs.filter((_, j) => j !== i))}
            />
          )}
        </div>
      ))}
      {!disabled && <AddRow title="Add" of={label} add={() => onChange([...pairs, ["", ""]])} />}
      {error ? (
        <small class="issue" role="alert">
          {error}
        </small>
      ) : (
        hint && <small class="muted">{hint}</small>
      )}
    </fieldset>
  );
}

/** The rows of an object. */
export const pairsOf = (object?: Record<string, unknown> | null): Pair[] =>
  Object.entries(object ?? {}).map(([k, v]) => [k, typeof v === "string" ? v : JSON.stringify(v)]);

/** The object of rows; those without a name are left out. */
export const objectOf = (pairs: Pair[]): Record<string, string> =>
  Object.fromEntries(pairs.filter(([name]) => name.trim()).map(([name, value]) => [name.trim(), value]));
