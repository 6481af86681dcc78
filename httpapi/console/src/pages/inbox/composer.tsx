// Where a conversation is answered: a reply or a note, canned replies, files and drafts by the model.
import { useEffect, useRef, useState } from "preact/hooks";

import { type API, get, path, post, put, send as sendForm, useDraft, useQuery } from "../../data";
import { FileButton } from "../../parts/files";
import { OtherViewers } from "../../parts/presence";
import { Button, Icon, openDialog, size, showToast } from "../../ui";
import { Replies } from "./replies";

type Mode = "reply" | "note";
type Conversation = API.ConversationDetails;
type ComposerProps = { id: string; conversation: Conversation; sent: () => Promise<void> };

const draftDelay = 2000; // milliseconds after the last change
const maxFiles = 20;
const maxOffered = 8; // canned replies
const contextLength = 40; // messages that the model is given

/** Returns Markdown as text for platforms that have none: without emphasis and the numbers of passages. */
const asText = (markdown: string) => markdown.replace(/\*\*|__|`+|\s*\[\d+\]/g, "");

const conversationPath = <const M extends string[]>(id: string, conversation: string, ...more: M) =>
  path("agents", id, "conversations", conversation, ...more);

/**
 * The text of the reply and of the note, kept in this tab. The reply is also
 * kept by the service, for other tabs and people.
 */
function useTexts(id: string, conversation: string, mode: Mode) {
  const reply = useDraft(`inbox.${id}.${conversation}`);
  const note = useDraft(`inbox-note.${id}.${conversation}`);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const store = (text: string) => {
    void put(conversationPath(id, conversation, "draft"), { text }).catch(() => {
      /* it is kept in this tab */
    });
  };
  useEffect(() => {
    void get(conversationPath(id, conversation, "draft")).then(
      (draft) => {
        if (!reply.value && draft.text) reply.value = draft.text;
      },
      () => {
        /* there is none */
      },
    );
    return () => clearTimeout(timer.current);
  }, []);
  const current = mode === "note" ? note : reply;
  const set = (text: string) => {
    current.value = text;
    if (mode === "note") return;
    clearTimeout(timer.current);
    timer.current = setTimeout(() => store(text), draftDelay);
  };
  /** Stops the pending write of the draft. */
  const cancelStore = () => clearTimeout(timer.current);
  return { reply, current, set, store, cancelStore };
}

/** Asks the model for an answer to the conversation, from the agent's knowledge and without tools. */
async function proposeAnswer(id: string, { messages }: Conversation): Promise<string> {
  const spoken = messages.filter((message) => ["user", "assistant"].includes(message.role) && message.content);
  const upToContact = spoken.slice(0, spoken.findLastIndex((message) => message.role === "user") + 1);
  const context = upToContact.slice(-contextLength).map(({ role, content }) => ({ role, content }));
  const { choices } = await post(path("agents", id, "v1", "chat", "completions"), {
    messages: context,
    tool_choice: "none",
  });
  return asText(choices[0].message.content ?? "");
}

/** Sends a reply or stores a note. */
async function deliver(id: string, conversation: Conversation, mode: Mode, content: string, files: File[]) {
  if (files.length) {
    const form = new FormData();
    form.set("content", content);
    for (const file of files) form.append("file", file, file.name);
    return sendForm(conversationPath(id, conversation.id, "files"), form);
  }
  const message =
    mode === "note"
      ? { role: "note", content }
      : { role: "assistant", content, send: Boolean(conversation.gateway_id) };
  return post(conversationPath(id, conversation.id, "messages"), message);
}

function placeholderOf(mode: Mode, conversation: Conversation): string {
  if (mode === "note") return "Private note: not sent, and the bot doesn't read it";
  return conversation.gateway_id ? "Your reply; ! for canned replies" : "Your reply; it appears in the chat";
}

/** Reports whether files can be sent with what is written. */
const mayAttach = (mode: Mode, { gateway }: Conversation) => gateway?.type === "web" && mode === "reply";

type SendOptions = ComposerProps & {
  mode: Mode;
  texts: ReturnType<typeof useTexts>;
  files: File[];
  setFiles: (change: (files: File[]) => File[]) => void;
};

/**
 * Returns what sends the text and the files. The field is empty at once, for
 * the next message; what could not be sent is put back into it.
 */
function useSend({ id, conversation, sent, mode, texts, files, setFiles }: SendOptions) {
  // Messages arrive in the order in which they were written.
  const lastDelivery = useRef<Promise<unknown>>(Promise.resolve());
  return async () => {
    const draft = texts.current;
    const content = draft.value.trim();
    const attached = mode === "reply" ? files : [];
    if (!content && !attached.length) return;
    texts.cancelStore();
    draft.value = "";
    if (attached.length) setFiles(() => []);
    const delivery = lastDelivery.current
      .catch(() => {
        /* its own call has handled it */
      })
      .then(() => deliver(id, conversation, mode, content, attached));
    lastDelivery.current = delivery;
    try {
      await delivery;
    } catch (error) {
      draft.value = [content, draft.value].filter(Boolean).join("\n\n");
      if (attached.length) setFiles((others) => [...attached, ...others]);
      throw error;
    }
    if (draft === texts.reply && !draft.value) texts.store("");
    await sent();
  };
}

/** The field in which a conversation is answered. */
export function Composer(props: ComposerProps) {
  const { id, conversation } = props;
  const [mode, setMode] = useState<Mode>("reply");
  const [files, setFiles] = useState<File[]>([]);
  const area = useRef<HTMLTextAreaElement>(null);
  const texts = useTexts(id, conversation.id, mode);
  const text = texts.current.value;
  const focus = () => area.current?.focus();
  const canned = useCannedReplies(id, text, (next) => {
    texts.set(next);
    focus();
  });
  const deliverText = useSend({ ...props, mode, texts, files, setFiles });
  const send = () => {
    focus();
    void deliverText().catch(showToast);
  };
  const propose = async () => {
    const answer = await proposeAnswer(id, conversation);
    texts.set([texts.reply.value.trimEnd(), answer].filter(Boolean).join("\n\n"));
    focus();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      send();
    } else if (!canned.handleKey(event) && event.key === "Escape") {
      event.stopPropagation();
      area.current?.blur(); // so that the keys of the page work again
    }
  };
  const manageReplies = () => {
    openDialog((close) => <Replies id={id} text={canned.typed === undefined ? text : ""} close={close} />);
  };
  const attaching = mayAttach(mode, conversation);
  return (
    <form
      class={`inbox-composer ${mode}`}
      onSubmit={(e) => {
        e.preventDefault();
        send();
      }}
    >
      <ModeTabs
        mode={mode}
        choose={(chosen) => {
          setMode(chosen);
          focus();
        }}
        conversation={conversation.id}
        writing={Boolean(text.trim())}
      />
      {canned.isOpen && (canned.offered.length > 0 || text.startsWith("!")) && (
        <CannedList canned={canned} manage={manageReplies} />
      )}
      <textarea
        ref={area}
        rows={3}
        value={text}
        aria-label={mode === "note" ? "Private note" : "Reply"}
        placeholder={placeholderOf(mode, conversation)}
        onInput={(e) => texts.set(e.currentTarget.value)}
        onKeyDown={onKeyDown}
      />
      {attaching && files.length > 0 && <AttachedFiles files={files} setFiles={setFiles} />}
      <div class="row">
        {attaching && (
          <FileButton
            field="Attach files"
            icon="Paperclip"
            kind="quiet"
            label="Attach files"
            choose={(added) => {
              setFiles([...files, ...added].slice(0, maxFiles));
              focus();
            }}
          />
        )}
        <Button kind="quiet" icon="MessagesSquare" label="Canned replies" onClick={manageReplies} />
        {mode === "reply" && <DraftButton conversation={conversation} propose={propose} />}
        <span class="grow muted small">
          <span class="with-keys">Ctrl+Enter to send</span>
        </span>
        <Button kind="primary" submit disabled={!text.trim() && !(attaching && files.length)}>
          {mode === "note" ? "Add note" : "Send"}
        </Button>
      </div>
    </form>
  );
}

const modes: [Mode, string][] = [
  ["reply", "Reply"],
  ["note", "Note"],
];

type ModeTabsProps = {
  mode: Mode;
  choose: (mode: Mode) => void;
  /** The id of the conversation. */
  conversation: string;
  /** Something is written, which other people see. */
  writing: boolean;
};

/** Chooses what is written, and shows who else writes. */
function ModeTabs({ mode, choose, conversation, writing }: ModeTabsProps) {
  return (
    <div class="tabs" role="group" aria-label="Message type">
      {modes.map(([name, title]) => (
        <button
          type="button"
          data-mode={name}
          aria-current={mode === name ? "true" : undefined}
          onClick={() => choose(name)}
        >
          {title}
        </button>
      ))}
      <OtherViewers at={conversation} editing={writing} doing={{ one: "is writing", several: "are writing" }} />
    </div>
  );
}

function DraftButton({ conversation, propose }: { conversation: Conversation; propose: () => Promise<void> }) {
  const hasQuestion = conversation.messages.some((message) => message.role === "user" && message.content);
  return (
    <Button
      kind="quiet"
      icon="Sparkles"
      disabled={!hasQuestion}
      reason="There is no message to answer yet."
      onClick={propose}
    >
      AI draft
    </Button>
  );
}

/** The canned replies whose shortcut begins with what is typed after an exclamation mark at the end of a text. */
function useCannedReplies(id: string, text: string, setText: (text: string) => void) {
  const replies = useQuery(path("agents", id, "replies"), { limit: 200 }).data.value?.replies ?? [];
  const [row, setRow] = useState(0);
  const [dismissedText, setDismissedText] = useState("");
  const typed = /(?:^|\s)!(\S*)$/.exec(text)?.[1];
  const isOpen = typed !== undefined && dismissedText !== text;
  const matches = (reply: API.CannedReply) => reply.shortcut.toLowerCase().startsWith(typed!.toLowerCase());
  const offered = isOpen ? replies.filter(matches).slice(0, maxOffered) : [];
  const active = Math.min(row, offered.length - 1);
  const insert = (reply: API.CannedReply) => {
    setText(text.slice(0, text.length - typed!.length - 1) + reply.text);
    setRow(0);
  };
  /** Handles a key while replies are offered; reports whether it did. */
  const handleKey = (event: KeyboardEvent): boolean => {
    if (!offered.length) return false;
    const isEnter = event.key === "Enter" && !event.shiftKey && !event.isComposing;
    if (event.key === "ArrowDown") setRow((active + 1) % offered.length);
    else if (event.key === "ArrowUp") setRow((active + offered.length - 1) % offered.length);
    else if (event.key === "Tab" || isEnter) insert(offered[active]);
    else if (event.key === "Escape") {
      event.stopPropagation();
      setDismissedText(text);
    } else return false;
    event.preventDefault();
    return true;
  };
  return { hasReplies: replies.length > 0, typed, isOpen, offered, active, insert, handleKey };
}

type CannedListProps = { canned: ReturnType<typeof useCannedReplies>; manage: () => void };

function CannedList({ canned: { offered, active, insert, hasReplies }, manage }: CannedListProps) {
  return (
    <ul class="inbox-canned">
      {offered.map((reply, index) => (
        <li key={reply.id}>
          <button type="button" aria-current={index === active ? "true" : undefined} onClick={() => insert(reply)}>
            <strong>
              !<bdi>{reply.shortcut}</bdi>
            </strong>{" "}
            <span class="clip">
              <bdi>{reply.text}</bdi>
            </span>
          </button>
        </li>
      ))}
      <li>
        <button type="button" class="muted" onClick={manage}>
          {hasReplies ? "Edit canned replies" : "There is no canned reply yet: write the first"}
        </button>
      </li>
    </ul>
  );
}

function AttachedFiles({ files, setFiles }: { files: File[]; setFiles: (files: File[]) => void }) {
  return (
    <ul class="inbox-attached">
      {files.map((file, index) => (
        <li key={index} class="row nowrap">
          <Icon name="Paperclip" size={14} />
          <bdi class="clip grow">{file.name}</bdi>
          <span class="muted small">{size(file.size)}</span>
          <Button
            kind="quiet"
            icon="X"
            label={`Remove ${file.name}`}
            onClick={() => setFiles(files.filter((other) => other !== file))}
          />
        </li>
      ))}
    </ul>
  );
}
