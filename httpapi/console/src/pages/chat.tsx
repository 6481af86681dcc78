// Chat: ask the agent, and see on what its answers stand.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";

import {
  agent,
  agentId,
  ApiError,
  get,
  go,
  href,
  invalidate,
  mayEdit,
  onChange,
  path,
  post,
  put,
  remove,
  route,
  setQuery,
  useQuery,
  type API,
} from "../data";
import {
  Button,
  deleteLater,
  Drawer,
  Empty,
  ErrorCard,
  Icon,
  Load,
  Menu,
  FormDialog,
  openDialog,
  Skeleton,
  tell,
  TextField,
  unmarked,
  When,
} from "../ui";
import { useKeys } from "../parts/keys";
import { style } from "../parts/styles";
import { citationsOf, placeOf, type Citation } from "../parts/citations";
import { SourceText } from "../parts/source-text";
import { UploadList, useDrop } from "../parts/upload";
import { Answer, AnswerText, Passages, Question, Tools, type Message } from "./chat/message";
import { Composer, type Choice } from "./chat/composer";
import { ask, forget, resume, stop, turns } from "./chat/turn";
import "../css/chat.css";

export const styles = style("./chat.css");

/** The passage that lies beside a conversation, and those it is read with. */
type Opened = { conversation: string; shown: Citation; among: Citation[] };

/** What stands for a passage in the address. */
const keyOf = (c: Citation) => c.chunk || String(c.n);

export default function Chat() {
  const { agent: id, rest } = route.value;
  const conversation = rest[0] ?? "";
  const [listOpen, setListOpen] = useState(false);
  const [opened, setOpened] = useState<Opened>();
  useEffect(() => setListOpen(false), [conversation]);
  const chunk = route.value.query.get("chunk") ?? "";
  const citation = chunk && opened?.conversation === conversation && keyOf(opened.shown) === chunk ? opened : undefined;
  const open = (shown: Citation, among: Citation[]) => {
    setOpened({ conversation, shown, among });
    setQuery({ chunk: keyOf(shown) });
  };
  const step = (by: number) => {
    if (!citation) return;
    const at = citation.among.findIndex((c) => c.n === citation.shown.n);
    const next = citation.among[(at + by + citation.among.length) % citation.among.length];
    open(next, citation.among);
  };
  useKeys({ n: () => go(href(id, "chat")), "[": () => step(-1), "]": () => step(1) });
  return (
    <div class={`page full panes ${citation ? "with-drawer" : ""} ${listOpen ? "list-open" : ""}`}>
      <h1 class="hidden" tabIndex={-1}>
        Chat
      </h1>
      <Conversations id={id} current={conversation} close={() => setListOpen(false)} />
      <Thread
        key={`${id}/${conversation}`}
        id={id}
        conversation={conversation}
        openList={() => setListOpen(true)}
        wanted={citation ? "" : chunk}
        openSource={open}
      />
      {citation && (
        <Drawer
          title={
            <span class="row nowrap">
              <span class="grow">
                Source {citation.among.findIndex((c) => c.n === citation.shown.n) + 1} of {citation.among.length}
              </span>
              {citation.among.length > 1 && (
                <>
                  <Button kind="quiet" icon="ArrowLeft" label="Previous source ([)" onClick={() => step(-1)} />
                  <Button kind="quiet" icon="ArrowRight" label="Next source (])" onClick={() => step(1)} />
                </>
              )}
            </span>
          }
          close={() => setQuery({ chunk: null })}
        >
          <div class="stack">
            <div class="row cited">
              <strong>
                <bdi>{placeOf(citation.shown)}</bdi>
                {citation.shown.score > 0 && (
                  <span class="muted small" title="Estimated probability that the passage answers the question">
                    {" "}
                    · score {citation.shown.score.toFixed(2)}
                  </span>
                )}
              </strong>
              <a class="button" href={`${href(id, "knowledge", citation.shown.source)}?chunk=${citation.shown.chunk}`}>
                <Icon name="BookOpen" size={16} />
                <span>Open in Knowledge</span>
              </a>
              {/^https?:/.test(citation.shown.url) && (
                <a class="button" href={citation.shown.url} target="_blank" rel="noopener noreferrer">
                  <Icon name="ExternalLink" size={16} />
                  <span>Page</span>
                </a>
              )}
            </div>
            <SourceText source={citation.shown.source} chunk={citation.shown.chunk} passage={citation.shown} />
          </div>
        </Drawer>
      )}
    </div>
  );
}

