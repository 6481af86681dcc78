// One turn of a chat: what was asked, what came back so far, and its end. It
// goes on at the server when this page is left, and is found again after a reload.
import { signal, type Signal } from "@preact/signals";

import { ApiError, events, path, post, type ServerEvent, asError } from "../../data";
import { citationsOf, type Citation } from "../../parts/citations";

export type ToolRow = { id: string; name: string; arguments?: unknown; result?: unknown; ms?: number; error?: string; done: boolean };

export type Turn = {
  run: string;
  conversation: string;
  question: string;
  text: Signal<string>;
  sources: Signal<Citation[]>;
  tools: Signal<ToolRow[]>;
  state: Signal<"asking" | "writing" | "done" | "failed" | "stopped">;
  error: Signal<Error | undefined>;
  abort: AbortController;
};

/** The turns that run, by conversation. */
export const turns = signal<Record<string, Turn>>({});

const stored = (conversation: string) => `satchel.run.${conversation}`;

function make(run: string, conversation: string, question: string): Turn {
  return { run, conversation, question, text: signal(""), sources: signal([]), tools: signal([]), state: signal("asking"), error: signal(undefined), abort: new AbortController() };
}

/** What the events of an answer bring; each has some of it. */
type Streamed = { text?: string; sources?: Citation[]; id?: string; name: string; arguments?: unknown; result?: unknown; ms?: number; duration_ms?: number; error?: string | { message?: string; code?: string } };

const errorOf = (data: Pick<Streamed, "error">) => new ApiError(0, typeof data.error === "object" ? { error: data.error } : { error: { message: "The answer failed." } });

/** Takes in what the stream tells; text is painted once a frame. */
function receiver(turn: Turn) {
  let waiting = "";
  let frame = 0;
  const flush = () => {
    frame = 0;
    turn.text.value += waiting;
    waiting = "";
  };
  return ({ event, data }: ServerEvent<Streamed>) => {
    if (event === "delta") {
      waiting += data.text ?? "";
      turn.state.value = "writing";
      if (!frame) frame = requestAnimationFrame(flush);
    } else if (event === "sources") {
      turn.sources.value = citationsOf(data.sources);
    } else if (event === "tool_call") {
      turn.tools.value = [...turn.tools.value, { id: data.id ?? String(turn.tools.value.length), name: data.name, arguments: data.arguments, done: false }];
    } else if (event === "tool_result") {
      turn.tools.value = turn.tools.value.map((t) => (t.id === data.id || (!data.id && !t.done) ? { ...t, done: true, result: data.result, ms: data.ms ?? data.duration_ms, error: typeof data.error === "object" ? data.error.message : data.error } : t));
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

async function follow(turn: Turn, method: string, at: string, body: unknown) {
  turns.value = { ...turns.value, [turn.conversation]: turn };
  sessionStorage.setItem(stored(turn.conversation), JSON.stringify({ run: turn.run, question: turn.question }));
  try {
    await events(method, at, { body, signal: turn.abort.signal }, receiver(turn));
    if (turn.state.value === "asking" || turn.state.value === "writing") throw new Error("Connection lost. The answer continues on the server.");
  } catch (error) {
    if (turn.abort.signal.aborted) return;
    if (turn.state.value !== "failed") turn.error.value = asError(error);
    turn.state.value = "failed";
  } finally {
    if (!turn.abort.signal.aborted) sessionStorage.removeItem(stored(turn.conversation));
  }
}

export type Ask = { agent: string; conversation: string; question: string; model?: string; sources?: boolean; tools?: boolean; retryOf?: number };

/** Asks. */
export function ask(q: Ask) {
  const turn = make(crypto.randomUUID?.() ?? `${Date.now()}-${Math.random().toString(36).slice(2)}`, q.conversation, q.question);
  void follow(turn, "POST", path("agents", q.agent, "chat"), {
    message: q.question, conversation_id: q.conversation, stream: true, run_id: turn.run, fallback: "passages",
    model: q.model || undefined, retry_of: q.retryOf, sources: q.sources, tools: q.tools,
  });
  return turn;
}

/** Goes on with a turn that ran when the page was left; reports whether there is one. */
export function resume(agent: string, conversation: string): boolean {
  if (turns.value[conversation]) return true;
  let kept: { run: string; question: string } | null = null;
  try { kept = JSON.parse(sessionStorage.getItem(stored(conversation)) ?? "null"); } catch { /* there is none */ }
  if (!kept) return false;
  const turn = make(kept.run, conversation, kept.question);
  void follow(turn, "GET", path("agents", agent, "chat", kept.run, "events"), undefined);
  return true;
}

/** Ends a turn; what was said so far is kept. */
export async function stop(agent: string, turn: Turn) {
  await post(path("agents", agent, "chat", turn.run, "stop"));
}

/** Forgets a turn whose messages are shown as stored. */
export function forget(conversation: string) {
  const { [conversation]: gone, ...others } = turns.value;
  if (gone) turns.value = others;
}
