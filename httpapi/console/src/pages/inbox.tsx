// Inbox: the conversations of people, and of the bot, answered in one place.
import { useEffect, useState } from "preact/hooks";

import {
  get,
  go,
  href,
  mayEdit,
  onChange,
  onReset,
  path,
  post,
  put,
  route,
  session,
  setQuery,
  useQuery,
  type API,
} from "../data";
import {
  Badge,
  Button,
  Empty,
  LinkButton,
  Load,
  Menu,
  type MenuItem,
  openDialog,
  platformName,
  plural,
  tell,
  unmarked,
  When,
} from "../ui";
import { useKeys } from "../parts/keys";
import { style } from "../parts/styles";
import { Simulate } from "../parts/simulate";
import { assignItems, useColleagues } from "./inbox/assign";
import { ContactPane } from "./inbox/contact";
import { Thread } from "./inbox/thread";
import "../css/contacts.css"; // values that are changed in place
import "../css/inbox.css";

export const styles = style("./inbox.css");

const pageSize = 50;

/** Where a conversation goes on: its platform, or the console's chat. */
export const channelOf = (c: API.ConversationSummary) =>
  c.gateway ? platformName(c.gateway.type) : c.gateway_id ? "Deleted channel" : "Chat";
/** With whom a conversation is. */
export const whoOf = (c: API.ConversationSummary): string =>
  c.contact?.name || String(c.metadata?.title ?? "") || (c.gateway_id ? "Unknown" : "Chat");

/** What was said last in a conversation, in a line. */
export const lastSaid = ({ last_message: m }: Pick<API.ConversationSummary, "last_message">) =>
  m ? (m.author === "bot" ? unmarked(m.content) : m.content) : "No messages yet";

const myEmail = () => session.value?.identity?.email ?? "";

/** What a list can be narrowed to: what it is called, what is asked for, and which conversations fit. */
const narrowings: Record<
  string,
  { title: string; query: Record<string, unknown>; fits: (c: API.ConversationSummary) => boolean }
> = {
  unread: { title: "Unread", query: { unread: true }, fits: (c) => c.unread > 0 },
  person: { title: "Asks for a person", query: { needs_human: true }, fits: (c) => c.needs_human },
  unassigned: { title: "Unassigned", query: { assignee: "none" }, fits: (c) => !c.assignee },
  snoozed: { title: "Snoozed", query: { status: "snoozed" }, fits: (c) => c.status === "snoozed" },
  resolved: { title: "Resolved", query: { status: "resolved" }, fits: (c) => c.status === "resolved" },
};

function fits(c: API.ConversationSummary, tab: string, show: string, channel: string) {
  if (tab === "mine" && c.assignee !== myEmail()) return false;
  if (tab !== "all" && !narrowings[show]?.query.status && c.status !== "open") return false;
  if (narrowings[show] && !narrowings[show].fits(c)) return false;
  return !channel || (channel === "chat" ? !c.gateway_id : c.gateway_id === channel);
}

