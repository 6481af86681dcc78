// The arguments of a tool: typed by their schema, and the schema itself.
import { useState } from "preact/hooks";

import { asError } from "../data";
import { Button, Code, SelectField, Switch, TextArea, TextField, type Values } from "../ui";
import { useTyped } from "./typed";

export type Schema = {
  type?: string | string[];
  title?: string;
  description?: string;
  enum?: unknown[];
  default?: unknown;
  examples?: unknown[];
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  [more: string]: unknown;
};

const kindOf = (s: Schema) => [s.type].flat().find((t) => t !== "null") ?? "";

/** Arguments to begin with: the defaults of their schema. */
export const defaultsOf = (schema?: Schema): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(schema?.properties ?? {})
      .map(([name, s]) => [name, s?.default])
      .filter(([, v]) => v !== undefined),
  );

/** Reports whether a form can show every property of a schema. */
export const formable = (schema?: Schema) =>
  Object.values(schema?.properties ?? {}).every(
    (s) =>
      s &&
      typeof s === "object" &&
      (s.enum || ["", "string", "number", "integer", "boolean", "array", "object"].includes(kindOf(s))),
  );

/** A form for the arguments that a schema describes; JSON where it cannot. */
export function ArgumentsForm({
  schema,
  value,
  onChange,
  issue,
}: {
  schema?: Schema;
  value: Values;
  onChange: (value: Values) => void;
  issue?: string;
}) {
  const [json, setJson] = useState(!formable(schema));
  const [text, setText] = useState(JSON.stringify(value, null, 2));
  const [wrong, setWrong] = useState("");
  const names = Object.entries(schema?.properties ?? {});
  const set = (name: string, v: unknown) => {
    const next = { ...value };
    if (v === undefined || v === "") delete next[name];
    else next[name] = v;
    onChange(next);
  };
  const read = (t: string) => {
    setText(t);
    try {
      const v = JSON.parse(t || "{}");
      if (!v || typeof v !== "object" || Array.isArray(v)) throw new Error("not an object");
      setWrong("");
      onChange(v);
    } catch {
      setWrong("Not a JSON object yet.");
    }
  };
  return (
    <div class="stack">
      {json ? (
        <TextArea
          label="Arguments"
          code
          rows={5}
          value={text}
          error={wrong || issue}
          onInput={read}
          hint="A JSON object."
        />
      ) : names.length ? (
        names.map(([name, s]) => (
          <Argument
            key={name}
            name={name}
            schema={s ?? {}}
            required={schema?.required?.includes(name) ?? false}
            value={value[name]}
            onChange={(v) => set(name, v)}
          />
        ))
      ) : (
        <p class="muted">No arguments.</p>
      )}
      {!json && issue && (
        <p class="issue small" role="alert">
          {issue}
        </p>
      )}
      {formable(schema) && (
        <div>
          <button
            type="button"
            class="link small"
            onClick={() => {
              setText(JSON.stringify(value, null, 2));
              setWrong("");
              setJson(!json);
            }}
          >
            {json ? "As a form" : "As JSON"}
          </button>
        </div>
      )}
    </div>
  );
}

function Argument({
  name,
  schema: s,
  required,
  value,
  onChange,
}: {
  name: string;
  schema: Schema;
  required: boolean;
  value: unknown;
  onChange: (v: unknown) => void;
}) {
  const label = required ? `${name} *` : name;
  const common = { label, hint: s.description };
  const kind = kindOf(s);
  if (s.enum)
    return (
      <SelectField
        {...common}
        value={value === undefined ? "" : JSON.stringify(value)}
        onChange={(v) => onChange(v ? JSON.parse(v) : undefined)}
        options={[["", "–"], ...s.enum.map((e): [string, string] => [JSON.stringify(e), String(e)])]}
      />
    );
  if (kind === "boolean")
    return <Switch label={label} hint={s.description} checked={value === true} onChange={onChange} />;
  if (kind === "number" || kind === "integer") return <NumberArgument {...common} value={value} onChange={onChange} />;
  if (kind === "array" && kindOf(s.items ?? {}) === "string")
    return (
      <TextArea
        {...common}
        rows={2}
        hint={[s.description, "One per line."].filter(Boolean).join(" ")}
        value={Array.isArray(value) ? value.join("\n") : ""}
        onInput={(v) => onChange(v ? v.split("\n") : undefined)}
      />
    );
  if (kind === "array" || kind === "object" || !kind)
    return <JsonArgument {...common} value={value} onChange={onChange} />;
  return (
    <TextArea
      {...common}
      rows={1}
      placeholder={s.examples?.length ? String(s.examples[0]) : undefined}
      value={value === undefined ? "" : String(value)}
      onInput={onChange}
    />
  );
}

function NumberArgument({
  value,
  onChange,
  ...common
}: {
  label: string;
  hint?: string;
  value: unknown;
  onChange: (v: unknown) => void;
}) {
  const [typed, setTyped] = useTyped(value, (v) => (v === undefined ? "" : String(v)));
  return (
    <TextField
      {...common}
      type="number"
      value={typed}
      onInput={(t) => {
        const v = t === "" ? undefined : Number(t);
        setTyped(t, v);
        onChange(v);
      }}
    />
  );
}

