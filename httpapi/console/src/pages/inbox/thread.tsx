// One conversation of the inbox: its messages, and the field in which it is answered.
import { useEffect, useRef } from "preact/hooks";

import { type API, href, mayEdit, onChange, path, put, type Result, route, useQuery } from "../../data";
import { Badge, Button, Icon, Load, Menu, type MenuItem, openDialog, showToast } from "../../ui";
import { assignItems } from "./assign";
import { Composer } from "./composer";
import { channelOf, contactNameOf } from "./conversations";
import { Message } from "./message";
import { Replies } from "./replies";

type ThreadProps = {
  id: string;
  conversation: string;
  colleagues: string[];
  toggleDetails: () => void;
  change: (changes: API.Change) => Promise<void>;
};

/** Keeps a conversation current: new messages, and changes by others. */
function useLiveConversation(found: Result<API.ConversationDetails>, conversation: string) {
  useEffect(
    () =>
      onChange("message", ({ row }) => {
        if (row?.conversation_id !== conversation) return;
        found.set((details) => {
          const others = details.messages.filter((message) => message.id !== row.id);
          return { ...details, messages: [...others, row].sort((a, b) => a.id - b.id) };
        });
      }),
    [found],
  );
  useEffect(
    () =>
      onChange("conversation", ({ id, row }) => {
        if (id === conversation && row) found.set((details) => ({ ...details, ...row }));
      }),
    [found],
  );
}

/** A conversation. */
export function Thread({ id, conversation, colleagues, toggleDetails, change }: ThreadProps) {
  const found = useQuery(path("agents", id, "conversations", conversation));
  const messages = useRef<HTMLDivElement>(null);
  const details = found.data.value;
  useLiveConversation(found, conversation);
  useEffect(() => {
    if (details?.unread && mayEdit.value && !document.hidden)
      void put(path("agents", id, "conversations", conversation), { read: true }).catch(() => {
        /* it stays unread */
      });
  }, [details?.unread]);
  useEffect(() => {
    messages.current?.scrollTo({ top: messages.current.scrollHeight });
  }, [details?.messages.length]);
  const changeAndReload = async (changes: API.Change) => {
    await change(changes);
    await found.reload();
  };
  return (
    <section class="inbox-thread" aria-label="Conversation">
      {!details && (
        <header class="row phone">
          <BackLink id={id} />
        </header>
      )}
      <Load of={found}>
        {(loaded) => (
          <>
            <ThreadHead
              id={id}
              conversation={loaded}
              colleagues={colleagues}
              toggleDetails={toggleDetails}
              change={changeAndReload}
            />
            <div class="inbox-messages" ref={messages} tabIndex={0} role="log" aria-label="Messages">
              {loaded.messages.map((message, index) => (
                <Message
                  key={message.id}
                  message={message}
                  before={loaded.messages[index - 1]}
                  id={id}
                  reload={found.reload}
                />
              ))}
              {loaded.messages.length === 0 && <p class="muted">No messages yet.</p>}
              {loaded.muted && <MutedLine unmute={() => changeAndReload({ muted: false })} />}
            </div>
            {mayEdit.value ? (
              <Composer id={id} conversation={loaded} sent={found.reload} />
            ) : (
              <p class="muted inbox-line">Answering needs the admin role.</p>
            )}
          </>
        )}
      </Load>
    </section>
  );
}

/** The way back to the list on a phone. */
function BackLink({ id }: { id: string }) {
  return (
    <a
      class="button only phone"
      href={href(id, "inbox") + (route.value.query.size ? `?${route.value.query}` : "")}
      aria-label="Back to the list"
    >
      <Icon name="ArrowLeft" size={16} />
    </a>
  );
}

function MutedLine({ unmute }: { unmute: () => Promise<void> }) {
  return (
    <p class="inbox-line">
      Bot muted: you're answering.{" "}
      {mayEdit.value && (
        <button type="button" class="link" onClick={() => void unmute().catch(showToast)}>
          Give back to the bot
        </button>
      )}
    </p>
  );
}

type HeadProps = Omit<ThreadProps, "conversation"> & { conversation: API.ConversationDetails };

/** The person of a conversation, its state, and what changes it. */
function ThreadHead(props: HeadProps) {
  const { id, conversation, toggleDetails, change } = props;
  const { status, assignee, muted, needs_human } = conversation;
  const isOpen = status === "open";
  return (
    <header class="row">
      <BackLink id={id} />
      <h2 class="grow">
        <bdi>{contactNameOf(conversation)}</bdi>
        <span class="muted small" title={assignee ? `Assigned to ${assignee}` : undefined}>
          {channelOf(conversation)}
          {!isOpen && ` · ${status}`}
          {assignee && (
            <>
              {" "}
              · <bdi>{assignee}</bdi>
            </>
          )}
        </span>
      </h2>
      {needs_human && <Badge tone="bad">asks for a person</Badge>}
      {mayEdit.value && (
        <>
          <Button
            pressed={!muted}
            label={muted ? "The bot is muted: let it answer again" : "The bot answers: mute it"}
            onClick={() => change({ muted: !muted })}
          >
            {muted ? "Bot off" : "Bot on"}
          </Button>
          <Button icon={isOpen ? "Check" : undefined} onClick={() => change({ status: isOpen ? "resolved" : "open" })}>
            {isOpen ? "Resolve" : "Reopen"}
          </Button>
          <Menu label="Conversation" items={menuItems(props)} />
        </>
      )}
      <Button kind="quiet" icon="Users" label="Contact" class="narrow" onClick={toggleDetails} />
    </header>
  );
}

function menuItems({ id, conversation, colleagues, change }: HeadProps): MenuItem[] {
  return [
    {
      label: "Snooze until the next message",
      icon: "Clock",
      disabled: conversation.status === "snoozed",
      run: () => change({ status: "snoozed" }),
    },
    { label: "Mark as unread", icon: "Mail", run: () => change({ read: false }) },
    "-",
    ...assignItems(colleagues, conversation.assignee ?? "", change),
    "-",
    {
      label: "Canned replies",
      icon: "MessagesSquare",
      run: () => {
        openDialog((close) => <Replies id={id} close={close} />);
      },
    },
  ];
}
