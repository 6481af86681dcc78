// Knowledge: what the agent has read, and a search in it.
import { Fragment } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import {
  agentId,
  download,
  go,
  href,
  listHref,
  invalidate,
  mayEdit,
  onChange,
  path,
  post,
  progress,
  put,
  remove,
  route,
  setQuery,
  useQuery,
  type API,
} from "../data";
import {
  Badge,
  Button,
  deleteLater,
  Empty,
  ErrorCard,
  FormDialog,
  Icon,
  Load,
  Menu,
  Name,
  openDialog,
  Pager,
  plural,
  SearchField,
  Skeleton,
  tell,
  TextField,
  When,
  type MenuItem,
} from "../ui";
import { Highlighted } from "../parts/highlight";
import { useKeys } from "../parts/keys";
import { useSelection } from "../parts/selection";
import { SourceText } from "../parts/source-text";
import { stopSource, wasStopped } from "../parts/stop";
import { style } from "../parts/styles";
import { timeLeft } from "../parts/timeleft";
import { UploadList, uploadFiles, useDrop } from "../parts/upload";
import { AddApi, AddSite, AddTable } from "./knowledge/add";
import { exampleHandbook } from "./knowledge/example";
import "../css/knowledge.css";

export const styles = style("./knowledge.css");

const accepted = ".txt,.md,.docx,.json,.csv,.pdf,.html,.htm";
const kindNames: Record<string, string> = { file: "File", crawl: "Site", url: "Page", database: "Table", api: "API" };
const busyStatuses = ["processing", "crawling", "updating"];
/** Orders of the list, each a field and a direction; the first holds without a choice. */
const orders: [string, string][] = [
  ["updated_at desc", "Last changed"],
  ["created_at desc", "Newest"],
  ["name asc", "Name"],
  ["chunks desc", "Most chunks"],
];
const busy = (s: API.Source) => !["ready", "error"].includes(s.status);

export default function Knowledge() {
  const { rest } = route.value;
  return rest[0] ? <Source key={rest[0]} id={rest[0]} /> : <List />;
}

const sourcesAt = <const M extends string[]>(...more: M) => path("agents", agentId.value, "sources", ...more);

