// Contacts: who the agent knows, in a table that is edited in place.
import { useEffect, useRef, useState } from "preact/hooks";

import {
  agentId,
  download,
  go,
  href,
  mayEdit,
  onChange,
  path,
  post,
  put,
  route,
  setQuery,
  useQuery,
  type Result,
  type API,
} from "../data";
import {
  Button,
  deleteLater,
  Empty,
  FormDialog,
  Icon,
  Load,
  Menu,
  Name,
  openDialog,
  Pager,
  plural,
  SearchField,
  Table,
  tell,
  TextArea,
  TextField,
  When,
  type Column,
  type Sorting,
  type Values,
} from "../ui";
import { TagsCell, TextCell } from "../parts/cell";
import { useSelection } from "../parts/selection";
import { style } from "../parts/styles";
import { TagsInput } from "../parts/tags";
import { ColumnsButton, columnTitle, useColumns, Views } from "./contacts/columns";
import { customText, saveCustom } from "./contacts/custom";
import { Import } from "./contacts/import";
import { Contact } from "./contacts/record";
import "../css/contacts.css";

export const styles = style("./contacts.css");

export default function Contacts() {
  const id = route.value.rest[0];
  return id ? <Contact key={id} id={id} /> : <List />;
}

const contactsAt = <const M extends string[]>(...more: M) => path("agents", agentId.value, "contacts", ...more);
const pageSize = 50;

function List() {
  const { query } = route.value;
  const [search, tags, offset] = [query.get("search") ?? "", query.getAll("tag"), Number(query.get("offset")) || 0];
  const sorting: Sorting = {
    by: query.get("sort") ?? "created_at",
    order: (query.get("order") ?? (query.get("sort") ? "asc" : "desc")) as Sorting["order"],
  };
  const found = useQuery(contactsAt(), {
    full: true,
    search,
    tag: tags,
    sort: sorting.by,
    order: sorting.order,
    limit: pageSize,
    offset,
  });
  const known = useQuery(contactsAt("tags"));
  const columns = useColumns();
  const [picked, setPicked] = useSelection(query.toString());
  const [hidden, setHidden] = useState<string[]>([]);
  const filtered = Boolean(search || tags.length);
  const may = mayEdit.value;
  useLive(found);
  const allTags: string[] = known.data.value?.tags ?? [];
  const setTags = (list: string[]) => {
    const next = new URLSearchParams(query);
    next.delete("tag");
    next.delete("offset");
    for (const t of list) next.append("tag", t);
    go(`${href(agentId.value, "contacts")}${next.size ? `?${next}` : ""}`, true);
  };
  const reload = () => {
    void found.reload();
    void known.reload();
  };
  const add = () => {
    openDialog((close) => <NewContact known={allTags} close={close} />);
  };
  const bring = () => {
    openDialog((close) => <Import close={close} done={reload} />);
  };
  const hide = (ids: string[]) => {
    setHidden((h) => [...h, ...ids]);
    setPicked([]);
    const show = () => setHidden((h) => h.filter((x) => !ids.includes(x)));
    deleteLater(
      `${plural(ids.length, "contact")} deleted`,
      () =>
        post(contactsAt("batch"), { ids, delete: true }).then(async () => {
          await found.reload();
          show();
        }),
      show,
    );
  };
  return (
    <div class="page wide">
      <div class="page-head">
        <h1 class="grow" tabIndex={-1}>
          Contacts
        </h1>
        <Menu
          label="Export"
          icon="Download"
          items={[
            {
              label: "Export CSV",
              icon: "Download",
              run: () => download("GET", contactsAt("export"), { format: "csv" }),
            },
            {
              label: "Export JSON",
              icon: "Download",
              run: () => download("GET", contactsAt("export"), { format: "json" }),
            },
          ]}
        >
          <Icon name="Download" size={16} />
          <span>Export</span>
        </Menu>
        {may && (
          <>
            <Button icon="Upload" onClick={bring}>
              Import
            </Button>
            <Button kind="primary" icon="Plus" onClick={add}>
              New contact
            </Button>
          </>
        )}
      </div>
      <Views filtered={filtered || query.has("sort")} />
      <div class="row contacts-filter" role="search">
        <SearchField
          key={search ? "typed" : "none"}
          value={search}
          label="Search contacts"
          placeholder="Name, email or phone"
          onInput={(text) => setQuery({ search: text, offset: null })}
        />
        <select
          aria-label="Filter by tag"
          value=""
          onChange={(e) => {
            if (e.currentTarget.value) setTags([...tags, e.currentTarget.value]);
            e.currentTarget.value = "";
          }}
          disabled={!allTags.length}
        >
          <option value="">{tags.length ? "Or tag…" : "All tags"}</option>
          {allTags
            .filter((t) => !tags.includes(t))
            .map((t) => (
              <option value={t}>{t}</option>
            ))}
        </select>
        {tags.map((t) => (
          <span class="tag" key={t}>
            <bdi>{t}</bdi>
            <button
              type="button"
              aria-label={`Remove filter ${t}`}
              onClick={() => setTags(tags.filter((x) => x !== t))}
            >
              <Icon name="X" size={12} />
            </button>
          </span>
        ))}
        <span class="grow" />
        <ColumnsButton columns={columns} rows={found.data.value?.contacts ?? []} />
      </div>
      {picked.length > 0 && (
        <Bulk
          picked={picked}
          rows={found.data.value?.contacts ?? []}
          known={allTags}
          clear={() => setPicked([])}
          changed={reload}
          hide={() => hide(picked)}
        />
      )}
      <Load of={found} lines={8}>
        {({ contacts, meta }) => {
          const rows = contacts.filter((c) => !hidden.includes(c.id));
          if (!rows.length && filtered)
            return (
              <Empty icon="Search" title="No contacts match">
                Try different words or another tag.
              </Empty>
            );
          if (!rows.length)
            return (
              <Empty
                icon="Users"
                title="No contacts yet"
                action={
                  may && (
                    <>
                      <Button kind="primary" icon="Plus" onClick={add}>
                        New contact
                      </Button>
                      <Button icon="Upload" onClick={bring}>
                        Import a CSV file
                      </Button>
                    </>
                  )
                }
              >
                People who write on a channel become contacts automatically.
              </Empty>
            );
          return (
            <>
              <div class="dense">
                <Table
                  rows={rows}
                  keyOf={(c) => c.id}
                  sorting={sorting}
                  onSort={(s) => setQuery({ sort: s.by, order: s.order, offset: null })}
                  columns={[
                    ...(may ? [choice(rows, picked, setPicked)] : []),
                    nameColumn(found),
                    ...columns.now.value.map((field) => column(field, found, allTags)),
                  ]}
                />
              </div>
              <div class="row">
                <span class="muted small">{plural(meta.total, "contact")}</span>
              </div>
              <Pager meta={meta} go={(to) => setQuery({ offset: to || null })} />
            </>
          );
        }}
      </Load>
    </div>
  );
}

