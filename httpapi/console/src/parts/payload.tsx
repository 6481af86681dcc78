// A JSON object, edited as rows of names and values, or as JSON.
import { useState } from "preact/hooks";

import { asError } from "../data";
import { AddRow, Button, TextArea } from "../ui";

type Payload = Record<string, unknown>;
type Row = [name: string, value: string];

const textOf = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value));
const rowsOf = (payload: Payload): Row[] => Object.entries(payload).map(([name, value]) => [name, textOf(value)]);

/** Parses a typed value: numbers, true, false, null, lists and objects as JSON, unless the value was a text before. */
function parseValue(text: string, before: unknown): unknown {
  if (typeof before === "string" || !/^(-?\d|true$|false$|null$|[[{])/.test(text)) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Parses a JSON object; throws an error for other values. */
function parseObject(text: string): Payload {
  const value = JSON.parse(text.trim() || "{}");
  if (!value || typeof value !== "object" || Array.isArray(value)) throw new Error("Not an object.");
  return value;
}

type PayloadFieldProps = {
  label: string;
  value: Payload;
  onChange: (value: Payload) => void;
  hint?: string;
  error?: string;
};

/** A JSON object as rows, or as JSON. */
export function PayloadField(props: PayloadFieldProps) {
  const { value, onChange } = props;
  const [rows, setRows] = useState(rowsOf(value));
  const [initial] = useState(value);
  const [json, setJson] = useState<string>();
  const changeRows = (next: Row[]) => {
    setRows(next);
    const entries = next.map(([name, text]) => [name.trim(), parseValue(text, initial[name.trim()])] as const);
    onChange(Object.fromEntries(entries.filter(([name]) => name)));
  };
  const showRows = () => {
    setRows(rowsOf(value));
    setJson(undefined);
  };
  if (json !== undefined) return <PayloadJson {...props} json={json} setJson={setJson} showRows={showRows} />;
  return (
    <PayloadRows
      {...props}
      rows={rows}
      change={changeRows}
      addRow={() => setRows([...rows, ["", ""]])}
      showJson={() => setJson(JSON.stringify(value, null, 2))}
    />
  );
}

type PayloadJsonProps = PayloadFieldProps & { json: string; setJson: (json: string) => void; showRows: () => void };

function PayloadJson({ label, hint, error, onChange, json, setJson, showRows }: PayloadJsonProps) {
  const [issue, setIssue] = useState("");
  const onInput = (text: string) => {
    setJson(text);
    try {
      const parsed = parseObject(text);
      setIssue("");
      onChange(parsed);
    } catch (thrown) {
      setIssue(`Not a JSON object yet. ${asError(thrown).message}`);
    }
  };
  return (
    <div class="stack tight">
      <TextArea label={label} code rows={5} value={json} onInput={onInput} error={issue || error} hint={hint} />
      <div>
        <button type="button" class="link small" disabled={Boolean(issue)} onClick={showRows}>
          As rows
        </button>
      </div>
    </div>
  );
}

type PayloadRowsProps = PayloadFieldProps & {
  rows: Row[];
  change: (rows: Row[]) => void;
  addRow: () => void;
  showJson: () => void;
};

function PayloadRows({ label, hint, error, rows, change, addRow, showJson }: PayloadRowsProps) {
  return (
    <fieldset class="field payload">
      <legend>{label}</legend>
      {rows.map(([name, text], index) => (
        <div class="row nowrap" key={index}>
          <input
            aria-label={`${label}: name ${index + 1}`}
            placeholder="Name"
            value={name}
            onInput={(event) => change(rows.with(index, [event.currentTarget.value, text]))}
          />
          <input
            class="grow"
            aria-label={`${label}: value of ${name || index + 1}`}
            placeholder="Value"
            value={text}
            onInput={(event) => change(rows.with(index, [name, event.currentTarget.value]))}
          />
          <Button
            kind="quiet"
            icon="X"
            label={`Remove ${name || index + 1}`}
            onClick={() => change(rows.toSpliced(index, 1))}
          />
        </div>
      ))}
      <AddRow title="Add a value" add={addRow}>
        <button type="button" class="link small" onClick={showJson}>
          As JSON
        </button>
      </AddRow>
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
