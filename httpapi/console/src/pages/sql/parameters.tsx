import { TextField } from "../../ui";
import { bare } from "./statement";

/** The parameters of a statement: :name, @name and $name by their names, ? by their numbers. */
export function parameterNames(query: string): string[] {
  const text = bare(query).replace(/"(?:[^"]|"")*"/g, " ");
  const named = [...new Set([...text.matchAll(/[:@$]([A-Za-z_]\w*)/g)].map((m) => m[1]))];
  if (named.length) return named;
  const marks = [...text.matchAll(/\?(\d*)/g)];
  const max = marks.reduce((n, m) => (m[1] ? Math.max(n, Number(m[1])) : n + 1), 0);
  return Array.from({ length: Math.min(max, 50) }, (_, i) => String(i + 1));
}

/** A value as it was typed: a number, true, false, null or a text in quotes is that, anything else is text. */
function value(text: string | undefined): unknown {
  if (text === undefined || text === "") return text ?? null;
  try {
    const read = JSON.parse(text);
    return typeof read === "object" && read !== null ? text : read;
  } catch {
    return text;
  }
}

/** The params of a request. */
export function readParameters(query: string, given: Record<string, string>): { params?: unknown } {
  const names = parameterNames(query);
  if (!names.length) return {};
  if (names.every((n) => /^\d+$/.test(n))) return { params: names.map((n) => value(given[n])) };
  return { params: Object.fromEntries(names.map((n) => [n, value(given[n])])) };
}

export function Parameters({
  names,
  values,
  set,
  run,
}: {
  names: string[];
  values: Record<string, string>;
  set: (v: Record<string, string>) => void;
  run: () => void;
}) {
  return (
    <form
      class="row parameters"
      onSubmit={(e) => {
        e.preventDefault();
        run();
      }}
    >
      {names.map((n) => (
        <TextField
          key={n}
          label={/^\d+$/.test(n) ? `Parameter ${n}` : n}
          value={values[n] ?? ""}
          placeholder={values[n] === undefined ? "null" : ""}
          onInput={(v) => set({ ...values, [n]: v })}
        />
      ))}
      <button type="submit" class="hidden">
        Run
      </button>
      <small class="muted">Numbers, true, false and null are typed values; use double quotes for text.</small>
    </form>
  );
}
