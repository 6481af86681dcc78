// Chat: ask the agent, and see on what its answers stand.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { agent, agentId, get, go, href, invalidate, mayEdit, onChange, path, post, put, remove, route, setQuery, useQuery, type API } from "../data";
import { Button, deleteLater, Drawer, Empty, ErrorCard, Icon, Load, Menu, FormDialog, openDialog, Skeleton, tell, TextField, unmarked, When } from "../ui";
import { style } from "../parts/styles";
import { placeOf, type Citation } from "../parts/citations";
import { SourceText } from "../parts/source-text";
import { uploads } from "../parts/upload";
import { Answer, AnswerText, Passages, Question, Tools, type Message } from "./chat/message";
import { Composer, type Choice } from "./chat/composer";
import { ask, forget, resume, stop, turns } from "./chat/turn";
import "../css/chat.css";

export const styles = style("./chat.css");

export default function Chat() {
  const { agent: id, rest } = route.value;
  const conversation = rest[0] ?? "";
  const [listOpen, setListOpen] = useState(false);
  const [citation, setCitation] = useState<{ shown: Citation; among: Citation[] }>();
  useEffect(() => { setCitation(undefined); setListOpen(false); }, [conversation]);
  useEffect(() => {
    const keys = (e: KeyboardEvent) => {
      if (e.defaultPrevented || e.ctrlKey || e.metaKey || e.altKey || (e.target as Element).closest("input,textarea,select") || document.querySelector("dialog[open]")) return;
      if (e.key === "n") { e.preventDefault(); go(href(id, "chat")); }
      else if (citation && (e.key === "[" || e.key === "]")) step(e.key === "]" ? 1 : -1);
    };
    addEventListener("keydown", keys);
    return () => removeEventListener("keydown", keys);
  });
  const step = (by: number) => {
    if (!citation) return;
    const at = citation.among.findIndex((c) => c.n === citation.shown.n);
    const next = citation.among[(at + by + citation.among.length) % citation.among.length];
    setCitation({ ...citation, shown: next });
  };
  return (
    <div class={`page full panes ${citation ? "with-drawer" : ""} ${listOpen ? "list-open" : ""}`}>
      <h1 class="hidden" tabIndex={-1}>Chat</h1>
      <Conversations id={id} current={conversation} close={() => setListOpen(false)} />
      <Thread key={`${id}/${conversation}`} id={id} conversation={conversation} openList={() => setListOpen(true)} openSource={(shown, among) => setCitation({ shown, among })} />
      {citation && (
        <Drawer title={(
          <span class="row nowrap">
            <span class="grow">Source {citation.among.findIndex((c) => c.n === citation.shown.n) + 1} of {citation.among.length}</span>
            {citation.among.length > 1 && <><Button kind="quiet" icon="ArrowLeft" label="Previous source ([)" onClick={() => step(-1)} /><Button kind="quiet" icon="ArrowRight" label="Next source (])" onClick={() => step(1)} /></>}
          </span>
        )} close={() => setCitation(undefined)}>
          <div class="stack">
            <div class="row cited">
              <strong><bdi>{placeOf(citation.shown)}</bdi></strong>
              <a class="button" href={`${href(id, "knowledge", citation.shown.source)}?chunk=${citation.shown.chunk}`}><Icon name="BookOpen" size={16} /><span>Open in Knowledge</span></a>
              {/^https?:/.test(citation.shown.url) && <a class="button" href={citation.shown.url} target="_blank" rel="noopener noreferrer"><Icon name="ExternalLink" size={16} /><span>Page</span></a>}
            </div>
            <SourceText source={citation.shown.source} chunk={citation.shown.chunk} passage={citation.shown} />
          </div>
        </Drawer>
      )}
    </div>
  );
}

/** What a conversation is called: its title, or what was said in it last. */
const titleOf = (c: API.ConversationSummary) => String(c.metadata?.title ?? "") || unmarked(c.last_message?.content ?? "") || "Conversation";

