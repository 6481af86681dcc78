// The agent's stream of changes: one for the visible tab, which every page
// shares. A tab that is hidden for a while, or while another tab opens its
// stream, closes it and catches up later, since browsers open only six
// connections to a host.
import { effect, signal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import { ApiError, events, path, put } from "./api";
import { agentId } from "./route";
import type * as API from "./types";

/** The rows that changes bring, by kind, as the lists have them. */
type Rows = {
  source: API.Source;
  contact: API.Contact;
  conversation: API.ConversationSummary;
  message: API.MessageDetails;
  workflow: API.WorkflowItem;
  execution: API.ExecutionItem;
  schedule: API.ScheduleSummary;
  run: API.ScheduleRun;
  table: API.Table;
};

/** A change of a record, as the event stream announces it. */
export type Change<K extends string = string> = {
  kind: K;
  id: string;
  op: "create" | "update" | "delete";
  row?: K extends keyof Rows ? Rows[K] : unknown;
  /** Of a run: the schedule that it belongs to. */ schedule_id?: string;
};

/** The state of the event stream. */
export type LiveState = "connecting" | "open" | "off";

/** How the stream is. */
export const live = signal<LiveState>("off");
/** What waits for a person and what is unread, as the stream says. */
export const counts = signal<{ waiting: number; unread: number }>({ waiting: 0, unread: 0 });
type Progress = {
  kind: string;
  id: string;
  done: number;
  total: number;
  rate?: number;
  /** How long it still takes, if that can be estimated. */ seconds_left?: number;
};
/** Work that reports progress, by id. */
export const progress = signal<Record<string, Progress>>({});

/** A person who has a record open, in one tab. */
export type Presence = { who: string; at: string; editing: boolean; stream: string };

/** The id of the stream, "" while there is none. */
const stream = signal("");
/** Where the other viewers of the agent are, by their streams. */
const present = signal<Record<string, Presence>>({});

/** Reports where this tab is, and returns who else is there. */
export function usePresence(at: string, editing: boolean): Presence[] {
  const streamId = stream.value;
  const sendPresence = (where: string) =>
    put(path("agents", agentId.peek(), "presence"), { stream: streamId, at: where, editing }).catch(() => {
      /* the stream has just ended */
    });
  useEffect(() => {
    if (streamId) void sendPresence(at);
  }, [streamId, at, editing]);
  useEffect(
    () => () => {
      if (streamId) void sendPresence("");
    },
    [streamId, at],
  );
  return Object.values(present.value).filter((p) => p.at === at && p.stream !== streamId);
}

const listeners = new Map<string, Set<(c: Change) => void>>();
const resets = new Set<() => void>();

/** Calls run at each change of records of a kind ("*": of all) until the returned function is called. */
export function onChange<const K extends string>(kind: K, run: (c: Change<K>) => void): () => void {
  const set = listeners.get(kind) ?? new Set();
  const each = run as (c: Change) => void; // it gets changes of its kind only
  listeners.set(kind, set.add(each));
  return () => set.delete(each);
}

/** Calls run when changes may have been missed, so that lists are to be asked for again. */
export function onReset(run: () => void): () => void {
  resets.add(run);
  return () => resets.delete(run);
}

const hiddenTimeout = 30_000;
const tabs = typeof BroadcastChannel === "function" ? new BroadcastChannel("satchel.streams") : undefined;
const maxConnectTime = 1500; // after it, what pages show may be older than the stream
let connecting = 0;
let last = "";
let connected = "";
let abort: AbortController | undefined;
let timer: ReturnType<typeof setTimeout> | undefined;

/** What the events of the stream bring, by name. */
type Streamed =
  | { event: "hello"; data: { stream?: string; last?: number; waiting?: number; unread?: number } }
  | { event: "reset"; data: unknown }
  | { event: "counts"; data: { waiting: number; unread: number } }
  | { event: "presence"; data: Presence }
  | { event: "progress"; data: Progress }
  | { event: "change"; data: Change };

function handle(id: string, { event, data }: Streamed) {
  if (id) last = id;
  if (event === "hello") {
    present.value = {};
    stream.value = data.stream ?? "";
    live.value = "open";
    counts.value = { waiting: data.waiting ?? 0, unread: data.unread ?? 0 };
    if (!last && Date.now() - connecting > maxConnectTime) for (const run of resets) run();
    if (!last) last = String(data.last ?? "");
  } else if (event === "reset") {
    for (const run of resets) run();
  } else if (event === "counts") {
    counts.value = data;
  } else if (event === "presence") {
    const { [data.stream]: _, ...others } = present.value;
    present.value = data.at ? { ...others, [data.stream]: data } : others;
  } else if (event === "progress") {
    progress.value = { ...progress.value, [data.id]: data };
  } else if (event === "change") {
    if (data.kind === "source" && data.row && (data.row as API.Source).status !== "crawling") {
      const { [data.id]: _, ...others } = progress.value;
      progress.value = others;
    }
    for (const kind of [data.kind, "*"]) for (const run of listeners.get(kind) ?? []) run(data);
  }
}

async function connect(agent: string, failures = 0): Promise<void> {
  abort?.abort();
  const controller = new AbortController();
  abort = controller;
  live.value = "connecting";
  connecting = Date.now();
  tabs?.postMessage("open"); // the others give their connections back
  let opened = false;
  try {
    await events(
      "GET",
      path("agents", agent, "stream"),
      { signal: controller.signal, headers: last ? { "Last-Event-ID": last } : {} },
      (e) => {
        opened = true;
        handle(e.id, e as Streamed);
      },
    );
  } catch (error) {
    if (controller.signal.aborted) return;
    if (error instanceof ApiError && [401, 403, 404].includes(error.status)) {
      live.value = "off";
      return;
    }
  }
  if (controller.signal.aborted) return;
  live.value = "connecting";
  const tries = opened ? 0 : failures + 1;
  timer = setTimeout(
    () => {
      if (abort === controller) void connect(agent, tries);
    },
    Math.min(30_000, 500 * 2 ** tries),
  );
}

function close() {
  clearTimeout(timer);
  abort?.abort();
  abort = undefined;
  stream.value = "";
  live.value = "off";
}

/** Connects to the agent of the address from now on, and again after another key was given. */
export function startLive() {
  effect(() => {
    const agent = agentId.value;
    if (agent === connected) return;
    close();
    connected = agent;
    last = "";
    progress.value = {};
    counts.value = { waiting: 0, unread: 0 };
    if (agent && !document.hidden) void connect(agent);
  });
  let hide: ReturnType<typeof setTimeout>;
  tabs?.addEventListener("message", () => {
    if (document.hidden) close();
  });
  document.addEventListener("visibilitychange", () => {
    clearTimeout(hide);
    if (document.hidden) hide = setTimeout(close, hiddenTimeout);
    else if (!abort && connected) void connect(connected);
  });
}

/** Connects again, with the key of now. */
export function restartLive() {
  last = "";
  if (connected && !document.hidden) void connect(connected);
}