function JsonArgument({
  value,
  onChange,
  ...common
}: {
  label: string;
  hint?: string;
  value: unknown;
  onChange: (v: unknown) => void;
}) {
  const [text, setText] = useState(value === undefined ? "" : JSON.stringify(value));
  const [wrong, setWrong] = useState(false);
  const read = (t: string) => {
    setText(t);
    try {
      onChange(t.trim() ? JSON.parse(t) : undefined);
      setWrong(false);
    } catch {
      setWrong(true);
    }
  };
  return (
    <TextArea
      {...common}
      code
      rows={2}
      value={text}
      onInput={read}
      error={wrong ? "Not valid JSON yet." : undefined}
      hint={[common.hint, "JSON."].filter(Boolean).join(" ")}
    />
  );
}

type Row = { name: string; type: string; description: string; required: boolean; rest: Schema };

const simple: [string, string][] = [
  ["string", "Text"],
  ["number", "Number"],
  ["integer", "Whole number"],
  ["boolean", "Yes or no"],
  ["array", "List"],
  ["object", "Object"],
];

const rowsOf = (schema?: Schema): Row[] =>
  Object.entries(schema?.properties ?? {}).map(([name, { type, description, ...rest }]) => ({
    name,
    type: String(type ?? "string"),
    description: description ?? "",
    required: schema?.required?.includes(name) ?? false,
    rest,
  }));

/** Reports whether rows can show a schema without losing any of it. */
const editable = (schema?: Schema) =>
  !schema ||
  (Object.keys(schema).every((k) =>
    ["type", "properties", "required", "additionalProperties", "$schema"].includes(k),
  ) &&
    Object.values(schema.properties ?? {}).every((s) => s && simple.some(([t]) => t === s.type)));

function schemaOf(rows: Row[], was?: Schema): Schema {
  const named = rows.filter((r) => r.name.trim());
  const { properties: _p, required: _r, ...kept } = was ?? {};
  const required = named.filter((r) => r.required).map((r) => r.name.trim());
  return {
    type: "object",
    ...kept,
    properties: Object.fromEntries(
      named.map((r) => [
        r.name.trim(),
        { type: r.type, ...(r.description && { description: r.description }), ...r.rest },
      ]),
    ),
    ...(required.length && { required }),
  };
}

/** Edits the schema of arguments: a row for each, or JSON. */
export function ArgumentsSchema({
  value,
  onChange,
  disabled,
  error,
}: {
  value: Schema;
  onChange: (schema: Schema) => void;
  disabled: boolean;
  error?: string;
}) {
  const [rows, setRows] = useState(rowsOf(value));
  const [json, setJson] = useState(!editable(value));
  const [text, setText] = useState(JSON.stringify(value, null, 2));
  const [wrong, setWrong] = useState("");
  const set = (next: Row[]) => {
    setRows(next);
    onChange(schemaOf(next, value));
  };
  const change = (i: number, part: Partial<Row>) => set(rows.map((r, j) => (j === i ? { ...r, ...part } : r)));
  const read = (t: string) => {
    setText(t);
    try {
      onChange(JSON.parse(t));
      setWrong("");
    } catch (e) {
      setWrong(`Not valid JSON yet: ${asError(e).message}`);
    }
  };
  const swap = () => {
    if (json) setRows(rowsOf(value));
    else setText(JSON.stringify(value, null, 2));
    setWrong("");
    setJson(!json);
  };
  return (
    <fieldset class="field plain-fieldset">
      <legend>Arguments</legend>
      {json ? (
        <Code
          language="json"
          label="Argument schema"
          rows={8}
          value={text}
          onInput={read}
          readonly={disabled}
          invalid={Boolean(wrong || error)}
        />
      ) : (
        rows.map((r, i) => (
          <div class="argument" key={i}>
            <input
              aria-label={`Name of argument ${i + 1}`}
              placeholder="name"
              value={r.name}
              disabled={disabled}
              onInput={(e) => change(i, { name: e.currentTarget.value })}
            />
            <select
              aria-label={`Type of argument ${i + 1}`}
              disabled={disabled}
              value={r.type}
              onChange={(e) => change(i, { type: e.currentTarget.value })}
            >
              {simple.map(([v, t]) => (
                <option value={v} selected={v === r.type}>
                  {t}
                </option>
              ))}
            </select>
            <input
              aria-label={`Description of argument ${i + 1}`}
              placeholder="Description for the model"
              value={r.description}
              disabled={disabled}
              onInput={(e) => change(i, { description: e.currentTarget.value })}
            />
            <label class="row nowrap small">
              <input
                type="checkbox"
                checked={r.required}
                disabled={disabled}
                onChange={(e) => change(i, { required: e.currentTarget.checked })}
              />{" "}
              required
            </label>
            {!disabled && (
              <Button
                kind="quiet"
                icon="X"
                label={`Remove argument ${i + 1}`}
                onClick={() => set(rows.filter((_, j) => j !== i))}
              />
            )}
          </div>
        ))
      )}
      {(wrong || error) && (
        <small class="issue" role="alert">
          {wrong || error}
        </small>
      )}
      <div class="row">
        {!json && !disabled && (
          <Button
            icon="Plus"
            onClick={() => setRows([...rows, { name: "", type: "string", description: "", required: false, rest: {} }])}
          >
            Add argument
          </Button>
        )}
        {(!json || editable(value)) && (
          <button type="button" class="link small" onClick={swap}>
            {json ? "As rows" : "As JSON Schema"}
          </button>
        )}
      </div>
    </fieldset>
  );
}
