// The WebSocket of a live view: it receives pictures, tabs and the state of a session, and sends a
// person's input. If the connection is lost it is opened again; the last picture and the tabs are
// shown meanwhile.
import { signal } from "@preact/signals";

/** A tab of the session. */
export type Tab = { pageId: string; url: string; title: string; favicon: string };
/** The size of the page in the picture, in pixels. */
export type Viewport = { width: number; height: number };
/** A takeover of the session by a person. */
export type TakeoverState = { takeover_id: string; status: string; reason: string; expires_at: string };

/** A field of the page with a list or a picker, which the picture lacks. */
export type Field = {
  kind: string; // select, datalist, or a type of input
  label: string;
  value: string;
  min: string;
  max: string;
  step: string;
  rect: { x: number; y: number; width: number; height: number };
  options: { value: string; label: string; group: string; selected: boolean; disabled: boolean }[];
};

/** What the server sends; a picture has no type. */
type Received =
  | { type: "tabList"; tabs: Tab[]; activeTabId: string }
  | { type: "activeTabChange"; pageId: string }
  | { type: "status"; viewport: Viewport; status: string; takeover: TakeoverState | null }
  | { type: "field"; pageId: string; field: Field }
  | { type: "selectedTextResponse"; text?: string }
  | { type?: undefined; data?: string; pageId: string; url: string; title: string };

/** The access that a link of a live view grants. */
export type Grant = { token: string; control: boolean; takeover_id: string; viewport: Viewport };

/** Thrown by a grant when the session or the access to it has ended; the message says which. */
export class LiveViewEnded extends Error {}

/** The number of bytes that may wait to be sent; input is dropped while there are more. */
const maxBuffered = 64 << 10;

/** An open live view. */
export type Live = ReturnType<typeof openLive>;

/** Reports whether the person may act on the page now. */
export const mayControl = (live: Live) => Boolean(live.may.value?.control) && live.state.value === "open";

/** The modifier keys of an event, as the session has them. */
export const modifiersOf = (e: MouseEvent | KeyboardEvent) =>
  (e.altKey ? 1 : 0) | (e.ctrlKey ? 2 : 0) | (e.metaKey ? 4 : 0) | (e.shiftKey ? 8 : 0);

/** Opens the live view of a session; grant is asked for each connection. root is the address of the server. */
export function openLive({
  root,
  session,
  grant,
  page = "",
}: {
  root: URL;
  session: string;
  grant: () => Promise<Grant>;
  page?: string;
}) {
  const state = signal<"connecting" | "open" | "lost" | "over">("connecting");
  const note = signal("");
  const tabs = signal<Tab[]>([]);
  const active = signal("");
  const url = signal("");
  const title = signal("");
  const may = signal<Grant | null>(null);
  const viewport = signal<Viewport>({ width: 1280, height: 720 });
  const status = signal("");
  const takeover = signal<TakeoverState | null>(null);
  const field = signal<Field | null>(null);
  let socket: WebSocket | undefined;
  let tries = 0;
  let closed = false;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let wide = 1280;
  let onFrame = (_: string) => {};
  let last = "";
  let shown = "";

  const address = (stream: string, query: Record<string, string>) => {
    const at = new URL(`v1/sessions/${encodeURIComponent(session)}/${stream}`, root);
    at.protocol = at.protocol === "https:" ? "wss:" : "ws:";
    for (const [name, value] of Object.entries({ token: may.value!.token, ...query })) at.searchParams.set(name, value);
    return at.href;
  };
  const end = (text: string) => {
    state.value = "over";
    note.value = text;
    takeover.value = null;
  };
  const again = () => {
    if (closed || state.value === "over") return;
    state.value = "lost";
    note.value = "The connection was lost. Trying again…";
    timer = setTimeout(begin, Math.min(500 * 2 ** tries++, 10_000));
  };
  async function begin() {
    try {
      may.value = await grant();
    } catch (error) {
      if (closed) return;
      return error instanceof LiveViewEnded ? end(error.message) : again();
    }
    if (closed) return;
    viewport.value = may.value.viewport;
    const scale = Math.max(0.3, Math.min(1, Math.ceil((wide / viewport.value.width) * 10) / 10));
    connect(page ? { pageId: page, status: "1", scale: String(scale) } : { status: "1", scale: String(scale) });
  }
  function connect(query: Record<string, string>) {
    const opened = new WebSocket(address("cast", query));
    socket = opened;
    opened.onopen = () => {
      tries = 0;
      note.value = "";
      state.value = "open";
    };
    opened.onmessage = (e) => {
      if (socket === opened) receive(JSON.parse(e.data));
    };
    opened.onclose = (e) => {
      if (closed || socket !== opened || state.value === "over") return;
      if (e.code === 1000 && e.reason === "the takeover is over")
        return end("This takeover has ended; the agent continues.");
      if (e.code === 1000 && page) {
        page = "";
        return again();
      } // the tab was closed
      if (e.code === 1000) return end("This session has ended.");
      again();
    };
  }
  function receive(m: Received) {
    if (m.type === "tabList") {
      tabs.value = m.tabs;
      active.value = m.activeTabId;
      const tab = m.tabs.find((t) => t.pageId === m.activeTabId);
      if (tab) url.value = tab.url;
    } else if (m.type === "activeTabChange") {
      active.value = m.pageId;
    } else if (m.type === "status") {
      viewport.value = m.viewport;
      status.value = m.status;
      takeover.value = m.takeover;
    } else if (m.type === "field") {
      field.value = m.field;
    } else if (m.type === "selectedTextResponse") {
      if (m.text) navigator.clipboard?.writeText(m.text).catch(() => {});
    } else if (m.data) {
      shown = m.pageId;
      url.value = m.url;
      title.value = m.title;
      last = m.data;
      onFrame(m.data);
    }
  }
  void begin();
  return {
    state,
    note,
    tabs,
    active,
    url,
    title,
    may,
    viewport,
    status,
    takeover,
    /** The field whose list or picker is open. */
    field,
    /** Returns the tab in the picture. */
    shown: () => shown,
    /** Sends input, unless too much waits to be sent already. */
    send: (message: object) => {
      if (socket?.readyState !== WebSocket.OPEN || !may.value?.control || socket.bufferedAmount > maxBuffered) return;
      socket.send(JSON.stringify(message));
    },
    /** Calls draw with each picture, JPEG in base64, beginning with the last. */
    watch: (draw: (data: string) => void, width: number) => {
      onFrame = draw;
      wide = width || wide;
      if (last) draw(last);
    },
    end,
    /** Opens the stream of the console's lines. */
    logs: (each: (lines: { level: string; text: string; timestamp: string }[]) => void) => {
      if (!may.value || state.value === "over") return () => {};
      const lines = new WebSocket(address("logs", {}));
      lines.onmessage = (e) => each(JSON.parse(e.data));
      return () => lines.close();
    },
    /** Connects again, with a new grant. */
    renew: () => {
      clearTimeout(timer);
      socket?.close();
      socket = undefined;
      tries = 0;
      state.value = "connecting";
      void begin();
    },
    close: () => {
      closed = true;
      clearTimeout(timer);
      socket?.close();
    },
  };
}
