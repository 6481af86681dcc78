// What a visitor sees. It is given what to show and says what the visitor did,
// so that the console can show the same as a preview.
import type { ComponentChildren, ComponentType } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";

import { checkFiles, FileChips, type FileLimits, limitsText, SaidFile, type SaidFileInfo } from "./files";
import { Shape } from "./shape";
import { language, words } from "./words";

export type Look = {
  title: string;
  greeting: string;
  color: string;
  ask_email: string;
  offline_message: string;
  files?: FileLimits | null;
};
export type State = {
  open: boolean;
  opens_at: string;
  bot: boolean;
  answering: boolean;
  needs_human: boolean;
  person: boolean;
  email: string;
};
export type Said = {
  id: number;
  from: "visitor" | "bot" | "person";
  text: string;
  client_id?: string;
  sources?: { n: number; name: string }[];
  files?: SaidFileInfo[];
  created_at: string;
  failed?: string;
  sending?: boolean;
  progress?: number;
};
export type MarkdownType = ComponentType<{ text: string; inlineText?: (text: string) => ComponentChildren }>;

export const maxLength = 4000;

type Props = {
  look: Look;
  state: State;
  messages: Said[];
  partial: string;
  /** What is wrong with the connection; "" for nothing. */
  trouble?: string;
  Markdown?: MarkdownType;
  draft?: string;
  keepDraft?: (text: string) => void;
  send: (text: string, more?: { person?: boolean; email?: string; files?: File[] }) => void;
  sendAgain: (m: Said) => void;
  /** Ends the sending of files. */
  cancel?: (m: Said) => void;
  getFile?: (message: number, index: number) => Promise<Blob>;
  giveEmail: (email: string) => Promise<void>;
  close?: () => void;
};

