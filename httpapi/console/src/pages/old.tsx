// Pages of the earlier console, until each has a new one. A page is a function
// that writes into an element.
import { useEffect, useRef, useState } from "preact/hooks";

import { agent, get, href, loadSession, path, route } from "../data";
import { ErrorCard, Skeleton } from "../ui";
import { sessions } from "../old/sessions.js";

type View = (page: HTMLElement, context: any) => Promise<unknown> | unknown;

const views: Record<string, View> = {
  browser: sessions,
};

let kept: { id: string; at: number; record: any } | undefined;

/** The agent that the pages are about, asked for at most every half minute. */
async function agentRecord(id: string, fresh: boolean, signal: AbortSignal) {
  if (fresh || kept?.id !== id || Date.now() - kept.at > 30_000) kept = { id, at: Date.now(), record: await get(path("agents", id), {}, signal) };
  return kept.record;
}

export default function Old({ section }: { section: string }) {
  const ref = useRef<HTMLDivElement>(null);
  const [error, setError] = useState<Error>();
  const [loading, setLoading] = useState(true);
  const [shown, setShown] = useState(0);
  const { agent: id, rest } = route.value;
  const again = () => setShown((n) => n + 1);
  useEffect(() => {
    const abort = new AbortController();
    const { signal } = abort;
    const page = document.createElement("div");
    page.className = "page";
    setError(undefined);
    setLoading(true);
    const show = async () => {
      const record = await agentRecord(id, shown > 0, signal);
      await views[section](page, {
        agent: record, rest, signal, may: agent.value?.role !== "viewer", again, refresh: async () => { await loadSession(); again(); },
        at: (...more: string[]) => path("agents", record.id, ...more), to: (...more: string[]) => href(record.id, ...more),
      });
      if (!signal.aborted) ref.current!.replaceChildren(page);
    };
    show().catch((e) => { if (!signal.aborted && e.name !== "AbortError") { ref.current?.replaceChildren(); setError(e); } })
      .finally(() => { if (!signal.aborted) { setLoading(false); page.querySelector("h1")?.focus(); } });
    return () => abort.abort();
  }, [section, id, rest.join("/"), shown]);
  return (
    <>
      {error && <div class="page"><ErrorCard error={error} retry={again} /></div>}
      {loading && !ref.current?.childElementCount && <div class="page"><Skeleton /></div>}
      <div class="old" ref={ref} />
    </>
  );
}
