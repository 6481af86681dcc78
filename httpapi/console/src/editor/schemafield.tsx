// A builder of the JSON Schema that a model's answer must fit: an object of
// named fields. Any other schema is edited as JSON.
import { useContext, useEffect, useState } from "preact/hooks";

import { Button } from "../ui";
import { JsonField } from "./jsonfield";
import { NodeContext } from "./templatefield";

type Row = { name: string; type: string; required: boolean; description: string; options: string };

const types: [string, string][] = [
  ["string", "Text"],
  ["number", "Number"],
  ["integer", "Whole number"],
  ["boolean", "Yes or no"],
  ["enum", "One of…"],
  ["string[]", "List of strings"],
  ["number[]", "List of numbers"],
];
const known = new Set(["type", "properties", "required", "additionalProperties"]);
const knownOfField = new Set(["type", "description", "enum", "items"]);

/** A schema as far as rows can say it. */
type FieldSchema = {
  type?: string;
  enum?: unknown[];
  items?: FieldSchema;
  properties?: Record<string, FieldSchema>;
  required?: string[];
  description?: string;
  additionalProperties?: unknown;
};

/** The rows of a schema; undefined when it says more than rows can. */
export function rowsOf(value: unknown): Row[] | undefined {
  const schema = value as FieldSchema | undefined;
  if (schema === undefined) return [];
  if (
    !schema ||
    typeof schema !== "object" ||
    schema.type !== "object" ||
    Object.keys(schema).some((k) => !known.has(k)) ||
    (schema.additionalProperties !== undefined && schema.additionalProperties !== false)
  )
    return undefined;
  const rows: Row[] = [];
  for (const [name, field] of Object.entries(schema.properties ?? {})) {
    if (!field || typeof field !== "object" || Object.keys(field).some((k) => !knownOfField.has(k))) return undefined;
    const type = field.enum ? "enum" : field.type === "array" ? `${field.items?.type}[]` : field.type;
    if (
      !type ||
      !types.some(([t]) => t === type) ||
      (field.items && Object.keys(field.items).length > 1) ||
      field.enum?.some((o) => typeof o !== "string" || o.includes(","))
    )
      return undefined;
    rows.push({
      name,
      type,
      required: (schema.required ?? []).includes(name),
      description: field.description ?? "",
      options: (field.enum ?? []).join(", "),
    });
  }
  return rows;
}

/** The schema of rows; undefined when none has a name. */
export function schemaOf(rows: Row[]): unknown {
  const named = rows.filter((r) => r.name);
  if (!named.length) return undefined;
  const field = (r: Row) => ({
    ...(r.type === "enum"
      ? {
          type: "string",
          enum: r.options
            .split(",")
            .map((o) => o.trim())
            .filter(Boolean),
        }
      : r.type.endsWith("[]")
        ? { type: "array", items: { type: r.type.slice(0, -2) } }
        : { type: r.type }),
    ...(r.description && { description: r.description }),
  });
  return {
    type: "object",
    properties: Object.fromEntries(named.map((r) => [r.name, field(r)])),
    required: named.filter((r) => r.required).map((r) => r.name),
    additionalProperties: false,
  };
}

/** The schema of a model's answer, as rows or as JSON. */
export function OutputSchemaField({
  id,
  value,
  onChange,
}: {
  id: string;
  value: unknown;
  onChange: (v: unknown) => void;
}) {
  const { readonly } = useContext(NodeContext);
  const [asJson, setAsJson] = useState(false);
  const [rows, setRows] = useState<Row[]>(rowsOf(value) ?? []);
  const shape = rowsOf(value);
  useEffect(() => {
    if (shape && JSON.stringify(schemaOf(shape)) !== JSON.stringify(schemaOf(rows))) setRows(shape);
  }, [JSON.stringify(value)]);
  if (asJson || !shape)
    return (
      <>
        <JsonField id={id} value={value} onChange={onChange} rows={6} />
        {shape && (
          <button type="button" class="link small" onClick={() => setAsJson(false)}>
            As fields
          </button>
        )}
      </>
    );
  const set = (next: Row[]) => {
    setRows(next);
    onChange(schemaOf(next));
  };
  const change = (i: number, to: Partial<Row>) => set(rows.map((r, j) => (j === i ? { ...r, ...to } : r)));
  return (
    <div class="conditions">
      {rows.map((r, i) => (
        <div class="condition" key={i}>
          <div class="row nowrap">
            <input
              class="grow"
              value={r.name}
              aria-label={`Name of field ${i + 1}`}
              placeholder="name"
              readOnly={readonly}
              onInput={(e) => change(i, { name: e.currentTarget.value })}
            />
            <select
              aria-label={`Type of field ${i + 1}`}
              disabled={readonly}
              value={r.type}
              onChange={(e) => change(i, { type: e.currentTarget.value })}
            >
              {types.map(([t, words]) => (
                <option value={t} selected={t === r.type}>
                  {words}
                </option>
              ))}
            </select>
            {!readonly && (
              <Button
                kind="quiet"
                icon="X"
                label={`Remove field ${i + 1}`}
                onClick={() => set(rows.filter((_, j) => j !== i))}
              />
            )}
          </div>
          {r.type === "enum" && (
            <input
              value={r.options}
              aria-label={`Values of field ${i + 1}`}
              placeholder="values, separated by commas"
              readOnly={readonly}
              onInput={(e) => change(i, { options: e.currentTarget.value })}
            />
          )}
          <div class="row nowrap">
            <input
              class="grow"
              value={r.description}
              aria-label={`Description of field ${i + 1}`}
              placeholder="what the model should write here"
              readOnly={readonly}
              onInput={(e) => change(i, { description: e.currentTarget.value })}
            />
            <label class="small row nowrap">
              <input
                type="checkbox"
                checked={r.required}
                disabled={readonly}
                onChange={(e) => change(i, { required: e.currentTarget.checked })}
              />{" "}
              always
            </label>
          </div>
        </div>
      ))}
      {!readonly && (
        <div class="row">
          <Button
            icon="Plus"
            onClick={() =>
              setRows([...rows, { name: "", type: "string", required: true, description: "", options: "" }])
            }
          >
            Add a field
          </Button>
          <button type="button" class="link small" onClick={() => setAsJson(true)}>
            As JSON
          </button>
        </div>
      )}
    </div>
  );
}
