// A field that names a record of the agent, such as a channel, a table or a workflow.
import { useContext, useEffect, useId, useState } from "preact/hooks";

import { agentId, get, path } from "../data";
import { lazy } from "../parts/lazy";
import { openDialog } from "../ui";
import { typeOf } from "./catalog";
import { type ControlProps, hasType } from "./fieldframe";
import { hasTemplate } from "./template";
import { asText, NodeContext } from "./templatefield";

/** The form of a new channel. */
const ConnectDialog = lazy(() => import("../pages/channels/connect").then((m) => m.ConnectDialog));

/** A record as its list in the API has it. */
type ListedRecord = { id?: string; name: string; title?: string; url?: string };

/** A value of the field, and what it is called. */
type Option = [value: string, name: string];

/** Where records of a kind are found: in the API, under a name in the response, and in the console. */
type RecordKind = { resource: string; list: string; section: string; name: (record: ListedRecord) => string };

const byName = (record: ListedRecord) => record.name;

const recordKinds: Record<string, RecordKind> = {
  gateway: { resource: "gateways", list: "gateways", section: "channels", name: byName },
  source: { resource: "sources", list: "sources", section: "knowledge", name: byName },
  table: { resource: "tables", list: "tables", section: "tables", name: byName },
  tool: { resource: "tools", list: "tools", section: "tools", name: byName },
  credential: { resource: "credentials", list: "credentials", section: "credentials", name: byName },
  api: { resource: "apis", list: "apis", section: "apis", name: byName },
  workflow: { resource: "workflows", list: "workflows", section: "workflows", name: byName },
  session: {
    resource: "browser",
    list: "sessions",
    section: "browser",
    name: (session) => session.title || session.url || session.id!,
  },
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

const maxListed = 200;

/** Loads the records of a kind, or the names of events. */
function useOptions(kind: string, made: string): Option[] {
  const [options, setOptions] = useState<Option[]>([]);
  useEffect(() => {
    if (kind === "event") setOptions(events.map((event) => [event, event]));
    const records = recordKinds[kind];
    if (!records) return;
    get(path("agents", agentId.value, records.resource), { limit: maxListed }).then(
      (response) => {
        const list = (response as Record<string, ListedRecord[]>)[records.list] ?? [];
        setOptions(list.map((record) => [record.id ?? record.name, records.name(record)]));
      },
      () => {
        /* an id can be typed */
      },
    );
  }, [kind, made]);
  return options;
}

/** A record of the agent, chosen from a list; an id or a template can be typed. */
export function ReferenceField(props: ControlProps) {
  const { schema, value } = props;
  const kind = schema["x-ref"]!;
  const [made, setMade] = useState(""); // the record that was made here last
  const options = useOptions(kind, made);
  const choose = (id: string) => {
    setMade(id);
    props.onChange(id);
  };
  const isList = hasType(schema, "array");
  if (isList && (typeof value === "boolean" || value === undefined || Array.isArray(value)))
    return <ReferenceListField {...props} options={options} />;
  const isKnown = options.some(([option]) => option === value);
  const isTyped = kind === "event" || kind === "model" || hasTemplate(value) || (value && !isKnown);
  if (isTyped) return <TypedReference {...props} options={options} />;
  return <ChosenReference {...props} kind={kind} options={options} chooseMade={choose} />;
}

type OptionProps = ControlProps & { options: Option[] };

/** An id or a template as text, with the records as suggestions. */
function TypedReference({ id, schema, value, onChange, options }: OptionProps) {
  const { readonly } = useContext(NodeContext);
  const listId = useId();
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
        {options.map(([option, name]) => (
          <option value={option}>{name}</option>
        ))}
      </datalist>
    </>
  );
}

const templateOption = "{{"; // the value of the option that starts a template

type ChosenProps = OptionProps & { kind: string; chooseMade: (id: string) => void };

function ChosenReference({ id, value, onChange, kind, options, chooseMade }: ChosenProps) {
  const { readonly, node } = useContext(NodeContext);
  const need = kind === "gateway" && typeOf(node.type)?.needs.find((n) => n.startsWith("gateway:"));
  const platform = need && need.slice("gateway:".length);
  const connect = () =>
    openDialog((close) => <ConnectDialog platform={platform || ""} close={close} done={chooseMade} />);
  const takesTemplates = kind !== "credential" && kind !== "api";
  const pick = (option: string) => onChange(option === templateOption ? "{{}}" : option || undefined);
  return (
    <div class="row nowrap">
      <select
        id={id}
        class="grow"
        disabled={readonly}
        value={asText(value)}
        onChange={(e) => pick(e.currentTarget.value)}
      >
        <option value="" selected={!value}>
          {options.length ? "–" : "None yet"}
        </option>
        {options.map(([option, name]) => (
          <option value={option} selected={option === value}>
            {name}
          </option>
        ))}
        {takesTemplates && <option value={templateOption}>Use a template…</option>}
      </select>
      {platform && !readonly && (
        <button type="button" class="button quiet" onClick={connect}>
          New…
        </button>
      )}
      {recordKinds[kind] && !platform && (
        <a
          class="button quiet"
          href={`#/agents/${encodeURIComponent(agentId.value)}/${recordKinds[kind].section}`}
          target="_blank"
          title="Opens in a new tab"
        >
          New…
        </a>
      )}
    </div>
  );
}

/** The choices of a field of several records, with the value that each sets. */
const scopes: { scope: string; title: string; value: unknown }[] = [
  { scope: "", title: "Default", value: undefined },
  { scope: "all", title: "All", value: true },
  { scope: "none", title: "None", value: false },
  { scope: "some", title: "Some of them", value: [] },
];

/** Returns the scope of a value: a list is "some", whatever it contains. */
const scopeOf = (value: unknown) => scopes.find((choice) => choice.value === value)?.scope ?? "some";

/** All, none or some of the records. */
function ReferenceListField({ id, value, onChange, options }: OptionProps) {
  const { readonly } = useContext(NodeContext);
  const selected: string[] = Array.isArray(value) ? value : [];
  const scope = scopeOf(value);
  return (
    <div class="stack tight">
      <select
        id={id}
        disabled={readonly}
        value={scope}
        onChange={(e) => onChange(scopes.find((choice) => choice.scope === e.currentTarget.value)?.value)}
      >
        {scopes.map((choice) => (
          <option value={choice.scope} selected={choice.scope === scope}>
            {choice.title}
          </option>
        ))}
      </select>
      {scope === "some" && (
        <div class="picks">
          {options.map(([option, name]) => (
            <label key={option}>
              <input
                type="checkbox"
                checked={selected.includes(option)}
                disabled={readonly}
                onChange={(e) =>
                  onChange(
                    e.currentTarget.checked ? [...selected, option] : selected.filter((other) => other !== option),
                  )
                }
              />{" "}
              <bdi>{name}</bdi>
            </label>
          ))}
          {!options.length && <span class="muted small">None yet.</span>}
        </div>
      )}
    </div>
  );
}
