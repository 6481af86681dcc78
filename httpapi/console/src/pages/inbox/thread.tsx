import { useEffect, useRef, useState } from "preact/hooks";

import { get, href, mayEdit, onChange, path, post, put, session, useDraft, useQuery } from "../../data";
import { Badge, Button, Load, Menu, tell, When } from "../../ui";
import { channelOf, whoOf } from "../inbox";

type ThreadProps = { id: string; conversation: string; toggleDetails: () => void; change: (what: object) => Promise<void> };

/** One conversation: what was said, and where it is answered. */
export function Thread({ id, conversation, toggleDetails, change }: ThreadProps) {
  const at = path("agents", id, "conversations", conversation);
  const found = useQuery(at);
  const view = useRef<HTMLDivElement>(null);
  const c = found.data.value as any;
  useEffect(() => onChange("message", (m) => {
    if (m.row?.conversation_id !== conversation) return;
    found.set((d: any) => ({ ...d, messages: [...d.messages.filter((x: any) => x.id !== m.row.id), m.row].sort((a: any, b: any) => a.id - b.id) }));
  }), [found]);
  useEffect(() => onChange("conversation", (x) => { if (x.id === conversation && x.row) found.set((d: any) => ({ ...d, ...x.row })); }), [found]);
  useEffect(() => { if (c?.unread > 0 && mayEdit.value && !document.hidden) void put(at, { read: true }).catch(() => {}); }, [c?.unread]);
  useEffect(() => { view.current?.scrollTo({ top: view.current.scrollHeight }); }, [c?.messages.length]);
  const set = async (what: object) => { await change(what); await found.reload(); };
  return (
    <section class="inbox-thread" aria-label="Conversation">
      <Load of={found}>{() => (
        <>
          <header class="row">
            <a class="button only phone" href={href(id, "inbox")} aria-label="Back to the list">←</a>
            <h2 class="grow clip"><bdi>{whoOf(c)}</bdi> <span class="muted small">{channelOf(c)}</span></h2>
            {c.assignee && <Badge title="Looks after it"><bdi>{c.assignee}</bdi></Badge>}
            {c.needs_human && <Badge tone="bad">asks for a person</Badge>}
            {mayEdit.value && <Button pressed={!c.muted} label="Automatic answers" onClick={() => set({ muted: !c.muted })}>{c.muted ? "Bot off" : "Bot on"}</Button>}
            {mayEdit.value && <Button onClick={() => set({ status: c.status === "open" ? "resolved" : "open" })}>{c.status === "open" ? "Resolve" : "Reopen"}</Button>}
            {mayEdit.value && <Menu label="Conversation" items={[
              { label: "Snooze", run: () => set({ status: "snoozed" }) },
              { label: "Mark as unread", run: () => set({ read: false }) },
              { label: "Assign to me", disabled: !session.value?.identity?.email, reason: "This server does not know who you are", run: () => set({ assignee: "me" }) },
              { label: "Assign to nobody", run: () => set({ assignee: null }) },
            ]} />}
            <Button kind="quiet" icon="Users" label="Contact" class="narrow" onClick={toggleDetails} />
          </header>
          <div class="inbox-messages" ref={view} tabIndex={0} role="log" aria-label="Messages">
            {c.messages.map((m: any, i: number) => <Said key={m.id} m={m} before={c.messages[i - 1]} at={at} reload={found.reload} />)}
            {c.messages.length === 0 && <p class="muted">Nothing was said yet.</p>}
            {c.muted && <p class="inbox-line">Bot muted: you answer. {mayEdit.value && <button type="button" class="link" onClick={() => void set({ muted: false }).catch(tell)}>Give back to the bot</button>}</p>}
          </div>
          {mayEdit.value ? <Composer at={at} id={id} c={c} sent={found.reload} /> : <p class="muted inbox-line">Answering needs the role admin.</p>}
        </>
      )}</Load>
    </section>
  );
}

const dayOf = (time: string) => new Date(time).toLocaleDateString(undefined, { dateStyle: "full" });
const authors: Record<string, string> = { user: "", note: "Note", system: "System", tool: "Tool" };

/** What came of sending a message; the live stream brings only its metadata. */
const deliveryOf = (m: any) => m.delivery ?? (m.metadata?.delivery && { ...m.metadata.delivery, sent_at: m.metadata.delivered_at });

