// The conversations of the inbox: what they are called, how they are filtered, and how they are kept current.
import { useEffect } from "preact/hooks";

import { type API, onChange, onReset, path, session, useQuery } from "../../data";
import { platformName, unmarked } from "../../ui";

type Conversation = API.ConversationSummary;

/** The filters of the list, as they are in the address. */
export type Filters = { tab: string; show: string; channel: string; search: string };

const countDelay = 2000; // milliseconds between two counts

/** Returns what the channel of a conversation is called: its platform, or the console's chat. */
export function channelOf(conversation: Conversation): string {
  if (conversation.gateway) return platformName(conversation.gateway.type);
  return conversation.gateway_id ? "Deleted channel" : "Chat";
}

/** Returns the name of the person of a conversation. */
export const contactNameOf = ({ contact, metadata, gateway_id }: Conversation): string =>
  contact?.name || String(metadata?.title ?? "") || (gateway_id ? "Unknown" : "Chat");

/** Returns the last message of a conversation as one line. */
export function lastMessageText({ last_message }: Pick<Conversation, "last_message">): string {
  if (!last_message) return "No messages yet";
  return last_message.author === "bot" ? unmarked(last_message.content) : last_message.content;
}

/** The email address of the person who uses the console; empty if the server does not know it. */
export const myEmail = () => session.value?.identity?.email ?? "";

type Show = { title: string; query: Record<string, unknown>; includes: (conversation: Conversation) => boolean };

/** The options of the Show filter: their titles, their parameters in the API, and which conversations they include. */
export const shows: Record<string, Show> = {
  unread: { title: "Unread", query: { unread: true }, includes: (c) => c.unread > 0 },
  person: { title: "Asks for a person", query: { needs_human: true }, includes: (c) => c.needs_human },
  unassigned: { title: "Unassigned", query: { assignee: "none" }, includes: (c) => !c.assignee },
  snoozed: { title: "Snoozed", query: { status: "snoozed" }, includes: (c) => c.status === "snoozed" },
  resolved: { title: "Resolved", query: { status: "resolved" }, includes: (c) => c.status === "resolved" },
};

/** Reports whether a conversation belongs into a list with filters other than a search. */
function includes({ tab, show, channel }: Filters, conversation: Conversation): boolean {
  if (tab === "mine" && conversation.assignee !== myEmail()) return false;
  if (tab !== "all" && !shows[show]?.query.status && conversation.status !== "open") return false;
  if (shows[show] && !shows[show].includes(conversation)) return false;
  if (!channel) return true;
  return channel === "chat" ? !conversation.gateway_id : conversation.gateway_id === channel;
}

const lastMessageId = (conversation: Conversation) => conversation.last_message?.id ?? 0;

/** The conversations that fit filters, and the number of each tab. Both follow the agent's changes. */
export function useConversations(agent: string, filters: Filters, limit: number) {
  const { tab, show, channel, search } = filters;
  const found = useQuery(path("agents", agent, "conversations"), {
    limit,
    sort: "last_message_at",
    order: "desc",
    search,
    status: tab === "all" ? "" : "open",
    assignee: tab === "mine" ? "me" : "",
    channel: channel === "chat" ? "chat" : "",
    gateway_id: channel === "chat" ? "" : channel,
    ...shows[show]?.query,
  });
  const counts = useQuery(path("agents", agent, "conversations", "counts"));
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const count = () => {
      timer ??= setTimeout(() => {
        timer = undefined;
        void counts.reload();
      }, countDelay);
    };
    const stopChanges = onChange("conversation", ({ id, row }) => {
      count();
      found.set((data) => {
        const others = data.conversations.filter((other) => other.id !== id);
        const wasListed = others.length < data.conversations.length;
        // Whether a conversation that was not found before fits a search, only the service knows.
        if (!row || !includes(filters, row) || (search && !wasListed)) return { ...data, conversations: others };
        const conversations = [...others, row].sort((a, b) => lastMessageId(b) - lastMessageId(a));
        return { ...data, conversations };
      });
    });
    const stopResets = onReset(() => {
      void found.reload();
      void counts.reload();
    });
    return () => {
      stopChanges();
      stopResets();
      clearTimeout(timer);
    };
  }, [found, tab, show, channel, search]);
  return { found, counts };
}
