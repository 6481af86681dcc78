import { useEffect, useRef, useState } from "preact/hooks";

import {
  type API,
  get,
  href,
  mayEdit,
  onChange,
  path,
  post,
  put,
  route,
  send as sendForm,
  useDraft,
  useQuery,
} from "../../data";
import { Badge, Button, CopyButton, Icon, Load, Menu, openDialog, size, tell, When } from "../../ui";
import { CodeBlock } from "../../parts/codeblock";
import { Markdown } from "../../parts/markdown";
import { Others } from "../../parts/presence";
import { channelOf, whoOf } from "../inbox";
import { assignItems } from "./assign";
import { Attachments } from "./attachments";
import { Replies } from "./replies";

type ThreadProps = {
  id: string;
  conversation: string;
  colleagues: string[];
  toggleDetails: () => void;
  change: (what: API.Change) => Promise<void>;
};

/** One conversation: what was said, and where it is answered. */
export function Thread({ id, conversation, colleagues, toggleDetails, change }: ThreadProps) {
  const found = useQuery(path("agents", id, "conversations", conversation));
  const view = useRef<HTMLDivElement>(null);
  const now = found.data.value;
  useEffect(
    () =>
      onChange("message", (m) => {
        const { row } = m;
        if (row?.conversation_id !== conversation) return;
        found.set((d) => ({
          ...d,
          messages: [...d.messages.filter((x) => x.id !== row.id), row].sort((a, b) => a.id - b.id),
        }));
      }),
    [found],
  );
  useEffect(
    () =>
      onChange("conversation", (x) => {
        if (x.id === conversation && x.row) found.set((d) => ({ ...d, ...x.row }));
      }),
    [found],
  );
  useEffect(() => {
    if (now?.unread && mayEdit.value && !document.hidden)
      void put(path("agents", id, "conversations", conversation), { read: true }).catch(() => {});
  }, [now?.unread]);
  useEffect(() => {
    view.current?.scrollTo({ top: view.current.scrollHeight });
  }, [now?.messages.length]);
  const set = async (what: API.Change) => {
    await change(what);
    await found.reload();
  };
  const back = (
    <a
      class="button only phone"
      href={href(id, "inbox") + (route.value.query.size ? `?${route.value.query}` : "")}
      aria-label="Back to the list"
    >
      <Icon name="ArrowLeft" size={16} />
    </a>
  );
  return (
    <section class="inbox-thread" aria-label="Conversation">
      {!now && <header class="row phone">{back}</header>}
      <Load of={found}>
        {(c) => (
          <>
            <header class="row">
              {back}
              <h2 class="grow">
                <bdi>{whoOf(c)}</bdi>
                <span class="muted small" title={c.assignee ? `Assigned to ${c.assignee}` : undefined}>
                  {channelOf(c)}
                  {c.status !== "open" && ` · ${c.status}`}
                  {c.assignee && (
                    <>
                      {" "}
                      · <bdi>{c.assignee}</bdi>
                    </>
                  )}
                </span>
              </h2>
              {c.needs_human && <Badge tone="bad">asks for a person</Badge>}
              {mayEdit.value && (
                <Button
                  pressed={!c.muted}
                  label={c.muted ? "The bot is muted: let it answer again" : "The bot answers: mute it"}
                  onClick={() => set({ muted: !c.muted })}
                >
                  {c.muted ? "Bot off" : "Bot on"}
                </Button>
              )}
              {mayEdit.value && (
                <Button
                  icon={c.status === "open" ? "Check" : undefined}
                  onClick={() => set({ status: c.status === "open" ? "resolved" : "open" })}
                >
                  {c.status === "open" ? "Resolve" : "Reopen"}
                </Button>
              )}
              {mayEdit.value && (
                <Menu
                  label="Conversation"
                  items={[
                    {
                      label: "Snooze until the next message",
                      icon: "Clock",
                      disabled: c.status === "snoozed",
                      run: () => set({ status: "snoozed" }),
                    },
                    { label: "Mark as unread", icon: "Mail", run: () => set({ read: false }) },
                    "-",
                    ...assignItems(colleagues, c.assignee ?? "", set),
                    "-",
                    {
                      label: "Canned replies",
                      icon: "MessagesSquare",
                      run: () => {
                        openDialog((close) => <Replies id={id} close={close} />);
                      },
                    },
                  ]}
                />
              )}
              <Button kind="quiet" icon="Users" label="Contact" class="narrow" onClick={toggleDetails} />
            </header>
            <div class="inbox-messages" ref={view} tabIndex={0} role="log" aria-label="Messages">
              {c.messages.map((m, i) => (
                <Said key={m.id} m={m} before={c.messages[i - 1]} id={id} reload={found.reload} />
              ))}
              {c.messages.length === 0 && <p class="muted">No messages yet.</p>}
              {c.muted && (
                <p class="inbox-line">
                  Bot muted: you're answering.{" "}
                  {mayEdit.value && (
                    <button type="button" class="link" onClick={() => void set({ muted: false }).catch(tell)}>
                      Give back to the bot
                    </button>
                  )}
                </p>
              )}
            </div>
            {mayEdit.value ? (
              <Composer id={id} c={c} sent={found.reload} />
            ) : (
              <p class="muted inbox-line">Answering needs the admin role.</p>
            )}
          </>
        )}
      </Load>
    </section>
  );
}

