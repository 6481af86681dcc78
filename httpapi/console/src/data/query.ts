// Responses of the service, cached by address: components that show the same data share one
// request, and a page that is shown again shows the cached response at once.
import { batch, signal, type Signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";

import { type Answer, asError, get, OfflineError, type Query } from "./api";

/** The result of a query, in signals. */
export type Result<T> = {
  data: Signal<T | undefined>;
  error: Signal<Error | undefined>;
  loading: Signal<boolean>;
  /** Sends the request again; the data stay until the response arrives. */
  reload: () => Promise<void>;
  /** Reloads shortly after, and at most every two seconds. */
  reloadThrottled: () => void;
  /** Changes the data without a request. */
  set: (change: (data: T) => T) => void;
};

type Entry = Result<unknown> & { used: number; abort?: AbortController; at: number };

const cache = new Map<string, Entry>();
const cacheSize = 60;
const reloadDelay = 300; // milliseconds
const reloadInterval = 2000; // milliseconds between two reloads

function keyOf(at: string, query?: Query) {
  const given = Object.entries(query ?? {}).filter(([, v]) => v !== undefined && v !== null && v !== "");
  return `${at}?${JSON.stringify(given.sort(([a], [b]) => (a < b ? -1 : 1)))}`;
}

function make(at: string, query?: Query): Entry {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let lastReload = 0;
  const entry: Entry = {
    reloadThrottled: () => {
      timer ??= setTimeout(
        () => {
          timer = undefined;
          lastReload = Date.now();
          if (entry.used) void entry.reload();
          else entry.at = 0;
        },
        Math.max(reloadDelay, lastReload + reloadInterval - Date.now()),
      );
    },
    data: signal(undefined),
    error: signal(undefined),
    loading: signal(false),
    used: 0,
    at: 0,
    set: (change) => {
      if (entry.data.value !== undefined) entry.data.value = change(entry.data.value);
    },
    reload: async () => {
      entry.abort?.abort();
      const abort = new AbortController();
      entry.abort = abort;
      entry.loading.value = true;
      try {
        const data = await get(at, query, abort.signal);
        if (entry.abort !== abort) return;
        batch(() => {
          entry.data.value = data;
          entry.error.value = undefined;
          entry.loading.value = false;
        });
        entry.at = Date.now();
      } catch (thrown) {
        const error = asError(thrown);
        if (entry.abort !== abort || error.name === "AbortError") return;
        batch(() => {
          entry.error.value = error;
          entry.loading.value = false;
        });
      }
    },
  };
  return entry;
}

/** Returns the response to a GET request, which all components that use it share; null makes no request. */
export function useQuery<const A extends string>(at: A | null, query?: Query): Result<Answer<A, "GET">>;
export function useQuery<T>(at: string | null, query?: Query): Result<T>;
export function useQuery(at: string | null, query?: Query): Result<unknown> {
  const name = at === null ? "" : keyOf(at, query);
  const entry = useMemo(() => {
    if (at === null) return make("");
    let found = cache.get(name);
    if (!found) cache.set(name, (found = make(at, query)));
    return found;
  }, [name]);
  useEffect(() => {
    if (at === null) return;
    entry.used++;
    if (Date.now() - entry.at > 1000 && !entry.loading.value) void entry.reload();
    return () => {
      entry.used--;
      evictIdle();
    };
  }, [name]);
  return entry;
}

/** Removes the oldest results that are not shown, if there are more than cacheSize. */
function evictIdle() {
  if (cache.size <= cacheSize) return;
  const idle = [...cache].filter(([, e]) => !e.used).sort(([, a], [, b]) => a.at - b.at);
  for (const [name, entry] of idle.slice(0, cache.size - cacheSize)) {
    entry.abort?.abort();
    cache.delete(name);
  }
}

/** Reloads the data below an address that are shown, and marks the others as outdated. */
export function invalidate(at: string) {
  for (const [name, entry] of cache) {
    if (!name.startsWith(at)) continue;
    entry.at = 0;
    if (entry.used) void entry.reload();
  }
}

/** Reloads what is shown and could not be loaded while the server was unreachable. */
export function reloadFailed() {
  for (const entry of cache.values()) if (entry.used && entry.error.value instanceof OfflineError) void entry.reload();
}

/** Removes all cached responses, as those of another identity may differ, and reloads what is shown. */
export function clearCache() {
  for (const [name, entry] of cache) {
    entry.abort?.abort();
    if (entry.used) void entry.reload();
    else cache.delete(name);
  }
}