function Said({ m, before, at, reload }: { m: any; before?: any; at: string; reload: () => Promise<void> }) {
  const day = dayOf(m.created_at);
  const delivery = deliveryOf(m);
  const person = m.metadata?.author === "human";
  const author = m.role === "assistant" ? (person ? m.metadata.author_email || "A person" : "Bot") : m.role === "note" && m.metadata?.author_email ? `Note of ${m.metadata.author_email}` : authors[m.role];
  const again = async () => { await post(`${at}/messages/${m.id}/resend`); await reload(); };
  return (
    <>
      {(!before || dayOf(before.created_at) !== day) && <p class="inbox-day"><span>{day}</span></p>}
      <article class={`inbox-said ${m.role} ${person ? "person" : ""}`}>
        <p class="muted small">{author && <><bdi>{author}</bdi> · </>}<When time={m.created_at} />{m.metadata?.simulated && " · simulated"}</p>
        <p class="inbox-text"><bdi><Linked text={m.content} /></bdi></p>
        {(m.metadata?.attachments ?? []).map((a: any, i: number) => <p key={i} class="small">Attachment: <bdi>{a.name || a.type || a.mime_type || "file"}</bdi></p>)}
        {delivery && (
          <p class="small inbox-delivery"><Badge tone={delivery.status === "failed" ? "bad" : delivery.status === "sent" ? "good" : "busy"}>{delivery.status === "failed" ? "not sent" : delivery.status === "sent" ? "sent" : "sending"}</Badge>
            {delivery.error && <span> <bdi>{delivery.error}</bdi></span>}
            {delivery.status === "failed" && mayEdit.value && <Button onClick={again}>Send again</Button>}</p>
        )}
      </article>
    </>
  );
}

/** A text whose web addresses are links; nothing else of it is more than text. */
function Linked({ text }: { text: string }) {
  return <>{text.split(/(https?:\/\/[^\s<>"']+)/).map((part, i) => (i % 2 ? <a key={i} href={part} target="_blank" rel="noopener noreferrer">{part}</a> : part))}</>;
}

function Composer({ at, id, c, sent }: { at: string; id: string; c: any; sent: () => Promise<void> }) {
  const [mode, setMode] = useState<"reply" | "note">("reply");
  const reply = useDraft(`inbox.${id}.${c.id}`), note = useDraft(`inbox-note.${id}.${c.id}`);
  const text = mode === "note" ? note : reply;
  const area = useRef<HTMLTextAreaElement>(null);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const canned = useQuery(path("agents", id, "replies"), { limit: 200 });
  useEffect(() => { void get(`${at}/draft`).then((d) => { if (!reply.value && d.text) reply.value = d.text; }, () => {}); return () => clearTimeout(timer.current); }, []);
  const keep = (value: string) => {
    text.value = value;
    if (mode === "note") return;
    clearTimeout(timer.current);
    timer.current = setTimeout(() => void put(`${at}/draft`, { text: value }).catch(() => {}), 2000);
  };
  const send = async () => {
    const content = text.value.trim();
    if (!content) return;
    const wasMuted = c.muted;
    await post(`${at}/messages`, mode === "note" ? { role: "note", content } : { role: "assistant", content, send: Boolean(c.gateway_id) });
    clearTimeout(timer.current);
    text.value = "";
    if (mode === "reply") {
      void put(`${at}/draft`, { text: "" }).catch(() => {});
      if (!wasMuted) tell("The bot is muted in this conversation: you answer now.");
    }
    area.current?.focus();
    await sent();
  };
  const choose = (m: "reply" | "note") => { setMode(m); area.current?.focus(); };
  const typed = /^!(\S*)$/.exec(text.value)?.[1];
  const offered = typed === undefined ? [] : (canned.data.value?.replies ?? []).filter((r: any) => r.shortcut.toLowerCase().startsWith(typed.toLowerCase())).slice(0, 8);
  return (
    <form class={`inbox-composer ${mode}`} onSubmit={(e) => { e.preventDefault(); void send().catch(tell); }}>
      <div class="tabs" role="group" aria-label="What you write">
        <button type="button" data-mode="reply" aria-current={mode === "reply" ? "true" : undefined} onClick={() => choose("reply")}>Reply</button>
        <button type="button" data-mode="note" aria-current={mode === "note" ? "true" : undefined} onClick={() => choose("note")}>Note</button>
      </div>
      {offered.length > 0 && <ul class="inbox-canned">{offered.map((r: any) => <li key={r.id}><button type="button" onClick={() => { keep(r.text); area.current?.focus(); }}><strong>!<bdi>{r.shortcut}</bdi></strong> <span class="clip"><bdi>{r.text}</bdi></span></button></li>)}</ul>}
      <textarea ref={area} rows={3} value={text.value} aria-label={mode === "note" ? "Note to colleagues" : "Reply"}
        placeholder={mode === "note" ? "A note to colleagues: it is not sent, and the bot does not read it" : c.gateway_id ? "Your answer; ! for canned replies" : "Your answer; it is shown in the chat"}
        onInput={(e) => keep(e.currentTarget.value)} onKeyDown={(e) => { if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) { e.preventDefault(); void send().catch(tell); } }} />
      <div class="row"><span class="grow muted small">Ctrl+Enter sends</span><Button kind="primary" disabled={!text.value.trim()} onClick={send}>{mode === "note" ? "Add note" : "Send"}</Button></div>
    </form>
  );
}