const dayOf = (time: string) => new Date(time).toLocaleDateString(undefined, { dateStyle: "full" });
const authors: Record<string, string> = { user: "", note: "Note", system: "System", tool: "Tool" };

/** What stands for the text of a message that only has files. */
const standIn =
  /^(\[(attachment|photo|document|animation|audio|voice|video|video_note|sticker|image|file)(: [^\]]*)?\] ?)+$/;

/** What the metadata of a message may hold. */
type Metadata = {
  author?: string;
  author_email?: string;
  simulated?: boolean;
  delivered_at?: string;
  delivery?: API.MessageDelivery;
  attachments?: unknown[];
};

/** What came of sending a message; the live stream brings only its metadata. */
function deliveryOf(m: API.MessageDetails): API.MessageDelivery | null | undefined {
  const { delivery, delivered_at }: Metadata = m.metadata ?? {};
  return m.delivery ?? (delivery && { ...delivery, sent_at: delivered_at ?? null });
}

function Said({
  m,
  before,
  id,
  reload,
}: {
  m: API.MessageDetails;
  before?: API.MessageDetails;
  id: string;
  reload: () => Promise<void>;
}) {
  const day = dayOf(m.created_at);
  const delivery = deliveryOf(m);
  const about: Metadata = m.metadata ?? {};
  const person = about.author === "human";
  const bot = m.role === "assistant" && !person;
  const author = bot
    ? "Bot"
    : person && m.role === "assistant"
      ? about.author_email || "A person"
      : m.role === "note" && about.author_email
        ? `Note of ${about.author_email}`
        : authors[m.role];
  const again = async () => {
    await post(path("agents", id, "conversations", m.conversation_id, "messages", m.id, "resend"));
    await reload();
  };
  return (
    <>
      {(!before || dayOf(before.created_at) !== day) && (
        <p class="inbox-day">
          <span>{day}</span>
        </p>
      )}
      <article class={`inbox-said ${m.role} ${person ? "person" : ""}`}>
        <p class="row nowrap muted small">
          <span class="grow">
            {author && (
              <>
                <bdi>{author}</bdi> ·{" "}
              </>
            )}
            <When time={m.created_at} />
            {about.simulated && " · simulated"}
          </span>
          <CopyButton text={m.content} />
        </p>
        {bot ? (
          <Markdown text={m.content} Code={CodeBlock} />
        ) : (
          !(about.attachments?.length && standIn.test(m.content)) && (
            <p class="inbox-text">
              <bdi>
                <Linked text={m.content} />
              </bdi>
            </p>
          )
        )}
        <Attachments id={id} m={m} />
        {delivery && (
          <p class="small inbox-delivery">
            <Badge tone={delivery.status === "failed" ? "bad" : delivery.status === "sent" ? "good" : "busy"}>
              {delivery.status === "failed" ? "not sent" : delivery.status === "sent" ? "sent" : "sending"}
            </Badge>
            {delivery.error && (
              <span>
                {" "}
                <bdi>{delivery.error}</bdi>
              </span>
            )}
            {delivery.status === "failed" && mayEdit.value && <Button onClick={again}>Send again</Button>}
          </p>
        )}
      </article>
    </>
  );
}

