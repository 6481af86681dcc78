// The arguments of a tool as a form, and the editor of their schema.
import { useState } from "preact/hooks";

import { asError } from "../data";
import { AddRow, Button, Code, SelectField, Switch, TextArea, TextField, type Values } from "../ui";
import { useTyped } from "./typed";

/** The JSON Schema of arguments, or of one of them. */
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

/** Returns the type of a schema apart from null; empty if it has none. */
const kindOf = (schema: Schema) => [schema.type].flat().find((type) => type !== "null") ?? "";

const formKinds = ["", "string", "number", "integer", "boolean", "array", "object"];

/** Returns the default arguments of a schema. */
export function defaultsOf(schema?: Schema): Record<string, unknown> {
  const defaults = Object.entries(schema?.properties ?? {}).map(([name, property]) => [name, property?.default]);
  return Object.fromEntries(defaults.filter(([, value]) => value !== undefined));
}

/** Reports whether a form can show every property of a schema. */
export const formable = (schema?: Schema) =>
  Object.values(schema?.properties ?? {}).every(
    (property) => property && typeof property === "object" && (property.enum || formKinds.includes(kindOf(property))),
  );

type ArgumentsFormProps = {
  schema?: Schema;
  value: Values;
  onChange: (value: Values) => void;
  issue?: string;
};

/** A form for the arguments that a schema describes, or JSON if it cannot show them. */
export function ArgumentsForm({ schema, value, onChange, issue }: ArgumentsFormProps) {
  const [asJson, setAsJson] = useState(!formable(schema));
  return (
    <div class="stack">
      {asJson ? (
        <ArgumentsJson value={value} onChange={onChange} issue={issue} />
      ) : (
        <ArgumentFields schema={schema} value={value} onChange={onChange} />
      )}
      {!asJson && issue && (
        <p class="issue small" role="alert">
          {issue}
        </p>
      )}
      {formable(schema) && (
        <div>
          <button type="button" class="link small" onClick={() => setAsJson(!asJson)}>
            {asJson ? "As a form" : "As JSON"}
          </button>
        </div>
      )}
    </div>
  );
}

function ArgumentFields({ schema, value, onChange }: ArgumentsFormProps) {
  const properties = Object.entries(schema?.properties ?? {});
  if (!properties.length) return <p class="muted">No arguments.</p>;
  const set = (name: string, changed: unknown) => {
    const { [name]: _, ...others } = value;
    const isEmpty = changed === undefined || changed === "";
    onChange(isEmpty ? others : { ...value, [name]: changed });
  };
  return properties.map(([name, property]) => (
    <Argument
      key={name}
      name={name}
      schema={property ?? {}}
      required={schema?.required?.includes(name) ?? false}
      value={value[name]}
      onChange={(changed) => set(name, changed)}
    />
  ));
}

function ArgumentsJson({ value, onChange, issue }: ArgumentsFormProps) {
  const [text, setText] = useState(JSON.stringify(value, null, 2));
  const [invalid, setInvalid] = useState(false);
  const onInput = (typed: string) => {
    setText(typed);
    try {
      const parsed = JSON.parse(typed || "{}");
      const isObject = parsed && typeof parsed === "object" && !Array.isArray(parsed);
      setInvalid(!isObject);
      if (isObject) onChange(parsed);
    } catch {
      setInvalid(true);
    }
  };
  return (
    <TextArea
      label="Arguments"
      code
      rows={5}
      value={text}
      error={invalid ? "Not a JSON object yet." : issue}
      onInput={onInput}
      hint="A JSON object."
    />
  );
}

type ArgumentProps = {
  name: string;
  schema: Schema;
  required: boolean;
  value: unknown;
  onChange: (value: unknown) => void;
};

