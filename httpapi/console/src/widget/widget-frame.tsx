// The frame on a website's page: one visitor's conversation. The page lets it in
// by a ticket and hears nothing of what is said.
import { render } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import { View, type Look, type MarkdownType, type Said, type State } from "./view";
import { follow, getFile, type Heard, keep, post, postForm, WireError } from "./wire";
import "./view.css";
import { language, words } from "./words";

document.documentElement.lang = language;

document.documentElement.classList.add("sw-page");

/** The page that holds the frame, from its first message on. */
let page = "";
let user: { user?: string; userHash?: string } = {};
type Ticket = { ticket?: string; failed?: number };
let ticketCame: ((t: Ticket) => void) | undefined;
const heard = new Set<(kind: string) => void>();

addEventListener("message", (e) => {
  if (e.source !== parent || parent === window || e.data?.satchel !== true || (page && e.origin !== page)) return;
  const { kind } = e.data;
  if (kind === "begin" || kind === "user") {
    page = e.origin;
    user = { user: e.data.user || undefined, userHash: e.data.userHash || undefined };
    if (keep.get("user") !== (user.user ?? "")) {
      keep.set("token", "");
      keep.set("user", "");
    } // somebody else sits there now
  }
  if (kind === "ticket") ticketCame?.(e.data);
  for (const each of heard) each(kind);
});

const tellPage = (kind: string, more = {}) => {
  if (page) parent.postMessage({ satchel: true, kind, ...more }, page);
};

/** Gets a token for the conversation, by a ticket of the page. */
async function enter() {
  if (keep.get("token")) return;
  const given = await new Promise<Ticket>((resolve) => {
    ticketCame = resolve;
    tellPage("ticket?");
    setTimeout(() => resolve({ failed: 0 }), 20_000);
  });
  if (!given.ticket) throw new WireError(given.failed || 0, words.unreachable, 0);
  const answer = await (
    await post("session", {
      ticket: given.ticket,
      origin: page,
      ...(user.user ? { user: user.user, user_hash: user.userHash ?? "" } : {}),
    })
  ).json();
  keep.set("token", answer.token);
  keep.set("user", answer.user ?? "");
}

const hex = () => [...crypto.getRandomValues(new Uint8Array(16))].map((b) => b.toString(16).padStart(2, "0")).join("");
const nobody: State = {
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

/** The conversation as the server tells it, and what is on its way there. */
function useConversation() {
  const [look, setLook] = useState<Look>();
  const [state, setState] = useState(nobody);
  const [messages, setMessages] = useState<Said[]>([]);
  const [partial, setPartial] = useState("");
  const [trouble, setTrouble] = useState("");
  const [gone, setGone] = useState("");
  const [version, setVersion] = useState(0); // grows when somebody else sits there
  const last = useRef(0);
  useEffect(() => {
    const abort = new AbortController();
    let timer: ReturnType<typeof setTimeout>;
    let open: AbortController | undefined;
    let failures = 0;
    const each = ({ event, data }: Heard) => {
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
        setMessages((all) =>
          [...all.filter((m) => m.id !== data.id && (!data.client_id || m.client_id !== data.client_id)), data].sort(
            (a, b) => (a.id || Infinity) - (b.id || Infinity) || 0,
          ),
        );
      }
    };
    const run = async () => {
      const mine = new AbortController();
      open = mine;
      try {
        await enter();
        await follow(last.current, mine.signal, each);
      } catch (thrown) {
        if (mine.signal.aborted) return;
        const error = failureOf(thrown);
        if (error.status === 401) {
          keep.set("token", "");
          last.current = 0;
          setMessages([]);
        }
        if ([400, 403, 404].includes(error.status)) {
          // 400: the website's proof of its user is wrong
          console.warn(`Satchel widget: ${error.message}`);
          return setGone(words.gone);
        }
        failures += 1;
        if (failures > 1) setTrouble(words.connecting);
        if (error.retryAfter) failures = Math.max(failures, 5);
      }
      if (mine.signal.aborted || abort.signal.aborted) return;
      timer = setTimeout(run, Math.min(30_000, 500 * 2 ** failures));
    };
    const stop = () => {
      clearTimeout(timer);
      open?.abort();
      open = undefined;
    };
    let hide: ReturnType<typeof setTimeout>;
    const seen = () => {
      // browsers open few connections to a server, so hidden tabs give theirs back
      clearTimeout(hide);
      if (document.hidden) hide = setTimeout(stop, 30_000);
      else if (!open) void run();
    };
    document.addEventListener("visibilitychange", seen);
    void run();
    return () => {
      abort.abort();
      stop();
      clearTimeout(hide);
      document.removeEventListener("visibilitychange", seen);
    };
  }, [version]);
  const restart = () => {
    last.current = 0;
    setMessages([]);
    setPartial("");
    setState(nobody);
    setVersion((v) => v + 1);
  };
  return { look, state, messages, setMessages, partial, trouble, gone, restart };
}