function Conversations({ id, current, close }: { id: string; current: string; close: () => void }) {
  const [limit, setLimit] = useState(40);
  const { query } = route.value;
  const search = query.get("search") ?? "";
  const kept = query.size ? `?${query}` : "";
  const at = path("agents", id, "conversations");
  const found = useQuery(at, { limit, sort: "updated_at", order: "desc", search, channel: "chat" });
  const [hidden, setHidden] = useState<string[]>([]);
  useEffect(() => onChange("conversation", found.soon), [found]);
  const rename = (c: API.ConversationSummary) => {
    openDialog((close) => (
      <FormDialog title="Rename conversation" close={close} action="Save" initial={{ title: titleOf(c).slice(0, 200) }} ready={(v) => Boolean(v.title.trim())} run={async (v) => {
        await put(`${at}/${c.id}`, { metadata: { ...c.metadata, title: v.title.trim() } });
        await found.reload();
      }}>{(f) => <TextField label="Name" autoFocus required {...f.text("title")} />}</FormDialog>
    ));
  };
  const drop = (c: API.ConversationSummary) => {
    setHidden((h) => [...h, c.id]);
    deleteLater("Conversation deleted", () => remove(`${at}/${c.id}`), () => setHidden((h) => h.filter((x) => x !== c.id)));
    if (c.id === current) go(href(id, "chat") + kept);
  };
  return (
    <aside class="pane-list" aria-label="Conversations">
      <div class="row">
        <input type="search" class="grow" placeholder="Search" aria-label="Search conversations" data-search value={search} onInput={(e) => setQuery({ search: e.currentTarget.value })} />
        <a class="button only" href={href(id, "chat") + kept} title="New chat (n)" aria-label="New chat" onClick={close}><Icon name="Plus" size={16} /></a>
        <Button kind="quiet" icon="X" label="Close list" class="phone" onClick={close} />
      </div>
      <Load of={found}>{({ conversations, meta }) => {
        const own = conversations.filter((c) => !hidden.includes(c.id));
        return (
          <ul class="entries">
            {own.map((c) => (
              <li key={c.id} class={c.id === current ? "on" : ""}>
                <a href={href(id, "chat", c.id) + kept} aria-current={c.id === current ? "page" : undefined}><bdi class="clip">{titleOf(c)}</bdi><span class="muted small"><When time={c.updated_at} /></span></a>
                {mayEdit.value && <Menu label="Conversation" items={[{ label: "Rename", icon: "Pencil", run: () => rename(c) }, { label: "Delete", icon: "Trash2", danger: true, run: () => drop(c) }]} />}
              </li>
            ))}
            {own.length === 0 && <li class="muted">{search ? "No results" : "No conversations yet"}</li>}
            {meta.total > meta.limit && <li><Button kind="quiet" onClick={() => setLimit(limit + 40)}>More</Button></li>}
          </ul>
        );
      }}</Load>
    </aside>
  );
}

/** Messages in their order, with the answers to one question together. */
function grouped(messages: Message[]) {
  const out: ({ question: Message } | { answers: Message[] })[] = [];
  const byId = new Map<number, Message[]>();
  for (const m of messages) {
    if (m.role === "user") {
      const last = out.at(-1);
      if (last && "question" in last && last.question.content === m.content) out.pop(); // it was asked again since the answer failed
      out.push({ question: m });
    }
    else if (m.role === "assistant") {
      const earlier = byId.get(m.metadata?.retry_of ?? 0);
      const answers = earlier ?? [];
      answers.push(m);
      byId.set(m.id, answers);
      if (!earlier) out.push({ answers });
    }
  }
  return out;
}

/** After what time, in ms, an answer does not come any more. */
const answerTime = 120_000;

type ThreadProps = { id: string; conversation: string; openList: () => void; openSource: (c: Citation, among: Citation[]) => void };

