// What the pages of browser sessions share.
import { useEffect } from "preact/hooks";

import { agentId, ApiError, type API, onChange, path, type Result } from "../../data";
import type { IconName } from "../../ui";
import { isErrorPage } from "../../parts/live/address";

export type Session = API.Session;
export type Takeover = API.Takeover;
export type OpenSession = API.OpenSessionDetails;
export type Action = API.SessionAction;

export const at = <const M extends string[]>(...more: M) => path("agents", agentId.value, "browser", ...more);

export const ended = (s: Session) => s.status === "closed" || s.status === "error";

/** Loads a query again after changes of a session, at most once in each delay, in milliseconds. */
export function useReloading(
  session: string,
  found: Pick<Result<unknown>, "reload" | "reloadThrottled">,
  delay: number,
) {
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const unsubscribe = onChange("session", (change) => {
      if (change.id !== session) return;
      timer ??= setTimeout(() => {
        timer = undefined;
        void found.reload();
      }, delay);
    });
    return () => {
      unsubscribe();
      if (timer === undefined) return;
      clearTimeout(timer);
      found.reloadThrottled(); // who comes back before the timer sees it too
    };
  }, [found, session, delay]);
}

/** Why Chromium could not load a page, by what its codes begin with after ERR_. */
const loadReasons: [code: string, words: string][] = [
  ["NAME_", "there is no such host"],
  ["CONNECTION_REFUSED", "the host refuses connections"],
  ["CONNECTION_TIMED_OUT", "the host didn't answer in time"],
  ["TIMED_OUT", "the host didn't answer in time"],
  ["CONNECTION_RESET", "the host closed the connection"],
  ["CONNECTION_CLOSED", "the host closed the connection"],
  ["EMPTY_RESPONSE", "the host closed the connection"],
  ["CONNECTION_", "the host can't be reached"],
  ["TUNNEL_CONNECTION_FAILED", "the host can't be reached"],
  ["ADDRESS_", "the host can't be reached"],
  ["CERT_", "its certificate isn't valid"],
  ["SSL_", "it has no valid encryption"],
  ["TOO_MANY_REDIRECTS", "it redirects without end"],
  ["UNSAFE_PORT", "browsers don't open this port"],
  ["INVALID_URL", "the address isn't valid"],
];

/** The error of a page that could not be loaded, with the reason in words. */
export function loadError(error: Error): Error {
  const reason = error instanceof ApiError ? error.details.reason : undefined;
  if (typeof reason !== "string" || !/^(net::)?ERR_/.test(reason)) return error;
  const code = reason.replace(/^(net::)?ERR_/, "");
  const words = loadReasons.find(([start]) => code.startsWith(start))?.[1];
  return new Error(`The page could not be loaded: ${words ?? code.toLowerCase().replaceAll("_", " ")}.`);
}

/** What a session is called: the title or the site of its tab. */
export function nameOf(s: Session): string {
  if (s.title) return s.title;
  if (isErrorPage(s.url)) return "A page that could not be loaded";
  try {
    const url = new URL(s.url);
    return url.host || s.url;
  } catch {
    return s.url && s.url !== "about:blank" ? s.url : "New session";
  }
}

/** What people type into an address bar, as an address. */
export function toAddress(typed: string) {
  const text = typed.trim();
  const whole = /^[a-z][a-z0-9+.-]*:/i.test(text) && !/^[^/]*:\d+(\/|$)/.test(text); // and no localhost:8080
  const local = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])(:|\/|$)/i.test(text); // has no certificate
  return whole ? text : `${local ? "http" : "https"}://${text}`;
}

/** The token of a link to a live view. */
export const tokenOf = (link: string) => new URL(link, document.baseURI).searchParams.get("token") ?? "";

/** The fields of actions that are nodes of workflows too. */
const nodeFields: Record<string, string[]> = {
  navigate: ["url", "wait_until"],
  click: ["selector", "button"],
  type: ["selector", "text", "clear", "delay"],
  press: ["key", "selector"],
  select: ["selector", "value", "values", "label"],
  extract: ["selector", "attribute", "all"],
  screenshot: ["selector", "full_page"],
  scroll: ["selector", "direction", "amount"],
  wait: ["selector", "state", "url", "download", "timeout"],
  evaluate: [],
};

/** Returns the type of the node that does what an action does. */
const nodeTypeOf = (action: string) => (action === "wait" ? "wait-for" : action);

/** Makes nodes of a workflow of the actions that were done, oldest first; left says how many are no nodes. */
export function stepsOf(actions: Action[]): { text: string; nodes: number; left: number } {
  const done = actions.filter((a) => !a.error).sort((a, b) => a.seq - b.seq);
  const usable = done.filter((a) => nodeFields[a.action] && (a.action !== "wait" || a.input.selector || a.input.url));
  const nodes = usable.map((a, i) => {
    const type = nodeTypeOf(a.action);
    const given = nodeFields[a.action].filter((f) => a.input[f] !== undefined);
    const data = Object.fromEntries(given.map((f) => [f, a.input[f]]));
    if (type === "type" && data.text === undefined) data.text = ""; // may be a secret: it is not in the log
    if (type === "evaluate") data.script = "";
    return { id: `${type}-${i + 1}`, type, position: { x: 0, y: i * 120 }, data };
  });
  const edges = nodes.slice(1).map((n, i) => ({ id: `step-${i + 1}`, source: nodes[i].id, target: n.id }));
  return {
    text: JSON.stringify({ satchel: "workflow/1", nodes, edges }, null, 2),
    nodes: nodes.length,
    left: done.length - usable.length,
  };
}

/** The icons of what a model does on a page. */
export const stepIcons: Record<string, IconName> = {
  navigate: "Globe",
  back: "ArrowLeft",
  click: "MousePointerClick",
  type: "Keyboard",
  press: "Keyboard",
  select: "ListChecks",
  scroll: "ArrowDownUp",
  hover: "MousePointerClick",
  wait: "Hourglass",
  takeover: "Hand",
};
