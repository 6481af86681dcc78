// Calls to the service that this page came from.
import { signal } from "@preact/signals";

import { readEvents, readSocket, type ServerEvent } from "../parts/stream";
import type { GraphIssue, Routes } from "./types";

export type { ServerEvent };

const base = new URL("api/", document.baseURI);

/** What is wrong with a request: one issue, or several. The rest depends on the error. */
export type ErrorDetails = {
  field?: string;
  issue?: string;
  node_id?: string;
  edge_id?: string;
  status?: number;
  errors?: GraphIssue[];
  [detail: string]: unknown;
};

/** What the service answers when it cannot do something. */
export class ApiError extends Error {
  status: number;
  code: string;
  details: ErrorDetails;
  requestId: string | null;
  /** Seconds to wait before the call is made again; 0 unless the status is 429. */
  retryAfter: number;

  constructor(
    status: number,
    body: { error?: { message?: string; code?: string; details?: ErrorDetails } } | null,
    headers?: { get(name: string): string | null },
  ) {
    super(body?.error?.message ?? `The server answered with status ${status}.`);
    this.status = status;
    this.code = body?.error?.code ?? String(status);
    this.details = body?.error?.details ?? {};
    this.requestId = headers?.get("X-Request-Id") ?? null;
    this.retryAfter = status === 429 ? Math.max(1, Number(headers?.get("Retry-After")) || 1) : 0;
  }

  /** The issues by field: {"data.code": "is missing"}. */
  get issues(): Record<string, string> {
    const found: Record<string, string> = {};
    for (const { field, issue } of this.details.errors ?? [this.details])
      if (field) found[field] ??= issue ?? this.message;
    return found;
  }
}

/** What was thrown, as an error. */
export const asError = (thrown: unknown): Error => (thrown instanceof Error ? thrown : new Error(String(thrown)));

/** What is wrong, in a sentence: the first issue of a field, else the message. */
export const reasonOf = (thrown: unknown): string =>
  (thrown instanceof ApiError ? Object.values(thrown.issues)[0] : undefined) ?? asError(thrown).message;

/** No answer came: the network, or the server, is down. */
export class OfflineError extends Error {
  constructor() {
    super("There was no answer.");
  }
}

/** Reports whether the last call reached the server. */
export const online = signal(true);

/** When the service takes calls again after a 429, in milliseconds since 1970; 0: now. */
export const limitedUntil = signal(0);

/** When a call was last refused for want of a key or a valid one. */
export const unauthorized = signal(0);

const channel = new BroadcastChannel("satchel.key");

/**
 * The API key of this tab: kept until the tab is closed, sent to this server only, and shared with other open tabs of
 * the console.
 */
export const key = {
  get: () => sessionStorage.getItem("satchel.key") ?? "",
  set: (value: string) =>
    value ? sessionStorage.setItem("satchel.key", value) : sessionStorage.removeItem("satchel.key"),
};

channel.onmessage = ({ data }) => {
  if (data?.ask && key.get()) channel.postMessage({ key: key.get() });
  if (data?.key && !key.get()) {
    key.set(data.key);
    for (const each of waitingForKey.splice(0)) each();
  }
};

const waitingForKey: (() => void)[] = [];

/** Asks other tabs for their key; resolves when one sent it, or after 150 ms. */
export function requestKeyFromTabs(): Promise<void> {
  if (key.get()) return Promise.resolve();
  return new Promise((resolve) => {
    waitingForKey.push(resolve);
    channel.postMessage({ ask: true });
    setTimeout(resolve, 150);
  });
}

const identity = (): Record<string, string> => (key.get() ? { Authorization: `Bearer ${key.get()}` } : {});

type Part<P> = P extends string ? (string extends P ? "*" : P) : "*";
type Pattern<P extends readonly unknown[]> = P extends readonly [infer First, ...infer Rest]
  ? Rest extends readonly []
    ? Part<First>
    : `${Part<First>}/${Pattern<Rest>}`
  : string;

declare const pattern: unique symbol;

/** An address below /api, with the pattern of the route that it belongs to. */
export type Address<P extends string = string> = string & { readonly [pattern]?: P };

/** What a route answers: null where it has nothing to say, unknown where the address does not determine its route. */
export type Answer<A, Method extends string> = A extends keyof Routes
  ? Found<A, Method>
  : A extends { readonly [pattern]?: infer P }
    ? P extends keyof Routes
      ? Found<P, Method>
      : unknown
    : unknown;
type Found<P extends keyof Routes, Method extends string> = Method extends keyof Routes[P]
  ? Routes[P][Method]
  : unknown;

/** A path below /api; each part is escaped. */
export const path = <const P extends readonly (string | number)[]>(...parts: P): Address<Pattern<P>> =>
  parts.map((p) => encodeURIComponent(p)).join("/");

/** The whole address of a path below /api. */
export const absolute = (...parts: (string | number)[]) => new URL(path(...parts), base).href;

/** The parameters of a query; those that are empty or undefined are left out. */
export type Query = Record<string, unknown>;

function address(at: string, query: Query = {}) {
  const url = new URL(at, base);
  for (const [name, value] of Object.entries(query)) {
    for (const v of [value].flat())
      if (v !== undefined && v !== null && v !== "") url.searchParams.append(name, String(v));
  }
  return url;
}

