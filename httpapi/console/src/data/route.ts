// Addresses of the console: #/agents/ID/SECTION/…?filters, #/agents, #/keys and #/cluster.
import { computed, effect, signal } from "@preact/signals";

/** The parts of the address. */
export type Route = {
  /** "agent" is one agent's; "agents" the list; "keys" the API keys; "cluster" the servers; "unknown" none of them. */
  page: "agent" | "agents" | "keys" | "cluster" | "start" | "unknown";
  agent: string;
  section: string;
  rest: string[];
  query: URLSearchParams;
};

/** Reads an address; what is no address of the console is "unknown". */
export function parseRoute(hash: string): Route {
  const [before, after = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const route: Route = { page: "unknown", agent: "", section: "", rest: [], query: new URLSearchParams(after) };
  let parts: string[];
  try {
    parts = before.split("/").filter(Boolean).map(decodeURIComponent);
  } catch {
    return route;
  }
  const [kind, agent, section = "home", ...rest] = parts;
  if (!kind) return { ...route, page: "start" };
  if ((kind === "keys" || kind === "cluster") && !agent) return { ...route, page: kind };
  if (kind !== "agents") return route;
  if (!agent) return { ...route, page: "agents" };
  return { ...route, page: "agent", agent, section, rest };
}

/** Where the address points. */
export const route = signal<Route>(parseRoute(location.hash));

addEventListener("hashchange", () => {
  route.value = parseRoute(location.hash);
});

/** The agent of the address: its id or name, "" on pages of none. */
export const agentId = computed(() => route.value.agent);

/** The address of a page of an agent. */
export function href(agent: string, ...parts: (string | number)[]) {
  return `#/${["agents", agent, ...parts].map((p) => encodeURIComponent(p)).join("/")}`;
}

const lists = new Map<string, string>();
const shown = ["entry", "event"]; // what lies beside a list

effect(() => {
  // the filters, the order and the page of each list
  const query = new URLSearchParams(route.value.query);
  for (const name of shown) query.delete(name);
  if (route.value.page === "agent")
    lists.set(href(route.value.agent, route.value.section, ...route.value.rest), query.toString());
});

/** The address of a list with the filters, the order and the page that it was last shown with. */
export function listHref(agent: string, ...parts: (string | number)[]) {
  const at = href(agent, ...parts),
    query = lists.get(at);
  return query ? `${at}?${query}` : at;
}

/** Goes to an address of the console. */
export function go(to: string, replace = false) {
  if (to === location.hash) return;
  const layer = Boolean(history.state?.layer); // its entry in the history, of ui/back, gives way
  if (!replace && !layer) {
    location.hash = to;
    return;
  }
  history.replaceState(replace ? history.state : null, "", to);
  route.value = parseRoute(location.hash);
}

/** Changes filters of the address without a new entry in the history; "" and null remove one. */
export function setQuery(change: Record<string, string | number | null | undefined>) {
  const [before] = location.hash.split("?", 1);
  const query = new URLSearchParams(route.value.query);
  for (const [name, value] of Object.entries(change)) {
    if (value === null || value === undefined || value === "") query.delete(name);
    else query.set(name, String(value));
  }
  go(query.size ? `${before}?${query}` : before, true);
}
