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

/** Parses an address; the page of an invalid one is "unknown". */
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

/** The current address. */
export const route = signal<Route>(parseRoute(location.hash));

addEventListener("hashchange", () => {
  route.value = parseRoute(location.hash);
});

/** The id or name of the agent in the address; empty on pages without an agent. */
export const agentId = computed(() => route.value.agent);

/** Returns the address of a page of an agent. */
export function href(agent: string, ...parts: (string | number)[]) {
  return `#/${["agents", agent, ...parts].map((p) => encodeURIComponent(p)).join("/")}`;
}

const listQueries = new Map<string, string>(); // by the address of the list
const detailParameters = ["entry", "event"]; // the record that is open beside a list

effect(() => {
  // Remembers the filters, the order and the page of each list.
  const query = new URLSearchParams(route.value.query);
  for (const name of detailParameters) query.delete(name);
  if (route.value.page === "agent")
    listQueries.set(href(route.value.agent, route.value.section, ...route.value.rest), query.toString());
});

/** Returns the address of a list with the filters, the order and the page that it had last. */
export function listHref(agent: string, ...parts: (string | number)[]) {
  const address = href(agent, ...parts);
  const query = listQueries.get(address);
  return query ? `${address}?${query}` : address;
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

/** Changes parameters of the address without a new entry in the history; "" and null remove one. */
export function setQuery(change: Record<string, string | number | null | undefined>) {
  const [before] = location.hash.split("?", 1);
  const query = new URLSearchParams(route.value.query);
  for (const [name, value] of Object.entries(change)) {
    if (value === null || value === undefined || value === "") query.delete(name);
    else query.set(name, String(value));
  }
  go(query.size ? `${before}?${query}` : before, true);
}