export default function Inbox() {
  const { agent: id, rest, query } = route.value;
  const current = rest[0] ?? "";
  const at = path("agents", id, "conversations");
  const tab = query.get("tab") ?? "open";
  const channel = query.get("channel") ?? "";
  const show = query.get("show") ?? "";
  const search = query.get("search") ?? "";
  const [limit, setLimit] = useState(pageSize);
  const [picked, setPicked] = useState<string[]>([]);
  const [details, setDetails] = useState(false);
  const filters = {
    limit,
    sort: "last_message_at",
    order: "desc",
    search,
    status: tab === "all" ? "" : "open",
    assignee: tab === "mine" ? "me" : "",
    channel: channel === "chat" ? "chat" : "",
    gateway_id: channel === "chat" ? "" : channel,
    ...narrowings[show]?.query,
  };
  const found = useQuery(at, filters);
  const counts = useQuery(path("agents", id, "conversations", "counts"));
  const gateways = useQuery(path("agents", id, "gateways"), { limit: 100 });
  useEffect(() => {
    setPicked([]);
    setDetails(false);
  }, [current, tab, show, channel]);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const count = () => {
      timer ??= setTimeout(() => {
        timer = undefined;
        void counts.reload();
      }, 2000);
    };
    const off = onChange("conversation", (c) => {
      count();
      found.set((d) => {
        const others = d.conversations.filter((x) => x.id !== c.id);
        const before = others.length < d.conversations.length;
        if (!c.row || !fits(c.row, tab, show, channel) || (search && !before)) return { ...d, conversations: others };
        const last = (x: API.ConversationSummary) => x.last_message?.id ?? 0;
        return { ...d, conversations: [...others, c.row].sort((a, b) => last(b) - last(a)) };
      });
    });
    const reset = onReset(() => {
      void found.reload();
      void counts.reload();
    });
    return () => {
      off();
      reset();
      clearTimeout(timer);
    };
  }, [found, tab, show, channel, search]);
  const list = found.data.value?.conversations ?? [];
  const open = (c: string) => href(id, "inbox", c) + (route.value.query.size ? `?${route.value.query}` : "");
  const send = async (ids: string[], what: API.Change) => {
    await post(path("agents", id, "conversations", "batch"), { ids, change: what });
    await Promise.all([found.reload(), counts.reload()]);
  };
  const change = async (what: API.Change, these = picked.length ? picked : [current]) => {
    const ids = these.filter(Boolean);
    if (!ids.length || !mayEdit.value) return;
    const of = list.filter((c) => ids.includes(c.id));
    const open = of.filter((c) => c.status === "open").map((c) => c.id);
    await send(ids, what);
    setPicked([]);
    const whose =
      ids.length > 1
        ? plural(ids.length, "conversation")
        : of[0]
          ? `Conversation with ${whoOf(of[0])}`
          : "Conversation";
    if (what.status && what.status !== "open")
      tell(
        `${whose} ${what.status === "snoozed" ? "snoozed until the next message" : what.status}`,
        open.length
          ? () => {
              void send(open, { status: "open" }).catch(tell);
            }
          : undefined,
        "conversations",
      );
  };
  useInboxKeys({ list, current, open, change });
  const nothing = counts.data.value?.all === 0 && found.data.value && list.length === 0 && !search && !channel && !show;
  const colleagues = useColleagues(id);
  return (
    <div class={`page full inbox ${current ? "reading" : ""} ${details ? "with-details" : ""}`}>
      <h1 class="hidden" tabIndex={-1}>
        Inbox
      </h1>
      <aside class="inbox-list" aria-label="Conversations">
        <div class="tabs" role="group" aria-label="Filter conversations">
          {(
            [
              ["mine", "Mine"],
              ["open", "Open"],
              ["all", "All"],
            ] as const
          )
            .filter(([t]) => t !== "mine" || myEmail())
            .map(([t, title]) => (
              <button
                key={t}
                type="button"
                aria-current={t === tab ? "true" : undefined}
                onClick={() => setQuery({ tab: t === "open" ? null : t })}
              >
                {title} {counts.data.value?.[t] ?? ""}
              </button>
            ))}
        </div>
        <input
          type="search"
          placeholder="Search conversations"
          aria-label="Search conversations"
          data-search
          value={search}
          onInput={(e) => setQuery({ search: e.currentTarget.value })}
        />
        <div class="inbox-filters">
          <select aria-label="Channel" value={channel} onChange={(e) => setQuery({ channel: e.currentTarget.value })}>
            <option value="">All channels</option>
            <option value="chat">Chat</option>
            {(gateways.data.value?.gateways ?? []).map((g) => (
              <option key={g.id} value={g.id}>
                {platformName(g.type)}: {g.name}
              </option>
            ))}
          </select>
          <select aria-label="Show" value={show} onChange={(e) => setQuery({ show: e.currentTarget.value })}>
            <option value="">Everything</option>
            {Object.entries(narrowings).map(([name, { title }]) => (
              <option key={name} value={name}>
                {title}
              </option>
            ))}
          </select>
        </div>
        {picked.length > 0 && (
          <Bulk picked={picked} list={list} pick={setPicked} change={change} colleagues={colleagues} />
        )}
        <Load of={found}>
          {({ meta }) => (
            <ul class="inbox-entries">
              {list.map((c) => (
                <li key={c.id} class={c.id === current ? "on" : ""}>
                  {mayEdit.value && (
                    <input
                      type="checkbox"
                      aria-label={`Select conversation with ${whoOf(c)}`}
                      checked={picked.includes(c.id)}
                      onChange={() => setPicked((p) => (p.includes(c.id) ? p.filter((x) => x !== c.id) : [...p, c.id]))}
                    />
                  )}
                  <a
                    href={open(c.id)}
                    aria-current={c.id === current ? "page" : undefined}
                    class={c.unread ? "unread" : ""}
                  >
                    <span class="row nowrap">
                      <bdi class="clip grow">{whoOf(c)}</bdi>
                      <span class="muted small">
                        <When time={c.last_message?.created_at ?? c.created_at} />
                      </span>
                    </span>
                    <span class="row nowrap">
                      <span class="clip grow muted small">
                        {c.last_message &&
                          c.last_message.author !== "contact" &&
                          (c.last_message.author === "bot" ? "bot: " : "you: ")}
                        <bdi>{lastSaid(c)}</bdi>
                      </span>
                      {c.unread > 0 && (
                        <span class="inbox-unread" aria-label={plural(c.unread, "unread message")}>
                          {c.unread}
                        </span>
                      )}
                    </span>
                    <span class="row nowrap small">
                      <span class="clip grow muted">
                        {channelOf(c)}
                        {c.assignee && (
                          <>
                            {" "}
                            · <bdi>{c.assignee}</bdi>
                          </>
                        )}
                      </span>
                      {c.needs_human && <Badge tone="bad">asks for a person</Badge>}
                      {c.status !== "open" && <Badge>{c.status}</Badge>}
                    </span>
                  </a>
                </li>
              ))}
              {list.length === 0 && !nothing && (
                <li class="muted">
                  {search
                    ? "No results"
                    : tab === "mine" && !show
                      ? "Nothing is assigned to you. Take a conversation from Open: its menu has Assign to me."
                      : tab === "open" && !show && !channel
                        ? "No open conversations. Those that are resolved or snoozed are in All."
                        : "No conversations here"}
                </li>
              )}
              {meta.total > list.length && list.length >= limit && (
                <li>
                  <Button kind="quiet" onClick={() => setLimit(limit + pageSize)}>
                    More
                  </Button>
                </li>
              )}
            </ul>
          )}
        </Load>
      </aside>
      {current ? (
        <Thread
          key={current}
          id={id}
          conversation={current}
          colleagues={colleagues}
          toggleDetails={() => setDetails(!details)}
          change={(what) => change(what, [current])}
        />
      ) : nothing ? (
        <Empty
          icon="Inbox"
          title="No conversations yet"
          action={
            <>
              <LinkButton kind="primary" href={href(id, "channels")}>
                Connect a channel
              </LinkButton>
              {mayEdit.value && (
                <Button onClick={() => openDialog((close) => <Simulate id={id} close={close} />)}>
                  Simulate a message
                </Button>
              )}
            </>
          }
        >
          Messages from your channels, and the bot's answers, appear here.
        </Empty>
      ) : (
        <div class="inbox-none muted">
          <p>
            {list.length > 0 && (
              <>
                Choose a conversation. <kbd>j</kbd> and <kbd>k</kbd> go through them, <kbd>?</kbd> lists all keys.
              </>
            )}
          </p>
        </div>
      )}
      {current && (
        <ContactPane key={`contact-${current}`} id={id} conversation={current} close={() => setDetails(false)} />
      )}
    </div>
  );
}

