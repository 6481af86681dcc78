// One conversation of the chat: its messages, the turn that runs, and the field for the next question.
import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";

import { agentId, ApiError, go, href, invalidate, mayEdit, onChange, path, post, route, useQuery } from "../../data";
import { Button, ErrorCard, Icon, plural, Skeleton, showToast } from "../../ui";
import { type Citation, citationsOf } from "../../parts/citations";
import { UploadList, useDrop } from "../../parts/upload";
import { type Choice, Composer } from "./composer";
import { type Group, groupMessages, useEarlierMessages } from "./history";
import { Answer, AnswerText, type Message, Passages, Question, Tools } from "./message";
import { Start } from "./start";
import { ask, dropTurn, resume, stop, type Turn, turns } from "./turn";

/** Milliseconds after which an answer does not come any more. */
const answerTime = 120_000;

/** How far from its end a conversation still follows new text, in pixels. */
const endTolerance = 60;

/** How much of the first question becomes the title of a conversation. */
const titleLength = 80;

type OpenSource = (citation: Citation, among: Citation[]) => void;

type ThreadProps = {
  id: string;
  conversation: string;
  openList: () => void;
  openSource: OpenSource;
  /** The passage of the address, while it is not open. */
  wanted: string;
};

/** Returns the key of a passage in the address. */
export const citationKey = (citation: Citation) => citation.chunk || String(citation.n);

/** The messages of a conversation and the turn that runs in it. Both follow the server. */
function useMessages(id: string, conversation: string) {
  const conversationPath = path("agents", id, "conversations", conversation);
  const found = useQuery(conversation ? conversationPath : null);
  const turn = turns.value[conversation] as Turn | undefined;
  useEffect(() => {
    // A turn that has ended is shown as it is stored.
    const state = turn?.state.value;
    if (state === "done" || state === "stopped") void found.reload().then(() => dropTurn(conversation));
    else if (state === "failed") void found.reload();
  }, [turn?.state.value]);
  useEffect(
    () =>
      onChange("message", ({ row }) => {
        if (row?.conversation_id === conversation && !turns.value[conversation]) void found.reload();
      }),
    [found],
  );
  const recent: Message[] = found.data.value?.messages ?? [];
  const { earlier, more, load } = useEarlierMessages(conversationPath, recent);
  const messages = useMemo(() => [...earlier, ...recent], [earlier.length, recent]);
  const groups = useMemo(() => groupMessages(messages), [messages]);
  return { found, turn, messages, groups, earlierCount: earlier.length, more, loadEarlier: load };
}

/**
 * Scrolls a conversation: to its end while it is read there, to the message of
 * the address, and so that what is read stays in place when earlier messages
 * are added above.
 */
function useScrolling(view: RefObject<HTMLDivElement | null>, earlierCount: number, groups: Group[]) {
  const atEnd = useRef(true);
  const heightBefore = useRef(0);
  useEffect(() => {
    if (atEnd.current) view.current?.scrollTo({ top: view.current.scrollHeight });
  });
  useLayoutEffect(() => {
    const element = view.current!;
    if (heightBefore.current) element.scrollTop += element.scrollHeight - heightBefore.current;
    heightBefore.current = 0;
  }, [earlierCount]);
  const requested = route.value.query.get("message");
  const scrolledTo = useRef("");
  useEffect(() => {
    if (!requested || requested === scrolledTo.current) return;
    const message = document.getElementById(`message-${requested}`);
    if (!message) return;
    scrolledTo.current = requested;
    atEnd.current = false;
    message.scrollIntoView({ block: "center" });
  }, [requested, groups]);
  return {
    onScroll: () => {
      const { scrollHeight, scrollTop, clientHeight } = view.current!;
      atEnd.current = scrollHeight - scrollTop - clientHeight < endTolerance;
    },
    followEnd: () => {
      atEnd.current = true;
    },
    keepPosition: () => {
      heightBefore.current = view.current!.scrollHeight;
    },
  };
}

/** Opens the passage of the address, from the newest answer that cites it. */
function useWantedPassage(wanted: string, messages: Message[], openSource: OpenSource) {
  useEffect(() => {
    if (!wanted) return;
    for (const message of messages.toReversed()) {
      const sources = citationsOf(message.metadata?.sources);
      const shown = sources.find((citation) => citationKey(citation) === wanted);
      if (shown) return openSource(shown, sources);
    }
  }, [wanted, messages]);
}

