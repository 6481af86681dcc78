// The fields of a node that calls an operation of an API: which one, and its
// arguments by their schema.
import { useContext, useId, useState } from "preact/hooks";

import { agentId, path as at, useQuery } from "../data";
import { Button, useFocusAdded } from "../ui";
import { asObject, RequiredMark } from "./fieldframe";
import { isTemplateText, JsonField, parseOrText } from "./jsonfield";
import { NodeContext, ValueField } from "./templatefield";

type Schema = {
  type?: string | string[];
  description?: string;
  enum?: unknown[];
  properties?: Record<string, Schema>;
  required?: string[];
};

const apiAt = <const M extends string[]>(...more: M) => at("agents", agentId.value, "apis", ...more);

type OperationProps = { id: string; value: unknown; onChange: (value: unknown) => void };

/** Chooses an operation of the node's API by searching for it. */
export function OperationField({ id, value, onChange }: OperationProps) {
  const { node, readonly } = useContext(NodeContext);
  const operation = typeof value === "string" ? value : "";
  const api = String(node.data?.api ?? "");
  const [open, setOpen] = useState(false);
  if (!api)
    return (
      <p id={id} class="muted small">
        Choose an API first.
      </p>
    );
  const pick = (picked: string) => {
    onChange(picked);
    setOpen(false);
  };
  return (
    <div class="stack tight">
      {operation && (
        <div class="row nowrap operation-chosen">
          <ChosenOperation api={api} operation={operation} />
          {!readonly && <Button onClick={() => setOpen(!open)}>{open ? "Close" : "Change"}</Button>}
        </div>
      )}
      {(open || !operation) && !readonly && <OperationSearch id={id} api={api} pick={pick} />}
    </div>
  );
}

function ChosenOperation({ api, operation }: { api: string; operation: string }) {
  const details = useQuery(apiAt(api, "operations", operation)).data.value;
  return (
    <span class="grow">
      {details ? (
        <>
          <code>{details.method}</code> <bdi>{details.path}</bdi>
        </>
      ) : (
        <bdi>{operation}</bdi>
      )}
      <br />
      <small class="muted">
        <bdi>{details?.summary || operation}</bdi>
      </small>
    </span>
  );
}

function OperationSearch({ id, api, pick }: { id: string; api: string; pick: (operation: string) => void }) {
  const [search, setSearch] = useState("");
  const found = useQuery(apiAt(api, "operations"), { search, limit: 50 }).data.value;
  const operations = found?.operations ?? [];
  const others = found ? found.meta.total - operations.length : 0;
  return (
    <>
      <input
        id={id}
        type="search"
        placeholder="Search operations"
        value={search}
        onInput={(e) => setSearch(e.currentTarget.value)}
      />
      <ul class="operation-options">
        {operations.map((operation) => (
          <li key={operation.id}>
            <button type="button" onClick={() => pick(operation.id)}>
              <code>{operation.method}</code> <bdi>{operation.path}</bdi>
              <small class="muted clip">
                <bdi>{operation.summary}</bdi>
              </small>
            </button>
          </li>
        ))}
      </ul>
      {found && !operations.length && <p class="muted small">No operations match.</p>}
      {others > 0 && <p class="muted small">{others} more: narrow the search.</p>}
    </>
  );
}

/** Returns the first type of a schema besides null. */
const typeOf = (schema: Schema) => [schema.type].flat().find((type) => type !== "null") ?? "";

/** Reads an argument: text where the schema has text, otherwise JSON. */
function readArgument(text: string, schema: Schema): unknown {
  if (text === "") return undefined;
  return typeOf(schema) === "string" || isTemplateText(text) ? text : parseOrText(text);
}

const formatArgument = (value: unknown) => {
  if (value === undefined) return "";
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
};

/** Returns the value of an argument that has just been added. */
function initialValue(schema: Schema): unknown {
  const initial: Record<string, unknown> = { boolean: true, object: {}, array: [] };
  return initial[typeOf(schema)] ?? "";
}

type ArgumentsProps = { id: string; value: unknown; onChange: (value: unknown) => void; path: string };

