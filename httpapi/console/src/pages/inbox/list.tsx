// The list of conversations, with its tabs and filters.
import { type API, mayEdit, path, type Result, setQuery, useQuery } from "../../data";
import { Badge, Button, Load, Menu, type MenuItem, platformName, plural, When } from "../../ui";
import { assignItems } from "./assign";
import { channelOf, type Filters, lastMessageText, myEmail, shows, contactNameOf } from "./conversations";

const tabs = [
  ["mine", "Mine"],
  ["open", "Open"],
  ["all", "All"],
] as const;

type ListProps = {
  agent: string;
  filters: Filters;
  found: Result<API.ConversationList>;
  counts?: API.InboxCounts;
  /** The conversation that is shown beside the list. */
  current: string;
  linkTo: (conversation: string) => string;
  selected: string[];
  select: (ids: string[]) => void;
  /** Selects a conversation, or removes it from the selection. */
  toggle: (id: string) => void;
  change: (changes: API.Change) => Promise<void>;
  colleagues: string[];
  /** The agent has no conversations at all. */
  isEmpty: boolean;
  /** Loads more conversations; undefined if all are shown. */
  more?: () => void;
};

/** The conversations on the left of the inbox. */
export function ConversationList(props: ListProps) {
  const { agent, filters, found, counts, current, linkTo, selected, select, toggle, change, colleagues } = props;
  const { isEmpty, more } = props;
  const list = found.data.value?.conversations ?? [];
  return (
    <aside class="inbox-list" aria-label="Conversations">
      <Tabs tab={filters.tab} counts={counts} />
      <FilterFields agent={agent} filters={filters} />
      {selected.length > 0 && (
        <Bulk selected={selected} list={list} select={select} change={change} colleagues={colleagues} />
      )}
      <Load of={found}>
        {() => (
          <ul class="inbox-entries">
            {list.map((conversation) => (
              <li key={conversation.id} class={conversation.id === current ? "on" : ""}>
                {mayEdit.value && (
                  <input
                    type="checkbox"
                    aria-label={`Select conversation with ${contactNameOf(conversation)}`}
                    checked={selected.includes(conversation.id)}
                    onChange={() => toggle(conversation.id)}
                  />
                )}
                <Entry
                  conversation={conversation}
                  href={linkTo(conversation.id)}
                  isCurrent={conversation.id === current}
                />
              </li>
            ))}
            {list.length === 0 && !isEmpty && <li class="muted">{emptyText(filters)}</li>}
            {more && (
              <li>
                <Button kind="quiet" onClick={more}>
                  More
                </Button>
              </li>
            )}
          </ul>
        )}
      </Load>
    </aside>
  );
}

function Tabs({ tab, counts }: { tab: string; counts?: API.InboxCounts }) {
  return (
    <div class="tabs" role="group" aria-label="Filter conversations">
      {tabs
        .filter(([name]) => name !== "mine" || myEmail())
        .map(([name, title]) => (
          <button
            key={name}
            type="button"
            aria-current={name === tab ? "true" : undefined}
            onClick={() => setQuery({ tab: name === "open" ? null : name })}
          >
            {title} {counts?.[name] ?? ""}
          </button>
        ))}
    </div>
  );
}

function FilterFields({ agent, filters: { search, channel, show } }: { agent: string; filters: Filters }) {
  const gateways = useQuery(path("agents", agent, "gateways"), { limit: 100 }).data.value?.gateways ?? [];
  return (
    <>
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
          {gateways.map((gateway) => (
            <option key={gateway.id} value={gateway.id}>
              {platformName(gateway.type)}: {gateway.name}
            </option>
          ))}
        </select>
        <select aria-label="Show" value={show} onChange={(e) => setQuery({ show: e.currentTarget.value })}>
          <option value="">Everything</option>
          {Object.entries(shows).map(([name, { title }]) => (
            <option key={name} value={name}>
              {title}
            </option>
          ))}
        </select>
      </div>
    </>
  );
}

/** Returns why a list is empty although the agent has conversations. */
function emptyText({ tab, show, channel, search }: Filters): string {
  if (search) return "No results";
  if (tab === "mine" && !show)
    return "Nothing is assigned to you. Take a conversation from Open: its menu has Assign to me.";
  if (tab === "open" && !show && !channel)
    return "No open conversations. Those that are resolved or snoozed are in All.";
  return "No conversations here";
}

const authorPrefixes: Record<string, string> = { contact: "", bot: "bot: " };

type EntryProps = { conversation: API.ConversationSummary; href: string; isCurrent: boolean };

/** A conversation in the list: its person, the last message and its state. */
function Entry({ conversation, href, isCurrent }: EntryProps) {
  const { last_message, unread, assignee, needs_human, status, created_at } = conversation;
  return (
    <a href={href} aria-current={isCurrent ? "page" : undefined} class={unread ? "unread" : ""}>
      <span class="row nowrap">
        <bdi class="clip grow">{contactNameOf(conversation)}</bdi>
        <span class="muted small">
          <When time={last_message?.created_at ?? created_at} />
        </span>
      </span>
      <span class="row nowrap">
        <span class="clip grow muted small">
          {last_message && (authorPrefixes[last_message.author] ?? "you: ")}
          <bdi>{lastMessageText(conversation)}</bdi>
        </span>
        {unread > 0 && (
          <span class="inbox-unread" aria-label={plural(unread, "unread message")}>
            {unread}
          </span>
        )}
      </span>
      <span class="row nowrap small">
        <span class="clip grow muted">
          {channelOf(conversation)}
          {assignee && (
            <>
              {" "}
              · <bdi>{assignee}</bdi>
            </>
          )}
        </span>
        {needs_human && <Badge tone="bad">asks for a person</Badge>}
        {status !== "open" && <Badge>{status}</Badge>}
      </span>
    </a>
  );
}

type BulkProps = {
  selected: string[];
  list: API.ConversationSummary[];
  select: (ids: string[]) => void;
  change: (changes: API.Change) => Promise<void>;
  colleagues: string[];
};

/** Changes the selected conversations. */
function Bulk({ selected, list, select, change, colleagues }: BulkProps) {
  const all = selected.length === list.length;
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
          ref={(input) => {
            if (input) input.indeterminate = !all;
          }}
          onChange={() => select(all ? [] : list.map((conversation) => conversation.id))}
        />
        {selected.length} of {list.length} selected
      </label>
      <Button kind="quiet" icon="X" label="Clear selection" onClick={() => select([])} />
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