const isRunning = (turn?: Turn) => turn?.state.value === "asking" || turn?.state.value === "writing";

/** Reports whether the question of a turn is among the stored messages. */
function isStored(turn: Turn, lastQuestion?: Message): boolean {
  if (turn.retryOf) return true;
  if (turn.after === undefined) return lastQuestion?.content === turn.question;
  return (lastQuestion?.id ?? 0) > turn.after;
}

/** Returns a last question that was not answered and will not be. */
function unansweredQuestion(groups: Group[], turn?: Turn): string | undefined {
  const last = groups.at(-1);
  if (turn || !mayEdit.value || !last || !("question" in last)) return undefined;
  const age = Date.now() - Date.parse(last.question.created_at);
  return age > answerTime ? last.question.content : undefined;
}

/** Creates a conversation with its first question as title, and returns its id. */
async function createConversation(id: string, question: string) {
  const metadata = { title: question.slice(0, titleLength), via: "chat" };
  const created = await post(path("agents", id, "conversations"), { metadata });
  invalidate(path("agents", id, "conversations"));
  return created.id;
}

type Preset = { text: string; at: number };
type SendOptions = {
  id: string;
  conversation: string;
  choice: Choice;
  /** The id of the newest message, 0 if there is none; undefined while it is not known. */
  newestMessage?: number;
  /** Is called before a question is sent. */
  onSend: () => void;
  /** Is called with a question that could not be sent. */
  onFailure: (question: string) => void;
};

/** Returns what sends a question, or asks for another version of the answer retryOf. */
function useSend({ id, conversation, choice, newestMessage, onSend, onFailure }: SendOptions) {
  const send = async (question: string, retryOf?: number) => {
    onSend();
    let target = conversation;
    try {
      target ||= await createConversation(id, question);
    } catch (error) {
      onFailure(question);
      showToast(error);
      return;
    }
    const isNew = target !== conversation;
    ask({
      agent: id,
      conversation: target,
      question,
      after: isNew ? 0 : newestMessage,
      retryOf,
      model: choice.model,
      sources: choice.sources,
    });
    if (isNew) go(href(id, "chat", target), true);
  };
  useEffect(() => {
    if (conversation) resume(id, conversation);
    const asked = sessionStorage.getItem("satchel.ask"); // from Home
    if (!conversation && asked) {
      sessionStorage.removeItem("satchel.ask");
      void send(asked);
    }
  }, [conversation]);
  return send;
}

/**
 * Reports whether a turn that failed here was answered after all, or repeated in another tab; forgets it if it is not
 * known which question it asked.
 */
function useIsAnswered(conversation: string, groups: Group[], turn: Turn | undefined, stored: boolean) {
  const last = groups.at(-1);
  const isAnswered = Boolean(turn?.state.value === "failed" && stored && !turn.retryOf && last && "answers" in last);
  useEffect(() => {
    if (isAnswered && turn?.after === undefined) dropTurn(conversation);
  }, [isAnswered]);
  return isAnswered;
}

/** A conversation. */
export function Thread({ id, conversation, openList, openSource, wanted }: ThreadProps) {
  const { found, turn, messages, groups, earlierCount, more, loadEarlier } = useMessages(id, conversation);
  const [choice, setChoice] = useState<Choice>({ model: "", sources: true });
  const [preset, setPreset] = useState<Preset>();
  const view = useRef<HTMLDivElement>(null);
  const drop = useDrop();
  const scrolling = useScrolling(view, earlierCount, groups);
  useWantedPassage(wanted, messages, openSource);
  const edit = (text: string) => setPreset({ text, at: Date.now() });
  const send = useSend({
    id,
    conversation,
    choice,
    newestMessage: found.data.value && (messages.at(-1)?.id ?? 0),
    onSend: scrolling.followEnd,
    onFailure: edit,
  });
  const lastQuestion = messages.findLast((message) => message.role === "user");
  const stored = turn !== undefined && isStored(turn, lastQuestion);
  const isAnswered = useIsAnswered(conversation, groups, turn, stored);
  const askAgain = () => {
    if (!turn) return;
    dropTurn(conversation);
    void send(turn.question, turn.retryOf);
  };
  const showEarlier = () => {
    scrolling.keepPosition();
    return loadEarlier();
  };
  const mayAsk = !isRunning(turn) && mayEdit.value;
  const unanswered = unansweredQuestion(groups, turn);
  return (
    <section class="pane-main thread" aria-label="Conversation" {...drop.handlers}>
      <div class="thread-view" ref={view} onScroll={scrolling.onScroll}>
        <ThreadTop openList={openList} showEarlier={more ? showEarlier : undefined} />
        {conversation && !found.data.value && <Loading error={found.error.value} retry={found.reload} />}
        {!conversation && <Start id={id} send={send} />}
        <Groups
          groups={groups}
          openSource={openSource}
          edit={mayAsk ? edit : undefined}
          retry={mayAsk ? (answer) => send(lastQuestion?.content ?? "", answer.id) : undefined}
        />
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
            <TurnProgress turn={turn} isAnswered={isAnswered} openSource={openSource} askAgain={askAgain} />
          </>
        )}
      </div>
      <UploadList maxShown={3} />
      <Composer
        draft={`chat.${id}.${conversation}`}
        busy={isRunning(turn)}
        over={drop.over}
        choice={choice}
        setChoice={setChoice}
        preset={preset}
        last={lastQuestion?.content}
        send={(text) => void send(text)}
        stop={() => {
          if (turn) stop(turn).catch(showToast);
        }}
      />
    </section>
  );
}

