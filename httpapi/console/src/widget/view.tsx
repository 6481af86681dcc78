// What a visitor sees. It keeps no conversation of its own: props say what to show and
// take what the visitor does, so that the console can show it as a preview.
import type { ComponentChildren, ComponentType } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";

import { Composer, useAttachments } from "./composer";
import { type FileLimits, MessageFile, type MessageFileInfo } from "./files";
import { Shape } from "./shape";
import { mediumTime, writeForVisitor } from "../parts/zone";
import { language, words } from "./words";

/** How the widget of a website is set up. */
export type Look = {
  title: string;
  greeting: string;
  color: string;
  ask_email: string;
  offline_message: string;
  files?: FileLimits | null;
};

/** Who is there to answer, and what the conversation waits for. */
export type State = {
  open: boolean;
  opens_at: string;
  bot: boolean;
  answering: boolean;
  needs_human: boolean;
  person: boolean;
  email: string;
};

/** A message; one that is being sent has the id 0. */
export type Message = {
  id: number;
  from: "visitor" | "bot" | "person";
  text: string;
  client_id?: string;
  sources?: { n: number; name: string }[];
  files?: MessageFileInfo[];
  created_at: string;
  failed?: string;
  sending?: boolean;
  progress?: number;
};

/** The component that shows Markdown, which is loaded with the first answer. */
export type MarkdownType = ComponentType<{ text: string; inlineText?: (text: string) => ComponentChildren }>;

type Props = {
  look: Look;
  state: State;
  messages: Message[];
  partial: string;
  /** What is wrong with the connection; "" for nothing. */
  trouble?: string;
  Markdown?: MarkdownType;
  draft?: string;
  keepDraft?: (text: string) => void;
  send: (text: string, more?: { person?: boolean; email?: string; files?: File[] }) => void;
  sendAgain: (message: Message) => void;
  /** Ends the sending of files. */
  cancel?: (message: Message) => void;
  getFile?: (message: number, index: number) => Promise<Blob>;
  giveEmail: (email: string) => Promise<void>;
  close?: () => void;
};

