// Requests of the frame to the server that it came from.
import { readEvents, readSocket } from "../parts/stream";
import type { Look, Message, State } from "./view";
import { words } from "./words";

/** The address of the widget: that of this document. */
const at = location.pathname.replace(/\/$/, "");
const place = `satchel.widget.${at}`;

/** What is kept in this browser; where that is not allowed, as long as the frame is open. */
const memory = new Map<string, string>();
export const storage = {
  get: (name: string) => {
    try {
      return localStorage.getItem(`${place}.${name}`) ?? memory.get(name) ?? "";
    } catch {
      return memory.get(name) ?? "";
    }
  },
  set: (name: string, value: string) => {
    memory.set(name, value);
    try {
      if (value) localStorage.setItem(`${place}.${name}`, value);
      else localStorage.removeItem(`${place}.${name}`);
    } catch {
      /* memory has it */
    }
  },
};

/** What the server answers when it cannot do something. */
export class RequestError extends Error {
  status: number;
  retryAfter: number;
  constructor(status: number, message: string, retryAfter: number) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

async function call(
  method: string,
  what: string,
  options: { body?: unknown; headers?: Record<string, string>; signal?: AbortSignal },
): Promise<Response> {
  const headers: Record<string, string> = { ...options.headers };
  const token = storage.get("token");
  if (token) headers.Authorization = `Bearer ${token}`;
  if (options.body !== undefined) headers["Content-Type"] = "application/json";
  const answer = await fetch(`${at}/${what}`, {
    method,
    headers,
    signal: options.signal,
    credentials: "omit",
    cache: "no-store",
    body: options.body === undefined ? undefined : JSON.stringify(options.body),
  });
  if (answer.ok) return answer;
  const text = (await answer.json().catch(() => null))?.error?.message ?? words.unreachable;
  throw new RequestError(answer.status, text, Number(answer.headers.get("Retry-After")) || 0);
}

export const post = (what: string, body: unknown) => call("POST", what, { body });

/** Sends a form with files; noteProgress gets the part that was sent, 0 to 1. */
export function postForm(
  what: string,
  form: FormData,
  signal: AbortSignal,
  noteProgress: (part: number) => void,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", `${at}/${what}`);
    request.setRequestHeader("Authorization", `Bearer ${storage.get("token")}`);
    request.responseType = "json";
    request.upload.onprogress = (e) => {
      if (e.lengthComputable) noteProgress(e.loaded / e.total);
    };
    request.onerror = request.onabort = () => reject(new RequestError(0, words.unreachable, 0));
    request.onload = () => {
      if (request.status < 300) resolve();
      else
        reject(
          new RequestError(
            request.status,
            request.response?.error?.message ?? words.unreachable,
            Number(request.getResponseHeader("Retry-After")) || 0,
          ),
        );
    };
    signal.onabort = () => request.abort();
    request.send(form);
  });
}

/** Gets a file of a message. */
export const getFile = async (message: number, index: number) =>
  (await call("GET", `files/${message}/${index}`, {})).blob();

/** An event of the conversation. */
export type ChatEvent =
  | { event: "hello"; data: Look }
  | { event: "state"; data: State }
  | { event: "partial"; data: { text: string; goes_on?: boolean } }
  | { event: "message"; data: Message };

/** Reads the events of the conversation behind a message until they end. */
export async function follow(after: number, signal: AbortSignal, each: (event: ChatEvent) => void) {
  const last = after ? String(after) : "";
  const onEvent = (e: { event: string; data: unknown }) => each(e as ChatEvent);
  const address = new URL(`${at}/stream`, location.href);
  if (await readSocket(address, { token: storage.get("token"), after: last, signal }, onEvent)) return;
  const headers: Record<string, string> = last ? { "Last-Event-ID": last } : {};
  await readEvents(await call("GET", "stream", { signal, headers }), onEvent);
}
