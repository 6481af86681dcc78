// An empty conversation of the chat.
import { useEffect, useState } from "preact/hooks";

import { agent, type API, get, href, mayEdit, path, useQuery } from "../../data";
import { Button, Empty } from "../../ui";

/**
 * Makes three questions from the titles of sections, without that of the whole
 * document. They are titles alone: more words would be searched for too.
 */
function questionsFrom(chunks: API.Chunk[]) {
  const paths = chunks.flatMap((chunk) => chunk.metadata.sections ?? []).map((section) => section.split(" > "));
  const inner = paths.filter((titles) => titles.length > 1);
  const titles = (inner.length ? inner : paths)
    .map((path) => path.at(-1)!.trim())
    .filter((title) => title.length > 2 && title.length < 60);
  return [...new Set(titles)].slice(0, 3).map((title) => (title.endsWith("?") ? title : `${title}?`));
}

/** An empty conversation: what the agent knows, as questions to begin with. */
export function Start({ id, send }: { id: string; send: (text: string) => void }) {
  const sources = useQuery(path("agents", id, "sources"), {
    limit: 1,
    status: "ready",
    type: ["file", "crawl", "url"],
    sort: "chunks",
    order: "desc",
  });
  const settings = useQuery(mayEdit.value ? path("agents", id, "settings") : null);
  const [questions, setQuestions] = useState<string[]>([]);
  const list = sources.data.value?.sources ?? [];
  useEffect(() => {
    if (!list.length) return;
    const abort = new AbortController();
    get(path("agents", id, "sources", list[0].id, "chunks"), { limit: 30 }, abort.signal).then(
      ({ chunks }) => setQuestions(questionsFrom(chunks)),
      () => {
        /* no questions are suggested */
      },
    );
    return () => abort.abort();
  }, [list[0]?.id]);
  return (
    <Empty
      icon="MessageSquare"
      title={`Ask ${agent.value && agent.value.name !== "default" ? agent.value.name : "your agent"}`}
      action={mayEdit.value && questions.map((question) => <Button onClick={() => send(question)}>{question}</Button>)}
    >
      {list.length
        ? "It answers from its knowledge and cites the passages it used."
        : "Drop files below, or add knowledge, and it answers from those."}
      {settings.data.value?.llm_provider === "" && (
        <>
          <br />
          No model is set, so it shows matching passages instead.{" "}
          <a href={href(id, "settings", "model")}>Choose a model</a>
        </>
      )}
    </Empty>
  );
}