/** The options of a request. */
export type Options = {
  query?: Query;
  body?: unknown;
  signal?: AbortSignal;
  accept?: string;
  headers?: Record<string, string>;
  keepalive?: boolean;
};

/** Makes a call; an answer that is no success is an ApiError. */
export async function request(
  method: string,
  at: string,
  { query, body, signal, accept, headers: more, keepalive }: Options = {},
): Promise<Response> {
  const headers: Record<string, string> = { ...identity(), ...more };
  if (accept) headers.Accept = accept;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response: Response;
  try {
    response = await fetch(address(at, query), {
      method,
      headers,
      signal,
      keepalive,
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (asError(error).name === "AbortError") throw error;
    online.value = false;
    throw new OfflineError();
  }
  online.value = true;
  if (response.ok) return response;
  const failure = new ApiError(response.status, await response.json().catch(() => null), response.headers);
  if (failure.status === 401) unauthorized.value = Date.now();
  if (failure.retryAfter) limitedUntil.value = Math.max(limitedUntil.value, Date.now() + failure.retryAfter * 1000);
  throw failure;
}

const pause = (ms: number, signal?: AbortSignal) =>
  new Promise<void>((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });

/** Repeats a call that the rate limit refused, when the service takes calls again. */
export async function retryLater<T>(run: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  for (;;) {
    try {
      return await run();
    } catch (error) {
      if (!(error instanceof ApiError) || !error.retryAfter) throw error;
      await pause(Math.max(error.retryAfter * 1000, limitedUntil.value - Date.now()), signal);
    }
  }
}

async function call<T>(method: string, at: string, options: Options = {}): Promise<T> {
  const response = await retryLater(() => request(method, at, options), options.signal);
  return response.status === 204 ? (null as T) : response.json();
}

/** Sends a GET. */
export const get = <const A extends string>(at: A, query?: Query, signal?: AbortSignal) =>
  call<Answer<A, "GET">>("GET", at, { query, signal });
/** Sends a POST with a JSON body. */
export const post = <const A extends string>(at: A, body: unknown = {}, signal?: AbortSignal) =>
  call<Answer<A, "POST">>("POST", at, { body, signal });
/** Sends a PUT with a JSON body. */
export const put = <const A extends string>(at: A, body: unknown, headers?: Record<string, string>) =>
  call<Answer<A, "PUT">>("PUT", at, { body, headers });
/** Sends a DELETE. */
export const remove = <const A extends string>(at: A, query?: Query) =>
  call<Answer<A, "DELETE">>("DELETE", at, { query });

/** Reads server-sent events until their stream ends. An EventSource could not send the API key. */
export async function events<T>(
  method: string,
  at: string,
  options: Options,
  each: (e: ServerEvent<T>) => void,
): Promise<void> {
  const opened = () => (online.value = true);
  const { headers, signal } = options;
  const about = { token: key.get(), after: headers?.["Last-Event-ID"], signal, opened };
  if (method === "GET" && (await readSocket(address(at), about, each))) return;
  await readEvents(await request(method, at, { ...options, accept: "text/event-stream" }), each);
}

/** Sends a form with files; progress gets the share that is sent, 0 to 1. A full rate limit is waited for. */
export function upload<const A extends string>(
  at: A,
  fields: Record<string, string | Blob>,
  progress: (share: number) => void = () => {},
): Promise<Answer<A, "POST">> {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.append(name, value);
  return retryLater(() => send(at, form, progress));
}

/** Sends one form, whose fields may repeat. */
export function send<const A extends string>(
  at: A,
  form: FormData,
  progress: (share: number) => void = () => {},
): Promise<Answer<A, "POST">> {
  return new Promise((resolve, reject) => {
    const xhr = new XMLHttpRequest();
    xhr.open("POST", address(at));
    for (const [name, value] of Object.entries(identity())) xhr.setRequestHeader(name, value);
    xhr.responseType = "json";
    xhr.upload.onprogress = (e) => e.lengthComputable && progress(e.loaded / e.total);
    xhr.onerror = () => reject(new Error("The connection was lost while sending."));
    xhr.onload = () => {
      if (xhr.status < 300) return resolve(xhr.response);
      const failure = new ApiError(xhr.status, xhr.response, { get: (name) => xhr.getResponseHeader(name) });
      if (failure.retryAfter) limitedUntil.value = Math.max(limitedUntil.value, Date.now() + failure.retryAfter * 1000);
      reject(failure);
    };
    xhr.send(form);
  });
}

/** Fetches a file and hands it to the browser to keep. */
export async function download(method: string, at: string, query?: Query) {
  const response = await request(method, at, { query });
  saveFile(await response.blob(), fileName(response.headers.get("Content-Disposition") ?? ""));
}

/** Hands a file to the browser to keep. */
export function saveFile(content: Blob, name: string) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

function fileName(disposition: string) {
  const coded = /filename\*=utf-8''([^;]+)/i.exec(disposition);
  try {
    if (coded) return decodeURIComponent(coded[1]);
  } catch {
    /* the plain name is next */
  }
  return /filename="?([^";]+)"?/i.exec(disposition)?.[1] ?? "download";
}
