// Builds the JSON Schema of a model's answer: an object with named fields. Any other schema is edited as JSON.
import { useContext, useEffect, useState } from "preact/hooks";

import { AddRow, Button } from "../ui";
import { JsonField } from "./jsonfield";
import { NodeContext } from "./templatefield";

type Row = { name: string; type: string; required: boolean; description: string; options: string };

const types: [type: string, label: string][] = [
  ["string", "Text"],
  ["number", "Number"],
  ["integer", "Whole number"],
  ["boolean", "Yes or no"],
  ["enum", "One of…"],
  ["string[]", "List of strings"],
  ["number[]", "List of numbers"],
];
const schemaKeys = new Set(["type", "properties", "required", "additionalProperties"]);
const fieldKeys = new Set(["type", "description", "enum", "items"]);
const emptyRow: Row = { name: "", type: "string", required: true, description: "", options: "" };

/** The part of JSON Schema that rows can express. */
type FieldSchema = {
  type?: string;
  enum?: unknown[];
  items?: FieldSchema;
  properties?: Record<string, FieldSchema>;
  required?: string[];
  description?: string;
  additionalProperties?: unknown;
};

const hasOnly = (keys: Set<string>, object: object) => Object.keys(object).every((key) => keys.has(key));

function rowType(field: FieldSchema): string | undefined {
  if (field.enum) return "enum";
  return field.type === "array" ? `${field.items?.type}[]` : field.type;
}

/** Returns the row of a field; undefined if rows cannot express it. */
function rowOf(name: string, field: FieldSchema, required: boolean): Row | undefined {
  if (!field || typeof field !== "object" || !hasOnly(fieldKeys, field)) return undefined;
  const type = rowType(field);
  if (!type || !types.some(([known]) => known === type)) return undefined;
  if (field.items && Object.keys(field.items).length > 1) return undefined;
  const options = field.enum ?? [];
  if (options.some((option) => typeof option !== "string" || option.includes(","))) return undefined;
  return { name, type, required, description: field.description ?? "", options: options.join(", ") };
}

/** Returns the rows of a schema; undefined if rows cannot express it. */
export function rowsOf(value: unknown): Row[] | undefined {
  const schema = value as FieldSchema | undefined;
  if (schema === undefined) return [];
  if (!schema || typeof schema !== "object" || schema.type !== "object" || !hasOnly(schemaKeys, schema))
    return undefined;
  if (schema.additionalProperties !== undefined && schema.additionalProperties !== false) return undefined;
  const required = schema.required ?? [];
  const rows = Object.entries(schema.properties ?? {}).map(([name, field]) =>
    rowOf(name, field, required.includes(name)),
  );
  return rows.every((row) => row !== undefined) ? rows : undefined;
}

function fieldType({ type, options }: Row): FieldSchema {
  if (type === "enum") {
    const values = options.split(",").map((option) => option.trim());
    return { type: "string", enum: values.filter(Boolean) };
  }
  return type.endsWith("[]") ? { type: "array", items: { type: type.slice(0, -2) } } : { type };
}

/** Returns the schema of rows; undefined if none has a name. */
export function schemaOf(rows: Row[]): unknown {
  const named = rows.filter((row) => row.name);
  if (!named.length) return undefined;
  const fieldOf = (row: Row) => ({ ...fieldType(row), ...(row.description && { description: row.description }) });
  return {
    type: "object",
    properties: Object.fromEntries(named.map((row) => [row.name, fieldOf(row)])),
    required: named.filter((row) => row.required).map((row) => row.name),
    additionalProperties: false,
  };
}

type OutputSchemaFieldProps = { id: string; value: unknown; onChange: (value: unknown) => void };

/** The schema of a model's answer, as rows or as JSON. */
export function OutputSchemaField({ id, value, onChange }: OutputSchemaFieldProps) {
  const { readonly } = useContext(NodeContext);
  const [asJson, setAsJson] = useState(false);
  const storedRows = rowsOf(value);
  const [rows, setRows] = useState<Row[]>(storedRows ?? []); // also those that have no name yet
  useEffect(() => {
    if (storedRows && JSON.stringify(schemaOf(storedRows)) !== JSON.stringify(schemaOf(rows))) setRows(storedRows);
  }, [JSON.stringify(value)]);
  const change = (next: Row[]) => {
    setRows(next);
    onChange(schemaOf(next));
  };
  if (asJson || !storedRows)
    return (
      <>
        <JsonField id={id} value={value} onChange={onChange} rows={6} />
        {storedRows && (
          <button type="button" class="link small" onClick={() => setAsJson(false)}>
            As fields
          </button>
        )}
      </>
    );
  return (
    <div class="conditions">
      {rows.map((row, index) => (
        <FieldRow
          key={index}
          row={row}
          number={index + 1}
          readonly={readonly}
          change={(changes) => change(rows.with(index, { ...row, ...changes }))}
          remove={() => change(rows.toSpliced(index, 1))}
        />
      ))}
      {!readonly && (
        <AddRow title="Add a field" add={() => setRows([...rows, emptyRow])}>
          <button type="button" class="link small" onClick={() => setAsJson(true)}>
            As JSON
          </button>
        </AddRow>
      )}
    </div>
  );
}

type FieldRowProps = {
  row: Row;
  number: number;
  readonly: boolean;
  change: (changes: Partial<Row>) => void;
  remove: () => void;
};

function FieldRow({ row, number, readonly, change, remove }: FieldRowProps) {
  return (
    <div class="condition">
      <div class="row nowrap">
        <input
          class="grow"
          value={row.name}
          aria-label={`Name of field ${number}`}
          placeholder="name"
          readOnly={readonly}
          onInput={(event) => change({ name: event.currentTarget.value })}
        />
        <select
          aria-label={`Type of field ${number}`}
          disabled={readonly}
          value={row.type}
          onChange={(event) => change({ type: event.currentTarget.value })}
        >
          {types.map(([type, label]) => (
            <option value={type} selected={type === row.type}>
              {label}
            </option>
          ))}
        </select>
        {!readonly && <Button kind="quiet" icon="X" label={`Remove field ${number}`} onClick={remove} />}
      </div>
      {row.type === "enum" && (
        <input
          value={row.options}
          aria-label={`Values of field ${number}`}
          placeholder="values, separated by commas"
          readOnly={readonly}
          onInput={(event) => change({ options: event.currentTarget.value })}
        />
      )}
      <div class="row nowrap">
        <input
          class="grow"
          value={row.description}
          aria-label={`Description of field ${number}`}
          placeholder="what the model should write here"
          readOnly={readonly}
          onInput={(event) => change({ description: event.currentTarget.value })}
        />
        <label class="small row nowrap">
          <input
            type="checkbox"
            checked={row.required}
            disabled={readonly}
            onChange={(event) => change({ required: event.currentTarget.checked })}
          />{" "}
          always
        </label>
      </div>
    </div>
  );
}
