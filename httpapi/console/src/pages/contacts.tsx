// Contacts: who the agent knows, in a table that is edited in place.
import { useEffect, useState } from "preact/hooks";

import {
  agentId,
  download,
  go,
  href,
  mayEdit,
  onChange,
  post,
  route,
  setQuery,
  useQuery,
  type API,
  type Result,
} from "../data";
import {
  Button,
  deleteLater,
  Empty,
  FormDialog,
  Icon,
  Load,
  Menu,
  openDialog,
  Pager,
  plural,
  SearchField,
  TextArea,
  TextField,
  type Sorting,
  type Values,
} from "../ui";
import { useSelection } from "../parts/selection";
import { style } from "../parts/styles";
import { TagsInput } from "../parts/tags";
import { ColumnsButton, useColumns, Views } from "./contacts/columns";
import { Import } from "./contacts/import";
import { contactsAt } from "./contacts/paths";
import { Contact } from "./contacts/record";
import { SelectedContacts } from "./contacts/selected";
import { ContactTable } from "./contacts/table";
import "../css/contacts.css";

export const styles = style("./contacts.css");

/** The page of contacts: the list, or the contact of the address. */
export default function Contacts() {
  const id = route.value.rest[0];
  return id ? <Contact key={id} id={id} /> : <ContactList />;
}

const pageSize = 50;

/** What the address asks for: who is listed, in which order, from which one on. */
function listOptions() {
  const { query } = route.value;
  const sort = query.get("sort");
  const order = query.get("order") ?? (sort ? "asc" : "desc");
  const sorting: Sorting = { by: sort ?? "created_at", order: order as Sorting["order"] };
  return {
    search: query.get("search") ?? "",
    tags: query.getAll("tag"),
    offset: Number(query.get("offset")) || 0,
    sorting,
    sorted: query.has("sort"),
  };
}

/** Loads the contacts that the address asks for, and all tags. */
function useContacts() {
  const { search, tags, offset, sorting } = listOptions();
  const found = useQuery(contactsAt(), {
    full: true,
    search,
    tag: tags,
    sort: sorting.by,
    order: sorting.order,
    limit: pageSize,
    offset,
  });
  const tagList = useQuery(contactsAt("tags"));
  useChanges(found);
  const reload = () => {
    void found.reload();
    void tagList.reload();
  };
  return { found, knownTags: tagList.data.value?.tags ?? [], reload };
}

/** Keeps the list current: contacts that it shows change in place, for others it is loaded again. */
function useChanges(found: Result<API.ContactList>) {
  useEffect(() => {
    return onChange("contact", ({ id, op, row }) => {
      const listed = found.data.value?.contacts.some((contact) => contact.id === id);
      if (op !== "update") found.reloadThrottled();
      else if (listed && row)
        found.set((list) => ({
          ...list,
          contacts: list.contacts.map((contact) => (contact.id === id ? { ...contact, ...row } : contact)),
        }));
    });
  }, [found]);
}

/** Deletes the contacts that are selected; until that can no longer be undone, they are only hidden. */
function useDeletion(found: Result<API.ContactList>) {
  const [picked, pick] = useSelection(route.value.query.toString());
  const [hidden, setHidden] = useState<string[]>([]);
  const deletePicked = () => {
    const ids = picked;
    const show = () => setHidden((all) => all.filter((id) => !ids.includes(id)));
    setHidden((all) => [...all, ...ids]);
    pick([]);
    deleteLater(
      `${plural(ids.length, "contact")} deleted`,
      async () => {
        await post(contactsAt("batch"), { ids, delete: true });
        await found.reload();
        show();
      },
      show,
    );
  };
  return { picked, pick, hidden, deletePicked };
}

function ContactList() {
  const { search, tags, sorting, sorted } = listOptions();
  const { found, knownTags, reload } = useContacts();
  const { picked, pick, hidden, deletePicked } = useDeletion(found);
  const columns = useColumns();
  const filtered = Boolean(search || tags.length);
  const loaded = found.data.value?.contacts ?? [];
  const add = () => {
    openDialog((close) => <NewContact knownTags={knownTags} close={close} />);
  };
  const importFile = () => {
    openDialog((close) => <Import close={close} done={reload} />);
  };
  return (
    <div class="page wide">
      <Head add={add} importFile={importFile} />
      <Views filtered={filtered || sorted} />
      <div class="row contacts-filter" role="search">
        <SearchField
          key={search ? "typed" : "none"}
          value={search}
          label="Search contacts"
          placeholder="Name, email or phone"
          onInput={(text) => setQuery({ search: text, offset: null })}
        />
        <TagFilter tags={tags} knownTags={knownTags} />
        <span class="grow" />
        <ColumnsButton columns={columns} rows={loaded} />
      </div>
      {picked.length > 0 && (
        <SelectedContacts
          picked={picked}
          contacts={loaded}
          knownTags={knownTags}
          clear={() => pick([])}
          reload={reload}
          remove={deletePicked}
        />
      )}
      <Load of={found} lines={8}>
        {({ contacts, meta }) => {
          const shown = contacts.filter(({ id }) => !hidden.includes(id));
          if (!shown.length) return <NoContacts filtered={filtered} add={add} importFile={importFile} />;
          return (
            <>
              <ContactTable
                found={found}
                contacts={shown}
                fields={columns.now.value}
                sorting={sorting}
                picked={picked}
                pick={pick}
                knownTags={knownTags}
              />
              <div class="row">
                <span class="muted small">{plural(meta.total, "contact")}</span>
              </div>
              <Pager meta={meta} go={(offset) => setQuery({ offset: offset || null })} />
            </>
          );
        }}
      </Load>
    </div>
  );
}