type BulkProps = {
  picked: string[];
  list: API.ConversationSummary[];
  pick: (ids: string[]) => void;
  change: (what: API.Change) => Promise<void>;
  colleagues: string[];
};

/** What is done with several conversations. */
function Bulk({ picked, list, pick, change, colleagues }: BulkProps) {
  const all = picked.length === list.length;
  const more: MenuItem[] = [
    { label: "Mark as read", icon: "Mail", run: () => change({ read: true }) },
    { label: "Mark as unread", icon: "Mail", run: () => change({ read: false }) },
    { label: "Mute the bot", icon: "Bot", run: () => change({ muted: true }) },
    { label: "Let the bot answer", icon: "Bot", run: () => change({ muted: false }) },
    { label: "Reopen", icon: "Inbox", run: () => change({ status: "open" }) },
    "-",
    ...assignItems(colleagues, null, change),
  ];
  return (
    <div class="inbox-bulk" role="group" aria-label="Selected conversations">
      <label class="row nowrap grow">
        <input
          type="checkbox"
          aria-label="Select all in this list"
          checked={all}
          ref={(el) => {
            if (el) el.indeterminate = !all;
          }}
          onChange={() => pick(all ? [] : list.map((c) => c.id))}
        />
        {picked.length} of {list.length} selected
      </label>
      <Button kind="quiet" icon="X" label="Clear selection" onClick={() => pick([])} />
      <div class="row nowrap">
        <Button onClick={() => change({ status: "resolved" })}>Resolve</Button>
        <Button onClick={() => change({ status: "snoozed" })}>Snooze</Button>
        <Menu label="More" items={more}>
          More
        </Menu>
      </div>
    </div>
  );
}

type KeyActions = {
  list: API.ConversationSummary[];
  current: string;
  open: (id: string) => string;
  change: (what: API.Change) => Promise<void>;
};

/** Keys of the inbox: j and k walk, r and n write, e, s, m, a and u change the conversation. */
function useInboxKeys({ list, current, open, change }: KeyActions) {
  const c = list.find((x) => x.id === current);
  const step = (by: number) => {
    const next = list[Math.max(0, Math.min(list.length - 1, list.findIndex((x) => x.id === current) + by))];
    if (next) go(open(next.id));
  };
  useKeys({
    j: () => step(1),
    k: () => step(-1),
    ...(current && {
      r: () => document.querySelector<HTMLElement>("[data-mode=reply]")?.click(),
      n: () => document.querySelector<HTMLElement>("[data-mode=note]")?.click(),
      s: () => {
        if (c?.status === "open") step(list.at(-1) === c ? -1 : 1);
        return change({ status: "snoozed" });
      },
      e: () => {
        if (c?.status === "open") step(list.at(-1) === c ? -1 : 1);
        return change({ status: c?.status === "open" ? "resolved" : "open" });
      },
      m: () => change({ muted: !c?.muted }),
      a: () =>
        myEmail()
          ? change({ assignee: c?.assignee === myEmail() ? null : "me" })
          : tell("To assign conversations, put the server behind an identity proxy so that people have names."),
      u: () => change({ read: (c?.unread ?? 0) > 0 }),
    }),
  });
}