function Thread({ id, conversation, openList, openSource }: ThreadProps) {
  const at = path("agents", id, "conversations", conversation);
  const found = useQuery(conversation ? at : null);
  const [choice, setChoice] = useState<Choice>({ model: "", sources: true });
  const [preset, setPreset] = useState<{ text: string; at: number }>();
  const view = useRef<HTMLDivElement>(null);
  const atEnd = useRef(true);
  const turn = turns.value[conversation];
  useEffect(() => { // a turn that has ended is shown as it is stored
    const state = turn?.state.value;
    if (state === "done" || state === "stopped") void found.reload().then(() => forget(conversation));
    else if (state === "failed") void found.reload();
  }, [turn?.state.value]);
  useEffect(() => {
    if (conversation) resume(id, conversation);
    const asked = sessionStorage.getItem("satchel.ask"); // from Home
    if (!conversation && asked) {
      sessionStorage.removeItem("satchel.ask");
      void send(asked);
    }
  }, [conversation]);
  useEffect(() => onChange("message", (c) => { if (c.row?.conversation_id === conversation && !turns.value[conversation]) void found.reload(); }), [found]);
  useEffect(() => { if (atEnd.current) view.current?.scrollTo({ top: view.current.scrollHeight }); });
  const messages: Message[] = found.data.value?.messages ?? [];
  const groups = useMemo(() => grouped(messages), [messages]);
  const busy = turn !== undefined && (turn.state.value === "asking" || turn.state.value === "writing");
  const send = async (question: string, retryOf?: number) => {
    atEnd.current = true;
    let to = conversation;
    try {
      if (!to) {
        const made = await post(path("agents", id, "conversations"), { metadata: { title: question.slice(0, 80), via: "chat" } });
        to = made.id;
        invalidate(path("agents", id, "conversations"));
      }
    } catch (error) {
      setPreset({ text: question, at: Date.now() });
      tell(error);
      return;
    }
    ask({ agent: id, conversation: to, question, model: choice.model, sources: choice.sources, retryOf });
    if (to !== conversation) go(href(id, "chat", to), true);
  };
  const openOf = (sources: Citation[]) => (c: Citation) => openSource(c, sources);
  const questions = messages.filter((m) => m.role === "user");
  const last = groups.at(-1);
  const stored = turn && questions.at(-1)?.content === turn.question && (turn.state.value !== "failed" || (last && "question" in last));
  const unanswered = !turn && mayEdit.value && last && "question" in last && Date.now() - Date.parse(last.question.created_at) > answerTime ? last.question.content : undefined;
  return (
    <section class="pane-main thread" aria-label="Conversation">
      <div class="thread-view" ref={view} onScroll={(e) => { const v = e.currentTarget; atEnd.current = v.scrollHeight - v.scrollTop - v.clientHeight < 60; }}>
        <div class="thread-top phone row"><Button kind="quiet" icon="List" label="Conversations" onClick={openList}>Conversations</Button></div>
        {conversation && !found.data.value && (found.error.value ? <ErrorCard error={found.error.value} retry={found.reload} /> : <Skeleton lines={6} />)}
        {!conversation && <Start id={id} send={send} />}
        {groups.map((g, i) => ("question" in g
          ? <Question key={g.question.id} text={g.question.content} edit={busy || !mayEdit.value ? undefined : () => setPreset({ text: g.question.content, at: Date.now() })} />
          : <Answer key={g.answers[0].id} versions={g.answers} open={openSource} retry={busy || !mayEdit.value || i !== groups.length - 1 ? undefined : (m) => send(questions.at(-1)?.content ?? "", m.id)} />))}
        {unanswered && <p class="row muted small">This question has no answer. <Button icon="RotateCcw" onClick={() => send(unanswered)}>Ask again</Button></p>}
        {turn && (
          <>
            {!stored && <Question text={turn.question} />}
            <div class="turn" aria-live="polite" aria-busy={busy}>
              <Tools rows={turn.tools.value} />
              {turn.text.value ? <AnswerText text={turn.text.value} sources={turn.sources.value} open={openOf(turn.sources.value)} />
                : turn.state.value === "done" && turn.sources.value.length > 0 ? <Passages list={turn.sources.value} open={openOf(turn.sources.value)} />
                : busy && <p class="muted thinking">{turn.tools.value.some((t) => !t.done) ? "Calling a tool…" : turn.sources.value.length ? "Reading…" : "Thinking…"}</p>}
              {turn.error.value && <ErrorCard error={turn.error.value} retry={() => { forget(conversation); void send(turn.question); }} />}
            </div>
          </>
        )}
      </div>
      <Uploading id={id} />
      <Composer draft={`chat.${id}.${conversation}`} busy={busy} choice={choice} setChoice={setChoice} preset={preset} last={questions.at(-1)?.content}
        send={(text) => void send(text)} stop={() => { if (turn) stop(id, turn).catch(tell); }} />
    </section>
  );
}

/** The files that are on their way. */
function Uploading({ id }: { id: string }) {
  const mine = uploads.value.filter((u) => u.agent === id && (u.state === "sending" || u.state === "waiting" || u.state === "failed")).slice(0, 3);
  if (!mine.length) return null;
  return <ul class="uploading">{mine.map((u) => <li key={u.id}><bdi class="clip grow">{u.name}</bdi>{u.state === "failed" ? <span class="issue">{u.error}</span> : <progress max={1} value={u.share} aria-label={`Sending ${u.name}`} />}</li>)}</ul>;
}

/** An empty conversation: what the agent knows, as questions to begin with. */
function Start({ id, send }: { id: string; send: (text: string) => void }) {
  const sources = useQuery(path("agents", id, "sources"), { limit: 5, status: "ready", type: ["file", "crawl", "url"] });
  const settings = useQuery(mayEdit.value ? path("agents", id, "settings") : null);
  const [sections, setSections] = useState<string[]>([]);
  const list = sources.data.value?.sources ?? [];
  useEffect(() => {
    if (!list.length) return;
    const abort = new AbortController();
    get(path("agents", id, "sources", list[0].id, "chunks"), { limit: 30 }, abort.signal)
      .then(({ chunks }) => setSections([...new Set<string>(chunks.map((c) => String(c.metadata?.section ?? "").split(" > ").at(-1)!).filter((s: string) => s.length > 2 && s.length < 60))].slice(0, 3)), () => {});
    return () => abort.abort();
  }, [list[0]?.id]);
  return (
    <Empty icon="MessageSquare" title={`Ask ${agent.value && agent.value.name !== "default" ? agent.value.name : "your agent"}`}
      action={mayEdit.value && sections.map((s) => <Button onClick={() => send(`What does it say about ${s}?`)}>{`What does it say about ${s}?`}</Button>)}>
      {list.length ? "It answers from its knowledge and cites the passages it used." : "Drop files below, or add knowledge, and it answers from those."}
      {settings.data.value?.llm_provider === "" && <><br />No model is set, so it shows matching passages instead. <a href={href(id, "settings", "model")}>Choose a model</a></>}
    </Empty>
  );
}