type AddActions = { add: () => void; importFile: () => void };

function Head({ add, importFile }: AddActions) {
  const exportAs = (format: string) => download("GET", contactsAt("export"), { format });
  return (
    <div class="page-head">
      <h1 class="grow" tabIndex={-1}>
        Contacts
      </h1>
      <Menu
        label="Export"
        icon="Download"
        items={[
          { label: "Export CSV", icon: "Download", run: () => exportAs("csv") },
          { label: "Export JSON", icon: "Download", run: () => exportAs("json") },
        ]}
      >
        <Icon name="Download" size={16} />
        <span>Export</span>
      </Menu>
      {mayEdit.value && (
        <>
          <Button icon="Upload" onClick={importFile}>
            Import
          </Button>
          <Button kind="primary" icon="Plus" onClick={add}>
            New contact
          </Button>
        </>
      )}
    </div>
  );
}

/** Sets the tags by which the list is filtered. */
function setTags(tags: string[]) {
  const query = new URLSearchParams(route.value.query);
  query.delete("tag");
  query.delete("offset");
  for (const tag of tags) query.append("tag", tag);
  go(`${href(agentId.value, "contacts")}${query.size ? `?${query}` : ""}`, true);
}

/** The tags of which a listed contact has at least one. */
function TagFilter({ tags, knownTags }: { tags: string[]; knownTags: string[] }) {
  const choose = (select: HTMLSelectElement) => {
    if (select.value) setTags([...tags, select.value]);
    select.value = "";
  };
  return (
    <>
      <select
        aria-label="Filter by tag"
        value=""
        onChange={(e) => choose(e.currentTarget)}
        disabled={!knownTags.length}
      >
        <option value="">{tags.length ? "Or tag…" : "All tags"}</option>
        {knownTags
          .filter((tag) => !tags.includes(tag))
          .map((tag) => (
            <option value={tag}>{tag}</option>
          ))}
      </select>
      {tags.map((tag) => (
        <span class="tag" key={tag}>
          <bdi>{tag}</bdi>
          <button
            type="button"
            aria-label={`Remove filter ${tag}`}
            onClick={() => setTags(tags.filter((other) => other !== tag))}
          >
            <Icon name="X" size={12} />
          </button>
        </span>
      ))}
    </>
  );
}

function NoContacts({ filtered, add, importFile }: AddActions & { filtered: boolean }) {
  if (filtered)
    return (
      <Empty icon="Search" title="No contacts match">
        Try different words or another tag.
      </Empty>
    );
  const actions = mayEdit.value && (
    <>
      <Button kind="primary" icon="Plus" onClick={add}>
        New contact
      </Button>
      <Button icon="Upload" onClick={importFile}>
        Import a CSV file
      </Button>
    </>
  );
  return (
    <Empty icon="Users" title="No contacts yet" action={actions}>
      People who write on a channel become contacts automatically.
    </Empty>
  );
}

function NewContact({ knownTags, close }: { knownTags: string[]; close: () => void }) {
  const run = async (values: Values) => {
    const { id } = await post(contactsAt(), values);
    go(href(agentId.value, "contacts", id));
  };
  return (
    <FormDialog
      title="New contact"
      close={close}
      action="Add"
      initial={{ name: "", email: "", phone: "", tags: [] as string[], notes: "" }}
      run={run}
    >
      {(form) => (
        <>
          <TextField label="Name" required autoFocus {...form.text("name")} />
          <div class="row">
            <TextField label="Email" type="email" {...form.text("email")} />
            <TextField label="Phone" {...form.text("phone")} />
          </div>
          <div class="field">
            <span class="field-title">Tags</span>
            <TagsInput
              label="Tags"
              value={form.values.tags}
              onChange={(tags) => form.set("tags", tags)}
              known={knownTags}
            />
            {form.issue("tags") && <small class="issue">{form.issue("tags")}</small>}
          </div>
          <TextArea label="Notes" {...form.text("notes")} />
          <p class="muted small">Other identifiers and custom fields are on the contact's page.</p>
        </>
      )}
    </FormDialog>
  );
}
