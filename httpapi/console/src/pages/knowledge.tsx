// Knowledge: what the agent has read, and a search in it.
import type { RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import { agentId, href, mayEdit, onChange, post, route, setQuery, useQuery, type API } from "../data";
import {
  Badge,
  Button,
  deleteLater,
  Empty,
  Icon,
  Load,
  Menu,
  Name,
  openDialog,
  Pager,
  plural,
  SearchField,
  When,
  type IconName,
} from "../ui";
import { useKeys } from "../parts/keys";
import { useSelection } from "../parts/selection";
import { wasStopped } from "../parts/stop";
import { style } from "../parts/styles";
import { UploadList, uploadFiles, useDrop } from "../parts/upload";
import { readAgain, readAgainLabel, sourceActions } from "./knowledge/actions";
import { AddApi, AddSite, AddTable } from "./knowledge/add";
import { exampleHandbook } from "./knowledge/example";
import { sourcesAt } from "./knowledge/paths";
import { Search } from "./knowledge/search";
import { SelectedSources } from "./knowledge/selected";
import { SourcePage } from "./knowledge/source";
import { failedPages, kindNames, problemOf, SourceProgress, SourceStatus } from "./knowledge/status";
import "../css/knowledge.css";

export const styles = style("./knowledge.css");

/** The page of knowledge: the sources, or the source of the address. */
export default function Knowledge() {
  const [id] = route.value.rest;
  return id ? <SourcePage key={id} id={id} /> : <SourceList />;
}

const acceptedFiles = ".txt,.md,.docx,.json,.csv,.pdf,.html,.htm";
const busyStatuses = ["processing", "crawling", "updating"];

/** Orders of the list, each a field and a direction; the first is the default. */
const orders: [string, string][] = [
  ["updated_at desc", "Last changed"],
  ["created_at desc", "Newest"],
  ["name asc", "Name"],
  ["chunks desc", "Most chunks"],
];
const [[defaultOrder]] = orders;

/** What the address asks for: which sources, in which order, from which one on. */
function listOptions() {
  const { query } = route.value;
  const [name, type, status] = ["name", "type", "status"].map((field) => query.get(field) ?? "");
  const [sort, order] = (query.get("sort") ?? defaultOrder).split(" ");
  return { name, type, status, sort, order, offset: Number(query.get("offset")) || 0 };
}

/** Loads the sources that the address asks for, and keeps them current. */
function useSources() {
  const { name, type, status, sort, order, offset } = listOptions();
  const found = useQuery<API.SourceList>(sourcesAt(), {
    limit: 50,
    offset,
    search: name,
    type,
    status: status === "busy" ? busyStatuses : status,
    sort,
    order,
  });
  useEffect(
    () =>
      onChange("source", ({ id, op, row }) => {
        const listed = found.data.value?.sources.some((source) => source.id === id);
        if (op !== "update" || !listed || !row) found.reloadThrottled();
        else
          found.set((list) => ({
            ...list,
            sources: list.sources.map((source) => (source.id === id ? row : source)),
          }));
      }),
    [found],
  );
  return found;
}

/** Deletes sources; until that can no longer be undone, they are only hidden. */
function useDeletion(reload: () => Promise<void>) {
  const [picked, pick] = useSelection(route.value.query.toString());
  const [hidden, setHidden] = useState<string[]>([]);
  const deleteSources = (ids: string[], title: string) => {
    const show = () => setHidden((all) => all.filter((id) => !ids.includes(id)));
    setHidden((all) => [...all, ...ids]);
    pick(picked.filter((id) => !ids.includes(id)));
    deleteLater(
      `${title} deleted`,
      async () => {
        await post(sourcesAt("change"), { ids, delete: true });
        await reload();
        show();
      },
      show,
    );
  };
  return { picked, pick, hidden, deleteSources };
}

function SourceList() {
  const { name, type, status } = listOptions();
  const found = useSources();
  const { picked, pick, hidden, deleteSources } = useDeletion(found.reload);
  const drop = useDrop();
  const fileInput = useRef<HTMLInputElement>(null);
  const chooseFiles = () => fileInput.current?.click();
  useKeys({ u: chooseFiles });
  const searching = Boolean(route.value.query.get("q"));
  const filtered = Boolean(name || type || status);
  const shown = (found.data.value?.sources ?? []).filter(({ id }) => !hidden.includes(id));
  const togglePicked = (id: string) => (on: boolean) =>
    pick(on ? [...picked, id] : picked.filter((other) => other !== id));
  return (
    <div class={drop.over ? "page knowledge dropping" : "page knowledge"} {...drop.handlers}>
      <Head fileInput={fileInput} chooseFiles={chooseFiles} />
      <Search />
      {!searching && (
        <>
          <UploadList maxShown={30} />
          {(filtered || (found.data.value?.meta.total ?? 0) > 0) && <Filters name={name} type={type} status={status} />}
          {picked.length > 0 && (
            <SelectedSources
              picked={picked}
              shown={shown}
              pick={pick}
              remove={() => deleteSources(picked, plural(picked.length, "source"))}
            />
          )}
          <Load of={found} lines={6}>
            {({ meta }) => {
              if (!shown.length) return <NoSources filtered={filtered} chooseFiles={chooseFiles} />;
              return (
                <>
                  <ul class="sources">
                    {shown.map((source) => (
                      <SourceRow
                        key={source.id}
                        source={source}
                        picked={picked.includes(source.id)}
                        pick={mayEdit.value ? togglePicked(source.id) : undefined}
                        remove={() => deleteSources([source.id], source.name)}
                      />
                    ))}
                  </ul>
                  <div class="row">
                    <span class="muted small">{plural(meta.total, "source")}</span>
                  </div>
                  <Pager meta={meta} go={(to) => setQuery({ offset: to || null })} />
                </>
              );
            }}
          </Load>
        </>
      )}
    </div>
  );
}

const openAddSite = () => {
  openDialog((close) => <AddSite close={close} />);
};
const openAddApi = () => {
  openDialog((close) => <AddApi close={close} />);
};
const openAddTable = () => {
  openDialog((close) => <AddTable close={close} />);
};

type HeadProps = { fileInput: RefObject<HTMLInputElement | null>; chooseFiles: () => void };

function Head({ fileInput, chooseFiles }: HeadProps) {
  return (
    <div class="page-head">
      <h1 class="grow" tabIndex={-1}>
        Knowledge
      </h1>
      {mayEdit.value && (
        <>
          <input
            ref={fileInput}
            type="file"
            multiple
            hidden
            accept={acceptedFiles}
            aria-label="Documents"
            onChange={(e) => {
              const files = [...(e.currentTarget.files ?? [])];
              e.currentTarget.value = "";
              if (files.length) void uploadFiles(files);
            }}
          />
          <Button kind="primary" icon="Upload" onClick={chooseFiles}>
            Upload
          </Button>
          <Button icon="Globe" onClick={openAddSite}>
            Site
          </Button>
          <Button icon="Plug" onClick={openAddApi}>
            API
          </Button>
          <Button icon="Table" onClick={openAddTable}>
            Table
          </Button>
        </>
      )}
    </div>
  );
}

function NoSources({ filtered, chooseFiles }: { filtered: boolean; chooseFiles: () => void }) {
  if (filtered)
    return (
      <Empty
        icon="Search"
        title="No sources match"
        action={
          <Button onClick={() => setQuery({ name: null, type: null, status: null, offset: null })}>
            Clear filters
          </Button>
        }
      >
        The filter looks at names. The search above looks inside the sources.
      </Empty>
    );
  const actions = mayEdit.value && (
    <>
      <Button kind="primary" icon="Upload" onClick={chooseFiles}>
        Upload documents
      </Button>
      <Button icon="Globe" onClick={openAddSite}>
        Add site
      </Button>
      <Button icon="Sparkles" onClick={() => uploadFiles([exampleHandbook()])}>
        Use an example
      </Button>
    </>
  );
  return (
    <Empty icon="BookOpen" title="No knowledge yet" action={actions}>
      Drop files anywhere on this page: text, Markdown, HTML, PDF, Word, CSV and JSON. Sites, APIs and tables become
      knowledge too.
    </Empty>
  );
}

/** Narrows and orders the list; all of it is in the address. */
function Filters({ name, type, status }: { name: string; type: string; status: string }) {
  const choose = (field: string) => (e: { currentTarget: HTMLSelectElement }) =>
    setQuery({ [field]: e.currentTarget.value, offset: null });
  const setOrder = (order: string) => setQuery({ sort: order === defaultOrder ? null : order, offset: null });
  return (
    <div class="row filters source-filters">
      <SearchField
        key={name ? "typed" : "none"}
        value={name}
        label="Filter by name"
        onInput={(text) => setQuery({ name: text.trim(), offset: null })}
      />
      <select aria-label="Kind" value={type} onChange={choose("type")}>
        <option value="">All kinds</option>
        {Object.entries(kindNames).map(([kind, title]) => (
          <option value={kind}>{title}</option>
        ))}
      </select>
      <select aria-label="Status" value={status} onChange={choose("status")}>
        <option value="">Any status</option>
        <option value="ready">Ready</option>
        <option value="busy">In progress</option>
        <option value="error">Failed</option>
      </select>
      <span class="grow" />
      <select
        aria-label="Order"
        value={route.value.query.get("sort") || defaultOrder}
        onChange={(e) => setOrder(e.currentTarget.value)}
      >
        {orders.map(([order, title]) => (
          <option value={order}>{title}</option>
        ))}
      </select>
    </div>
  );
}

const kindIcons: Record<string, IconName> = {
  file: "FileText",
  crawl: "Globe",
  url: "Link",
  database: "Table",
  api: "Plug",
};

type SourceRowProps = {
  source: API.Source;
  picked: boolean;
  /** Selects the source or not; undefined for those who may not change it. */
  pick?: (on: boolean) => void;
  remove: () => void;
};

function SourceRow({ source, picked, pick, remove }: SourceRowProps) {
  const { id, name, type, chunks, config, updated_at } = source;
  const failed = failedPages(source).length;
  const stopped = wasStopped(source);
  return (
    <li class="source-row">
      {pick && (
        <input
          type="checkbox"
          aria-label={`Select ${name}`}
          checked={picked}
          onChange={(e) => pick(e.currentTarget.checked)}
        />
      )}
      <Icon name={kindIcons[type] ?? "FileText"} />
      <div class="grow">
        <a href={href(agentId.value, "knowledge", id)}>
          <Name>{name}</Name>
        </a>
        <p class="muted small">
          {kindNames[type] ?? type} · {plural(chunks, "chunk")}
          {config.pageCount ? ` · ${plural(Number(config.pageCount), "page")}` : ""} · <When time={updated_at} />
          {failed > 0 && <span class="issue"> · {plural(failed, "page")} failed</span>}
        </p>
        {source.error && <p class={stopped ? "muted small" : "issue small"}>{problemOf(source)}</p>}
        <SourceProgress source={source} />
      </div>
      <SourceStatus source={source} />
      {source.stale && <Badge tone="warn">stale</Badge>}
      {source.status === "error" && mayEdit.value && (
        <Button icon="RotateCcw" onClick={() => readAgain(source)}>
          {stopped ? readAgainLabel(source) : "Retry"}
        </Button>
      )}
      <Menu label={`Actions for ${name}`} items={sourceActions(source, remove)} />
    </li>
  );
}