/** Keeps the list current: known rows change in place, others make it ask again. */
function useLive(found: Result<API.ContactList>) {
  useEffect(() => {
    return onChange("contact", (c) => {
      const known = found.data.value?.contacts.some((x) => x.id === c.id);
      if (c.op === "update" && known && c.row)
        found.set((d) => ({ ...d, contacts: d.contacts.map((x) => (x.id === c.id ? { ...x, ...c.row } : x)) }));
      else if (c.op !== "update") found.soon();
    });
  }, [found]);
}

/** Stores fields of a contact and shows the answer. */
const saver = (found: Result<API.ContactList>, c: API.ContactSummary) => async (change: object) => {
  const stored = await put(contactsAt(c.id), change);
  found.set((d) => ({ ...d, contacts: d.contacts.map((x) => (x.id === c.id ? { ...x, ...stored } : x)) }));
};

function choice(
  rows: API.ContactSummary[],
  picked: string[],
  set: (ids: string[]) => void,
): Column<API.ContactSummary> {
  const all = rows.every((r) => picked.includes(r.id));
  return {
    title: "",
    class: "choice",
    head: (
      <input
        type="checkbox"
        aria-label="Select all on this page"
        checked={all}
        ref={(el) => {
          if (el) el.indeterminate = picked.length > 0 && !all;
        }}
        onChange={() => set(all ? [] : rows.map((r) => r.id))}
      />
    ),
    cell: (c) => (
      <input
        type="checkbox"
        aria-label={`Select ${c.name}`}
        checked={picked.includes(c.id)}
        onChange={(e) => set(e.currentTarget.checked ? [...picked, c.id] : picked.filter((x) => x !== c.id))}
      />
    ),
  };
}

function nameColumn(found: Result<API.ContactList>): Column<API.ContactSummary> {
  return {
    title: "Name",
    class: "title",
    sort: "name",
    cell: (c) => (
      <span class="cell-name">
        <a href={href(agentId.value, "contacts", c.id)}>
          <Name>{c.name}</Name>
        </a>
        {mayEdit.value && (
          <TextCell label="Name" may text={c.name} save={(name) => saver(found, c)({ name })}>
            <Icon name="Pencil" size={13} />
          </TextCell>
        )}
      </span>
    ),
  };
}

const types: Record<string, "text" | "email" | "tel"> = { email: "email", phone: "tel", chatbot_b: "tel" };
const times = ["last_message_at", "updated_at", "created_at"];

/** A field of a contact that is text. */
const textOf = (c: API.ContactSummary, field: string) => String((c as Record<string, unknown>)[field] ?? "");

