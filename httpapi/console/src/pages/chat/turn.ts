// One turn of a chat: what was asked, what came back so far, and its end. It
// goes on at the server when this page is left, and is found again after a reload.
import { batch, signal, type Signal } from "@preact/signals";

import { type API, ApiError, events, path, retryLater, post, type ServerEvent, uploads } from "../../data";
import { citationsOf, type Citation } from "../../parts/citations";

/** A call of a tool, with its result once it is done. */
export type ToolRow = {
  id: string;
  name: string;
  arguments?: unknown;
  result?: unknown;
  ms?: number;
  error?: string;
  done: boolean;
};

/** A turn that runs, or that failed. What comes back is in signals. */
export type Turn = {
  run: string;
  agent: string;
  conversation: string;
  question: string;
  /** Of the messages before it, the newest; unknown after a reload. */
  after?: number;
  /** The answer that it generates again. */
  retryOf?: number;
  /** The question is on its way to the server. */
  asked?: boolean;
  text: Signal<string>;
  sources: Signal<Citation[]>;
  tools: Signal<ToolRow[]>;
  state: Signal<"asking" | "writing" | "done" | "failed" | "stopped">;
  error: Signal<Error | undefined>;
  /** The names of files that are sent or read before the question is answered. */
  waiting: Signal<string[]>;
  /** The connection is lost, and made again; the turn continues on the server. */
  disconnected: Signal<boolean>;
};

/** The turns that run, by conversation. */
export const turns = signal<Record<string, Turn>>({});

/** What is kept of a turn for a reload: its run while it runs, or why it failed. */
type StoredTurn = {
  run: string;
  question: string;
  retryOf?: number;
  error?: { message: string; code?: string; requestId?: string | null };
};

const storageKey = (conversation: string) => `satchel.run.${conversation}`;

function storeTurn(turn: Turn) {
  const error = turn.error.value;
  const kept: StoredTurn = {
    run: turn.run,
    question: turn.question,
    retryOf: turn.retryOf,
    error: error && {
      message: error.message,
      ...(error instanceof ApiError ? { code: error.code, requestId: error.requestId } : {}),
    },
  };
  try {
    sessionStorage.setItem(storageKey(turn.conversation), JSON.stringify(kept));
  } catch {
    /* the storage is full or closed */
  }
}

function make(run: string, { agent, conversation, question, after, retryOf }: Ask): Turn {
  return {
    run,
    agent,
    conversation,
    question,
    after,
    retryOf,
    text: signal(""),
    sources: signal([]),
    tools: signal([]),
    state: signal("asking"),
    error: signal(undefined),
    waiting: signal([]),
    disconnected: signal(false),
  };
}

/** What the events of an answer bring; each has some of it. */
type Streamed = {
  text?: string;
  sources?: Citation[];
  pending_sources?: API.PendingSource[];
  id?: string;
  name: string;
  arguments?: unknown;
  result?: unknown;
  ms?: number;
  duration_ms?: number;
  error?: string | { message?: string; code?: string };
};

const errorOf = (data: Pick<Streamed, "error">) =>
  new ApiError(
    0,
    typeof data.error === "object" ? { error: data.error } : { error: { message: "The answer failed." } },
  );

/** Takes in what the stream tells, from its beginning; text is painted once a frame. */
function receiver(turn: Turn) {
  let waiting = "";
  let frame = 0;
  let started = false;
  const flush = () => {
    frame = 0;
    turn.text.value += waiting;
    waiting = "";
  };
  return ({ event, data }: ServerEvent<Streamed>) => {
    if (!started)
      batch(() => {
        turn.text.value = "";
        turn.tools.value = [];
        turn.disconnected.value = false;
      });
    started = true;
    if (event === "waiting") turn.waiting.value = (data.pending_sources ?? []).map((s) => s.name);
    else if (turn.waiting.value.length) turn.waiting.value = [];
    if (event === "delta") {
      waiting += data.text ?? "";
      turn.state.value = "writing";
      if (!frame) frame = requestAnimationFrame(flush);
    } else if (event === "sources") {
      turn.sources.value = citationsOf(data.sources);
    } else if (event === "tool_call") {
      turn.tools.value = [
        ...turn.tools.value,
        { id: data.id ?? String(turn.tools.value.length), name: data.name, arguments: data.arguments, done: false },
      ];
    } else if (event === "tool_result") {
      turn.tools.value = turn.tools.value.map((t) =>
        t.id === data.id || (!data.id && !t.done)
          ? {
              ...t,
              done: true,
              result: data.result,
              ms: data.ms ?? data.duration_ms,
              error: typeof data.error === "object" ? data.error.message : data.error,
            }
          : t,
      );
    } else if (event === "done" || event === "stopped") {
      cancelAnimationFrame(frame);
      flush();
      turn.state.value = event === "done" ? "done" : "stopped";
    } else if (event === "error") {
      cancelAnimationFrame(frame);
      flush();
      turn.error.value = errorOf(data);
      turn.state.value = "failed";
    }
  };
}

const ended = (turn: Turn) => turn.state.value !== "asking" && turn.state.value !== "writing";