/** Black or white, whichever is easier to read on a color. */
export function textColorOn(color: string) {
  const [r, g, b] = [1, 3, 5].map((i) => {
    const c = parseInt(color.slice(i, i + 2), 16) / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000000" : "#ffffff";
}

/** When people are back, in the visitor's own time zone and language. */
function backAt(time: string) {
  if (!time) return "";
  const date = new Date(time);
  const withinWeek = date.getTime() - Date.now() < 6 * 86_400_000;
  return writeForVisitor(
    time,
    navigator.languages.find((l) => l.startsWith(language)) ?? language,
    withinWeek ? { weekday: "long", hour: "2-digit", minute: "2-digit" } : mediumTime,
  );
}

/** Reports whether nobody can answer now: the bot failed, or people are needed and away. */
export function isUnattended(s: State, messages: Message[]) {
  const failed = s.needs_human && !s.person && !s.answering && messages.at(-1)?.from === "visitor";
  return failed || ((s.person || s.needs_human || !s.bot) && !s.open);
}

/** Who answers and when, for the line below the title. */
function availability(s: State, unattended: boolean) {
  if (!s.open) return s.opens_at ? words.back(backAt(s.opens_at)) : words.away;
  if (s.person) return words.person;
  return s.bot && !unattended ? words.atOnce : words.soon;
}

/** Keeps the address that a visitor types for answers by email. */
function useEmail() {
  const [value, setValue] = useState("");
  const [issue, setIssue] = useState("");
  /** Reports whether the address can be one, and shows it if not. */
  const check = () => {
    const valid = /^[^@\s]+@[^@\s]+\.[^@\s]+$/.test(value.trim());
    setIssue(valid ? "" : words.emailIssue);
    return valid;
  };
  return { value, setValue, issue, setIssue, check };
}

function EmailField({ email }: { email: ReturnType<typeof useEmail> }) {
  const id = useId();
  return (
    <>
      <label for={id}>{words.email}</label>
      <input
        id={id}
        type="email"
        autocomplete="email"
        value={email.value}
        aria-invalid={Boolean(email.issue)}
        aria-describedby={email.issue ? `${id}-issue` : undefined}
        onInput={(e) => {
          email.setValue(e.currentTarget.value);
          email.setIssue("");
        }}
      />
      {email.issue && (
        <small class="sw-issue" id={`${id}-issue`} role="alert">
          {email.issue}
        </small>
      )}
    </>
  );
}

/** The conversation, and the field for the next message. */
export function View(props: Props) {
  const { look, state, messages, trouble, send, giveEmail, close } = props;
  const email = useEmail();
  const textarea = useRef<HTMLTextAreaElement>(null);
  const atEnd = useRef(true); // the newest messages are in view, and stay there
  const focus = () => textarea.current?.focus();
  const attachments = useAttachments(look.files, focus);
  const asksFirst = look.ask_email === "always" && !state.email && !messages.some((m) => m.from === "visitor");
  const submit: Props["send"] = (text, more) => {
    send(text, { ...(asksFirst && { email: email.value.trim() }), ...more });
    atEnd.current = true;
  };
  const askPerson = () => {
    atEnd.current = true;
    send(words.askPerson, { person: true });
    focus();
  };
  const leaveEmail = async () => {
    if (!email.check()) return;
    try {
      await giveEmail(email.value.trim());
      focus();
    } catch (error) {
      email.setIssue(error instanceof Error ? error.message : String(error));
    }
  };
  const canAskPerson = !state.person && !state.needs_human && !asksFirst;
  return (
    <section
      class="sw"
      style={{ "--sw-color": look.color, "--sw-ink": textColorOn(look.color) }}
      aria-label={look.title}
      onDragOver={(e) => e.preventDefault()}
      onDrop={(e) => {
        e.preventDefault();
        attachments.add(e.dataTransfer?.files);
      }}
    >
      <header class="sw-head">
        <div>
          <h1>
            <bdi>{look.title}</bdi>
          </h1>
          <p>{availability(state, isUnattended(state, messages))}</p>
        </div>
        {close && (
          <button type="button" class="sw-icon" aria-label={words.close} onClick={close}>
            <Shape d="M18 6 6 18M6 6l12 12" />
          </button>
        )}
      </header>
      <Log {...props} atEnd={atEnd} email={email} leaveEmail={leaveEmail} />
      {trouble && (
        <p class="sw-trouble" role="status">
          {trouble}
        </p>
      )}
      <Composer
        textarea={textarea}
        attachments={attachments}
        draft={props.draft}
        keepDraft={props.keepDraft}
        canSend={() => !asksFirst || email.check()}
        send={submit}
        askPerson={canAskPerson ? askPerson : undefined}
      >
        {asksFirst && (
          <div class="sw-mail">
            <EmailField email={email} />
          </div>
        )}
      </Composer>
    </section>
  );
}

type LogProps = Props & {
  atEnd: { current: boolean };
  email: ReturnType<typeof useEmail>;
  leaveEmail: () => Promise<void>;
};

/** The messages, and below them what is being written and who will answer. */
function Log({ look, state, messages, partial, Markdown, atEnd, email, leaveEmail, ...actions }: LogProps) {
  const log = useRef<HTMLDivElement>(null);
  const unattended = isUnattended(state, messages);
  const typing = state.answering && !partial && messages.at(-1)?.from === "visitor";
  const asksEmail = look.ask_email !== "never" && !state.email && unattended && messages.length > 0;
  useEffect(() => {
    if (atEnd.current) log.current?.scrollTo({ top: log.current.scrollHeight });
  }, [messages, partial, typing, unattended]);
  return (
    <div
      class="sw-log"
      ref={log}
      role="log"
      aria-live="polite"
      aria-label={words.messages}
      tabIndex={0}
      onScroll={(e) => {
        const { scrollHeight, scrollTop, clientHeight } = e.currentTarget;
        atEnd.current = scrollHeight - scrollTop - clientHeight < 60;
      }}
    >
      <Bubble message={{ id: 0, from: "bot", text: look.greeting, created_at: "" }} />
      {messages.map((message) => (
        <Bubble
          key={message.client_id || message.id}
          message={message}
          Markdown={Markdown}
          sendAgain={() => actions.sendAgain(message)}
          cancel={() => actions.cancel?.(message)}
          getFile={actions.getFile}
        />
      ))}
      {partial && <Bubble message={{ id: -1, from: "bot", text: partial, created_at: "" }} Markdown={Markdown} />}
      {typing && (
        <p class="sw-typing" role="status" aria-label={words.writing}>
          <i />
          <i />
          <i />
        </p>
      )}
      {state.needs_human && !unattended && <p class="sw-line">{words.asked}</p>}
      {unattended && (messages.length > 0 || !state.bot) && (
        <p class="sw-line">
          <bdi>{look.offline_message}</bdi>
          {state.opens_at && ` ${words.back(backAt(state.opens_at))}.`}
        </p>
      )}
      {asksEmail && (
        <form
          class="sw-mail"
          noValidate
          onSubmit={(e) => {
            e.preventDefault();
            void leaveEmail();
          }}
        >
          <EmailField email={email} />
          <button type="submit" class="sw-button">
            {words.leave}
          </button>
        </form>
      )}
      {unattended && state.email && (
        <p class="sw-line">
          {words.answerTo} <bdi>{state.email}</bdi>.
        </p>
      )}
    </div>
  );
}

const senderOf = (from: Message["from"]) => ({ visitor: words.you, bot: words.bot, person: words.aPerson })[from];

type BubbleProps = {
  message: Message;
  Markdown?: MarkdownType;
  sendAgain?: () => void;
  cancel?: () => void;
  getFile?: Props["getFile"];
};

/** One message, with its files, its sources and how its sending goes. */
function Bubble({ message, Markdown, sendAgain, cancel, getFile }: BubbleProps) {
  const { id, from, text, files, sending, failed, created_at } = message;
  const sources = new Map((message.sources ?? []).map((source) => [source.n, source.name]));
  return (
    <article
      class={`sw-said ${from} ${sending ? "sending" : ""}`}
      title={created_at ? writeForVisitor(created_at, undefined, mediumTime) : undefined}
    >
      <span class="sw-who">{senderOf(from)}</span>
      {text && <Text text={text} sources={sources} Markdown={from === "bot" ? Markdown : undefined} />}
      {files?.map((file, i) => (
        <MessageFile key={i} file={file} get={id > 0 && getFile ? () => getFile(id, i) : undefined} />
      ))}
      {sending && files && (
        <p class="sw-progress">
          <progress max={1} value={message.progress ?? 0} aria-label={words.send} />
          <button type="button" class="sw-link" onClick={cancel}>
            {words.cancel}
          </button>
        </p>
      )}
      {sources.size > 0 && (
        <p class="sw-sources">
          {[...sources].map(([n, name]) => (
            <span key={n}>
              {n} <bdi>{name}</bdi>
            </span>
          ))}
        </p>
      )}
      {failed && (
        <p class="sw-issue" role="alert">
          {failed}{" "}
          {sendAgain && (
            <button type="button" class="sw-link" onClick={sendAgain}>
              {words.again}
            </button>
          )}
        </p>
      )}
    </article>
  );
}

/** The text of a message; where Markdown is given, a citation such as [1] names its source. */
function Text({ text, sources, Markdown }: { text: string; sources: Map<number, string>; Markdown?: MarkdownType }) {
  if (!Markdown)
    return (
      <p class="sw-text sw-plain">
        <bdi>{text}</bdi>
      </p>
    );
  const cite = (inline: string) =>
    inline.split(/(\[\d{1,3}\])/).map((part) => {
      const n = Number(part.slice(1, -1));
      return sources.has(n) && part === `[${n}]` ? <sup title={sources.get(n)}>{n}</sup> : part;
    });
  return (
    <div class="sw-text">
      <Markdown text={text} inlineText={cite} />
    </div>
  );
}