/** The arguments of the node's operation, the required ones first. */
export function ArgumentsField({ id, value, onChange, path }: ArgumentsProps) {
  const { node } = useContext(NodeContext);
  const { api, operation } = (node.data ?? {}) as { api?: string; operation?: string };
  const details = useQuery(api && operation ? apiAt(api, "operations", operation) : null);
  const [asJson, setAsJson] = useState(false);
  if (!api || !operation)
    return (
      <p id={id} class="muted small">
        Choose an operation first.
      </p>
    );
  const schema = details.data.value?.parameters as Schema | undefined;
  const fitsForm = value === undefined || asObject(value) !== undefined;
  if (!schema?.properties || asJson || !fitsForm)
    return (
      <>
        <JsonField id={id} value={value} onChange={onChange} />
        {schema?.properties && asObject(value) && (
          <button type="button" class="link small" onClick={() => setAsJson(false)}>
            As a form
          </button>
        )}
      </>
    );
  return (
    <ArgumentsForm
      properties={schema.properties}
      required={new Set(schema.required)}
      value={asObject(value) ?? {}}
      onChange={onChange}
      path={path}
      showJson={() => setAsJson(true)}
    />
  );
}

type ArgumentsFormProps = {
  properties: Record<string, Schema>;
  required: Set<string>;
  value: Record<string, unknown>;
  onChange: (value: Record<string, unknown> | undefined) => void;
  path: string;
  showJson: () => void;
};

function ArgumentsForm({ properties, required, value, onChange, path, showJson }: ArgumentsFormProps) {
  const { readonly } = useContext(NodeContext);
  const addId = useId();
  const set = (name: string, argument: unknown) => {
    const next = { ...value };
    if (argument === undefined) delete next[name];
    else next[name] = argument;
    onChange(Object.keys(next).length ? next : undefined);
  };
  const shown = [...new Set([...required, ...Object.keys(value)])];
  const { place, adding } = useFocusAdded();
  const others = Object.keys(properties).filter((name) => !shown.includes(name));
  return (
    <div class="stack tight" data-path={path}>
      {shown.map((name) => (
        <Argument
          key={name}
          name={name}
          schema={properties[name]}
          required={required.has(name)}
          value={value[name]}
          onChange={(argument) => set(name, argument)}
        />
      ))}
      {!shown.length && <p class="muted small">{others.length ? "Nothing is required." : "No arguments."}</p>}
      {!readonly && (
        <div class="row" ref={place}>
          {others.length > 0 && (
            <select
              id={addId}
              aria-label="Add argument"
              value=""
              onChange={(e) => {
                const name = e.currentTarget.value;
                if (name) {
                  adding();
                  set(name, initialValue(properties[name]));
                }
                e.currentTarget.value = "";
              }}
            >
              <option value="">Add argument…</option>
              {others.map((name) => (
                <option key={name} value={name}>
                  {name}
                </option>
              ))}
            </select>
          )}
          <button type="button" class="link small" onClick={showJson}>
            As JSON
          </button>
        </div>
      )}
    </div>
  );
}

type ArgumentProps = {
  name: string;
  /** Undefined for an argument that the operation does not have. */
  schema?: Schema;
  required: boolean;
  value: unknown;
  onChange: (value: unknown) => void;
};

function Argument({ name, schema: known, required, value, onChange }: ArgumentProps) {
  const { readonly } = useContext(NodeContext);
  const schema = known ?? {};
  const type = typeOf(schema);
  const read = (text: string) => {
    const argument = readArgument(text, schema);
    return required ? argument : (argument ?? "");
  };
  const hint = [
    schema.description,
    schema.enum && `One of ${schema.enum.join(", ")}.`,
    !known && "The operation doesn't have this argument.",
  ]
    .filter(Boolean)
    .join(" ");
  return (
    <div class="field">
      <div class="row nowrap field-head">
        <span class="grow label">
          <bdi>{name}</bdi>
          {required && <RequiredMark />} {type && <small class="muted">{type}</small>}
        </span>
        {!required && !readonly && (
          <Button kind="quiet" icon="X" label={`Remove ${name}`} onClick={() => onChange(undefined)} />
        )}
      </div>
      <ValueField
        label={name}
        rows={["object", "array"].includes(type) || name === "body" ? 4 : 1}
        value={value}
        show={formatArgument}
        read={read}
        onChange={onChange}
      />
      {hint && (
        <small class="muted operation-hint">
          <bdi>{hint}</bdi>
        </small>
      )}
    </div>
  );
}
