// Chat: ask the agent, and read the passages that its answers cite.
import { useEffect, useState } from "preact/hooks";

import { go, href, mayEdit, onChange, path, put, remove, route, setQuery, useQuery, type API } from "../data";
import {
  Button,
  deleteLater,
  Drawer,
  Icon,
  Load,
  Menu,
  FormDialog,
  openDialog,
  TextField,
  unmarked,
  When,
} from "../ui";
import { useKeys } from "../parts/keys";
import { style } from "../parts/styles";
import { placeOf, type Citation } from "../parts/citations";
import { SourceText } from "../parts/source-text";
import { citationKey, Thread } from "./chat/thread";
import "../css/chat.css";

export const styles = style("./chat.css");

/** The passage that lies beside a conversation, and those it is read with. */
type Opened = { conversation: string; shown: Citation; among: Citation[] };

export default function Chat() {
  const { agent: id, rest } = route.value;
  const conversation = rest[0] ?? "";
  const [listOpen, setListOpen] = useState(false);
  const [opened, setOpened] = useState<Opened>();
  useEffect(() => setListOpen(false), [conversation]);
  const chunk = route.value.query.get("chunk") ?? "";
  const citation =
    chunk && opened?.conversation === conversation && citationKey(opened.shown) === chunk ? opened : undefined;
  const open = (shown: Citation, among: Citation[]) => {
    setOpened({ conversation, shown, among });
    setQuery({ chunk: citationKey(shown) });
  };
  const step = (by: number) => {
    if (!citation) return;
    const at = citation.among.findIndex((c) => c.n === citation.shown.n);
    const next = citation.among[(at + by + citation.among.length) % citation.among.length];
    open(next, citation.among);
  };
  useKeys({ n: () => go(href(id, "chat")), "[": () => step(-1), "]": () => step(1) });
  return (
    <div class={`page full panes ${citation ? "with-drawer" : ""} ${listOpen ? "list-open" : ""}`}>
      <h1 class="hidden" tabIndex={-1}>
        Chat
      </h1>
      <Conversations id={id} current={conversation} close={() => setListOpen(false)} />
      <Thread
        key={`${id}/${conversation}`}
        id={id}
        conversation={conversation}
        openList={() => setListOpen(true)}
        wanted={citation ? "" : chunk}
        openSource={open}
      />
      {citation && (
        <Drawer
          title={
            <span class="row nowrap">
              <span class="grow">
                Source {citation.among.findIndex((c) => c.n === citation.shown.n) + 1} of {citation.among.length}
              </span>
              {citation.among.length > 1 && (
                <>
                  <Button kind="quiet" icon="ArrowLeft" label="Previous source ([)" onClick={() => step(-1)} />
                  <Button kind="quiet" icon="ArrowRight" label="Next source (])" onClick={() => step(1)} />
                </>
              )}
            </span>
          }
          close={() => setQuery({ chunk: null })}
        >
          <div class="stack">
            <div class="row cited">
              <strong>
                <bdi>{placeOf(citation.shown)}</bdi>
                {citation.shown.score > 0 && (
                  <span class="muted small" title="Estimated probability that the passage answers the question">
                    {" "}
                    · score {citation.shown.score.toFixed(2)}
                  </span>
                )}
              </strong>
              <a class="button" href={`${href(id, "knowledge", citation.shown.source)}?chunk=${citation.shown.chunk}`}>
                <Icon name="BookOpen" size={16} />
                <span>Open in Knowledge</span>
              </a>
              {/^https?:/.test(citation.shown.url) && (
                <a class="button" href={citation.shown.url} target="_blank" rel="noopener noreferrer">
                  <Icon name="ExternalLink" size={16} />
                  <span>Page</span>
                </a>
              )}
            </div>
            <SourceText source={citation.shown.source} chunk={citation.shown.chunk} passage={citation.shown} />
          </div>
        </Drawer>
      )}
    </div>
  );
}

/** What a conversation is called: its title, or what was said in it last. */
const titleOf = (c: API.ConversationSummary) =>
  String(c.metadata?.title ?? "") || unmarked(c.last_message?.content ?? "") || "Conversation";

function Conversations({ id, current, close }: { id: string; current: string; close: () => void }) {
  const [limit, setLimit] = useState(40);
  const search = route.value.query.get("search") ?? "";
  const kept = search ? `?${new URLSearchParams({ search })}` : "";
  const at = path("agents", id, "conversations");
  const found = useQuery(at, { limit, sort: "updated_at", order: "desc", search, channel: "chat" });
  const [hidden, setHidden] = useState<string[]>([]);
  useEffect(() => onChange("conversation", found.reloadThrottled), [found]);
  const rename = (c: API.ConversationSummary) => {
    openDialog((close) => (
      <FormDialog
        title="Rename conversation"
        close={close}
        action="Save"
        initial={{ title: titleOf(c).slice(0, 200) }}
        ready={(v) => Boolean(v.title.trim())}
        run={async (v) => {
          await put(`${at}/${c.id}`, { metadata: { ...c.metadata, title: v.title.trim() } });
          await found.reload();
        }}
      >
        {(f) => <TextField label="Name" autoFocus required {...f.text("title")} />}
      </FormDialog>
    ));
  };
  const drop = (c: API.ConversationSummary) => {
    setHidden((h) => [...h, c.id]);
    deleteLater(
      "Conversation deleted",
      () => remove(`${at}/${c.id}`),
      () => setHidden((h) => h.filter((x) => x !== c.id)),
    );
    if (c.id === current) go(href(id, "chat") + kept);
  };
  return (
    <aside class="pane-list" aria-label="Conversations">
      <div class="row">
        <input
          type="search"
          class="grow"
          placeholder="Search"
          aria-label="Search conversations"
          data-search
          value={search}
          onInput={(e) => setQuery({ search: e.currentTarget.value })}
        />
        <a
          class="button only"
          href={href(id, "chat") + kept}
          title="New chat (n)"
          aria-label="New chat"
          onClick={close}
        >
          <Icon name="Plus" size={16} />
        </a>
        <Button kind="quiet" icon="X" label="Close list" class="phone" onClick={close} />
      </div>
      <Load of={found}>
        {({ conversations, meta }) => {
          const own = conversations.filter((c) => !hidden.includes(c.id));
          return (
            <ul class="entries">
              {own.map((c) => (
                <li key={c.id} class={c.id === current ? "on" : ""}>
                  <a href={href(id, "chat", c.id) + kept} aria-current={c.id === current ? "page" : undefined}>
                    <bdi class="clip">{titleOf(c)}</bdi>
                    <span class="muted small">
                      <When time={c.updated_at} />
                    </span>
                  </a>
                  {mayEdit.value && (
                    <Menu
                      label="Conversation"
                      items={[
                        { label: "Rename", icon: "Pencil", run: () => rename(c) },
                        { label: "Delete", icon: "Trash2", danger: true, run: () => drop(c) },
                      ]}
                    />
                  )}
                </li>
              ))}
              {own.length === 0 && <li class="muted">{search ? "No results" : "No conversations yet"}</li>}
              {meta.total > meta.limit && (
                <li>
                  <Button kind="quiet" onClick={() => setLimit(limit + 40)}>
                    More
                  </Button>
                </li>
              )}
            </ul>
          );
        }}
      </Load>
    </aside>
  );
}
