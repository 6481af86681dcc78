// Inbox: the conversations of people and of the bot, answered in one place.
import { useEffect, useState } from "preact/hooks";

import { type API, go, href, mayEdit, path, post, route } from "../data";
import { Button, Empty, LinkButton, openDialog, plural, showToast } from "../ui";
import { useKeys } from "../parts/keys";
import { style } from "../parts/styles";
import { Simulate } from "../parts/simulate";
import { useColleagues } from "./inbox/assign";
import { ContactPane } from "./inbox/contact";
import { type Filters, myEmail, useConversations, contactNameOf } from "./inbox/conversations";
import { ConversationList } from "./inbox/list";
import { Thread } from "./inbox/thread";
import "../css/contacts.css"; // values that are changed in place
import "../css/inbox.css";

export const styles = style("./inbox.css");

const pageSize = 50;

const readFilters = (query: URLSearchParams): Filters => ({
  tab: query.get("tab") ?? "open",
  show: query.get("show") ?? "",
  channel: query.get("channel") ?? "",
  search: query.get("search") ?? "",
});

/** The link to a conversation, with the filters of the list. */
const conversationHref = (agent: string, conversation: string) =>
  href(agent, "inbox", conversation) + (route.value.query.size ? `?${route.value.query}` : "");

/** Returns a message about conversations whose status has changed. */
function statusMessage(status: string, count: number, first?: API.ConversationSummary): string {
  const one = first ? `Conversation with ${contactNameOf(first)}` : "Conversation";
  const subject = count > 1 ? plural(count, "conversation") : one;
  return `${subject} ${status === "snoozed" ? "snoozed until the next message" : status}`;
}

export default function Inbox() {
  const { agent, rest, query } = route.value;
  const current = rest[0] ?? "";
  const filters = readFilters(query);
  const { tab, show, channel, search } = filters;
  const [limit, setLimit] = useState(pageSize);
  const [selected, setSelected] = useState<string[]>([]);
  const [details, setDetails] = useState(false);
  const { found, counts } = useConversations(agent, filters, limit);
  const colleagues = useColleagues(agent);
  useEffect(() => {
    setSelected([]);
    setDetails(false);
  }, [current, tab, show, channel]);

  const total = found.data.value?.meta.total ?? 0;
  const list = found.data.value?.conversations ?? [];
  const linkTo = (conversation: string) => conversationHref(agent, conversation);
  const send = async (ids: string[], changes: API.Change) => {
    await post(path("agents", agent, "conversations", "batch"), { ids, change: changes });
    await Promise.all([found.reload(), counts.reload()]);
  };
  const change = async (changes: API.Change, ids = selected.length ? selected : [current]) => {
    const changed = ids.filter(Boolean);
    if (!changed.length || !mayEdit.value) return;
    const conversations = list.filter((conversation) => changed.includes(conversation.id));
    const wereOpen = conversations.filter(({ status }) => status === "open").map(({ id }) => id);
    await send(changed, changes);
    setSelected([]);
    if (!changes.status || changes.status === "open") return;
    const undo = () => void send(wereOpen, { status: "open" }).catch(showToast);
    const message = statusMessage(changes.status, changed.length, conversations[0]);
    showToast(message, wereOpen.length ? undo : undefined, "conversations");
  };
  useInboxKeys({ list, current, linkTo, change });

  const isFiltered = Boolean(search || channel || show);
  const isEmpty = counts.data.value?.all === 0 && Boolean(found.data.value) && list.length === 0 && !isFiltered;
  return (
    <div class={`page full inbox ${current ? "reading" : ""} ${details ? "with-details" : ""}`}>
      <h1 class="hidden" tabIndex={-1}>
        Inbox
      </h1>
      <ConversationList
        agent={agent}
        filters={filters}
        found={found}
        counts={counts.data.value}
        current={current}
        linkTo={linkTo}
        selected={selected}
        select={setSelected}
        toggle={(id) =>
          setSelected((before) => (before.includes(id) ? before.filter((other) => other !== id) : [...before, id]))
        }
        change={change}
        colleagues={colleagues}
        isEmpty={isEmpty}
        more={total > list.length && list.length >= limit ? () => setLimit(limit + pageSize) : undefined}
      />
      {current && (
        <Thread
          key={current}
          id={agent}
          conversation={current}
          colleagues={colleagues}
          toggleDetails={() => setDetails(!details)}
          change={(changes) => change(changes, [current])}
        />
      )}
      {!current && isEmpty && <EmptyInbox agent={agent} />}
      {!current && !isEmpty && <NoneChosen hasConversations={list.length > 0} />}
      {current && (
        <ContactPane key={`contact-${current}`} id={agent} conversation={current} close={() => setDetails(false)} />
      )}
    </div>
  );
}

function EmptyInbox({ agent }: { agent: string }) {
  const actions = (
    <>
      <LinkButton kind="primary" href={href(agent, "channels")}>
        Connect a channel
      </LinkButton>
      {mayEdit.value && (
        <Button onClick={() => openDialog((close) => <Simulate id={agent} close={close} />)}>Simulate a message</Button>
      )}
    </>
  );
  return (
    <Empty icon="Inbox" title="No conversations yet" action={actions}>
      Messages from your channels, and the bot's answers, appear here.
    </Empty>
  );
}

function NoneChosen({ hasConversations }: { hasConversations: boolean }) {
  return (
    <div class="inbox-none muted">
      <p>
        {hasConversations && (
          <>
            Choose a conversation. <kbd>j</kbd> and <kbd>k</kbd> go through them, <kbd>?</kbd> lists all keys.
          </>
        )}
      </p>
    </div>
  );
}

type KeyActions = {
  list: API.ConversationSummary[];
  current: string;
  linkTo: (conversation: string) => string;
  change: (changes: API.Change) => Promise<void>;
};

/** Keys of the inbox: j and k go through the list, r and n write, the others change the conversation. */
function useInboxKeys({ list, current, linkTo, change }: KeyActions) {
  const index = list.findIndex((other) => other.id === current);
  const conversation = list[index] as API.ConversationSummary | undefined;
  const step = (by: number) => {
    const next = list[Math.max(0, Math.min(list.length - 1, index + by))];
    if (next) go(linkTo(next.id));
  };
  /** Goes on to the next conversation before this one leaves the list of open ones. */
  const stepIfOpen = () => {
    if (conversation?.status === "open") step(list.at(-1) === conversation ? -1 : 1);
  };
  useKeys({
    j: () => step(1),
    k: () => step(-1),
    ...(current && {
      r: () => document.querySelector<HTMLElement>("[data-mode=reply]")?.click(),
      n: () => document.querySelector<HTMLElement>("[data-mode=note]")?.click(),
      s: () => {
        stepIfOpen();
        return change({ status: "snoozed" });
      },
      e: () => {
        stepIfOpen();
        return change({ status: conversation?.status === "open" ? "resolved" : "open" });
      },
      m: () => change({ muted: !conversation?.muted }),
      a: () =>
        myEmail()
          ? change({ assignee: conversation?.assignee === myEmail() ? null : "me" })
          : showToast("To assign conversations, put the server behind an identity proxy so that people have names."),
      u: () => change({ read: (conversation?.unread ?? 0) > 0 }),
    }),
  });
}
