// The frame on a website's page: one visitor's conversation. The page gives it a ticket,
// and learns nothing of the conversation but how many messages are unread.
import { render } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import { View, type Look, type MarkdownType, type Message, type State } from "./view";
import { follow, getFile, type ChatEvent, storage, post, postForm, RequestError } from "./api";
import "./view.css";
import { language, loadWords, words } from "./words";

const wordsLoaded = loadWords();
document.documentElement.lang = language;
document.documentElement.classList.add("sw-page");

/** The origin of the page that contains the frame, known from its first message on. */
let page = "";
let user: { user?: string; userHash?: string } = {};
type Ticket = { ticket?: string; failed?: number };
let onTicket: ((ticket: Ticket) => void) | undefined;
/** Whether the page shows the frame. */
let visible = true;
/** Called with the kind of each message of the page. */
const listeners = new Set<(kind: string) => void>();

addEventListener("message", (e) => {
  if (e.source !== parent || parent === window || e.data?.satchel !== true || (page && e.origin !== page)) return;
  const { kind } = e.data;
  if (kind === "begin" || kind === "user") {
    page = e.origin;
    user = { user: e.data.user || undefined, userHash: e.data.userHash || undefined };
    if (storage.get("user") !== (user.user ?? "")) {
      // another person uses the browser now
      storage.set("token", "");
      storage.set("user", "");
    }
  }
  if (kind === "ticket") onTicket?.(e.data);
  if (kind === "shown" || kind === "hidden") visible = kind === "shown";
  for (const listener of listeners) listener(kind);
});

const postToPage = (kind: string, more = {}) => {
  if (page) parent.postMessage({ satchel: true, kind, ...more }, page);
};

/** Gets a token for the conversation in exchange for a ticket of the page. */
async function authenticate() {
  if (storage.get("token")) return;
  const given = await new Promise<Ticket>((resolve) => {
    onTicket = resolve;
    postToPage("ticket?");
    setTimeout(() => resolve({ failed: 0 }), 20_000);
  });
  if (!given.ticket) throw new RequestError(given.failed || 0, words.unreachable, 0);
  const response = await post("session", {
    ticket: given.ticket,
    origin: page,
    ...(user.user ? { user: user.user, user_hash: user.userHash ?? "" } : {}),
  });
  const answer = await response.json();
  storage.set("token", answer.token);
  storage.set("user", answer.user ?? "");
}

const newId = () =>
  [...crypto.getRandomValues(new Uint8Array(16))].map((b) => b.toString(16).padStart(2, "0")).join("");

/** The state before the server has sent one. */
const initialState: State = {
  open: true,
  opens_at: "",
  bot: true,
  answering: false,
  needs_human: false,
  person: false,
  email: "",
};

let markdown: Promise<MarkdownType> | undefined;
const loadMarkdown = () =>
  (markdown ??= import(new URL("./widget-markdown.js", import.meta.url).href).then((m) => m.Markdown));

/**
 * Adds a message in the order of their ids, in place of the copy that was shown while it was sent; those without an id
 * come last.
 */
function withMessage(all: Message[], added: Message) {
  const others = all.filter((m) => m.id !== added.id && (!added.client_id || m.client_id !== added.client_id));
  return [...others, added].sort((a, b) => (a.id || Infinity) - (b.id || Infinity) || 0);
}

/** Follows the conversation, reconnecting when the connection fails. */
function useConversation() {
  const [look, setLook] = useState<Look>();
  const [state, setState] = useState(initialState);
  const [messages, setMessages] = useState<Message[]>([]);
  const [partial, setPartial] = useState("");
  const [trouble, setTrouble] = useState("");
  const [unavailable, setUnavailable] = useState("");
  const [version, setVersion] = useState(0); // grows when another person uses the browser
  const last = useRef(0);
  useEffect(() => {
    const abort = new AbortController();
    let timer: ReturnType<typeof setTimeout>;
    let open: AbortController | undefined;
    let failures = 0;
    const onEvent = ({ event, data }: ChatEvent) => {
      failures = 0;
      setTrouble("");
      if (event === "hello") setLook(data);
      if (event === "state") setState(data);
      if (event === "partial") {
        void loadMarkdown();
        setPartial((p) => (data.goes_on ? p + data.text : data.text));
      }
      if (event === "message") {
        last.current = Math.max(last.current, data.id);
        if (data.from !== "visitor") setPartial("");
        setMessages((all) => withMessage(all, data));
      }
    };
    const run = async () => {
      const controller = new AbortController();
      open = controller;
      try {
        await authenticate();
        await follow(last.current, controller.signal, onEvent);
      } catch (thrown) {
        if (controller.signal.aborted) return;
        const error = failureOf(thrown);
        if (error.status === 401) {
          storage.set("token", "");
          last.current = 0;
          setMessages([]);
        }
        if ([400, 403, 404].includes(error.status)) {
          // 400: the website's proof of its user is wrong
          console.warn(`Satchel widget: ${error.message}`);
          return setUnavailable(words.gone);
        }
        failures += 1;
        if (failures > 1) setTrouble(words.connecting);
        if (error.retryAfter) failures = Math.max(failures, 5);
      }
      if (controller.signal.aborted || abort.signal.aborted) return;
      timer = setTimeout(run, Math.min(30_000, 500 * 2 ** failures));
    };
    const stop = () => {
      clearTimeout(timer);
      open?.abort();
      open = undefined;
    };
    let hide: ReturnType<typeof setTimeout>;
    const onVisibility = () => {
      // browsers open few connections to a server, so hidden tabs close theirs
      clearTimeout(hide);
      if (document.hidden) hide = setTimeout(stop, 30_000);
      else if (!open) void run();
    };
    document.addEventListener("visibilitychange", onVisibility);
    void run();
    return () => {
      abort.abort();
      stop();
      clearTimeout(hide);
      document.removeEventListener("visibilitychange", onVisibility);
    };
  }, [version]);
  const restart = () => {
    last.current = 0;
    setMessages([]);
    setPartial("");
    setState(initialState);
    setVersion((v) => v + 1);
  };
  return { look, state, messages, setMessages, partial, trouble, unavailable, restart };
}