/** Black or white, whichever is easier to read on a color. */
export function inkOn(color: string) {
  const [r, g, b] = [1, 3, 5].map((i) => {
    const c = parseInt(color.slice(i, i + 2), 16) / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000000" : "#ffffff";
}

/** When people are there again, in the visitor's own time. */
function backAt(time: string) {
  if (!time) return "";
  const date = new Date(time);
  const near = date.getTime() - Date.now() < 6 * 86_400_000;
  return date.toLocaleString(
    navigator.languages.find((l) => l.startsWith(language)) ?? language,
    near ? { weekday: "long", hour: "2-digit", minute: "2-digit" } : { dateStyle: "medium", timeStyle: "short" },
  );
}

/** Reports whether nobody can answer now: the bot failed, or people are needed and away. */
export function isAway(s: State, messages: Said[]) {
  const failed = s.needs_human && !s.person && !s.answering && messages.at(-1)?.from === "visitor";
  return failed || ((s.person || s.needs_human || !s.bot) && !s.open);
}

/** What stands below the title. */
function standing(s: State, away: boolean) {
  if (!s.open) return s.opens_at ? words.back(backAt(s.opens_at)) : words.away;
  if (s.person) return words.person;
  return s.bot && !away ? words.atOnce : words.soon;
}

export function View({
  look,
  state,
  messages,
  partial,
  trouble,
  Markdown,
  draft,
  keepDraft,
  send,
  sendAgain,
  cancel,
  getFile,
  giveEmail,
  close,
}: Props) {
  const [text, setText] = useState(draft ?? "");
  const [email, setEmail] = useState("");
  const [emailIssue, setEmailIssue] = useState("");
  const [files, setFiles] = useState<File[]>([]);
  const [fileIssue, setFileIssue] = useState("");
  const picker = useRef<HTMLInputElement>(null);
  const log = useRef<HTMLDivElement>(null);
  const area = useRef<HTMLTextAreaElement>(null);
  const atEnd = useRef(true);
  const emailId = useId();
  const away = isAway(state, messages);
  const asksFirst = look.ask_email === "always" && !state.email && !messages.some((m) => m.from === "visitor");
  const asksLater = look.ask_email !== "never" && !state.email && away && messages.length > 0;
  const typing = state.answering && !partial && messages.at(-1)?.from === "visitor";
  const over = text.length > maxLength;
  useEffect(() => {
    if (atEnd.current) log.current?.scrollTo({ top: log.current.scrollHeight });
  }, [messages, partial, typing, away]);
  const write = (value: string) => {
    setText(value);
    keepDraft?.(value);
  };
  const mailIsGood = () => {
    const good = /^[^@\s]+@[^@\s]+\.[^@\s]+$/.test(email.trim());
    setEmailIssue(good ? "" : words.emailIssue);
    return good;
  };
  const attach = (list: FileList | undefined | null) => {
    if (!list?.length || !look.files) return;
    const { taken, issue } = checkFiles(look.files, files, [...list]);
    setFiles(taken);
    setFileIssue(issue);
    area.current?.focus();
  };
  const submit = () => {
    const said = text.trim();
    if ((!said && files.length === 0) || over || (asksFirst && !mailIsGood())) return;
    send(said, { ...(asksFirst ? { email: email.trim() } : {}), ...(files.length ? { files } : {}) });
    atEnd.current = true;
    write("");
    setFiles([]);
    setFileIssue("");
    area.current?.focus();
  };
  const leaveEmail = async () => {
    if (!mailIsGood()) return;
    try {
      await giveEmail(email.trim());
      area.current?.focus();
    } catch (error) {
      setEmailIssue(error instanceof Error ? error.message : String(error));
    }
  };
  const mailField = (
    <>
      <label for={emailId}>{words.email}</label>
      <input
        id={emailId}
        type="email"
        autocomplete="email"
        value={email}
        aria-invalid={Boolean(emailIssue)}
        aria-describedby={emailIssue ? `${emailId}-issue` : undefined}
        onInput={(e) => {
          setEmail(e.currentTarget.value);
          setEmailIssue("");
        }}
      />
      {emailIssue && (
        <small class="sw-issue" id={`${emailId}-issue`} role="alert">
          {emailIssue}
        </small>
      )}
    </>
  );
  return (
    <section
      class="sw"
      style={{ "--sw-color": look.color, "--sw-ink": inkOn(look.color) }}
      aria-label={look.title}
      onDragOver={(e) => e.preventDefault()}
      onDrop={(e) => {
        e.preventDefault();
        attach(e.dataTransfer?.files);
      }}
    >
      <header class="sw-head">
        <div>
          <h1>
            <bdi>{look.title}</bdi>
          </h1>
          <p>{standing(state, away)}</p>
        </div>
        {close && (
          <button type="button" class="sw-icon" aria-label={words.close} onClick={close}>
            <Shape d="M18 6 6 18M6 6l12 12" />
          </button>
        )}
      </header>
      <div
        class="sw-log"
        ref={log}
        role="log"
        aria-live="polite"
        aria-label={words.messages}
        tabIndex={0}
        onScroll={(e) => {
          const el = e.currentTarget;
          atEnd.current = el.scrollHeight - el.scrollTop - el.clientHeight < 60;
        }}
      >
        <Bubble m={{ id: 0, from: "bot", text: look.greeting, created_at: "" }} />
        {messages.map((m) => (
          <Bubble
            key={m.client_id || m.id}
            m={m}
            Markdown={Markdown}
            again={() => sendAgain(m)}
            cancel={() => cancel?.(m)}
            getFile={getFile}
          />
        ))}
        {partial && <Bubble m={{ id: -1, from: "bot", text: partial, created_at: "" }} Markdown={Markdown} />}
        {typing && (
          <p class="sw-typing" role="status" aria-label={words.writing}>
            <i />
            <i />
            <i />
          </p>
        )}
        {state.needs_human && !away && <p class="sw-line">{words.asked}</p>}
        {away && (messages.length > 0 || !state.bot) && (
          <p class="sw-line">
            <bdi>{look.offline_message}</bdi>
            {state.opens_at && ` ${words.back(backAt(state.opens_at))}.`}
          </p>
        )}
        {asksLater && (
          <form
            class="sw-mail"
            noValidate
            onSubmit={(e) => {
              e.preventDefault();
              void leaveEmail();
            }}
          >
            {mailField}
            <button type="submit" class="sw-button">
              {words.leave}
            </button>
          </form>
        )}
        {away && state.email && (
          <p class="sw-line">
            {words.answerTo} <bdi>{state.email}</bdi>.
          </p>
        )}
      </div>
      {trouble && (
        <p class="sw-trouble" role="status">
          {trouble}
        </p>
      )}
      <form
        class="sw-composer"
        noValidate
        onSubmit={(e) => {
          e.preventDefault();
          submit();
        }}
      >
        {asksFirst && <div class="sw-mail">{mailField}</div>}
        {look.files && (files.length > 0 || fileIssue) && (
          <FileChips
            files={files}
            limits={look.files}
            issue={fileIssue}
            remove={(f) => {
              setFiles(files.filter((x) => x !== f));
              setFileIssue("");
              area.current?.focus();
            }}
          />
        )}
        <div class="sw-row">
          {look.files && (
            <>
              <input
                ref={picker}
                type="file"
                hidden
                multiple={look.files.max > 1}
                accept={look.files.types.map((t) => `.${t}`).join()}
                aria-label={words.attach}
                onChange={(e) => {
                  attach(e.currentTarget.files);
                  e.currentTarget.value = "";
                }}
              />
              <button
                type="button"
                class="sw-icon sw-attach"
                aria-label={words.attach}
                title={limitsText(look.files)}
                onClick={() => picker.current?.click()}
              >
                <Shape d="m21 12-8.5 8.5a5.7 5.7 0 0 1-8-8L13 4a3.8 3.8 0 0 1 5.4 5.4l-8.6 8.5a1.9 1.9 0 0 1-2.7-2.7l7.9-7.8" />
              </button>
            </>
          )}
          <textarea
            ref={area}
            rows={1}
            value={text}
            placeholder={words.write}
            aria-label={words.write}
            aria-invalid={over}
            onInput={(e) => write(e.currentTarget.value)}
            onPaste={(e) => {
              if (look.files && e.clipboardData?.files.length) {
                e.preventDefault();
                attach(e.clipboardData.files);
              }
            }}
            onKeyDown={(e) => {
              if (e.key === "Enter" && !e.shiftKey && !e.isComposing) {
                e.preventDefault();
                submit();
              }
            }}
          />
          <button
            type="submit"
            class="sw-icon sw-send"
            aria-label={words.send}
            disabled={(!text.trim() && files.length === 0) || over}
          >
            <Shape d="M5 12h14M13 6l6 6-6 6" />
          </button>
        </div>
        <div class="sw-foot">
          {over ? (
            <small class="sw-issue" role="alert">
              {words.tooLong(text.length - maxLength)}
            </small>
          ) : (
            <span />
          )}
          {!state.person && !state.needs_human && !asksFirst && (
            <button
              type="button"
              class="sw-link"
              onClick={() => {
                atEnd.current = true;
                send(words.askPerson, { person: true });
                area.current?.focus();
              }}
            >
              {words.askPerson}
            </button>
          )}
        </div>
      </form>
    </section>
  );
}

const who = { visitor: words.you, bot: words.bot, person: words.aPerson };

function Bubble({
  m,
  Markdown,
  again,
  cancel,
  getFile,
}: {
  m: Said;
  Markdown?: MarkdownType;
  again?: () => void;
  cancel?: () => void;
  getFile?: Props["getFile"];
}) {
  const named = new Map((m.sources ?? []).map((s) => [s.n, s.name]));
  const cite = (text: string) =>
    text.split(/(\[\d{1,3}\])/).map((part) => {
      const n = Number(part.slice(1, -1));
      return named.has(n) && part === `[${n}]` ? <sup title={named.get(n)}>{n}</sup> : part;
    });
  return (
    <article
      class={`sw-said ${m.from} ${m.sending ? "sending" : ""}`}
      title={m.created_at ? new Date(m.created_at).toLocaleString() : undefined}
    >
      <span class="sw-who">{who[m.from]}</span>
      {m.text &&
        (m.from === "bot" && Markdown ? (
          <div class="sw-text">
            <Markdown text={m.text} inlineText={cite} />
          </div>
        ) : (
          <p class="sw-text sw-plain">
            <bdi>{m.text}</bdi>
          </p>
        ))}
      {m.files?.map((f, i) => (
        <SaidFile key={i} f={f} get={m.id > 0 && getFile ? () => getFile(m.id, i) : undefined} />
      ))}
      {m.sending && m.files && (
        <p class="sw-progress">
          <progress max={1} value={m.progress ?? 0} aria-label={words.send} />
          <button type="button" class="sw-link" onClick={cancel}>
            {words.cancel}
          </button>
        </p>
      )}
      {named.size > 0 && (
        <p class="sw-sources">
          {[...named].map(([n, name]) => (
            <span key={n}>
              {n} <bdi>{name}</bdi>
            </span>
          ))}
        </p>
      )}
      {m.failed && (
        <p class="sw-issue" role="alert">
          {m.failed}{" "}
          {again && (
            <button type="button" class="sw-link" onClick={again}>
              {words.again}
            </button>
          )}
        </p>
      )}
    </article>
  );
}
