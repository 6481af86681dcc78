// A source's text with one passage marked.
import { useEffect, useRef } from "preact/hooks";

import { agentId, type API, path, useQuery } from "../data";
import { ErrorCard, Skeleton } from "../ui";
import { Highlighted } from "./highlight";

type Window = API.SourceText;

/** A passage: its text, which is shown while its source cannot be, and its best sentence. */
type Passage = { content: string; best: [number, number] | null };

/** The text around a chunk, which is scrolled to and marked. */
export function SourceText({ source, chunk, passage }: { source: string; chunk: string; passage?: Passage }) {
  const found = useQuery<Window>(source ? path("agents", agentId.value, "sources", source, "text") : null, {
    chunk,
    bytes: 32_768,
  });
  const mark = useRef<HTMLElement>(null);
  const data = found.data.value;
  useEffect(() => {
    mark.current?.scrollIntoView({ block: "center" });
  }, [data, chunk]);
  if (!data && found.error.value)
    return passage?.content ? (
      <div class="source-text">
        <mark>
          <Highlighted text={passage.content} best={passage.best} />
        </mark>
      </div>
    ) : (
      <ErrorCard error={found.error.value} retry={found.reload} />
    );
  if (!data) return <Skeleton lines={8} />;
  const at = data.chunks.find((c) => c.id === chunk);
  if (!at)
    return (
      <div class="source-text">
        <Highlighted text={data.text} />
      </div>
    );
  const text = data.text.slice(at.from, at.to);
  return (
    <div class="source-text">
      {data.from > 0 && <span class="muted">… </span>}
      <Highlighted text={data.text.slice(0, at.from)} />
      <mark ref={mark}>
        <Highlighted text={text} best={passage?.content.startsWith(text) ? passage.best : null} />
      </mark>
      <Highlighted text={data.text.slice(at.to)} />
      {data.from + data.text.length < data.total && <span class="muted"> …</span>}
    </div>
  );
}