type ThreadTopProps = {
  openList: () => void;
  /** Loads earlier messages; undefined if there are none. */
  showEarlier?: () => Promise<void>;
};

function ThreadTop({ openList, showEarlier }: ThreadTopProps) {
  return (
    <>
      <div class="thread-top phone row">
        <Button kind="quiet" icon="List" label="Conversations" onClick={openList}>
          Conversations
        </Button>
      </div>
      {showEarlier && (
        <p class="row center">
          <Button kind="quiet" icon="ArrowUp" onClick={showEarlier}>
            Earlier messages
          </Button>
        </p>
      )}
    </>
  );
}

type GroupsProps = {
  groups: Group[];
  openSource: OpenSource;
  /** Writes a question into the field again; undefined while nothing can be asked. */
  edit?: (question: string) => void;
  /** Asks for another version of the last answer; undefined while nothing can be asked. */
  retry?: (answer: Message) => void;
};

/** The stored questions and answers. */
function Groups({ groups, openSource, edit, retry }: GroupsProps) {
  return (
    <>
      {groups.map((group, index) => {
        if ("answers" in group)
          return (
            <Answer
              key={group.answers[0].id}
              versions={group.answers}
              open={openSource}
              retry={index === groups.length - 1 ? retry : undefined}
            />
          );
        const { id, content } = group.question;
        return <Question key={id} text={content} edit={edit && (() => edit(content))} />;
      })}
    </>
  );
}

function Loading({ error, retry }: { error?: Error; retry: () => Promise<void> }) {
  return error ? <ErrorCard error={error} retry={retry} /> : <Skeleton lines={6} />;
}

type TurnProps = { turn: Turn; isAnswered: boolean; openSource: OpenSource; askAgain: () => void };

/** What has come of a turn so far: its tool calls, its text, or why it failed. */
function TurnProgress({ turn, isAnswered, openSource, askAgain }: TurnProps) {
  return (
    <div class="turn" aria-live="polite" aria-busy={isRunning(turn)}>
      {!isAnswered && <Tools rows={turn.tools.value} />}
      <TurnText turn={turn} isAnswered={isAnswered} openSource={openSource} />
      {turn.disconnected.value && <p class="muted thinking">Connection lost. Reconnecting…</p>}
      {turn.error.value && <Failed error={turn.error.value} again={askAgain} />}
    </div>
  );
}

/** The text of a turn; without a model the passages that were found; before there are any, what the agent does. */
function TurnText({ turn, isAnswered, openSource }: Omit<TurnProps, "askAgain">) {
  const sources = turn.sources.value;
  const open = (citation: Citation) => openSource(citation, sources);
  if (turn.text.value) return isAnswered ? null : <AnswerText text={turn.text.value} sources={sources} open={open} />;
  if (turn.state.value === "done" && sources.length > 0) return <Passages list={sources} open={open} />;
  if (!isRunning(turn) || turn.disconnected.value) return null;
  return <p class="muted thinking">{activityOf(turn)}</p>;
}

function activityOf(turn: Turn): string {
  const files = turn.waiting.value;
  if (files.length) return `Waiting for ${files.length === 1 ? files[0] : plural(files.length, "file")}…`;
  if (turn.tools.value.some((tool) => !tool.done)) return "Calling a tool…";
  return turn.sources.value.length ? "Reading…" : "Thinking…";
}

/** Why there is no answer, or only a part of one. */
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