/** What was thrown, as an error of the server's; without a status if it was none. */
const failureOf = (thrown: unknown) =>
  thrown instanceof WireError ? thrown : new WireError(0, thrown instanceof Error ? thrown.message : String(thrown), 0);
const failureText = (error: WireError) =>
  error.status === 429
    ? words.tooMuch(error.retryAfter)
    : error.status >= 400 && error.status < 500
      ? error.message
      : words.notSent;

type Asked = { person?: boolean; email?: string; files?: File[] };

function formOf(m: Said, more: Asked, files: File[]) {
  const form = new FormData();
  form.set("id", m.client_id!);
  form.set("text", m.text);
  for (const [name, value] of Object.entries(more)) form.set(name, String(value));
  for (const f of files) form.append("file", f, f.name);
  return form;
}

function Frame() {
  const c = useConversation();
  const [Markdown, setMarkdown] = useState<MarkdownType>();
  const [shown, setShown] = useState(true);
  const read = useRef(0);
  const hasAnswers = c.messages.some((m) => m.from === "bot") || Boolean(c.partial);
  useEffect(() => {
    if (hasAnswers)
      void loadMarkdown().then(
        (m) => setMarkdown(() => m),
        () => {},
      );
  }, [hasAnswers]);
  useEffect(() => {
    const on = (kind: string) => {
      if (kind === "shown") setShown(true);
      if (kind === "hidden") setShown(false);
      if (kind === "user") c.restart();
    };
    heard.add(on);
    return () => void heard.delete(on);
  }, []);
  useEffect(() => {
    const newest = c.messages.at(-1)?.id ?? 0;
    if (shown) read.current = Math.max(read.current, newest);
    tellPage("unread", {
      count: shown ? 0 : c.messages.filter((m) => m.from !== "visitor" && m.id > read.current).length,
    });
  }, [shown, c.messages]);
  useEffect(() => {
    const press = (e: KeyboardEvent) => {
      if (e.key === "Escape") tellPage("close");
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
  const sending = useRef(new Map<string, AbortController>());
  const deliver = async (m: Said, { files, ...more }: Asked) => {
    const change = (what: Partial<Said>) =>
      c.setMessages((all) => all.map((x) => (x.client_id === m.client_id && !x.id ? { ...x, ...what } : x)));
    const abort = new AbortController();
    change({ sending: true, failed: undefined, progress: 0 });
    try {
      if (files) {
        sending.current.set(m.client_id!, abort);
        await postForm("messages", formOf(m, more, files), abort.signal, (progress) => change({ progress }));
      } else await post("messages", { id: m.client_id, text: m.text, ...more });
      change({ sending: false });
    } catch (thrown) {
      change({ sending: false, failed: failureText(failureOf(thrown)) });
    }
    sending.current.delete(m.client_id!);
  };
  const asked = useRef(new Map<string, Asked>());
  const send = (text: string, more: Asked = {}) => {
    const m: Said = {
      id: 0,
      from: "visitor",
      text,
      client_id: hex(),
      created_at: new Date().toISOString(),
      sending: true,
      files: more.files?.map((f) => ({ name: f.name, mime_type: f.type, size: f.size, local: f })),
    };
    asked.current.set(m.client_id!, more);
    c.setMessages((all) => [...all, m]);
    void deliver(m, more);
  };
  const cancel = (m: Said) => {
    sending.current.get(m.client_id!)?.abort();
    c.setMessages((all) => all.filter((x) => x.client_id !== m.client_id || x.id));
  };
  if (c.gone) return <p class="sw-note">{c.gone}</p>;
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
      draft={keep.get("draft")}
      keepDraft={(t) => keep.set("draft", t)}
      send={send}
      cancel={cancel}
      getFile={getFile}
      sendAgain={(m) => void deliver(m, asked.current.get(m.client_id!) ?? {})}
      giveEmail={async (email) => {
        await post("email", { email });
      }}
      close={() => tellPage("close")}
    />
  );
}

const root = document.getElementById("app")!;
if (parent === window) render(<p class="sw-note">{words.alone}</p>, root);
else {
  const begin = (kind: string) => {
    if (kind === "begin") {
      heard.delete(begin);
      render(<Frame />, root);
    }
  };
  heard.add(begin);
}
