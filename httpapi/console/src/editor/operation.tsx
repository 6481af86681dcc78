// The fields of a node that calls an operation of an API: which one, and its
// arguments by their schema.
import { useContext, useId, useState } from "preact/hooks";

import { agentId, path as at, useQuery } from "../data";
import { Button } from "../ui";
import { JsonField } from "./jsonfield";
import { hasTemplate } from "./template";
import { NodeContext, ValueField } from "./templatefield";

type Schema = {
  type?: string | string[];
  description?: string;
  enum?: unknown[];
  properties?: Record<string, Schema>;
  required?: string[];
};

const apiAt = <const M extends string[]>(...more: M) => at("agents", agentId.value, "apis", ...more);

/** Chooses an operation of the node's API by words. */
export function OperationField({
  id,
  value: given,
  onChange,
}: {
  id: string;
  value: unknown;
  onChange: (v: unknown) => void;
}) {
  const { node, readonly } = useContext(NodeContext);
  const value = typeof given === "string" ? given : "";
  const api = String(node.data?.api ?? "");
  const [search, setSearch] = useState("");
  const [open, setOpen] = useState(false);
  const found = useQuery(api && (open || !value) ? apiAt(api, "operations") : null, { search, limit: 50 });
  const chosen = useQuery(api && value ? apiAt(api, "operations", value) : null);
  if (!api)
    return (
      <p id={id} class="muted small">
        Choose an API first.
      </p>
    );
  const list = found.data.value?.operations ?? [];
  const o = chosen.data.value;
  return (
    <div class="stack tight">
      {value && (
        <div class="row nowrap operation-chosen">
          <span class="grow">
            {o ? (
              <>
                <code>{o.method}</code> <bdi>{o.path}</bdi>
              </>
            ) : (
              <bdi>{value}</bdi>
            )}
            <br />
            <small class="muted">
              <bdi>{o?.summary || value}</bdi>
            </small>
          </span>
          {!readonly && <Button onClick={() => setOpen(!open)}>{open ? "Close" : "Change"}</Button>}
        </div>
      )}
      {(open || !value) && !readonly && (
        <>
          <input
            id={id}
            type="search"
            placeholder="Search operations"
            value={search}
            onInput={(e) => setSearch(e.currentTarget.value)}
          />
          <ul class="operation-options">
            {list.map((c) => (
              <li key={c.id}>
                <button
                  type="button"
                  onClick={() => {
                    onChange(c.id);
                    setOpen(false);
                    setSearch("");
                  }}
                >
                  <code>{c.method}</code> <bdi>{c.path}</bdi>
                  <small class="muted clip">
                    <bdi>{c.summary}</bdi>
                  </small>
                </button>
              </li>
            ))}
          </ul>
          {found.data.value && !list.length && <p class="muted small">No operations match.</p>}
          {found.data.value && found.data.value.meta.total > list.length && (
            <p class="muted small">{found.data.value.meta.total - list.length} more: narrow the search.</p>
          )}
        </>
      )}
    </div>
  );
}

const kindOf = (s: Schema) => [s.type].flat().find((t) => t !== "null") ?? "";

/** A value as it was typed: text where the schema has text, else JSON. */
function typed(text: string, schema: Schema): unknown {
  if (text === "") return undefined;
  if (kindOf(schema) === "string" || (hasTemplate(text) && !/^[[{](?!\{)/.test(text))) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

const written = (v: unknown) => (v === undefined ? "" : typeof v === "string" ? v : JSON.stringify(v, null, 2));

/** The arguments of the node's operation, those that must be given first. */
export function ArgumentsField({
  id,
  value,
  onChange,
  path,
}: {
  id: string;
  value: unknown;
  onChange: (v: unknown) => void;
  path: string;
}) {
  const { node, readonly } = useContext(NodeContext);
  const { api, operation } = (node.data ?? {}) as { api?: string; operation?: string };
  const found = useQuery(api && operation ? apiAt(api, "operations", operation) : null);
  const [json, setJson] = useState(false);
  const more = useId();
  if (!api || !operation)
    return (
      <p id={id} class="muted small">
        Choose an operation first.
      </p>
    );
  const schema = found.data.value?.parameters as Schema | undefined;
  const object: Record<string, unknown> =
    value && typeof value === "object" && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
  const properties = schema?.properties;
  if (!properties || json || (value !== undefined && object !== value))
    return (
      <>
        <JsonField id={id} value={value} onChange={onChange} />
        {properties && object === value && (
          <button type="button" class="link small" onClick={() => setJson(false)}>
            As a form
          </button>
        )}
      </>
    );
  const set = (name: string, v: unknown) => {
    const next = { ...object };
    if (v === undefined) delete next[name];
    else next[name] = v;
    onChange(Object.keys(next).length ? next : undefined);
  };
  const required = new Set(schema?.required ?? []);
  const shown = [...new Set([...required, ...Object.keys(object)])];
  const rest = Object.keys(properties).filter((name) => !shown.includes(name));
  return (
    <div class="stack tight" data-path={path}>
      {shown.map((name) => {
        const s = properties[name] ?? {};
        const hint = [
          s.description,
          s.enum && `One of ${s.enum.join(", ")}.`,
          !(name in properties) && "The operation doesn't have this argument.",
        ]
          .filter(Boolean)
          .join(" ");
        return (
          <div class="field" key={name}>
            <div class="row nowrap field-head">
              <span class="grow label">
                <bdi>{name}</bdi>
                {required.has(name) && (
                  <span class="muted" aria-hidden="true">
                    {" "}
                    *
                  </span>
                )}{" "}
                {kindOf(s) && <small class="muted">{kindOf(s)}</small>}
              </span>
              {!required.has(name) && !readonly && (
                <Button kind="quiet" icon="X" label={`Remove ${name}`} onClick={() => set(name, undefined)} />
              )}
            </div>
            <ValueField
              label={name}
              rows={["object", "array"].includes(kindOf(s)) || name === "body" ? 4 : 1}
              value={object[name]}
              show={written}
              read={(t) => (required.has(name) ? typed(t, s) : (typed(t, s) ?? ""))}
              onChange={(v) => set(name, v)}
            />
            {hint && (
              <small class="muted operation-hint">
                <bdi>{hint}</bdi>
              </small>
            )}
          </div>
        );
      })}
      {!shown.length && <p class="muted small">{rest.length ? "Nothing is required." : "No arguments."}</p>}
      {!readonly && (
        <div class="row">
          {rest.length > 0 && (
            <select
              id={more}
              aria-label="Add argument"
              value=""
              onChange={(e) => {
                const name = e.currentTarget.value;
                if (name)
                  set(
                    name,
                    kindOf(properties[name]) === "boolean"
                      ? true
                      : kindOf(properties[name]) === "object"
                        ? {}
                        : kindOf(properties[name]) === "array"
                          ? []
                          : "",
                  );
                e.currentTarget.value = "";
              }}
            >
              <option value="">Add argument…</option>
              {rest.map((name) => (
                <option key={name} value={name}>
                  {name}
                </option>
              ))}
            </select>
          )}
          <button type="button" class="link small" onClick={() => setJson(true)}>
            As JSON
          </button>
        </div>
      )}
    </div>
  );
}