/** What a conversation is called: its title, or what was said in it last. */
const titleOf = (c: API.ConversationSummary) =>
  String(c.metadata?.title ?? "") || unmarked(c.last_message?.content ?? "") || "Conversation";

function Conversations({ id, current, close }: { id: string; current: string; close: () => void }) {
  const [limit, setLimit] = useState(40);
  const search = route.value.query.get("search") ?? "";
  const kept = search ? `?${new URLSearchParams({ search })}` : "";
  const at = path("agents", id, "conversations");
  const found = useQuery(at, { limit, sort: "updated_at", order: "desc", search, channel: "chat" });
  const [hidden, setHidden] = useState<string[]>([]);
  useEffect(() => onChange("conversation", found.soon), [found]);
  const rename = (c: API.ConversationSummary) => {
    openDialog((close) => (
      <FormDialog
        title="Rename conversation"
        close={close}
        action="Save"
        initial={{ title: titleOf(c).slice(0, 200) }}
        ready={(v) => Boolean(v.title.trim())}
        run={async (v) => {
          await put(`${at}/${c.id}`, { metadata: { ...c.metadata, title: v.title.trim() } });
          await found.reload();
        }}
      >
        {(f) => <TextField label="Name" autoFocus required {...f.text("title")} />}
      </FormDialog>
    ));
  };
  const drop = (c: API.ConversationSummary) => {
    setHidden((h) => [...h, c.id]);
    deleteLater(
      "Conversation deleted",
      () => remove(`${at}/${c.id}`),
      () => setHidden((h) => h.filter((x) => x !== c.id)),
    );
    if (c.id === current) go(href(id, "chat") + kept);
  };
  return (
    <aside class="pane-list" aria-label="Conversations">
      <div class="row">
        <input
          type="search"
          class="grow"
          placeholder="Search"
          aria-label="Search conversations"
          data-search
          value={search}
          onInput={(e) => setQuery({ search: e.currentTarget.value })}
        />
        <a
          class="button only"
          href={href(id, "chat") + kept}
          title="New chat (n)"
          aria-label="New chat"
          onClick={close}
        >
          <Icon name="Plus" size={16} />
        </a>
        <Button kind="quiet" icon="X" label="Close list" class="phone" onClick={close} />
      </div>
      <Load of={found}>
        {({ conversations, meta }) => {
          const own = conversations.filter((c) => !hidden.includes(c.id));
          return (
            <ul class="entries">
              {own.map((c) => (
                <li key={c.id} class={c.id === current ? "on" : ""}>
                  <a href={href(id, "chat", c.id) + kept} aria-current={c.id === current ? "page" : undefined}>
                    <bdi class="clip">{titleOf(c)}</bdi>
                    <span class="muted small">
                      <When time={c.updated_at} />
                    </span>
                  </a>
                  {mayEdit.value && (
                    <Menu
                      label="Conversation"
                      items={[
                        { label: "Rename", icon: "Pencil", run: () => rename(c) },
                        { label: "Delete", icon: "Trash2", danger: true, run: () => drop(c) },
                      ]}
                    />
                  )}
                </li>
              ))}
              {own.length === 0 && <li class="muted">{search ? "No results" : "No conversations yet"}</li>}
              {meta.total > meta.limit && (
                <li>
                  <Button kind="quiet" onClick={() => setLimit(limit + 40)}>
                    More
                  </Button>
                </li>
              )}
            </ul>
          );
        }}
      </Load>
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
    } else if (m.role === "assistant") {
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

type ThreadProps = {
  id: string;
  conversation: string;
  openList: () => void;
  openSource: (c: Citation, among: Citation[]) => void;
  /** The passage of the address, while it is not open. */ wanted: string;
};

/** How many messages come with a conversation. */
const newest = 200;

/** Asks for the messages before those that are shown, and keeps those that newer ones displace. */
function useEarlier(at: string, shown: Message[]) {
  const earlier = useRef<Message[]>([]);
  const last = useRef(shown);
  const [cursor, setCursor] = useState<string | null>();
  const displaced = earlier.current.length ? last.current.filter((m) => m.id < (shown[0]?.id ?? 0)) : [];
  if (displaced.length) earlier.current = [...earlier.current, ...displaced];
  last.current = shown;
  const load = async () => {
    const page = (after?: string) =>
      get(`${at}/messages`, { order: "desc", limit: newest, cursor: after }) as Promise<API.MessageList>;
    const next = cursor ?? (await page()).meta.next_cursor;
    const found = next ? await page(next) : undefined;
    const first = (earlier.current[0] ?? last.current[0])?.id ?? 0;
    earlier.current = [
      ...((found?.messages as Message[] | undefined) ?? []).toReversed().filter((m) => m.id < first),
      ...earlier.current,
    ];
    setCursor(found?.meta.next_cursor ?? null);
  };
  return { earlier: earlier.current, more: cursor !== null && shown.length >= newest, load };
}

function Thread({ id, conversation, openList, openSource, wanted }: ThreadProps) {
  const at = path("agents", id, "conversations", conversation);
  const found = useQuery(conversation ? at : null);
  const [choice, setChoice] = useState<Choice>({ model: "", sources: true });
  const [preset, setPreset] = useState<{ text: string; at: number }>();
  const view = useRef<HTMLDivElement>(null);
  const atEnd = useRef(true);
  const drop = useDrop();
  const turn = turns.value[conversation];
  useEffect(() => {
    // a turn that has ended is shown as it is stored
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
  useEffect(
    () =>
      onChange("message", (c) => {
        if (c.row?.conversation_id === conversation && !turns.value[conversation]) void found.reload();
      }),
    [found],
  );
  useEffect(() => {
    if (atEnd.current) view.current?.scrollTo({ top: view.current.scrollHeight });
  });
  const recent: Message[] = found.data.value?.messages ?? [];
  const { earlier, more, load } = useEarlier(at, recent);
  const messages = useMemo(() => [...earlier, ...recent], [earlier.length, recent]);
  const groups = useMemo(() => grouped(messages), [messages]);
  const height = useRef(0);
  useLayoutEffect(() => {
    // what was read stays where it is
    const v = view.current!;
    if (height.current) v.scrollTop += v.scrollHeight - height.current;
    height.current = 0;
  }, [earlier.length]);
  const addressed = route.value.query.get("message");
  const scrolledTo = useRef("");
  useEffect(() => {
    // an answer of the address is shown
    const shown = addressed && addressed !== scrolledTo.current && document.getElementById(`message-${addressed}`);
    if (!shown) return;
    scrolledTo.current = addressed;
    atEnd.current = false;
    shown.scrollIntoView({ block: "center" });
  }, [addressed, groups]);
  useEffect(() => {
    // a passage of the address is opened
    if (!wanted) return;
    for (const m of messages.toReversed()) {
      const sources = citationsOf(m.metadata?.sources),
        shown = sources.find((c) => keyOf(c) === wanted);
      if (shown) return openSource(shown, sources);
    }
  }, [wanted, messages]);
  const busy = turn !== undefined && (turn.state.value === "asking" || turn.state.value === "writing");
  const send = async (question: string, retryOf?: number) => {
    atEnd.current = true;
    let to = conversation;
    try {
      if (!to) {
        const made = await post(path("agents", id, "conversations"), {
          metadata: { title: question.slice(0, 80), via: "chat" },
        });
        to = made.id;
        invalidate(path("agents", id, "conversations"));
      }
    } catch (error) {
      setPreset({ text: question, at: Date.now() });
      tell(error);
      return;
    }
    ask({
      agent: id,
      conversation: to,
      question,
      after: to !== conversation ? 0 : found.data.value && (messages.at(-1)?.id ?? 0),
      retryOf,
      model: choice.model,
      sources: choice.sources,
    });
    if (to !== conversation) go(href(id, "chat", to), true);
  };
  const openOf = (sources: Citation[]) => (c: Citation) => openSource(c, sources);
  const questions = messages.filter((m) => m.role === "user");
  const last = groups.at(-1);
  const failed = turn?.state.value === "failed";
  const stored =
    turn &&
    (turn.retryOf ||
      (turn.after === undefined
        ? questions.at(-1)?.content === turn.question
        : (questions.at(-1)?.id ?? 0) > turn.after));
  const answered = failed && stored && !turn.retryOf && last && "answers" in last; // the turn that failed was answered after all, or was repeated in another tab
  useEffect(() => {
    if (answered && turn.after === undefined) forget(conversation);
  }, [answered]);
  const again = () => {
    if (turn) {
      forget(conversation);
      void send(turn.question, turn.retryOf);
    }
  };
  const unanswered =
    !turn &&
    mayEdit.value &&
    last &&
    "question" in last &&
    Date.now() - Date.parse(last.question.created_at) > answerTime
      ? last.question.content
      : undefined;
  return (
    <section class="pane-main thread" aria-label="Conversation" {...drop.handlers}>
      <div
        class="thread-view"
        ref={view}
        onScroll={(e) => {
          const v = e.currentTarget;
          atEnd.current = v.scrollHeight - v.scrollTop - v.clientHeight < 60;
        }}
      >
        <div class="thread-top phone row">
          <Button kind="quiet" icon="List" label="Conversations" onClick={openList}>
            Conversations
          </Button>
        </div>
        {more && (
          <p class="row center">
            <Button
              kind="quiet"
              icon="ArrowUp"
              onClick={() => {
                height.current = view.current!.scrollHeight;
                return load();
              }}
            >
              Earlier messages
            </Button>
          </p>
        )}
        {conversation &&
          !found.data.value &&
          (found.error.value ? <ErrorCard error={found.error.value} retry={found.reload} /> : <Skeleton lines={6} />)}
        {!conversation && <Start id={id} send={send} />}
        {groups.map((g, i) =>
          "question" in g ? (
            <Question
              key={g.question.id}
              text={g.question.content}
              edit={busy || !mayEdit.value ? undefined : () => setPreset({ text: g.question.content, at: Date.now() })}
            />
          ) : (
            <Answer
              key={g.answers[0].id}
              versions={g.answers}
              open={openSource}
              retry={
                busy || !mayEdit.value || i !== groups.length - 1
                  ? undefined
                  : (m) => send(questions.at(-1)?.content ?? "", m.id)
              }
            />
          ),
        )}
        {unanswered && (
          <p class="row muted small">
            This question has no answer.{" "}
            <Button icon="RotateCcw" onClick={() => send(unanswered)}>
              Ask again
            </Button>
          </p>
        )}
        {turn && (
          <>
            {!stored && <Question text={turn.question} />}
            <div class="turn" aria-live="polite" aria-busy={busy}>
              {!answered && <Tools rows={turn.tools.value} />}
              {turn.text.value ? (
                !answered && (
                  <AnswerText text={turn.text.value} sources={turn.sources.value} open={openOf(turn.sources.value)} />
                )
              ) : turn.state.value === "done" && turn.sources.value.length > 0 ? (
                <Passages list={turn.sources.value} open={openOf(turn.sources.value)} />
              ) : (
                busy &&
                !turn.lost.value && (
                  <p class="muted thinking">
                    {turn.tools.value.some((t) => !t.done)
                      ? "Calling a tool…"
                      : turn.sources.value.length
                        ? "Reading…"
                        : "Thinking…"}
                  </p>
                )
              )}
              {turn.lost.value && <p class="muted thinking">Connection lost. Reconnecting…</p>}
              {turn.error.value && <Failed error={turn.error.value} again={again} />}
            </div>
          </>
        )}
      </div>
      <UploadList most={3} />
      <Composer
        draft={`chat.${id}.${conversation}`}
        busy={busy}
        over={drop.over}
        choice={choice}
        setChoice={setChoice}
        preset={preset}
        last={questions.at(-1)?.content}
        send={(text) => void send(text)}
        stop={() => {
          if (turn) stop(turn).catch(tell);
        }}
      />
    </section>
  );
}

/** Why there is no answer, or no whole one. */
function Failed({ error, again }: { error: Error; again: () => void }) {
  const code = error instanceof ApiError ? error.code : "";
  if (code === "CONFLICT")
    return (
      <p class="row muted small">
        Stopped.{" "}
        <Button icon="RotateCcw" onClick={again}>
          Ask again
        </Button>
      </p>
    );
  return (
    <ErrorCard error={error} retry={again}>
      {["UPSTREAM_ERROR", "VALIDATION_ERROR"].includes(code) && (
        <a class="button" href={href(agentId.value, "settings", "model")}>
          <Icon name="Settings" size={16} />
          <span>Model settings</span>
        </a>
      )}
    </ErrorCard>
  );
}

/** Three questions from the titles of sections; a document's own title is none. More words around a title would be searched for too. */
function questionsFrom(chunks: API.Chunk[]) {
  const paths = chunks.flatMap((c) => c.metadata.sections ?? []).map((p) => p.split(" > "));
  const inner = paths.filter((p) => p.length > 1);
  const titles = (inner.length ? inner : paths)
    .map((p) => p.at(-1)!.trim())
    .filter((t) => t.length > 2 && t.length < 60);
  return [...new Set(titles)].slice(0, 3).map((t) => (t.endsWith("?") ? t : `${t}?`));
}

/** An empty conversation: what the agent knows, as questions to begin with. */
function Start({ id, send }: { id: string; send: (text: string) => void }) {
  const sources = useQuery(path("agents", id, "sources"), {
    limit: 1,
    status: "ready",
    type: ["file", "crawl", "url"],
    sort: "chunks",
    order: "desc",
  });
  const settings = useQuery(mayEdit.value ? path("agents", id, "settings") : null);
  const [questions, setQuestions] = useState<string[]>([]);
  const list = sources.data.value?.sources ?? [];
  useEffect(() => {
    if (!list.length) return;
    const abort = new AbortController();
    get(path("agents", id, "sources", list[0].id, "chunks"), { limit: 30 }, abort.signal).then(
      ({ chunks }) => setQuestions(questionsFrom(chunks)),
      () => {},
    );
    return () => abort.abort();
  }, [list[0]?.id]);
  return (
    <Empty
      icon="MessageSquare"
      title={`Ask ${agent.value && agent.value.name !== "default" ? agent.value.name : "your agent"}`}
      action={mayEdit.value && questions.map((q) => <Button onClick={() => send(q)}>{q}</Button>)}
    >
      {list.length
        ? "It answers from its knowledge and cites the passages it used."
        : "Drop files below, or add knowledge, and it answers from those."}
      {settings.data.value?.llm_provider === "" && (
        <>
          <br />
          No model is set, so it shows matching passages instead.{" "}
          <a href={href(id, "settings", "model")}>Choose a model</a>
        </>
      )}
    </Empty>
  );
}