function column(field: string, found: Result<API.ContactList>, known: string[]): Column<API.ContactSummary> {
  const title = columnTitle(field);
  const sort = ["email", "created_at", "updated_at"].includes(field) ? field : undefined;
  if (times.includes(field))
    return {
      title,
      sort,
      class: "time",
      cell: (c) => (textOf(c, field) ? <When time={textOf(c, field)} /> : <span class="cell-none">–</span>),
    };
  if (field === "tags")
    return {
      title,
      cell: (c) => (
        <TagsCell
          label={`Tags of ${c.name}`}
          may={mayEdit.value}
          tags={c.tags}
          known={known}
          save={(tags) => saver(found, c)({ tags })}
        />
      ),
    };
  if (field.startsWith("metadata.")) {
    const key = field.slice(9);
    return {
      title,
      cell: (c) => (
        <TextCell
          label={`${key} of ${c.name}`}
          may={mayEdit.value}
          text={customText(c.metadata?.[key])}
          save={(text) => saveCustom(c.id, key, text).then((change) => saver(found, c)(change))}
        />
      ),
    };
  }
  return {
    title,
    sort,
    class: field === "notes" ? "notes" : undefined,
    cell: (c) => (
      <TextCell
        label={`${title} of ${c.name}`}
        may={mayEdit.value}
        type={types[field]}
        rows={field === "notes" ? 3 : undefined}
        text={textOf(c, field)}
        save={(text) => saver(found, c)({ [field]: text })}
      />
    ),
  };
}

function NewContact({ known, close }: { known: string[]; close: () => void }) {
  const run = async (v: Values) => {
    const made = await post(contactsAt(), v);
    go(href(agentId.value, "contacts", made.id));
  };
  return (
    <FormDialog
      title="New contact"
      close={close}
      action="Add"
      initial={{ name: "", email: "", phone: "", tags: [] as string[], notes: "" }}
      run={run}
    >
      {(f) => (
        <>
          <TextField label="Name" required autoFocus {...f.text("name")} />
          <div class="row">
            <TextField label="Email" type="email" {...f.text("email")} />
            <TextField label="Phone" {...f.text("phone")} />
          </div>
          <div class="field">
            <span class="field-title">Tags</span>
            <TagsInput label="Tags" value={f.values.tags} onChange={(t) => f.set("tags", t)} known={known} />
            {f.issue("tags") && <small class="issue">{f.issue("tags")}</small>}
          </div>
          <TextArea label="Notes" {...f.text("notes")} />
          <p class="muted small">Other identifiers and custom fields are on the contact's page.</p>
        </>
      )}
    </FormDialog>
  );
}

/** What is done with several contacts. */
function Bulk({
  picked,
  rows,
  known,
  clear,
  changed,
  hide,
}: {
  picked: string[];
  rows: API.ContactSummary[];
  known: string[];
  clear: () => void;
  changed: () => void;
  hide: () => void;
}) {
  const theirs = [...new Set<string>(rows.filter((r) => picked.includes(r.id)).flatMap((r) => r.tags))].sort();
  const batch = async (what: "add_tags" | "remove_tags", tag: string) => {
    const back = what === "add_tags" ? "remove_tags" : "add_tags";
    const { changed: ids } = await post(contactsAt("batch"), { ids: picked, [what]: [tag] });
    changed();
    const undo = () => {
      void post(contactsAt("batch"), { ids, [back]: [tag] }).then(changed, tell);
    };
    tell(
      `${plural(ids.length, "contact")} ${what === "add_tags" ? "tagged" : "untagged"}: ${tag}`,
      ids.length ? undo : undefined,
    );
  };
  return (
    <div class="row bulk" role="group" aria-label="Selected contacts">
      <span class="grow">{plural(picked.length, "contact")} selected</span>
      <Button
        icon="Tag"
        onClick={() => {
          openDialog((close) => (
            <FormDialog
              title={`Tag ${plural(picked.length, "contact")}`}
              close={close}
              action="Tag"
              initial={{ add_tags: "" }}
              run={async ({ add_tags }) => {
                if (!add_tags.trim()) throw new Error("Enter a tag.");
                await batch("add_tags", add_tags.trim());
              }}
            >
              {(f) => <TextField label="Tag" autoFocus required list={known} {...f.text("add_tags")} />}
            </FormDialog>
          ));
        }}
      >
        Add a tag
      </Button>
      <Menu
        label="Remove a tag"
        items={theirs.map((t) => ({ label: t, icon: "Tag" as const, run: () => batch("remove_tags", t) }))}
      >
        {theirs.length ? "Remove a tag" : "No tags to remove"}
      </Menu>
      <Button kind="danger" icon="Trash2" onClick={hide}>
        Delete
      </Button>
      <Button kind="quiet" icon="X" label="Clear selection" onClick={clear} />
    </div>
  );
}