function fail(turn: Turn, error: Error) {
  batch(() => {
    turn.error.value = error;
    turn.state.value = "failed";
  });
}

const eventsOf = (turn: Turn) => path("agents", turn.agent, "chat", turn.run, "events");

/** Reads the events of a turn to its end, after asking with a body. A connection
 * that is lost is made again; what did not reach the server is sent again. */
async function follow(turn: Turn, body?: unknown) {
  turns.value = { ...turns.value, [turn.conversation]: turn };
  turn.asked = true;
  storeTurn(turn);
  let received = !body,
    asks = Boolean(body);
  for (let tries = 0; !ended(turn); tries++) {
    const receive = receiver(turn);
    const each = (e: ServerEvent<Streamed>) => {
      received = true;
      receive(e);
    };
    try {
      await retryLater(() =>
        asks
          ? events("POST", path("agents", turn.agent, "chat"), { body }, each)
          : events("GET", eventsOf(turn), {}, each),
      );
      turn.disconnected.value = !ended(turn);
      asks = false;
    } catch (error) {
      const unknown = !asks && error instanceof ApiError && error.status === 404;
      asks = unknown && !received;
      if (!(error instanceof ApiError)) turn.disconnected.value = true;
      else if (!asks)
        fail(turn, unknown ? new Error("The connection was lost before the answer was complete.") : error);
    }
    if (!ended(turn)) await new Promise((resolve) => setTimeout(resolve, Math.min(15_000, 500 * 2 ** tries)));
  }
  turn.disconnected.value = false;
  if (turn.state.value === "failed") storeTurn(turn);
  else sessionStorage.removeItem(storageKey(turn.conversation));
}

/** A question, and how it is answered. */
export type Ask = Pick<Turn, "agent" | "conversation" | "question" | "after" | "retryOf"> & {
  model?: string;
  sources?: boolean;
  tools?: boolean;
};

const unsent = (agent: string) =>
  uploads.value.filter((u) => u.agent === agent && (u.state === "waiting" || u.state === "sending"));

/** The longest time that a question waits for files to be sent, in milliseconds. */
const sendingTime = 120_000;

/** Resolves when the files of this tab are sent, the time is over or the turn is stopped. */
function filesSent(turn: Turn): Promise<void> {
  return new Promise((resolve) => {
    const over = setTimeout(() => end(), sendingTime);
    const stops: (() => void)[] = [];
    const end = () => {
      clearTimeout(over);
      turn.waiting.value = [];
      for (const unsubscribe of stops) unsubscribe();
      resolve();
    };
    const check = () => {
      const files = unsent(turn.agent);
      if (!files.length || ended(turn)) end();
      else turn.waiting.value = files.map((u) => u.name);
    };
    stops.push(uploads.subscribe(check), turn.state.subscribe(check));
  });
}

/** The newest files that were sent from this tab; the answer waits until they are read. */
const sentFiles = (agent: string) =>
  uploads.value
    .filter((u) => u.agent === agent && u.source)
    .map((u) => u.source)
    .slice(0, 100);

/** Asks, once the files of this tab are sent. */
export function ask(q: Ask) {
  const turn = make(crypto.randomUUID?.() ?? `${Date.now()}-${Math.random().toString(36).slice(2)}`, q);
  const send = () =>
    void follow(turn, {
      message: q.question,
      conversation_id: q.conversation,
      stream: true,
      run_id: turn.run,
      fallback: "passages",
      model: q.model || undefined,
      retry_of: q.retryOf,
      sources: q.sources,
      tools: q.tools,
      wait_for: sentFiles(q.agent),
    });
  if (q.sources === false || !unsent(q.agent).length) {
    send();
    return turn;
  }
  turns.value = { ...turns.value, [turn.conversation]: turn };
  void filesSent(turn).then(() => ended(turn) || send());
  return turn;
}

/** Continues a turn that was running when the page was left, or shows why it failed. */
export function resume(agent: string, conversation: string) {
  if (turns.value[conversation]) return;
  let kept: StoredTurn | null = null;
  try {
    kept = JSON.parse(sessionStorage.getItem(storageKey(conversation)) ?? "null");
  } catch {
    /* there is none */
  }
  if (!kept) return;
  const turn = make(kept.run, {
    agent,
    conversation,
    question: kept.question,
    retryOf: kept.retryOf,
  });
  if (!kept.error) return void follow(turn);
  const { message, code, requestId } = kept.error;
  fail(
    turn,
    code ? new ApiError(0, { error: { message, code } }, { get: () => requestId ?? null }) : new Error(message),
  );
  turns.value = { ...turns.value, [conversation]: turn };
}

/** Ends a turn; what was said so far is kept. Without an answer, it fails as the server's do. */
export async function stop(turn: Turn) {
  if (!turn.asked) {
    fail(turn, new ApiError(0, { error: { code: "CONFLICT", message: "Stopped." } }));
    return;
  }
  await post(path("agents", turn.agent, "chat", turn.run, "stop"));
}

/** Forgets a turn whose messages are shown as stored. */
export function dropTurn(conversation: string) {
  const { [conversation]: gone, ...others } = turns.value;
  sessionStorage.removeItem(storageKey(conversation));
  if (gone) turns.value = others;
}
