// Which columns the table of contacts has, and filters that are kept: both stay in this browser.
import { signal } from "@preact/signals";
import { useMemo, useState } from "preact/hooks";

import { agentId, go, href, route, type API } from "../../data";
import { Button, Dialog, FormDialog, Icon, openDialog, TextField } from "../../ui";

/** The columns that can be chosen, by field; the name is always there. */
export const columnNames: [string, string][] = [
  ["email", "Email"],
  ["phone", "Phone"],
  ["tags", "Tags"],
  ["last_message_at", "Last message"],
  ["updated_at", "Changed"],
  ["created_at", "Added"],
  ["chatbot_a", "Telegram"],
  ["chatbot_b", "WhatsApp"],
  ["social_handle", "Social handle"],
  ["external_id", "External ID"],
  ["notes", "Notes"],
];
const standard = ["email", "phone", "tags", "last_message_at"];

/** What a column is called: that of a custom field by its key. */
export const columnTitle = (field: string) =>
  field.startsWith("metadata.") ? field.slice(9) : (columnNames.find(([f]) => f === field)?.[1] ?? field);

function stored<T>(name: string, fallback: T) {
  const key = `satchel.contacts.${name}.${agentId.value}`;
  let value = fallback;
  try {
    value = JSON.parse(localStorage.getItem(key) ?? "null") ?? fallback;
  } catch {
    /* as at first */
  }
  const now = signal(value);
  return {
    now,
    set: (v: T) => {
      now.value = v;
      try {
        localStorage.setItem(key, JSON.stringify(v));
      } catch {
        /* it lasts as long as the page */
      }
    },
  };
}

/** The chosen columns. */
export function useColumns() {
  return useMemo(() => stored<string[]>("columns", standard), [agentId.value]);
}

/** Chooses columns; custom fields are those that the rows have. */
export function ColumnsButton({
  columns,
  rows,
}: {
  columns: ReturnType<typeof useColumns>;
  rows: API.ContactSummary[];
}) {
  return (
    <Button
      icon="Table"
      onClick={() => {
        openDialog((close) => (
          <ColumnsDialog
            columns={columns}
            custom={[...new Set(rows.flatMap((r) => Object.keys(r.metadata ?? {})))].sort()}
            close={close}
          />
        ));
      }}
    >
      Columns
    </Button>
  );
}

function ColumnsDialog({
  columns,
  custom,
  close,
}: {
  columns: ReturnType<typeof useColumns>;
  custom: string[];
  close: () => void;
}) {
  const [chosen, setChosen] = useState(columns.now.value);
  const all = [
    ...columnNames.map(([f]) => f),
    ...new Set([...custom.map((k) => `metadata.${k}`), ...chosen.filter((f) => f.startsWith("metadata."))]),
  ];
  const toggle = (field: string, on: boolean) => {
    const next = on ? [...chosen, field] : chosen.filter((f) => f !== field);
    setChosen(next);
    columns.set(next);
  };
  const pick = (field: string) => (
    <label key={field} class="pick">
      <input
        type="checkbox"
        checked={chosen.includes(field)}
        onChange={(e) => toggle(field, e.currentTarget.checked)}
      />{" "}
      <bdi>{columnTitle(field)}</bdi>
    </label>
  );
  return (
    <Dialog title="Columns" close={close}>
      <div class="picks-grid">{all.filter((f) => !f.startsWith("metadata.")).map(pick)}</div>
      {all.length > columnNames.length && (
        <>
          <h3>Custom fields</h3>
          <div class="picks-grid">{all.filter((f) => f.startsWith("metadata.")).map(pick)}</div>
        </>
      )}
      <div class="row end">
        <Button
          onClick={() => {
            setChosen(standard);
            columns.set(standard);
          }}
        >
          Reset
        </Button>
        <Button kind="primary" onClick={close}>
          Done
        </Button>
      </div>
    </Dialog>
  );
}

type View = { name: string; query: string };

/** Filters that were kept under a name, and what keeps the one that is shown. */
export function Views({ filtered }: { filtered: boolean }) {
  const views = useMemo(() => stored<View[]>("filters", []), [agentId.value]);
  const query = filterOf(route.value.query);
  const list = views.now.value;
  const current = list.find((v) => v.query === query);
  if (!list.length && !filtered) return null;
  const show = (v: string) => go(v ? `${href(agentId.value, "contacts")}?${v}` : href(agentId.value, "contacts"), true);
  return (
    <nav class="views" aria-label="Saved filters">
      {list.length > 0 && (
        <button type="button" class="view" aria-current={query ? undefined : "true"} onClick={() => show("")}>
          Everybody
        </button>
      )}
      {list.map((v) => (
        <span class="view" key={v.name} aria-current={v === current ? "true" : undefined}>
          <button type="button" onClick={() => show(v.query)}>
            <bdi>{v.name}</bdi>
          </button>
          <button
            type="button"
            class="view-remove"
            aria-label={`Delete filter ${v.name}`}
            onClick={() => views.set(list.filter((x) => x !== v))}
          >
            <Icon name="X" size={12} />
          </button>
        </span>
      ))}
      {filtered && !current && (
        <button
          type="button"
          class="link small"
          onClick={() => {
            openDialog((close) => <SaveViewDialog views={views} query={query} close={close} />);
          }}
        >
          Save filter
        </button>
      )}
    </nav>
  );
}

function SaveViewDialog({
  views,
  query,
  close,
}: {
  views: { now: { value: View[] }; set: (v: View[]) => void };
  query: string;
  close: () => void;
}) {
  return (
    <FormDialog
      title="Save filter"
      close={close}
      action="Save"
      initial={{ name: "" }}
      run={async ({ name }) => {
        if (!name.trim()) throw new Error("Enter a name.");
        views.set([...views.now.value.filter((v) => v.name !== name.trim()), { name: name.trim(), query }]);
      }}
    >
      {(f) => <TextField label="Name" required autoFocus hint="Saved in this browser." {...f.text("name")} />}
    </FormDialog>
  );
}

/** The part of an address that says who is listed and how, in one order. */
function filterOf(query: URLSearchParams) {
  const kept = new URLSearchParams();
  for (const name of ["search", "tag", "sort", "order"]) for (const v of query.getAll(name)) kept.append(name, v);
  return kept.toString();
}
