import { asError } from "../data";
// A JSON object, a row for each of its members, or as JSON.
import { useState } from "preact/hooks";

import { Button, TextArea } from "../ui";

type Object_ = Record<string, unknown>;
type Row = [name: string, value: string];

const textOf = (v: unknown) => (typeof v === "string" ? v : JSON.stringify(v));
const rowsOf = (o: Object_): Row[] => Object.entries(o).map(([k, v]) => [k, textOf(v)]);

/** A value as it is typed: numbers, yes and no, lists and objects are what they look like, unless the member was a text before. */
function read(text: string, was: unknown): unknown {
  if (typeof was === "string" || !/^(-?\d|true$|false$|null$|[[{])/.test(text)) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** The members of an object. */
export function PayloadField({
  label,
  value,
  onChange,
  hint,
  error,
}: {
  label: string;
  value: Object_;
  onChange: (v: Object_) => void;
  hint?: string;
  error?: string;
}) {
  const [rows, setRows] = useState(rowsOf(value));
  const [first] = useState(value);
  const [json, setJson] = useState<string>();
  const [wrong, setWrong] = useState("");
  const set = (next: Row[]) => {
    setRows(next);
    onChange(
      Object.fromEntries(
        next.filter(([name]) => name.trim()).map(([name, text]) => [name.trim(), read(text, first[name.trim()])]),
      ),
    );
  };
  const type = (text: string) => {
    setJson(text);
    try {
      const made = JSON.parse(text.trim() || "{}");
      if (!made || typeof made !== "object" || Array.isArray(made)) throw new Error("Not an object.");
      setWrong("");
      onChange(made);
    } catch (e) {
      setWrong(`Not a JSON object yet. ${asError(e).message}`);
    }
  };
  if (json !== undefined)
    return (
      <div class="stack tight">
        <TextArea label={label} code rows={5} value={json} onInput={type} error={wrong || error} hint={hint} />
        <div>
          <button
            type="button"
            class="link small"
            disabled={Boolean(wrong)}
            onClick={() => {
              setRows(rowsOf(value));
              setJson(undefined);
            }}
          >
            As rows
          </button>
        </div>
      </div>
    );
  return (
    <fieldset class="field payload">
      <legend>{label}</legend>
      {rows.map(([name, text], i) => (
        <div class="row nowrap" key={i}>
          <input
            aria-label={`${label}: name ${i + 1}`}
            placeholder="Name"
            value={name}
            onInput={(e) => set(rows.map((r, j) => (j === i ? [e.currentTarget.value, r[1]] : r)))}
          />
          <input
            class="grow"
            aria-label={`${label}: value of ${name || i + 1}`}
            placeholder="Value"
            value={text}
            onInput={(e) => set(rows.map((r, j) => (j === i ? [r[0], e.currentTarget.value] : r)))}
          />
          <Button
            kind="quiet"
            icon="X"
            label={`Remove ${name || i + 1}`}
            onClick={() => set(rows.filter((_, j) => j !== i))}
          />
        </div>
      ))}
      <div class="row">
        <Button icon="Plus" onClick={() => setRows([...rows, ["", ""]])}>
          Add a value
        </Button>
        <button type="button" class="link small" onClick={() => setJson(JSON.stringify(value, null, 2))}>
          As JSON
        </button>
      </div>
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
