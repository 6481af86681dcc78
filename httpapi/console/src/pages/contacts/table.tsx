// The table of contacts, whose cells are edited in place.
import { agentId, href, mayEdit, put, setQuery, type API, type Result } from "../../data";
import { Icon, Name, Table, When, type Column, type Sorting } from "../../ui";
import { TagsCell, TextCell } from "../../parts/cell";
import { columnTitle } from "./columns";
import { customText, saveCustom } from "./custom";
import { contactsAt } from "./paths";

type Contact = API.ContactSummary;

type Props = {
  found: Result<API.ContactList>;
  contacts: Contact[];
  /** The fields that have a column, after the name. */
  fields: string[];
  sorting: Sorting;
  /** The ids of the selected contacts. */
  picked: string[];
  pick: (ids: string[]) => void;
  knownTags: string[];
};

/** A list of contacts; those who may edit can select its rows. */
export function ContactTable({ found, contacts, fields, sorting, picked, pick, knownTags }: Props) {
  const columns = [nameColumn(found), ...fields.map((field) => fieldColumn(field, found, knownTags))];
  if (mayEdit.value) columns.unshift(selectionColumn(contacts, picked, pick));
  return (
    <div class="dense">
      <Table
        rows={contacts}
        keyOf={(contact) => contact.id}
        sorting={sorting}
        onSort={({ by, order }) => setQuery({ sort: by, order, offset: null })}
        columns={columns}
      />
    </div>
  );
}

/** Stores fields of a contact and shows the answer. */
async function save(found: Result<API.ContactList>, id: string, change: object) {
  const stored = await put(contactsAt(id), change);
  found.set((list) => ({
    ...list,
    contacts: list.contacts.map((contact) => (contact.id === id ? { ...contact, ...stored } : contact)),
  }));
}

function selectionColumn(contacts: Contact[], picked: string[], pick: (ids: string[]) => void): Column<Contact> {
  const all = contacts.every(({ id }) => picked.includes(id));
  return {
    title: "",
    class: "choice",
    head: (
      <input
        type="checkbox"
        aria-label="Select all on this page"
        checked={all}
        ref={(box) => {
          if (box) box.indeterminate = picked.length > 0 && !all;
        }}
        onChange={() => pick(all ? [] : contacts.map(({ id }) => id))}
      />
    ),
    cell: ({ id, name }) => (
      <input
        type="checkbox"
        aria-label={`Select ${name}`}
        checked={picked.includes(id)}
        onChange={(e) => pick(e.currentTarget.checked ? [...picked, id] : picked.filter((other) => other !== id))}
      />
    ),
  };
}

function nameColumn(found: Result<API.ContactList>): Column<Contact> {
  return {
    title: "Name",
    class: "title",
    sort: "name",
    cell: (contact) => (
      <span class="cell-name">
        <a href={href(agentId.value, "contacts", contact.id)}>
          <Name>{contact.name}</Name>
        </a>
        {mayEdit.value && (
          <TextCell label="Name" may text={contact.name} save={(name) => save(found, contact.id, { name })}>
            <Icon name="Pencil" size={13} />
          </TextCell>
        )}
      </span>
    ),
  };
}

const inputTypes: Record<string, "text" | "email" | "tel"> = { email: "email", phone: "tel", chatbot_b: "tel" };
const timeFields = ["last_message_at", "updated_at", "created_at"];
const sortableFields = ["email", "created_at", "updated_at"];
const customPrefix = "metadata.";

/** The text of a contact's field. */
const textOf = (contact: Contact, field: string) => String((contact as Record<string, unknown>)[field] ?? "");

/** The column of a field; those of custom fields begin with "metadata.". */
function fieldColumn(field: string, found: Result<API.ContactList>, knownTags: string[]): Column<Contact> {
  if (timeFields.includes(field)) return timeColumn(field);
  if (field === "tags") return tagsColumn(found, knownTags);
  if (field.startsWith(customPrefix)) return customColumn(field, found);
  return textColumn(field, found);
}

const headOf = (field: string) => ({
  title: columnTitle(field),
  sort: sortableFields.includes(field) ? field : undefined,
});

function timeColumn(field: string): Column<Contact> {
  return {
    ...headOf(field),
    class: "time",
    cell: (contact) => {
      const time = textOf(contact, field);
      return time ? <When time={time} /> : <span class="cell-none">–</span>;
    },
  };
}

function tagsColumn(found: Result<API.ContactList>, knownTags: string[]): Column<Contact> {
  return {
    title: columnTitle("tags"),
    cell: (contact) => (
      <TagsCell
        label={`Tags of ${contact.name}`}
        may={mayEdit.value}
        tags={contact.tags}
        known={knownTags}
        save={(tags) => save(found, contact.id, { tags })}
      />
    ),
  };
}

function customColumn(field: string, found: Result<API.ContactList>): Column<Contact> {
  const key = field.slice(customPrefix.length);
  return {
    title: columnTitle(field),
    cell: ({ id, name, metadata }) => (
      <TextCell
        label={`${key} of ${name}`}
        may={mayEdit.value}
        text={customText(metadata?.[key])}
        save={async (text) => save(found, id, await saveCustom(id, key, text))}
      />
    ),
  };
}

function textColumn(field: string, found: Result<API.ContactList>): Column<Contact> {
  const head = headOf(field);
  const long = field === "notes";
  return {
    ...head,
    class: long ? "notes" : undefined,
    cell: (contact) => (
      <TextCell
        label={`${head.title} of ${contact.name}`}
        may={mayEdit.value}
        type={inputTypes[field]}
        rows={long ? 3 : undefined}
        text={textOf(contact, field)}
        save={(text) => save(found, contact.id, { [field]: text })}
      />
    ),
  };
}