/** The field of an argument, by the type of its schema. */
function Argument({ name, schema, required, value, onChange }: ArgumentProps) {
  const label = required ? `${name} *` : name;
  const hint = schema.description;
  const kind = kindOf(schema);
  if (schema.enum)
    return (
      <SelectField
        label={label}
        hint={hint}
        value={value === undefined ? "" : JSON.stringify(value)}
        onChange={(chosen) => onChange(chosen ? JSON.parse(chosen) : undefined)}
        options={[
          ["", "–"],
          ...schema.enum.map((option): [string, string] => [JSON.stringify(option), String(option)]),
        ]}
      />
    );
  if (kind === "boolean") return <Switch label={label} hint={hint} checked={value === true} onChange={onChange} />;
  if (kind === "number" || kind === "integer")
    return <NumberArgument label={label} hint={hint} value={value} onChange={onChange} />;
  if (kind === "array" && kindOf(schema.items ?? {}) === "string")
    return (
      <TextArea
        label={label}
        rows={2}
        hint={[hint, "One per line."].filter(Boolean).join(" ")}
        value={Array.isArray(value) ? value.join("\n") : ""}
        onInput={(text) => onChange(text ? text.split("\n") : undefined)}
      />
    );
  if (kind === "array" || kind === "object" || !kind)
    return <JsonArgument label={label} hint={hint} value={value} onChange={onChange} />;
  return (
    <TextArea
      label={label}
      hint={hint}
      rows={1}
      placeholder={schema.examples?.length ? String(schema.examples[0]) : undefined}
      value={value === undefined ? "" : String(value)}
      onInput={onChange}
    />
  );
}

type ValueProps = { label: string; hint?: string; value: unknown; onChange: (value: unknown) => void };

function NumberArgument({ label, hint, value, onChange }: ValueProps) {
  const [typed, setTyped] = useTyped(value, (number) => (number === undefined ? "" : String(number)));
  const onInput = (text: string) => {
    const number = text === "" ? undefined : Number(text);
    setTyped(text, number);
    onChange(number);
  };
  return <TextField label={label} hint={hint} type="number" value={typed} onInput={onInput} />;
}

function JsonArgument({ label, hint, value, onChange }: ValueProps) {
  const [text, setText] = useState(value === undefined ? "" : JSON.stringify(value));
  const [invalid, setInvalid] = useState(false);
  const onInput = (typed: string) => {
    setText(typed);
    try {
      onChange(typed.trim() ? JSON.parse(typed) : undefined);
      setInvalid(false);
    } catch {
      setInvalid(true);
    }
  };
  return (
    <TextArea
      label={label}
      code
      rows={2}
      value={text}
      onInput={onInput}
      error={invalid ? "Not valid JSON yet." : undefined}
      hint={[hint, "JSON."].filter(Boolean).join(" ")}
    />
  );
}

/** An argument in the editor of a schema; rest has the properties that the row does not show. */
type Row = { name: string; type: string; description: string; required: boolean; rest: Schema };

const emptyRow: Row = { name: "", type: "string", description: "", required: false, rest: {} };

const rowTypes: [type: string, label: string][] = [
  ["string", "Text"],
  ["number", "Number"],
  ["integer", "Whole number"],
  ["boolean", "Yes or no"],
  ["array", "List"],
  ["object", "Object"],
];
const rowKeys = ["type", "properties", "required", "additionalProperties", "$schema"];

const rowsOf = (schema?: Schema): Row[] =>
  Object.entries(schema?.properties ?? {}).map(([name, { type, description, ...rest }]) => ({
    name,
    type: String(type ?? "string"),
    description: description ?? "",
    required: schema?.required?.includes(name) ?? false,
    rest,
  }));

/** Reports whether rows can show a schema without losing any of it. */
function hasRows(schema?: Schema): boolean {
  if (!schema) return true;
  const hasType = (property: Schema) => property && rowTypes.some(([type]) => type === property.type);
  return (
    Object.keys(schema).every((key) => rowKeys.includes(key)) && Object.values(schema.properties ?? {}).every(hasType)
  );
}

/** Returns the schema of rows, with the other keys of the schema before. */
function schemaOf(rows: Row[], before?: Schema): Schema {
  const named = rows.filter((row) => row.name.trim());
  const { properties: _p, required: _r, ...others } = before ?? {};
  const required = named.filter((row) => row.required).map((row) => row.name.trim());
  const propertyOf = ({ type, description, rest }: Row): Schema => ({
    type,
    ...(description && { description }),
    ...rest,
  });
  return {
    type: "object",
    ...others,
    properties: Object.fromEntries(named.map((row) => [row.name.trim(), propertyOf(row)])),
    ...(required.length && { required }),
  };
}

