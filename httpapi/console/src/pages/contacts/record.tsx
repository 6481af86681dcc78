// One contact: what is known, and what was said with them.
import { useEffect } from "preact/hooks";

import {
  agentId,
  go,
  href,
  listHref,
  invalidate,
  mayEdit,
  onChange,
  path,
  put,
  remove,
  useQuery,
  type API,
} from "../../data";
import { Badge, CopyButton, deleteLater, Empty, Icon, Load, Menu, Name, platformName, plural, When } from "../../ui";
import { TagsCell, TextCell } from "../../parts/cell";
import { ContactExecutions } from "../../parts/executions";
import type { SaveContact } from "./custom";
import { CustomFields } from "./customfields";
import { contactsAt } from "./paths";

type TextFieldName = "email" | "phone" | "chatbot_a" | "chatbot_b" | "social_handle" | "external_id";

const textFields: [field: TextFieldName, title: string, type?: "text" | "email" | "tel"][] = [
  ["email", "Email", "email"],
  ["phone", "Phone", "tel"],
  ["chatbot_a", "Telegram"],
  ["chatbot_b", "WhatsApp", "tel"],
  ["social_handle", "Social handle"],
  ["external_id", "External ID"],
];

/** The page of one contact. */
export function Contact({ id }: { id: string }) {
  const found = useQuery(contactsAt(id));
  useEffect(
    () =>
      onChange("contact", (change) => {
        if (change.id !== id || change.op !== "update") return;
        if (found.data.value?.updated_at !== change.row?.updated_at) void found.reload();
      }),
    [found],
  );
  const save: SaveContact = async (change) => {
    const stored = await put(contactsAt(id), change);
    found.set(() => stored);
    invalidate(`${contactsAt()}?`);
  };
  return (
    <div class="page">
      <p class="crumb">
        <a href={listHref(agentId.value, "contacts")}>Contacts</a>
      </p>
      <Load of={found} title="Contact">
        {(contact) => (
          <>
            <Head contact={contact} save={save} />
            <div class="record">
              <div class="stack">
                <About contact={contact} save={save} />
                <Notes notes={contact.notes} save={save} />
                <CustomFields contact={contact} save={save} />
                <p class="muted small">
                  Added <When time={contact.created_at} full /> · changed <When time={contact.updated_at} full /> ·{" "}
                  <code>{contact.id}</code>
                </p>
              </div>
              <div class="stack">
                <Conversations id={id} />
                <section class="card stack" aria-label="Executions">
                  <h2>Executions</h2>
                  <ContactExecutions id={id} limit={20} />
                </section>
              </div>
            </div>
          </>
        )}
      </Load>
    </div>
  );
}

function deleteContact({ id, name }: API.Contact) {
  go(href(agentId.value, "contacts"));
  deleteLater(
    `${name} deleted`,
    async () => {
      await remove(contactsAt(id));
      invalidate(contactsAt());
    },
    () => {},
  );
}

type SectionProps = { contact: API.Contact; save: SaveContact };

function Head({ contact, save }: SectionProps) {
  const { name } = contact;
  const may = mayEdit.value;
  const [initial] = name.trim();
  return (
    <div class="page-head">
      <span class="avatar" aria-hidden="true">
        {initial?.toUpperCase()}
      </span>
      <h1 class="grow" tabIndex={-1}>
        <TextCell label="Name" may={may} text={name} save={(text) => save({ name: text })}>
          <Name>{name}</Name>
        </TextCell>
      </h1>
      {may && (
        <Menu
          label="Actions"
          items={[{ label: "Delete", icon: "Trash2", danger: true, run: () => deleteContact(contact) }]}
        />
      )}
    </div>
  );
}

function About({ contact, save }: SectionProps) {
  const tagList = useQuery(contactsAt("tags"));
  const may = mayEdit.value;
  return (
    <section class="card stack" aria-label="About">
      <dl class="facts-list editable">
        {textFields.map(([field, title, type]) => (
          <>
            <dt>{title}</dt>
            <dd>
              <TextCell
                label={title}
                may={may}
                type={type}
                text={contact[field]}
                save={(text) => save({ [field]: text })}
              />
              {contact[field] && <CopyButton text={contact[field]} />}
            </dd>
          </>
        ))}
        <dt>Tags</dt>
        <dd>
          <TagsCell
            label="Tags"
            may={may}
            tags={contact.tags}
            known={tagList.data.value?.tags ?? []}
            save={(tags) => save({ tags })}
          />
        </dd>
      </dl>
    </section>
  );
}

function Notes({ notes, save }: { notes: string; save: SaveContact }) {
  const may = mayEdit.value;
  return (
    <section class="card stack" aria-label="Notes">
      <h2>Notes</h2>
      <TextCell label="Notes" may={may} rows={5} text={notes} save={(text) => save({ notes: text })}>
        {notes ? (
          <span class="notes-text">
            <bdi>{notes}</bdi>
          </span>
        ) : (
          <span class="muted">{may ? "Add a note" : "None"}</span>
        )}
      </TextCell>
    </section>
  );
}

function Conversations({ id }: { id: string }) {
  const found = useQuery(path("agents", agentId.value, "conversations"), {
    contact_id: id,
    limit: 50,
    sort: "last_message_at",
    order: "desc",
  });
  useEffect(
    () =>
      onChange("conversation", ({ row, op }) => {
        if (row?.contact_id === id || op === "delete") found.reloadThrottled();
      }),
    [found],
  );
  return (
    <section class="card stack" aria-label="Conversations">
      <h2>Conversations</h2>
      <Load of={found} lines={3}>
        {({ conversations, meta }) => {
          if (!conversations.length)
            return <Empty title="No messages yet">Channel messages and chats about this contact appear here.</Empty>;
          return (
            <>
              <ul class="talks">
                {conversations.map((conversation) => (
                  <ConversationItem key={conversation.id} conversation={conversation} />
                ))}
              </ul>
              {meta?.total > conversations.length && (
                <a href={`${href(agentId.value, "inbox")}?tab=all`}>
                  <Icon name="Inbox" size={16} /> All of them are in the Inbox
                </a>
              )}
            </>
          );
        }}
      </Load>
    </section>
  );
}

/** Where a conversation takes place: a platform, or the console's chat. */
function channelName({ gateway, gateway_id }: API.ConversationSummary) {
  if (gateway) return platformName(gateway.type);
  return gateway_id ? "Deleted channel" : "Chat";
}

/** What precedes a message: who wrote it, unless the contact did. */
function authorPrefix(author: string) {
  if (author === "bot") return "bot: ";
  return author === "contact" ? "" : "you: ";
}

function ConversationItem({ conversation }: { conversation: API.ConversationSummary }) {
  const { id, gateway_id, needs_human, status, unread, last_message, created_at } = conversation;
  return (
    <li>
      <a href={href(agentId.value, gateway_id ? "inbox" : "chat", id)}>
        <span class="row nowrap">
          <b class="grow clip">{channelName(conversation)}</b>
          {needs_human && <Badge tone="bad">asks for a person</Badge>}
          {status !== "open" && <Badge>{status}</Badge>}
          {unread > 0 && (
            <b class="count" title={plural(unread, "unread message")}>
              {unread}
            </b>
          )}
          <span class="muted small">
            <When time={last_message?.created_at ?? created_at} />
          </span>
        </span>
        <span class="muted small clip">
          {last_message && authorPrefix(last_message.author)}
          <bdi>{last_message?.content ?? "No messages yet"}</bdi>
        </span>
      </a>
    </li>
  );
}