/** What was thrown as an error of the server; its status is 0 if it was none. */
const failureOf = (thrown: unknown) =>
  thrown instanceof RequestError
    ? thrown
    : new RequestError(0, thrown instanceof Error ? thrown.message : String(thrown), 0);

/** Why a message was not sent. */
function failureText(error: RequestError) {
  if (error.status === 429) return words.tooMuch(error.retryAfter);
  return error.status >= 400 && error.status < 500 ? error.message : words.notSent;
}

/** What goes with a message. */
type Extra = { person?: boolean; email?: string; files?: File[] };

function formOf(m: Message, extra: Omit<Extra, "files">, files: File[]) {
  const form = new FormData();
  form.set("id", m.client_id!);
  form.set("text", m.text);
  for (const [name, value] of Object.entries(extra)) form.set(name, String(value));
  for (const file of files) form.append("file", file, file.name);
  return form;
}

/** Sends messages, which are shown at once; the ones that failed can be sent again. */
function useSending(setMessages: ReturnType<typeof useConversation>["setMessages"]) {
  const uploads = useRef(new Map<string, AbortController>());
  const extras = useRef(new Map<string, Extra>());
  const deliver = async (m: Message, { files, ...extra }: Extra) => {
    const id = m.client_id!;
    const change = (part: Partial<Message>) =>
      setMessages((all) => all.map((other) => (other.client_id === id && !other.id ? { ...other, ...part } : other)));
    const abort = new AbortController();
    change({ sending: true, failed: undefined, progress: 0 });
    try {
      if (files) {
        uploads.current.set(id, abort);
        await postForm("messages", formOf(m, extra, files), abort.signal, (progress) => change({ progress }));
      } else await post("messages", { id, text: m.text, ...extra });
      change({ sending: false });
    } catch (thrown) {
      change({ sending: false, failed: failureText(failureOf(thrown)) });
    }
    uploads.current.delete(id);
  };
  const send = (text: string, extra: Extra = {}) => {
    const m: Message = {
      id: 0,
      from: "visitor",
      text,
      client_id: newId(),
      created_at: new Date().toISOString(),
      sending: true,
      files: extra.files?.map((file) => ({ name: file.name, mime_type: file.type, size: file.size, local: file })),
    };
    extras.current.set(m.client_id!, extra);
    setMessages((all) => [...all, m]);
    void deliver(m, extra);
  };
  const sendAgain = (m: Message) => void deliver(m, extras.current.get(m.client_id!) ?? {});
  const cancel = (m: Message) => {
    uploads.current.get(m.client_id!)?.abort();
    setMessages((all) => all.filter((other) => other.client_id !== m.client_id || other.id));
  };
  return { send, sendAgain, cancel };
}

/** Tells the page how many messages came while it hid the frame. */
function useUnread(messages: Message[], shown: boolean) {
  const read = useRef(0);
  useEffect(() => {
    const newest = messages.at(-1)?.id ?? 0;
    if (shown) read.current = Math.max(read.current, newest);
    const unread = messages.filter((m) => m.from !== "visitor" && m.id > read.current);
    postToPage("unread", { count: shown ? 0 : unread.length });
  }, [shown, messages]);
}

function Frame() {
  const c = useConversation();
  const [Markdown, setMarkdown] = useState<MarkdownType>();
  const [shown, setShown] = useState(visible);
  const sending = useSending(c.setMessages);
  const hasAnswers = c.messages.some((m) => m.from === "bot") || Boolean(c.partial);
  useEffect(() => {
    if (hasAnswers)
      void loadMarkdown().then(
        (m) => setMarkdown(() => m),
        () => {},
      );
  }, [hasAnswers]);
  useEffect(() => {
    const onMessage = (kind: string) => {
      setShown(visible);
      if (kind === "user") c.restart();
    };
    setShown(visible); // it may have changed since the first render
    listeners.add(onMessage);
    return () => void listeners.delete(onMessage);
  }, []);
  useUnread(c.messages, shown);
  useEffect(() => {
    const press = (e: KeyboardEvent) => {
      if (e.key === "Escape") postToPage("close");
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
  useEffect(() => {
    if (shown && c.look) document.querySelector<HTMLElement>(".sw textarea")?.focus();
  }, [shown, Boolean(c.look)]);
  useEffect(() => {
    if (c.look) document.title = c.look.title;
  }, [c.look]);
  if (c.unavailable) return <p class="sw-note">{c.unavailable}</p>;
  if (!c.look)
    return (
      <p class="sw-note" role="status">
        {c.trouble || words.moment}
      </p>
    );
  return (
    <View
      look={c.look}
      state={c.state}
      messages={c.messages}
      partial={c.partial}
      trouble={c.trouble}
      Markdown={Markdown}
      draft={storage.get("draft")}
      keepDraft={(text) => storage.set("draft", text)}
      {...sending}
      getFile={getFile}
      giveEmail={async (email) => {
        await post("email", { email });
      }}
      close={() => postToPage("close")}
    />
  );
}

const root = document.getElementById("app")!;
if (parent === window) void wordsLoaded.then(() => render(<p class="sw-note">{words.alone}</p>, root));
else {
  const begin = (kind: string) => {
    if (kind !== "begin") return;
    listeners.delete(begin);
    void wordsLoaded.then(() => render(<Frame />, root));
  };
  listeners.add(begin);
}
