// Speaks to the service that this page came from.

const base = new URL("api/", document.baseURI);

/** What the service answers when it cannot do something. */
export class ApiError extends Error {
  constructor(status, body, requestId) {
    super(body?.error?.message ?? `the server answered with status ${status}`);
    this.status = status;
    this.code = body?.error?.code ?? String(status);
    this.details = body?.error?.details ?? {};
    this.requestId = requestId;
  }
}

/** The API key of this tab: kept until the tab is closed, and sent to this server only. */
export const key = {
  get: () => sessionStorage.getItem("satchel.key") ?? "",
  set: (value) => (value ? sessionStorage.setItem("satchel.key", value) : sessionStorage.removeItem("satchel.key")),
};

const identity = () => (key.get() ? { Authorization: `Bearer ${key.get()}` } : {});

/** A path below /api; each part is escaped. */
export const path = (...parts) => parts.map(encodeURIComponent).join("/");

/** The whole address of a path below /api. */
export const absolute = (...parts) => new URL(path(...parts), base).href;

function address(at, query = {}) {
  const url = new URL(at, base);
  for (const [name, value] of Object.entries(query)) {
    for (const v of [value].flat()) if (v !== undefined && v !== null && v !== "") url.searchParams.append(name, v);
  }
  return url;
}

async function request(method, at, { query, body, signal, accept } = {}) {
  const headers = identity();
  if (accept) headers.Accept = accept;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(address(at, query), { method, headers, signal, body: body === undefined ? undefined : JSON.stringify(body) });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The server cannot be reached.");
  }
  if (!response.ok) {
    throw new ApiError(response.status, await response.json().catch(() => null), response.headers.get("X-Request-Id"));
  }
  return response;
}

async function call(method, at, options) {
  const response = await request(method, at, options);
  return response.status === 204 ? null : response.json();
}

export const get = (at, query, signal) => call("GET", at, { query, signal });
export const post = (at, body = {}, signal) => call("POST", at, { body, signal });
export const put = (at, body) => call("PUT", at, { body });
export const remove = (at, query) => call("DELETE", at, { query });

/** Reads server-sent events until their stream ends; each gets the name of an event and its data.
 * An EventSource could not send the API key. */
export async function stream(at, signal, each) {
  const response = await request("GET", at, { signal, accept: "text/event-stream" });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    const events = (text + part.value).split("\n\n");
    text = events.pop();
    for (const event of events) {
      const lines = event.split("\n");
      const of = (name) => lines.filter((l) => l.startsWith(`${name}: `)).map((l) => l.slice(name.length + 2)).join("\n");
      if (of("data")) each(of("event"), JSON.parse(of("data")));
    }
  }
}

/** Sends a form with files; progress hears of the share that is sent, 0 to 1. */
export function upload(at, fields, progress = () => {}) {
  const data = new FormData();
  for (const [name, value] of Object.entries(fields)) data.append(name, value);
  return new Promise((resolve, reject) => {
    const xhr = new XMLHttpRequest();
    xhr.open("POST", address(at));
    for (const [name, value] of Object.entries(identity())) xhr.setRequestHeader(name, value);
    xhr.responseType = "json";
    xhr.upload.onprogress = (e) => e.lengthComputable && progress(e.loaded / e.total);
    xhr.onerror = () => reject(new Error("The connection broke while sending."));
    xhr.onload = () => (xhr.status < 300 ? resolve(xhr.response)
      : reject(new ApiError(xhr.status, xhr.response, xhr.getResponseHeader("X-Request-Id"))));
    xhr.send(data);
  });
}

/** Fetches a file and hands it to the browser to keep. */
export async function download(method, at, query) {
  const response = await request(method, at, { query });
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await response.blob());
  link.download = fileName(response.headers.get("Content-Disposition") ?? "");
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

function fileName(disposition) {
  const coded = /filename\*=utf-8''([^;]+)/i.exec(disposition);
  try { if (coded) return decodeURIComponent(coded[1]); } catch { /* the plain name is next */ }
  return /filename="?([^";]+)"?/i.exec(disposition)?.[1] ?? "download";
}
