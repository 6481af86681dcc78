// One source: its text with the edges of its chunks, its chunks and pages, and how it is read.
import { useEffect } from "preact/hooks";

import {
  agentId,
  download,
  go,
  href,
  invalidate,
  listHref,
  mayEdit,
  onChange,
  remove,
  route,
  setQuery,
  useQuery,
  type API,
} from "../../data";
import { Button, deleteLater, Empty, Load, Menu, Name, Pager, plural } from "../../ui";
import { SourceText } from "../../parts/source-text";
import { stopSource, wasStopped } from "../../parts/stop";
import { readAgain, readAgainLabel, sourceActions } from "./actions";
import { Facts } from "./facts";
import { sourcesAt } from "./paths";
import { failedPages, isBusy, problemOf, SourceProgress, SourceStatus } from "./status";

/** The page of one source; the address names a tab and a chunk to show. */
export function SourcePage({ id }: { id: string }) {
  const found = useQuery<API.Source>(sourcesAt(id));
  useEffect(
    () =>
      onChange("source", (change) => {
        if (change.id === id && change.op !== "delete") found.reloadThrottled();
      }),
    [found],
  );
  return (
    <div class="page">
      <p class="crumb">
        <a href={listHref(agentId.value, "knowledge")}>Knowledge</a>
      </p>
      <Load of={found} title="Source">
        {(source) => (
          <>
            <Head source={source} />
            {source.error && <Problem source={source} />}
            <SourceProgress source={source} />
            <Tabs source={source} />
          </>
        )}
      </Load>
    </div>
  );
}

function deleteSource({ id, name }: API.Source) {
  go(href(agentId.value, "knowledge"));
  deleteLater(
    `${name} deleted`,
    () => remove(sourcesAt(id)).then(() => invalidate(sourcesAt())),
    () => {},
  );
}

function Head({ source }: { source: API.Source }) {
  return (
    <div class="page-head">
      <h1 class="grow" tabIndex={-1}>
        <Name>{source.name}</Name>
      </h1>
      <SourceStatus source={source} />
      {isBusy(source) && mayEdit.value && (
        <Button kind="danger" icon="CircleStop" onClick={() => stopSource(source)}>
          Stop
        </Button>
      )}
      {source.type === "file" && (
        <Button icon="Download" onClick={() => download("GET", sourcesAt(source.id, "file"))}>
          Original
        </Button>
      )}
      <Menu label="Actions" items={sourceActions(source, () => deleteSource(source))} />
    </div>
  );
}

function Problem({ source }: { source: API.Source }) {
  const stopped = wasStopped(source);
  return (
    <div class={stopped ? "card row" : "card bad"}>
      <p class="grow">{problemOf(source)}</p>
      {mayEdit.value && !isBusy(source) && (
        <Button icon="RotateCcw" onClick={() => readAgain(source)}>
          {stopped ? readAgainLabel(source) : "Retry"}
        </Button>
      )}
    </div>
  );
}

function Tabs({ source }: { source: API.Source }) {
  const current = route.value.query.get("tab") ?? "text";
  const hasPages = source.config?.pageHashes || source.config?.failedPages;
  const tabs = [
    ["text", "Text"],
    ["chunks", "Chunks"],
    ...(hasPages ? [["pages", "Pages"]] : []),
    ["settings", "Settings"],
  ];
  return (
    <>
      <nav class="tabs" aria-label="Source">
        {tabs.map(([tab, title]) => (
          <button
            type="button"
            aria-current={tab === current ? "page" : undefined}
            onClick={() => setQuery({ tab: tab === "text" ? null : tab, offset: null })}
          >
            {title}
          </button>
        ))}
      </nav>
      {current === "text" && <Text source={source} />}
      {current === "chunks" && <Chunks id={source.id} />}
      {current === "pages" && <Pages source={source} />}
      {current === "settings" && <Facts source={source} />}
    </>
  );
}

function Text({ source }: { source: API.Source }) {
  const busy = isBusy(source);
  if (source.chunks === 0)
    return (
      <Empty icon="FileText" title={busy ? "Being read…" : "No text"}>
        {busy ? "The text appears here once it is read." : "Nothing could be read from this source."}
      </Empty>
    );
  return (
    <article class="card">
      <SourceText source={source.id} chunk={route.value.query.get("chunk") ?? ""} />
    </article>
  );
}

function Chunks({ id }: { id: string }) {
  const offset = Number(route.value.query.get("offset")) || 0;
  const found = useQuery<API.ChunkList>(sourcesAt(id, "chunks"), { limit: 25, offset });
  return (
    <Load of={found}>
      {({ chunks, meta }) => (
        <>
          <ol class="results" start={offset + 1}>
            {chunks.map(({ id: chunkId, position, metadata, content }) => (
              <li key={chunkId} class="card stack">
                <p class="muted small">
                  {[`#${position + 1}`, metadata.place, `${content.length} characters`].filter(Boolean).join(" · ")}
                </p>
                <p class="passage-full">{content}</p>
              </li>
            ))}
          </ol>
          <Pager meta={meta} go={(to) => setQuery({ offset: to || null })} />
        </>
      )}
    </Load>
  );
}

const maxShownPages = 200;

function Pages({ source }: { source: API.Source }) {
  const pages = Object.keys(source.config.pageHashes ?? {});
  const failed = failedPages(source);
  return (
    <div class="stack">
      {failed.length > 0 && (
        <div class="card">
          <h2>Failed</h2>
          <ul class="plain">
            {failed.map(({ url, status, error }) => (
              <li>
                <bdi>{url}</bdi> <span class="issue small">{[status, error].filter(Boolean).join(" · ")}</span>
              </li>
            ))}
          </ul>
        </div>
      )}
      <div class="card">
        <h2>{plural(pages.length, "page")}</h2>
        <ul class="plain">
          {pages.slice(0, maxShownPages).map((url) => (
            <li>
              <a href={url} target="_blank" rel="noopener noreferrer">
                <bdi>{url}</bdi>
              </a>
            </li>
          ))}
        </ul>
      </div>
    </div>
  );
}