type ArgumentsSchemaProps = {
  value: Schema;
  onChange: (schema: Schema) => void;
  disabled: boolean;
  error?: string;
};

/** Edits the schema of arguments as rows, or as JSON. */
export function ArgumentsSchema({ value, onChange, disabled, error }: ArgumentsSchemaProps) {
  const [rows, setRows] = useState(rowsOf(value));
  const [asJson, setAsJson] = useState(!hasRows(value));
  const [text, setText] = useState(JSON.stringify(value, null, 2));
  const [jsonIssue, setJsonIssue] = useState("");
  const issue = jsonIssue || error;
  const changeRows = (next: Row[]) => {
    setRows(next);
    onChange(schemaOf(next, value));
  };
  const changeJson = (typed: string) => {
    setText(typed);
    try {
      onChange(JSON.parse(typed));
      setJsonIssue("");
    } catch (thrown) {
      setJsonIssue(`Not valid JSON yet: ${asError(thrown).message}`);
    }
  };
  const switchView = () => {
    if (asJson) setRows(rowsOf(value));
    else setText(JSON.stringify(value, null, 2));
    setJsonIssue("");
    setAsJson(!asJson);
  };
  const viewSwitch = (!asJson || hasRows(value)) && (
    <button type="button" class="link small" onClick={switchView}>
      {asJson ? "As rows" : "As JSON Schema"}
    </button>
  );
  return (
    <fieldset class="field plain-fieldset">
      <legend>Arguments</legend>
      {asJson ? (
        <Code
          language="json"
          label="Argument schema"
          rows={8}
          value={text}
          onInput={changeJson}
          readonly={disabled}
          invalid={Boolean(issue)}
        />
      ) : (
        rows.map((row, index) => (
          <ArgumentRow
            key={index}
            row={row}
            number={index + 1}
            disabled={disabled}
            change={(changes) => changeRows(rows.with(index, { ...row, ...changes }))}
            remove={() => changeRows(rows.toSpliced(index, 1))}
          />
        ))
      )}
      {issue && (
        <small class="issue" role="alert">
          {issue}
        </small>
      )}
      {asJson || disabled ? (
        <div class="row">{viewSwitch}</div>
      ) : (
        <AddRow title="Add argument" add={() => setRows([...rows, emptyRow])}>
          {viewSwitch}
        </AddRow>
      )}
    </fieldset>
  );
}

type ArgumentRowProps = {
  row: Row;
  number: number;
  disabled: boolean;
  change: (changes: Partial<Row>) => void;
  remove: () => void;
};

function ArgumentRow({ row, number, disabled, change, remove }: ArgumentRowProps) {
  return (
    <div class="argument">
      <input
        aria-label={`Name of argument ${number}`}
        placeholder="name"
        value={row.name}
        disabled={disabled}
        onInput={(event) => change({ name: event.currentTarget.value })}
      />
      <select
        aria-label={`Type of argument ${number}`}
        disabled={disabled}
        value={row.type}
        onChange={(event) => change({ type: event.currentTarget.value })}
      >
        {rowTypes.map(([type, label]) => (
          <option value={type} selected={type === row.type}>
            {label}
          </option>
        ))}
      </select>
      <input
        aria-label={`Description of argument ${number}`}
        placeholder="Description for the model"
        value={row.description}
        disabled={disabled}
        onInput={(event) => change({ description: event.currentTarget.value })}
      />
      <label class="row nowrap small">
        <input
          type="checkbox"
          checked={row.required}
          disabled={disabled}
          onChange={(event) => change({ required: event.currentTarget.checked })}
        />{" "}
        required
      </label>
      {!disabled && <Button kind="quiet" icon="X" label={`Remove argument ${number}`} onClick={remove} />}
    </div>
  );
}