/** Markdown as text for platforms that have none: without emphasis, and without the numbers of passages. */
const asText = (markdown: string) => markdown.replace(/\*\*|__|`+|\s*\[\d+\]/g, "");

/** A text whose web addresses are links; nothing else of it is more than text. */
function Linked({ text }: { text: string }) {
  return (
    <>
      {text.split(/(https?:\/\/[^\s<>"']+)/).map((part, i) =>
        i % 2 ? (
          <a key={i} href={part} target="_blank" rel="noopener noreferrer">
            {part}
          </a>
        ) : (
          part
        ),
      )}
    </>
  );
}

function Composer({ id, c, sent }: { id: string; c: API.ConversationDetails; sent: () => Promise<void> }) {
  const at = <const M extends string[]>(...more: M) => path("agents", id, "conversations", c.id, ...more);
  const [mode, setMode] = useState<"reply" | "note">("reply");
  const [row, setRow] = useState(0); // of the canned replies that are offered
  const [closed, setClosed] = useState(""); // the text for which none are offered
  const reply = useDraft(`inbox.${id}.${c.id}`),
    note = useDraft(`inbox-note.${id}.${c.id}`);
  const text = mode === "note" ? note : reply;
  const area = useRef<HTMLTextAreaElement>(null);
  const [files, setFiles] = useState<File[]>([]);
  const picker = useRef<HTMLInputElement>(null);
  const line = useRef<Promise<unknown>>(Promise.resolve()); // what was sent last: messages arrive in the order in which they were written
  const mayAttach = c.gateway?.type === "web" && mode === "reply";
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const canned = useQuery(path("agents", id, "replies"), { limit: 200 });
  useEffect(() => {
    void get(at("draft")).then(
      (d) => {
        if (!reply.value && d.text) reply.value = d.text;
      },
      () => {},
    );
    return () => clearTimeout(timer.current);
  }, []);
  const keep = (value: string) => {
    text.value = value;
    if (mode === "note") return;
    clearTimeout(timer.current);
    timer.current = setTimeout(() => void put(at("draft"), { text: value }).catch(() => {}), 2000);
  };
  // The field is empty at once, for what comes next; what could not be sent comes back to it.
  const send = async () => {
    const [content, attached, to] = [text.value.trim(), mode === "reply" ? files : [], text];
    if (!content && !attached.length) return;
    area.current?.focus();
    clearTimeout(timer.current);
    to.value = "";
    if (attached.length) setFiles([]);
    const mine = line.current.catch(() => {}).then(() => deliver(content, attached));
    line.current = mine;
    try {
      await mine;
    } catch (error) {
      to.value = [content, to.value].filter(Boolean).join("\n\n");
      if (attached.length) setFiles((f) => [...attached, ...f]);
      throw error;
    }
    if (to === reply && !to.value) void put(at("draft"), { text: "" }).catch(() => {});
    await sent();
  };
  /** Has the model write an answer to what was said, by the agent's knowledge and without tools, for a person to read and send. */
  const propose = async () => {
    const said = c.messages.filter((m) => ["user", "assistant"].includes(m.role) && m.content);
    const messages = said
      .slice(0, said.findLastIndex((m) => m.role === "user") + 1)
      .slice(-40)
      .map(({ role, content }) => ({ role, content }));
    const { choices } = await post(path("agents", id, "v1", "chat", "completions"), { messages, tool_choice: "none" });
    keep([reply.value.trimEnd(), asText(choices[0].message.content ?? "")].filter(Boolean).join("\n\n"));
    area.current?.focus();
  };
  const deliver = async (content: string, attached: File[]) => {
    if (!attached.length)
      return post(
        at("messages"),
        mode === "note" ? { role: "note", content } : { role: "assistant", content, send: Boolean(c.gateway_id) },
      );
    const form = new FormData();
    form.set("content", content);
    for (const f of attached) form.append("file", f, f.name);
    return sendForm(at("files"), form);
  };
  const choose = (m: "reply" | "note") => {
    setMode(m);
    area.current?.focus();
  };
  const typed = /(?:^|\s)!(\S*)$/.exec(text.value)?.[1];
  const offered =
    typed === undefined || closed === text.value
      ? []
      : (canned.data.value?.replies ?? [])
          .filter((r) => r.shortcut.toLowerCase().startsWith(typed.toLowerCase()))
          .slice(0, 8);
  const chosen = Math.min(row, offered.length - 1);
  const fill = (r: API.CannedReply) => {
    keep(text.value.slice(0, text.value.length - typed!.length - 1) + r.text);
    setRow(0);
    area.current?.focus();
  };
  const cannedKeys = (e: KeyboardEvent) => {
    if (!offered.length) return false;
    if (e.key === "ArrowDown") setRow((chosen + 1) % offered.length);
    else if (e.key === "ArrowUp") setRow((chosen + offered.length - 1) % offered.length);
    else if (e.key === "Tab" || (e.key === "Enter" && !e.shiftKey && !e.isComposing)) fill(offered[chosen]);
    else if (e.key === "Escape") {
      e.stopPropagation();
      setClosed(text.value);
    } else return false;
    e.preventDefault();
    return true;
  };
  const manage = () => {
    openDialog((close) => <Replies id={id} text={typed === undefined ? text.value : ""} close={close} />);
  };
  return (
    <form
      class={`inbox-composer ${mode}`}
      onSubmit={(e) => {
        e.preventDefault();
        void send().catch(tell);
      }}
    >
      <div class="tabs" role="group" aria-label="Message type">
        <button
          type="button"
          data-mode="reply"
          aria-current={mode === "reply" ? "true" : undefined}
          onClick={() => choose("reply")}
        >
          Reply
        </button>
        <button
          type="button"
          data-mode="note"
          aria-current={mode === "note" ? "true" : undefined}
          onClick={() => choose("note")}
        >
          Note
        </button>
        <Others at={c.id} editing={Boolean(text.value.trim())} doing={{ one: "is writing", several: "are writing" }} />
      </div>
      {typed !== undefined && closed !== text.value && (offered.length > 0 || text.value.startsWith("!")) && (
        <ul class="inbox-canned">
          {offered.map((r, i) => (
            <li key={r.id}>
              <button type="button" aria-current={i === chosen ? "true" : undefined} onClick={() => fill(r)}>
                <strong>
                  !<bdi>{r.shortcut}</bdi>
                </strong>{" "}
                <span class="clip">
                  <bdi>{r.text}</bdi>
                </span>
              </button>
            </li>
          ))}
          <li>
            <button type="button" class="muted" onClick={manage}>
              {canned.data.value?.replies.length
                ? "Edit canned replies"
                : "There is no canned reply yet: write the first"}
            </button>
          </li>
        </ul>
      )}
      <textarea
        ref={area}
        rows={3}
        value={text.value}
        aria-label={mode === "note" ? "Private note" : "Reply"}
        placeholder={
          mode === "note"
            ? "Private note: not sent, and the bot doesn't read it"
            : c.gateway_id
              ? "Your reply; ! for canned replies"
              : "Your reply; it appears in the chat"
        }
        onInput={(e) => keep(e.currentTarget.value)}
        onKeyDown={(e) => {
          if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) {
            e.preventDefault();
            void send().catch(tell);
          } else if (!cannedKeys(e) && e.key === "Escape") {
            e.stopPropagation();
            e.currentTarget.blur();
          } // the keys of the page count again
        }}
      />
      {mayAttach && files.length > 0 && (
        <ul class="inbox-attached">
          {files.map((f, i) => (
            <li key={i} class="row nowrap">
              <Icon name="Paperclip" size={14} />
              <bdi class="clip grow">{f.name}</bdi>
              <span class="muted small">{size(f.size)}</span>
              <Button
                kind="quiet"
                icon="X"
                label={`Remove ${f.name}`}
                onClick={() => setFiles(files.filter((x) => x !== f))}
              />
            </li>
          ))}
        </ul>
      )}
      <div class="row">
        {mayAttach && (
          <>
            <input
              ref={picker}
              type="file"
              hidden
              multiple
              aria-label="Attach files"
              onChange={(e) => {
                setFiles([...files, ...e.currentTarget.files!].slice(0, 20));
                e.currentTarget.value = "";
                area.current?.focus();
              }}
            />
            <Button kind="quiet" icon="Paperclip" label="Attach files" onClick={() => picker.current?.click()} />
          </>
        )}
        <Button kind="quiet" icon="MessagesSquare" label="Canned replies" onClick={manage} />
        {mode === "reply" && (
          <Button
            kind="quiet"
            icon="Sparkles"
            disabled={!c.messages.some((m) => m.role === "user" && m.content)}
            reason="There is no message to answer yet."
            onClick={propose}
          >
            AI draft
          </Button>
        )}
        <span class="grow muted small">
          <span class="with-keys">Ctrl+Enter to send</span>
        </span>
        <Button kind="primary" submit disabled={!text.value.trim() && !(mayAttach && files.length)}>
          {mode === "note" ? "Add note" : "Send"}
        </Button>
      </div>
    </form>
  );
}
