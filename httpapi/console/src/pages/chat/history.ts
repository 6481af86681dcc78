// The messages of a conversation: with the answers to one question together, and those before the newest.
import { useRef, useState } from "preact/hooks";

import { type API, get } from "../../data";
import type { Message } from "./message";

/** A question, or the answers to the question before it. */
export type Group = { question: Message } | { answers: Message[] };

/** Groups messages in their order. An answer that was generated again joins the one that it repeats. */
export function groupMessages(messages: Message[]): Group[] {
  const groups: Group[] = [];
  const answersById = new Map<number, Message[]>();
  for (const message of messages) {
    if (message.role === "user") {
      const last = groups.at(-1);
      // A question that was asked again since its answer failed is shown once.
      if (last && "question" in last && last.question.content === message.content) groups.pop();
      groups.push({ question: message });
    } else if (message.role === "assistant") {
      const repeated = answersById.get(message.metadata?.retry_of ?? 0);
      const answers = repeated ?? [];
      answers.push(message);
      answersById.set(message.id, answers);
      if (!repeated) groups.push({ answers });
    }
  }
  return groups;
}

/** The number of messages that come with a conversation. */
const pageSize = 200;

/** Loads the messages before the newest, and keeps those that newer ones displace from that list. */
export function useEarlierMessages(conversationPath: string, recent: Message[]) {
  const earlier = useRef<Message[]>([]);
  const last = useRef(recent);
  const [cursor, setCursor] = useState<string | null>();
  const firstRecent = recent[0]?.id ?? 0;
  const displaced = earlier.current.length ? last.current.filter((message) => message.id < firstRecent) : [];
  if (displaced.length) earlier.current = [...earlier.current, ...displaced];
  last.current = recent;
  const load = async () => {
    const page = (after?: string) =>
      get(`${conversationPath}/messages`, {
        order: "desc",
        limit: pageSize,
        cursor: after,
      }) as Promise<API.MessageList>;
    const next = cursor ?? (await page()).meta.next_cursor;
    const found = next ? await page(next) : undefined;
    const messages = ((found?.messages as Message[] | undefined) ?? []).toReversed();
    const first = (earlier.current[0] ?? last.current[0])?.id ?? 0;
    earlier.current = [...messages.filter((message) => message.id < first), ...earlier.current];
    setCursor(found?.meta.next_cursor ?? null);
  };
  return { earlier: earlier.current, more: cursor !== null && recent.length >= pageSize, load };
}
