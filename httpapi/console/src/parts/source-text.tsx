// A source's text with one passage marked.
import { useEffect, useRef } from "preact/hooks";

import { agentId, type API, path, useQuery } from "../data";
import { ErrorCard, Skeleton } from "../ui";

type Window = API.SourceText;

/** The text around a chunk, which is scrolled to and marked. fallback is shown while the source's own text cannot be. */
export function SourceText({ source, chunk, fallback }: { source: string; chunk: string; fallback?: string }) {
  const found = useQuery<Window>(source ? path("agents", agentId.value, "sources", source, "text") : null, { chunk, bytes: 32_768 });
  const mark = useRef<HTMLElement>(null);
  const data = found.data.value;
  useEffect(() => { mark.current?.scrollIntoView({ block: "center" }); }, [data, chunk]);
  if (!data && found.error.value) return fallback ? <pre class="source-text"><mark>{fallback}</mark></pre> : <ErrorCard error={found.error.value} retry={found.reload} />;
  if (!data) return <Skeleton lines={8} />;
  const at = data.chunks.find((c) => c.id === chunk);
  if (!at) return <pre class="source-text">{data.text}</pre>;
  return (
    <pre class="source-text">
      {data.from > 0 && <span class="muted">… </span>}{data.text.slice(0, at.from)}<mark ref={mark}>{data.text.slice(at.from, at.to)}</mark>{data.text.slice(at.to)}
      {data.from + data.text.length < data.total && <span class="muted"> …</span>}
    </pre>
  );
}
