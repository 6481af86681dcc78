// The widgets of a node's fields, by their schema.
import type { ComponentChildren } from "preact";
import { useContext, useEffect, useId, useState } from "preact/hooks";

import { agentId, get, path as at } from "../data";
import { Button, Code, Icon, Segments } from "../ui";
import { fieldsOf, OutputSchemaField, type Schema } from "./base";
import { FormFields } from "../parts/formfields";
import { useTyped } from "../parts/typed";
import { CasesField, ConditionsField, RowConditionsField } from "./conditions";
import { ArgumentsField, OperationField } from "./operation";
import { SqlField } from "./sqlfield";
import { hasTemplate } from "./template";
import { asText, NodeContext, TemplateField, ValueField } from "./templatefield";

export type FieldProps = {
  name: string;
  schema: Schema;
  value: unknown;
  onChange: (v: unknown) => void;
  required?: boolean;
  path: string;
  issue?: (path: string) => string | undefined;
};

export const is = (s: Schema, kind: string) => [s.type].flat().includes(kind);

/** A field with its title, what it is for, and what is wrong with it. */
export function FieldFrame({
  title,
  schema,
  required,
  error,
  path,
  children,
  id,
  extra,
}: {
  title: string;
  schema?: Schema;
  required?: boolean;
  error?: string;
  path: string;
  children: ComponentChildren;
  id?: string;
  extra?: ComponentChildren;
}) {
  return (
    <div class={error ? "field wrong" : "field"} data-field={path}>
      <div class="row nowrap field-head">
        <label for={id} class="grow">
          {title}
          {required && (
            <span class="muted" aria-hidden="true">
              {" "}
              *
            </span>
          )}
          {schema?.["x-unit"] && <span class="muted"> in {schema["x-unit"]}</span>}
        </label>
        {extra}
      </div>
      {children}
      {error ? (
        <small class="issue" role="alert">
          {error}
        </small>
      ) : (
        schema?.description &&
        !(schema["x-ref"] && is(schema, "array")) && <small class="muted">{schema.description}</small>
      )}
    </div>
  );
}

const pretty = (v: unknown) => (v === undefined ? "" : typeof v === "string" ? v : JSON.stringify(v, null, 2));

/** JSON as text; what is no JSON yet stays on the page. With text, text that is no JSON is a value too. */
export function JsonField({
  id,
  value,
  onChange,
  rows = 4,
  text,
  label,
}: {
  id?: string;
  value: unknown;
  onChange: (v: unknown) => void;
  rows?: number;
  text?: boolean;
  label?: string;
}) {
  const [typed, setTyped] = useTyped(value, pretty);
  const { readonly } = useContext(NodeContext);
  const read = (t: string): [unknown, boolean?] => {
    if (!t.trim()) return [undefined];
    try {
      const v = JSON.parse(t);
      return [text && (typeof v !== "object" || v === null) ? t : v];
    } catch {
      return text || hasTemplate(t) ? [t] : [value, true];
    }
  };
  const input = (t: string) => {
    const [v, wrong] = read(t);
    setTyped(t, v);
    if (!wrong) onChange(v);
  };
  return (
    <>
      {text ? (
        <TemplateField id={id} label={label} value={typed} onInput={input} rows={rows} />
      ) : (
        <textarea
          id={id}
          aria-label={label}
          class="code"
          rows={rows}
          value={typed}
          spellcheck={false}
          readOnly={readonly}
          onInput={(e) => input(e.currentTarget.value)}
        />
      )}
      {read(typed)[1] && <small class="issue">Not valid JSON yet.</small>}
    </>
  );
}

/** A number or a template that gives one. */
function NumberField({ id, schema, value, onChange }: FieldProps & { id: string }) {
  const read = (t: string) => (t.trim() === "" ? undefined : Number.isFinite(Number(t)) ? Number(t) : t);
  return (
    <ValueField
      id={id}
      value={value}
      read={read}
      onChange={onChange}
      placeholder={schema.default !== undefined ? String(schema.default) : undefined}
    />
  );
}

/** Yes or no, or a template. */
function TruthField({ id, schema, value, onChange }: FieldProps & { id: string }) {
  const { readonly } = useContext(NodeContext);
  if (typeof value === "string" && hasTemplate(value))
    return <TemplateField id={id} value={value} onInput={(v) => onChange(v || undefined)} />;
  const on = value ?? schema.default ?? false;
  return (
    <span class="switch">
      <input
        id={id}
        type="checkbox"
        role="switch"
        checked={on === true}
        disabled={readonly}
        onChange={(e) =>
          onChange(e.currentTarget.checked === (schema.default ?? false) ? undefined : e.currentTarget.checked)
        }
      />
    </span>
  );
}

