// One contact: what is known, and what was said with them.
import { useEffect, useState } from "preact/hooks";

import {
  agentId,
  ApiError,
  get,
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
  reasonOf,
} from "../../data";
import {
  Badge,
  Button,
  CopyButton,
  deleteLater,
  Empty,
  Icon,
  Load,
  Menu,
  Name,
  platformName,
  plural,
  When,
} from "../../ui";
import { TagsCell, TextCell } from "../../parts/cell";
import { ContactExecutions } from "../../parts/executions";
import { customText, saveCustom } from "./custom";

const at = <const M extends string[]>(...more: M) => path("agents", agentId.value, "contacts", ...more);

const facts: [
  "email" | "phone" | "chatbot_a" | "chatbot_b" | "social_handle" | "external_id",
  string,
  ("text" | "email" | "tel")?,
][] = [
  ["email", "Email", "email"],
  ["phone", "Phone", "tel"],
  ["chatbot_a", "Telegram"],
  ["chatbot_b", "WhatsApp", "tel"],
  ["social_handle", "Social handle"],
  ["external_id", "External ID"],
];

export function Contact({ id }: { id: string }) {
  const found = useQuery(at(id));
  const known = useQuery(at("tags"));
  useEffect(
    () =>
      onChange("contact", (c) => {
        if (c.id === id && c.op === "update" && found.data.value?.updated_at !== c.row?.updated_at) void found.reload();
      }),
    [found],
  );
  const save = async (change: object) => {
    const stored = await put(at(id), change);
    found.set(() => stored);
    invalidate(`${at()}?`);
  };
  const may = mayEdit.value;
  const away = (c: API.Contact) => {
    go(href(agentId.value, "contacts"));
    deleteLater(
      `${c.name} deleted`,
      () => remove(at(id)).then(() => invalidate(at())),
      () => {},
    );
  };
  return (
    <div class="page">
      <p class="crumb">
        <a href={listHref(agentId.value, "contacts")}>Contacts</a>
      </p>
      <Load of={found} title="Contact">
        {(c) => (
          <>
            <div class="page-head">
              <span class="avatar" aria-hidden="true">
                {[...c.name.trim()][0]?.toUpperCase()}
              </span>
              <h1 class="grow" tabIndex={-1}>
                <TextCell label="Name" may={may} text={c.name} save={(name) => save({ name })}>
                  <Name>{c.name}</Name>
                </TextCell>
              </h1>
              {may && (
                <Menu label="Actions" items={[{ label: "Delete", icon: "Trash2", danger: true, run: () => away(c) }]} />
              )}
            </div>
            <div class="record">
              <div class="stack">
                <section class="card stack" aria-label="About">
                  <dl class="facts-list editable">
                    {facts.map(([field, title, type]) => (
                      <>
                        <dt>{title}</dt>
                        <dd>
                          <TextCell
                            label={title}
                            may={may}
                            type={type}
                            text={c[field]}
                            save={(text) => save({ [field]: text })}
                          />
                          {c[field] && <CopyButton text={c[field]} />}
                        </dd>
                      </>
                    ))}
                    <dt>Tags</dt>
                    <dd>
                      <TagsCell
                        label="Tags"
                        may={may}
                        tags={c.tags}
                        known={known.data.value?.tags ?? []}
                        save={(tags) => save({ tags })}
                      />
                    </dd>
                  </dl>
                </section>
                <section class="card stack" aria-label="Notes">
                  <h2>Notes</h2>
                  <TextCell label="Notes" may={may} rows={5} text={c.notes} save={(notes) => save({ notes })}>
                    {c.notes ? (
                      <span class="notes-text">
                        <bdi>{c.notes}</bdi>
                      </span>
                    ) : (
                      <span class="muted">{may ? "Add a note" : "None"}</span>
                    )}
                  </TextCell>
                </section>
                <Custom c={c} save={save} />
                <p class="muted small">
                  Added <When time={c.created_at} full /> · changed <When time={c.updated_at} full /> ·{" "}
                  <code>{c.id}</code>
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

/** The fields that contacts of this agent have beside the usual ones. */
function Custom({ c, save }: { c: API.Contact; save: (change: object) => Promise<void> }) {
  const [name, setName] = useState<string>();
  const [value, setValue] = useState("");
  const [issue, setIssue] = useState("");
  const may = mayEdit.value;
  const entries = Object.entries(c.metadata);
  const add = async () => {
    if (!name?.trim()) return setIssue("Enter a name.");
    if (name.trim() in c.metadata) return setIssue("A field with this name exists.");
    try {
      const { metadata } = await get(at(c.id));
      await save({ metadata: { ...metadata, [name.trim()]: value } });
      setName(undefined);
      setValue("");
      setIssue("");
    } catch (error) {
      setIssue(reasonOf(error));
    }
  };
  const drop = async (key: string) => {
    const {
      metadata: { [key]: _, ...metadata },
    } = await get(at(c.id));
    await save({ metadata });
  };
  return (
    <section class="card stack" aria-label="Custom fields">
      <div class="row">
        <h2 class="grow">Custom fields</h2>
        {may && name === undefined && (
          <Button icon="Plus" onClick={() => setName("")}>
            Add a field
          </Button>
        )}
      </div>
      {entries.length > 0 && (
        <dl class="facts-list editable">
          {entries.map(([key, v]) => (
            <>
              <dt>
                <bdi>{key}</bdi>
              </dt>
              <dd>
                <TextCell
                  label={key}
                  may={may}
                  text={customText(v)}
                  rows={typeof v === "object" && v !== null ? 4 : undefined}
                  save={async (text) => save(await saveCustom(c.id, key, text))}
                />
                {may && <Button kind="quiet" icon="X" label={`Remove ${key}`} onClick={() => drop(key)} />}
              </dd>
            </>
          ))}
        </dl>
      )}
      {!entries.length && name === undefined && (
        <p class="muted">
          None. Columns of an import that are no field of a contact become custom fields, and workflows read them as{" "}
          <code>{"{{contact.metadata.name}}"}</code>.
        </p>
      )}
      {name !== undefined && (
        <form
          class="row"
          onSubmit={(e) => {
            e.preventDefault();
            void add();
          }}
        >
          <input
            aria-label="Name of the field"
            placeholder="Name"
            value={name}
            autoFocus
            onInput={(e) => setName(e.currentTarget.value)}
          />
          <input
            aria-label="Value of the field"
            placeholder="Value"
            class="grow"
            value={value}
            onInput={(e) => setValue(e.currentTarget.value)}
          />
          <Button kind="primary" submit>
            Add
          </Button>
          <Button
            onClick={() => {
              setName(undefined);
              setIssue("");
            }}
          >
            Cancel
          </Button>
          {issue && (
            <small class="issue" role="alert">
              {issue}
            </small>
          )}
        </form>
      )}
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
      onChange("conversation", (c) => {
        if (c.row?.contact_id === id || c.op === "delete") found.soon();
      }),
    [found],
  );
  return (
    <section class="card stack" aria-label="Conversations">
      <h2>Conversations</h2>
      <Load of={found} lines={3}>
        {({ conversations, meta }) =>
          conversations.length ? (
            <>
              <ul class="talks">
                {conversations.map((v) => (
                  <li key={v.id}>
                    <a href={v.gateway_id ? href(agentId.value, "inbox", v.id) : href(agentId.value, "chat", v.id)}>
                      <span class="row nowrap">
                        <b class="grow clip">
                          {v.gateway ? platformName(v.gateway.type) : v.gateway_id ? "Deleted channel" : "Chat"}
                        </b>
                        {v.needs_human && <Badge tone="bad">asks for a person</Badge>}
                        {v.status !== "open" && <Badge>{v.status}</Badge>}
                        {v.unread > 0 && (
                          <b class="count" title={plural(v.unread, "unread message")}>
                            {v.unread}
                          </b>
                        )}
                        <span class="muted small">
                          <When time={v.last_message?.created_at ?? v.created_at} />
                        </span>
                      </span>
                      <span class="muted small clip">
                        {v.last_message &&
                          (v.last_message.author === "bot"
                            ? "bot: "
                            : v.last_message.author === "contact"
                              ? ""
                              : "you: ")}
                        <bdi>{v.last_message?.content ?? "No messages yet"}</bdi>
                      </span>
                    </a>
                  </li>
                ))}
              </ul>
              {meta?.total > conversations.length && (
                <a href={`${href(agentId.value, "inbox")}?tab=all`}>
                  <Icon name="Inbox" size={16} /> All of them are in the Inbox
                </a>
              )}
            </>
          ) : (
            <Empty title="No messages yet">Channel messages and chats about this contact appear here.</Empty>
          )
        }
      </Load>
    </section>
  );
}