function List() {
  const { query } = route.value;
  const offset = Number(query.get("offset")) || 0;
  const [name, type, status] = ["name", "type", "status"].map((n) => query.get(n) ?? "");
  const [sort, order] = (query.get("sort") ?? orders[0][0]).split(" ");
  const found = useQuery<API.SourceList>(sourcesAt(), {
    limit: 50,
    offset,
    search: name,
    type,
    status: status === "busy" ? busyStatuses : status,
    sort,
    order,
  });
  const drop = useDrop();
  const [hidden, setHidden] = useState<string[]>([]);
  const [picked, setPicked] = useSelection(query.toString());
  const file = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const offs = [
      onChange("source", (c) => {
        const known = found.data.value?.sources.some((s: API.Source) => s.id === c.id);
        const { row } = c;
        if (c.op === "update" && known && row)
          found.set((d) => ({ ...d, sources: d.sources.map((s) => (s.id === c.id ? row : s)) }));
        else found.soon();
      }),
    ];
    return () => offs.forEach((off) => off());
  }, [found]);
  useKeys({ u: () => file.current?.click() });
  const search = query.get("q") ?? "";
  const filtered = Boolean(name || type || status);
  const visible = (found.data.value?.sources ?? []).filter((s) => !hidden.includes(s.id));
  const hide = (ids: string[], what: string) => {
    setHidden((h) => [...h, ...ids]);
    setPicked(picked.filter((x) => !ids.includes(x)));
    const show = () => setHidden((h) => h.filter((x) => !ids.includes(x)));
    deleteLater(
      `${what} deleted`,
      () =>
        post(sourcesAt("change"), { ids, delete: true }).then(async () => {
          await found.reload();
          show();
        }),
      show,
    );
  };
  const add: MenuItem[] = [
    {
      label: "Site",
      icon: "Globe",
      run: () => {
        openDialog((close) => <AddSite close={close} />);
      },
    },
    {
      label: "API",
      icon: "Plug",
      run: () => {
        openDialog((close) => <AddApi close={close} />);
      },
    },
    {
      label: "Table",
      icon: "Table",
      run: () => {
        openDialog((close) => <AddTable close={close} />);
      },
    },
  ];
  return (
    <div class={drop.over ? "page knowledge dropping" : "page knowledge"} {...drop.handlers}>
      <div class="page-head">
        <h1 class="grow" tabIndex={-1}>
          Knowledge
        </h1>
        {mayEdit.value && (
          <>
            <input
              ref={file}
              type="file"
              multiple
              hidden
              accept={accepted}
              aria-label="Documents"
              onChange={(e) => {
                const files = [...(e.currentTarget.files ?? [])];
                e.currentTarget.value = "";
                if (files.length) void uploadFiles(files);
              }}
            />
            <Button kind="primary" icon="Upload" onClick={() => file.current?.click()}>
              Upload
            </Button>
            {add.map(
              (a) =>
                a !== "-" && (
                  <Button
                    icon={a.icon}
                    onClick={() => {
                      a.run();
                    }}
                  >
                    {a.label}
                  </Button>
                ),
            )}
          </>
        )}
      </div>
      <Search />
      {!search && (
        <>
          <UploadList most={30} />
          {(filtered || (found.data.value?.meta.total ?? 0) > 0) && <Filters name={name} type={type} status={status} />}
          {picked.length > 0 && (
            <Bulk
              picked={picked}
              shown={visible}
              pick={setPicked}
              hide={() => hide(picked, plural(picked.length, "source"))}
            />
          )}
          <Load of={found} lines={6}>
            {({ meta }) => {
              if (!visible.length && filtered)
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
              if (!visible.length)
                return (
                  <Empty
                    icon="BookOpen"
                    title="No knowledge yet"
                    action={
                      mayEdit.value && (
                        <>
                          <Button kind="primary" icon="Upload" onClick={() => file.current?.click()}>
                            Upload documents
                          </Button>
                          <Button
                            icon="Globe"
                            onClick={() => {
                              openDialog((close) => <AddSite close={close} />);
                            }}
                          >
                            Add site
                          </Button>
                          <Button icon="Sparkles" onClick={() => uploadFiles([exampleHandbook()])}>
                            Use an example
                          </Button>
                        </>
                      )
                    }
                  >
                    Drop files anywhere on this page: text, Markdown, HTML, PDF, Word, CSV and JSON. Sites, APIs and
                    tables become knowledge too.
                  </Empty>
                );
              return (
                <>
                  <ul class="sources">
                    {visible.map((s) => (
                      <SourceRow
                        key={s.id}
                        s={s}
                        picked={picked.includes(s.id)}
                        pick={
                          mayEdit.value
                            ? (on) => setPicked(on ? [...picked, s.id] : picked.filter((x) => x !== s.id))
                            : undefined
                        }
                        hide={() => hide([s.id], s.name)}
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

/** The pages of a crawl that could not be read. */
const failedPages = (s: API.Source) =>
  (s.config.failedPages ?? []) as { url: string; status?: number; error?: string }[];

/** Narrows and orders the list; all of it is in the address. */
function Filters({ name, type, status }: { name: string; type: string; status: string }) {
  const choice = (field: string) => (e: { currentTarget: HTMLSelectElement }) =>
    setQuery({ [field]: e.currentTarget.value, offset: null });
  const sort = route.value.query.get("sort") ?? "";
  return (
    <div class="row filters source-filters">
      <SearchField
        key={name ? "typed" : "none"}
        value={name}
        label="Filter by name"
        onInput={(text) => setQuery({ name: text.trim(), offset: null })}
      />
      <select aria-label="Kind" value={type} onChange={choice("type")}>
        <option value="">All kinds</option>
        {Object.entries(kindNames).map(([v, t]) => (
          <option value={v}>{t}</option>
        ))}
      </select>
      <select aria-label="Status" value={status} onChange={choice("status")}>
        <option value="">Any status</option>
        <option value="ready">Ready</option>
        <option value="busy">In progress</option>
        <option value="error">Failed</option>
      </select>
      <span class="grow" />
      <select
        aria-label="Order"
        value={sort || orders[0][0]}
        onChange={(e) =>
          setQuery({ sort: e.currentTarget.value === orders[0][0] ? null : e.currentTarget.value, offset: null })
        }
      >
        {orders.map(([v, t]) => (
          <option value={v}>{t}</option>
        ))}
      </select>
    </div>
  );
}

/** What is done with several sources. */
function Bulk({
  picked,
  shown,
  pick,
  hide,
}: {
  picked: string[];
  shown: API.Source[];
  pick: (ids: string[]) => void;
  hide: () => void;
}) {
  const again = async () => {
    const { changed } = await post(sourcesAt("change"), { ids: picked, reindex: true });
    pick([]);
    invalidate(sourcesAt());
    const left = picked.length - changed.length;
    tell(`${plural(changed.length, "source")} being read again${left ? `; ${left} already in progress` : ""}`);
  };
  const all = picked.length === shown.length;
  return (
    <div class="row bulk" role="group" aria-label="Selected sources">
      <label class="row nowrap grow">
        <input
          type="checkbox"
          aria-label="Select all on this page"
          checked={all}
          ref={(el) => {
            if (el) el.indeterminate = !all;
          }}
          onChange={() => pick(all ? [] : shown.map((s) => s.id))}
        />
        {picked.length} of {shown.length} selected
      </label>
      <Button icon="RefreshCw" onClick={again}>
        Read again
      </Button>
      <Button kind="danger" icon="Trash2" onClick={hide}>
        Delete
      </Button>
      <Button kind="quiet" icon="X" label="Clear selection" onClick={() => pick([])} />
    </div>
  );
}

/** The state of a source; one that was stopped has not failed. */
function SourceStatus({ s }: { s: API.Source }) {
  if (wasStopped(s) && !busy(s)) return <Badge tone="warn">stopped</Badge>;
  return <Badge>{s.status}</Badge>;
}

/** Why a source could not be read, as a sentence. */
const problemOf = (s: API.Source) => {
  const text = s.error?.message ?? "";
  if (wasStopped(s) && busy(s)) return `Crawl ${text}; the pages that were read are being indexed.`;
  return text && text[0].toUpperCase() + text.slice(1);
};

const readVerb = (s: API.Source) => (s.type === "crawl" || s.type === "url" ? "Crawl again" : "Read again");

/** How far a source is read, while it is. */
function SourceProgress({ s }: { s: API.Source }) {
  const live = progress.value[s.id];
  const now = live ?? s.progress;
  if (!busy(s) || !now?.total) return null;
  const text = [`${now.done}/${now.total}`, live?.rate && `${live.rate.toFixed(1)}/s`, timeLeft(live?.seconds_left)]
    .filter(Boolean)
    .join(" · ");
  return (
    <p class="row nowrap">
      <progress max={now.total} value={now.done} aria-label="Progress" />
      <span class="muted small">{text}</span>
    </p>
  );
}

function SourceRow({
  s,
  picked,
  pick,
  hide,
}: {
  s: API.Source;
  picked: boolean;
  pick?: (on: boolean) => void;
  hide: () => void;
}) {
  const icon =
    ({ file: "FileText", crawl: "Globe", url: "Link", database: "Table", api: "Plug" } as const)[s.type as "file"] ??
    "FileText";
  return (
    <li class="source-row">
      {pick && (
        <input
          type="checkbox"
          aria-label={`Select ${s.name}`}
          checked={picked}
          onChange={(e) => pick(e.currentTarget.checked)}
        />
      )}
      <Icon name={icon} />
      <div class="grow">
        <a href={href(agentId.value, "knowledge", s.id)}>
          <Name>{s.name}</Name>
        </a>
        <p class="muted small">
          {kindNames[s.type] ?? s.type} · {plural(s.chunks, "chunk")}
          {s.config.pageCount ? ` · ${plural(Number(s.config.pageCount), "page")}` : ""} · <When time={s.updated_at} />
          {failedPages(s).length > 0 && <span class="issue"> · {plural(failedPages(s).length, "page")} failed</span>}
        </p>
        {s.error && <p class={wasStopped(s) ? "muted small" : "issue small"}>{problemOf(s)}</p>}
        <SourceProgress s={s} />
      </div>
      <SourceStatus s={s} />
      {s.stale && <Badge tone="warn">stale</Badge>}
      {s.status === "error" && mayEdit.value && (
        <Button icon="RotateCcw" onClick={() => readAgain(s)}>
          {wasStopped(s) ? readVerb(s) : "Retry"}
        </Button>
      )}
      <Menu label={`Actions for ${s.name}`} items={sourceActions(s, hide)} />
    </li>
  );
}

const again = async (s: API.Source, verb: string) => {
  await post(sourcesAt(s.id, verb));
  invalidate(sourcesAt());
};

/** Reads a source from where it comes. */
const readAgain = async (s: API.Source) => {
  await again(s, s.type === "crawl" || s.type === "url" ? "reindex" : "refresh");
  tell(`${s.name} is being read again`);
};

function sourceActions(s: API.Source, hide: () => void): MenuItem[] {
  const may = mayEdit.value;
  const reason = may ? undefined : "You have read-only access.";
  return [
    { label: "Open", icon: "Eye", run: () => go(href(agentId.value, "knowledge", s.id)) },
    ...(s.type === "file"
      ? [
          {
            label: "Download the original",
            icon: "Download" as const,
            run: () => download("GET", sourcesAt(s.id, "file")),
          },
        ]
      : []),
    {
      label: readVerb(s),
      icon: "RefreshCw",
      disabled: !may || busy(s),
      reason: reason ?? (busy(s) ? "Being processed." : undefined),
      run: () => readAgain(s),
    },
    ...(busy(s)
      ? [{ label: "Stop", icon: "CircleStop" as const, disabled: !may, reason, run: () => stopSource(s) }]
      : []),
    { label: "Embed again", icon: "Layers", disabled: !may || busy(s), reason, run: () => again(s, "reindex") },
    {
      label: "Rename",
      icon: "Pencil",
      disabled: !may,
      reason,
      run: () => {
        openDialog((close) => <Rename s={s} close={close} />);
      },
    },
    "-",
    { label: "Delete", icon: "Trash2", danger: true, disabled: !may, reason, run: hide },
  ];
}

function Rename({ s, close }: { s: API.Source; close: () => void }) {
  return (
    <FormDialog
      title="Rename"
      close={close}
      action="Rename"
      initial={{ name: s.name }}
      run={async (v) => {
        await put(sourcesAt(s.id), v);
        invalidate(sourcesAt());
      }}
    >
      {(f) => <TextField label="Name" autoFocus required {...f.text("name")} />}
    </FormDialog>
  );
}

/** A search in all sources; the query is in the address. */
function Search() {
  const { query } = route.value;
  const q = query.get("q") ?? "";
  const mode = query.get("mode") ?? "hybrid";
  const min = query.get("min") ?? "";
  const [text, setText] = useState(q);
  const found = useQuery<API.SearchAnswer>(q ? sourcesAt("search") : null, {
    query: q,
    mode,
    min_score: min,
    limit: 20,
  });
  useEffect(() => {
    setText(q);
  }, [q]);
  return (
    <section class="stack" aria-label="Search">
      <form
        class="row search-bar"
        role="search"
        onSubmit={(e) => {
          e.preventDefault();
          setQuery({ q: text.trim() });
        }}
      >
        <input
          type="search"
          class="grow"
          data-search
          placeholder="Search by meaning and words"
          aria-label="Search for"
          value={text}
          onInput={(e) => {
            setText(e.currentTarget.value);
            if (!e.currentTarget.value) setQuery({ q: null });
          }}
        />
        {q && (
          <select
            aria-label="Search mode"
            value={mode}
            onChange={(e) => setQuery({ mode: e.currentTarget.value === "hybrid" ? null : e.currentTarget.value })}
          >
            <option value="hybrid">Meaning and words</option>
            <option value="vector">Meaning</option>
            <option value="keyword">Words</option>
          </select>
        )}
        {q && (
          <label class="row nowrap small" title="Hide passages with a lower score, from 0 to 1">
            Min. score{" "}
            <input
              type="number"
              class="min-score"
              min="0"
              max="1"
              step="0.05"
              aria-label="Least score"
              value={min}
              onChange={(e) => setQuery({ min: e.currentTarget.value })}
            />
          </label>
        )}
        <Button kind="primary" submit icon="Search">
          Search
        </Button>
        {q && mayEdit.value && (
          <Button
            icon="MessageSquare"
            onClick={() => {
              sessionStorage.setItem("satchel.ask", q);
              go(href(agentId.value, "chat"));
            }}
          >
            Ask in chat
          </Button>
        )}
      </form>
      {q &&
        (found.data.value ? (
          found.data.value.results.length ? (
            <Results list={found.data.value.results} rated={found.data.value.mode !== "keyword"} />
          ) : (
            <Empty icon="Search" title="No results">
              {min ? (
                "A lower minimum score finds more."
              ) : (
                <>
                  Try different words, or look at <a href={href(agentId.value, "knowledge")}>the sources</a>.
                </>
              )}
            </Empty>
          )
        ) : found.error.value ? (
          <ErrorCard error={found.error.value} retry={found.reload} />
        ) : (
          <Skeleton lines={6} />
        ))}
    </section>
  );
}

/** Below this score, which is that of chat, a passage seldom answers. */
const weakScore = 0.3;

/** Passages, the weak ones apart. */
function Results({ list, rated }: { list: API.SearchHit[]; rated: boolean }) {
  const weak = rated ? list.findIndex((r) => r.score < weakScore) : -1;
  return (
    <ol class="results">
      {list.map((r, i) => (
        <Fragment key={r.id}>
          {i === weak && (
            <li class="muted weak">
              {i
                ? "Weak matches that Chat doesn't use"
                : "Nothing in the knowledge matches this well. The nearest passages:"}
            </li>
          )}
          <Passage r={r} n={i + 1} />
        </Fragment>
      ))}
    </ol>
  );
}

function Passage({ r, n }: { r: API.SearchHit; n: number }) {
  const [open, setOpen] = useState(false);
  return (
    <li class="card stack">
      <div class="row nowrap">
        <b class="cite">{n}</b>
        <span class="grow passage-place">
          <a href={`${href(agentId.value, "knowledge", r.source_id)}?chunk=${r.id}`}>
            <Name>{r.metadata.source_name}</Name>
          </a>{" "}
          <span class="muted small">
            <bdi>{r.metadata.place}</bdi>
          </span>
        </span>
        <span class="score" title="Estimated probability that the passage answers the question">
          <i style={{ width: `${Math.round(r.score * 100)}%` }} />
        </span>
        <span class="small muted">{r.score.toFixed(2)}</span>
      </div>
      <p class={open ? "passage-full" : "passage-text"}>
        <Highlighted text={r.content} ranges={r.matches} best={r.best_sentence} excerpt={!open} />
      </p>
      {r.content.length > 400 && (
        <button type="button" class="link" onClick={() => setOpen(!open)}>
          {open ? "Less" : "More"}
        </button>
      )}
    </li>
  );
}

/** One source: its text with the edges of its chunks, and how it is read. */
function Source({ id }: { id: string }) {
  const { query } = route.value;
  const tab = query.get("tab") ?? "text";
  const chunk = query.get("chunk") ?? "";
  const found = useQuery<API.Source>(sourcesAt(id));
  useEffect(
    () =>
      onChange("source", (c) => {
        if (c.id === id && c.op !== "delete") found.soon();
      }),
    [found],
  );
  return (
    <div class="page">
      <p class="crumb">
        <a href={listHref(agentId.value, "knowledge")}>Knowledge</a>
      </p>
      <Load of={found} title="Source">
        {(s) => (
          <>
            <div class="page-head">
              <h1 class="grow" tabIndex={-1}>
                <Name>{s.name}</Name>
              </h1>
              <SourceStatus s={s} />
              {busy(s) && mayEdit.value && (
                <Button kind="danger" icon="CircleStop" onClick={() => stopSource(s)}>
                  Stop
                </Button>
              )}
              {s.type === "file" && (
                <Button icon="Download" onClick={() => download("GET", sourcesAt(id, "file"))}>
                  Original
                </Button>
              )}
              <Menu
                label="Actions"
                items={sourceActions(s, () => {
                  go(href(agentId.value, "knowledge"));
                  deleteLater(
                    `${s.name} deleted`,
                    () => remove(sourcesAt(id)).then(() => invalidate(sourcesAt())),
                    () => {},
                  );
                })}
              />
            </div>
            {s.error && (
              <div class={wasStopped(s) ? "card row" : "card bad"}>
                <p class="grow">{problemOf(s)}</p>
                {mayEdit.value && !busy(s) && (
                  <Button icon="RotateCcw" onClick={() => readAgain(s)}>
                    {wasStopped(s) ? readVerb(s) : "Retry"}
                  </Button>
                )}
              </div>
            )}
            <SourceProgress s={s} />
            <nav class="tabs" aria-label="Source">
              {[
                ["text", "Text"],
                ["chunks", "Chunks"],
                ...(s.config?.pageHashes || s.config?.failedPages ? [["pages", "Pages"]] : []),
                ["settings", "Settings"],
              ].map(([t, title]) => (
                <button
                  type="button"
                  aria-current={tab === t ? "page" : undefined}
                  onClick={() => setQuery({ tab: t === "text" ? null : t, offset: null })}
                >
                  {title}
                </button>
              ))}
            </nav>
            {tab === "text" &&
              (s.chunks === 0 ? (
                <Empty icon="FileText" title={busy(s) ? "Being read…" : "No text"}>
                  {busy(s) ? "The text appears here once it is read." : "Nothing could be read from this source."}
                </Empty>
              ) : (
                <article class="card">
                  <SourceText source={id} chunk={chunk} />
                </article>
              ))}
            {tab === "chunks" && <Chunks id={id} />}
            {tab === "pages" && <Pages s={s} />}
            {tab === "settings" && <Facts s={s} />}
          </>
        )}
      </Load>
    </div>
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
            {chunks.map((c) => (
              <li key={c.id} class="card stack">
                <p class="muted small">
                  {[`#${c.position + 1}`, c.metadata.place, `${c.content.length} characters`]
                    .filter(Boolean)
                    .join(" · ")}
                </p>
                <p class="passage-full">{c.content}</p>
              </li>
            ))}
          </ol>
          <Pager meta={meta} go={(to) => setQuery({ offset: to || null })} />
        </>
      )}
    </Load>
  );
}

function Pages({ s }: { s: API.Source }) {
  const pages = Object.keys(s.config.pageHashes ?? {});
  return (
    <div class="stack">
      {failedPages(s).length > 0 && (
        <div class="card">
          <h2>Failed</h2>
          <ul class="plain">
            {failedPages(s).map((p) => (
              <li>
                <bdi>{p.url}</bdi> <span class="issue small">{[p.status, p.error].filter(Boolean).join(" · ")}</span>
              </li>
            ))}
          </ul>
        </div>
      )}
      <div class="card">
        <h2>{plural(pages.length, "page")}</h2>
        <ul class="plain">
          {pages.slice(0, 200).map((url) => (
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

/** A name of the wire, such as maxPages or ends_at, in words. */
const inWords = (name: string) => {
  if (wordsOf[name]) return wordsOf[name];
  const words = name.replace(/_/g, " ").replace(/[A-Z]/g, (c) => ` ${c.toLowerCase()}`);
  return words[0].toUpperCase() + words.slice(1);
};

const wordsOf: Record<string, string> = {
  url: "Address",
  maxPages: "Maximum pages",
  maxDepth: "Links deep",
  includePatterns: "Only these",
  excludePatterns: "Exclude",
  pageCount: "Pages",
  changedPages: "Pages changed the last time",
  unchangedPages: "Pages unchanged the last time",
  removedPages: "Pages removed the last time",
  lastCrawledAt: "Last crawled",
  ignore_robots: "Ignores robots.txt",
  ignoreRobots: "Ignores robots.txt",
  chunk_size: "Chunk size",
  overlap: "Overlap of chunks",
  method: "Method of chunking",
  chunk_method: "Method of chunking",
  items_path: "Path to the items",
  id_path: "Path to an item's ID",
  content_template: "Text of an item",
  record_count: "Records",
  changed_records: "Records changed the last time",
  unchanged_records: "Records unchanged the last time",
  removed_records: "Records removed the last time",
  last_read_at: "Last read",
  more_pages: "More pages than were read",
  auth: "Credentials",
  id_column: "ID column",
  title_column: "Title column",
};

/** Reports whether a setting says nothing. */
const isEmpty = (value: unknown) =>
  value === "" ||
  value === null ||
  value === false ||
  (typeof value === "object" && (Object.keys(value!).length === 0 || (value as { type?: string }).type === "none"));

/** The value of a setting. */
function Fact({ value }: { value: unknown }) {
  if (typeof value === "string" && /^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(value)) return <When time={value} full />;
  if (value === true) return <>Yes</>;
  if (typeof value === "number") return <>{value.toLocaleString()}</>;
  if (Array.isArray(value) && value.every((v) => typeof v === "string")) return <bdi>{value.join(", ")}</bdi>;
  return typeof value === "object" ? <code>{JSON.stringify(value)}</code> : <bdi>{String(value)}</bdi>;
}

function Facts({ s }: { s: API.Source }) {
  const { pageHashes, failedPages, ...config } = s.config ?? {};
  return (
    <dl class="facts-list card">
      <dt>ID</dt>
      <dd>
        <code>{s.id}</code>
      </dd>
      <dt>Kind</dt>
      <dd>{kindNames[s.type] ?? s.type}</dd>
      {s.embedding_model && (
        <>
          <dt>Embedded by</dt>
          <dd>{s.embedding_model}</dd>
        </>
      )}
      {Object.entries(config)
        .filter(([, value]) => !isEmpty(value))
        .map(([name, value]) => (
          <>
            <dt>{inWords(name)}</dt>
            <dd>
              <Fact value={value} />
            </dd>
          </>
        ))}
      <dt>Added</dt>
      <dd>
        <When time={s.created_at} full />
      </dd>
      <dt>Changed</dt>
      <dd>
        <When time={s.updated_at} full />
      </dd>
    </dl>
  );
}