function ChoiceField({ id, schema, value, onChange }: FieldProps & { id: string }) {
  const { readonly } = useContext(NodeContext);
  if (typeof value === "string" && hasTemplate(value))
    return <TemplateField id={id} value={value} onInput={(v) => onChange(v || undefined)} />;
  const now = asText(value ?? schema.default);
  const pick = (v: string) => onChange(v === schema.default ? undefined : v || undefined);
  if (schema.enum!.length <= 3 && schema.default !== undefined && !readonly)
    return (
      <Segments
        label={schema.title ?? ""}
        value={String(now)}
        options={schema.enum!.map((v) => [v, v])}
        onChange={pick}
      />
    );
  return (
    <select id={id} value={now} disabled={readonly} onChange={(e) => pick(e.currentTarget.value)}>
      {schema.default === undefined && (
        <option value="" selected={now === ""}>
          –
        </option>
      )}
      {[...schema.enum!, ...(now !== "" && !schema.enum!.includes(now) ? [now] : [])].map((v) => (
        <option value={v} selected={v === now}>
          {v}
        </option>
      ))}
    </select>
  );
}

/** Several short texts. */
function ChipsField({ id, value, onChange }: FieldProps & { id: string }) {
  const [typed, setTyped] = useState("");
  const { readonly } = useContext(NodeContext);
  if (typeof value === "string" && hasTemplate(value))
    return <TemplateField id={id} value={value} onInput={(v) => onChange(v || undefined)} />;
  const list: string[] = Array.isArray(value)
    ? value.map(String)
    : typeof value === "string" && value
      ? value.split(",").map((s) => s.trim())
      : [];
  const add = (t: string) => {
    const more = t
      .split(",")
      .map((s) => s.trim())
      .filter(Boolean);
    setTyped("");
    if (!more.length) return;
    onChange(!list.length && more.length === 1 && hasTemplate(more[0]) ? more[0] : [...list, ...more]);
  };
  return (
    <div class="chips">
      {list.map((v, i) => (
        <span class="chip" key={`${v}${i}`}>
          <bdi>{v}</bdi>
          {!readonly && (
            <button
              type="button"
              aria-label={`Remove ${v}`}
              onClick={() => {
                const rest = list.filter((_, j) => j !== i);
                onChange(rest.length ? rest : undefined);
              }}
            >
              <Icon name="X" size={12} />
            </button>
          )}
        </span>
      ))}
      <input
        id={id}
        value={typed}
        readOnly={readonly}
        placeholder={list.length ? "" : "Type and press Enter"}
        onInput={(e) => setTyped(e.currentTarget.value)}
        onBlur={() => add(typed)}
        onKeyDown={(e) => {
          if (e.key === "Enter" || e.key === ",") {
            e.preventDefault();
            add(typed);
          }
          if (e.key === "Backspace" && !typed && list.length) onChange(list.length > 1 ? list.slice(0, -1) : undefined);
        }}
      />
    </div>
  );
}

/** Names and values, or JSON. */
function KeyValueField({ id, schema, value, onChange, path }: FieldProps & { id: string }) {
  const { readonly } = useContext(NodeContext);
  const [asJson, setAsJson] = useState(false);
  const object =
    value && typeof value === "object" && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined;
  const [rows, setRows] = useState<[string, unknown][]>(Object.entries(object ?? {}));
  useEffect(() => {
    const now = Object.fromEntries(rows.filter(([k]) => k));
    if (JSON.stringify(now) !== JSON.stringify(object ?? {})) setRows(Object.entries(object ?? {}));
  }, [JSON.stringify(object)]);
  if (asJson || (value !== undefined && !object))
    return (
      <>
        <JsonField id={id} value={value} onChange={onChange} />
        {object !== undefined || value === undefined ? (
          <button type="button" class="link small" onClick={() => setAsJson(false)}>
            As rows
          </button>
        ) : null}
      </>
    );
  const set = (next: [string, unknown][]) => {
    setRows(next);
    const made = Object.fromEntries(next.filter(([k]) => k));
    onChange(Object.keys(made).length ? made : undefined);
  };
  const read = (t: string): unknown => {
    if (!/^(-?\d|true$|false$|null$|[[{]).*/s.test(t) || (hasTemplate(t) && !/^[[{](?!\{)/.test(t))) return t;
    try {
      return JSON.parse(t);
    } catch {
      return t;
    }
  };
  return (
    <div class="key-values">
      {rows.map(([k, v], i) => (
        <div class="key-value" key={i}>
          <input
            value={k}
            aria-label={`${schema.title}: name ${i + 1}`}
            placeholder="name"
            readOnly={readonly}
            onInput={(e) => set(rows.map((r, j) => (j === i ? [e.currentTarget.value, r[1]] : r)))}
          />
          <ValueField
            value={v}
            read={read}
            label={`${schema.title}: value of ${k || i + 1}`}
            onChange={(to) => set(rows.map((r, j) => (j === i ? [r[0], to] : r)))}
          />
          {!readonly && (
            <Button kind="quiet" icon="X" label="Remove" onClick={() => set(rows.filter((_, j) => j !== i))} />
          )}
        </div>
      ))}
      {!readonly && (
        <div class="row">
          <Button icon="Plus" onClick={() => setRows([...rows, ["", ""]])}>
            Add
          </Button>
          <button type="button" class="link small" data-path={path} onClick={() => setAsJson(true)}>
            As JSON
          </button>
        </div>
      )}
    </div>
  );
}

/** A secret: it is set or replaced and never shown. */
function SecretField({ id, value, onChange }: FieldProps & { id: string }) {
  const { readonly } = useContext(NodeContext);
  const [open, setOpen] = useState(false);
  const stored = typeof value === "string" && /^\*+$/.test(value);
  if (stored && !open)
    return (
      <div class="row">
        <span class="muted">is set</span>
        {!readonly && (
          <Button
            onClick={() => {
              setOpen(true);
              onChange(undefined);
            }}
          >
            Replace
          </Button>
        )}
      </div>
    );
  return (
    <input
      id={id}
      type={(hasTemplate(value) ? "text" : "password") as "password"}
      autocomplete="off"
      value={asText(value)}
      readOnly={readonly}
      onInput={(e) => onChange(e.currentTarget.value || undefined)}
    />
  );
}

/** What the list of something in the agent has of one. */
type Listed = { id?: string; name: string; title?: string; url?: string };

const lists: Record<string, { at: string[]; list: string; section: string; name: (r: Listed) => string }> = {
  gateway: { at: ["gateways"], list: "gateways", section: "channels", name: (r) => r.name },
  source: { at: ["sources"], list: "sources", section: "knowledge", name: (r) => r.name },
  table: { at: ["tables"], list: "tables", section: "tables", name: (r) => r.name },
  tool: { at: ["tools"], list: "tools", section: "tools", name: (r) => r.name },
  credential: { at: ["credentials"], list: "credentials", section: "credentials", name: (r) => r.name },
  api: { at: ["apis"], list: "apis", section: "apis", name: (r) => r.name },
  workflow: { at: ["workflows"], list: "workflows", section: "workflows", name: (r) => r.name },
  session: { at: ["browser"], list: "sessions", section: "browser", name: (r) => r.title || r.url || r.id! },
};
const events = [
  "manual",
  "webhook",
  "form",
  "schedule",
  "calendar",
  "message.received",
  "message.sent",
  "conversation.created",
  "contact.created",
  "contact.updated",
  "contact.deleted",
  "row.created",
  "row.updated",
  "row.deleted",
  "source.ready",
  "source.error",
  "workflow.complete",
  "workflow.errored",
  "workflow.terminated",
  "schedule.missed",
  "gateway.active",
  "gateway.error",
  "gateway.event",
  "browser.takeover.completed",
  "browser.takeover.expired",
];

/** Something else of the agent, picked from a list; an id or a template may be typed. */
function ReferenceField({ id, schema, value, onChange }: FieldProps & { id: string }) {
  const { readonly } = useContext(NodeContext);
  const kind = schema["x-ref"]!;
  const many = is(schema, "array");
  const [rows, setRows] = useState<[string, string][]>([]);
  useEffect(() => {
    const from = lists[kind];
    if (kind === "event") setRows(events.map((e) => [e, e]));
    if (!from) return;
    get(at("agents", agentId.value, ...from.at), { limit: 200 }).then(
      (d) => setRows(((d as Record<string, Listed[]>)[from.list] ?? []).map((r) => [r.id ?? r.name, from.name(r)])),
      () => {},
    );
  }, [kind]);
  const listId = useId();
  if (many && (typeof value === "boolean" || value === undefined || Array.isArray(value))) {
    const chosen: string[] = Array.isArray(value) ? value : [];
    const mode = value === undefined ? "" : value === true ? "all" : value === false ? "none" : "some";
    return (
      <div class="stack tight">
        <select
          id={id}
          disabled={readonly}
          value={mode}
          onChange={(e) => onChange({ "": undefined, all: true, none: false, some: [] }[e.currentTarget.value])}
        >
          {[
            ["", "Default"],
            ["all", "All"],
            ["none", "None"],
            ["some", "Some of them"],
          ].map(([v, t]) => (
            <option value={v} selected={v === mode}>
              {t}
            </option>
          ))}
        </select>
        {mode === "some" && (
          <div class="picks">
            {rows.map(([v, name]) => (
              <label key={v}>
                <input
                  type="checkbox"
                  checked={chosen.includes(v)}
                  disabled={readonly}
                  onChange={(e) => onChange(e.currentTarget.checked ? [...chosen, v] : chosen.filter((c) => c !== v))}
                />{" "}
                <bdi>{name}</bdi>
              </label>
            ))}
            {!rows.length && <span class="muted small">None yet.</span>}
          </div>
        )}
      </div>
    );
  }
  const known = rows.some(([v]) => v === value);
  if (kind === "event" || kind === "model" || hasTemplate(value) || (value && !known)) {
    return (
      <>
        <input
          id={id}
          value={asText(value)}
          list={listId}
          readOnly={readonly}
          placeholder={asText(schema.default)}
          onInput={(e) => onChange(e.currentTarget.value || undefined)}
        />
        <datalist id={listId}>
          {rows.map(([v, name]) => (
            <option value={v}>{name}</option>
          ))}
        </datalist>
      </>
    );
  }
  return (
    <div class="row nowrap">
      <select
        id={id}
        class="grow"
        disabled={readonly}
        value={asText(value)}
        onChange={(e) => onChange(e.currentTarget.value === "{{" ? "{{}}" : e.currentTarget.value || undefined)}
      >
        <option value="" selected={!value}>
          {rows.length ? "–" : "None yet"}
        </option>
        {rows.map(([v, name]) => (
          <option value={v} selected={v === value}>
            {name}
          </option>
        ))}
        {kind !== "credential" && kind !== "api" && <option value="{{">Use a template…</option>}
      </select>
      {lists[kind] && (
        <a
          class="button quiet"
          href={`#/agents/${encodeURIComponent(agentId.value)}/${lists[kind].section}`}
          target="_blank"
          title="Opens in a new tab"
        >
          New…
        </a>
      )}
    </div>
  );
}

function ScriptField({ schema, value, onChange, path, issue }: FieldProps) {
  const { readonly } = useContext(NodeContext);
  return (
    <Code
      language="javascript"
      label={schema.title ?? "Code"}
      rows={6}
      value={value === undefined ? "" : typeof value === "string" ? value : JSON.stringify(value)}
      readonly={readonly}
      invalid={Boolean(issue?.(path))}
      onInput={(v) => onChange(v || undefined)}
    />
  );
}

function FormFieldsField({ value, onChange, path, issue }: FieldProps) {
  const { readonly } = useContext(NodeContext);
  if (value !== undefined && !Array.isArray(value)) return <JsonField value={value} onChange={onChange} />;
  return (
    <FormFields
      value={value ?? []}
      readonly={readonly}
      issue={(p) => issue?.(path + p)}
      onChange={(list) => onChange(list.length ? list : undefined)}
    />
  );
}

const widgets: Record<string, (p: FieldProps & { id: string }) => ComponentChildren> = {
  textarea: (p) =>
    typeof p.value === "string" || (p.value === undefined && is(p.schema, "string")) ? (
      <TemplateField id={p.id} rows={3} value={asText(p.value)} onInput={(v) => p.onChange(v || undefined)} />
    ) : (
      <JsonField id={p.id} value={p.value} onChange={p.onChange} text />
    ),
  template: (p) => <JsonField id={p.id} value={p.value} onChange={p.onChange} rows={1} text />,
  javascript: (p) => <ScriptField {...p} />,
  sql: (p) => (
    <SqlField
      label={p.schema.title ?? p.name}
      value={asText(p.value)}
      invalid={Boolean(p.issue?.(p.path))}
      onInput={(v) => p.onChange(v || undefined)}
    />
  ),
  selector: (p) => (
    <TemplateField
      id={p.id}
      code
      value={asText(p.value)}
      onInput={(v) => p.onChange(v || undefined)}
      placeholder="#id, .class, text=…"
    />
  ),
  duration: (p) => <NumberField {...p} />,
  chips: (p) => <ChipsField {...p} />,
  keyvalue: (p) => <KeyValueField {...p} />,
  schema: (p) => <OutputSchemaField id={p.id} value={p.value} onChange={p.onChange} />,
  conditions: (p) => <ConditionsField value={p.value} onChange={p.onChange} path={p.path} />,
  cases: (p) => <CasesField value={p.value} onChange={p.onChange} path={p.path} />,
  rowconditions: (p) => <RowConditionsField value={p.value} onChange={p.onChange} path={p.path} />,
  formfields: (p) => <FormFieldsField {...p} />,
  arguments: (p) => <ArgumentsField {...p} />,
};

/** One field of a node by its schema. */
export function SchemaField(props: FieldProps) {
  const { name, schema, value, onChange, required, path, issue } = props;
  const id = useId();
  const error = issue?.(path);
  const p = { ...props, id };
  const title = schema.title ?? name;
  const control = schema.writeOnly ? (
    <SecretField {...p} />
  ) : schema["x-ref"] === "operation" ? (
    <OperationField {...p} />
  ) : schema["x-ref"] ? (
    <ReferenceField {...p} />
  ) : schema["x-widget"] && widgets[schema["x-widget"]] ? (
    widgets[schema["x-widget"]](p)
  ) : schema.properties ? (
    <fieldset class="nested">
      <Fields
        schema={schema}
        value={(value ?? {}) as Record<string, unknown>}
        path={path}
        issue={issue}
        onChange={(v) => onChange(Object.keys(v).length ? v : undefined)}
      />
    </fieldset>
  ) : schema.enum ? (
    <ChoiceField {...p} />
  ) : is(schema, "boolean") ? (
    <TruthField {...p} />
  ) : is(schema, "number") && !is(schema, "string") ? (
    <NumberField {...p} />
  ) : is(schema, "object") ? (
    <KeyValueField {...p} />
  ) : is(schema, "array") ? (
    <JsonField id={id} value={value} onChange={onChange} />
  ) : schema.type === undefined ? (
    <JsonField id={id} value={value} onChange={onChange} rows={1} text />
  ) : (
    <TemplateField
      id={id}
      value={value === undefined || value === null ? "" : typeof value === "string" ? value : JSON.stringify(value)}
      onInput={(v) => onChange(v || undefined)}
      placeholder={schema.default === undefined ? undefined : String(schema.default)}
      invalid={Boolean(error)}
    />
  );
  return (
    <FieldFrame title={title} schema={schema} required={required} error={error} path={path} id={id}>
      {control}
    </FieldFrame>
  );
}

/** The fields of an object; those for few are folded away unless one is set or wrong. */
export function Fields({
  schema,
  value,
  onChange,
  path,
  issue,
}: {
  schema: Schema;
  value: Record<string, unknown>;
  onChange: (v: Record<string, unknown>) => void;
  path: string;
  issue?: (path: string) => string | undefined;
}) {
  const holds = (other: string, values: string[]) =>
    values.includes(asText(value[other] ?? schema.properties?.[other]?.default));
  const all = fieldsOf(schema).filter(
    ([name, s]) =>
      value[name] !== undefined || Object.entries(s["x-when"] ?? {}).every(([other, values]) => holds(other, values)),
  );
  const set = (name: string) => (v: unknown) => {
    const next = { ...value };
    if (v === undefined) delete next[name];
    else next[name] = v;
    onChange(next);
  };
  const show = ([name, s]: [string, Schema]) => (
    <SchemaField
      key={name}
      name={name}
      schema={s}
      value={value[name]}
      onChange={set(name)}
      required={schema.required?.includes(name)}
      path={path ? `${path}.${name}` : name}
      issue={issue}
    />
  );
  const more = all.filter(([, s]) => s["x-advanced"]);
  const used = more.some(([name]) => value[name] !== undefined || issue?.(`${path}.${name}`));
  return (
    <>
      {all.filter(([, s]) => !s["x-advanced"]).map(show)}
      {more.length > 0 && (
        <details class="more-fields" open={used}>
          <summary>More</summary>
          <div class="stack">{more.map(show)}</div>
        </details>
      )}
    </>
  );
}
