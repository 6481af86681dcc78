// A message of a conversation, with its attachments and its delivery.
import { agentId, type API, href, mayEdit, path, post } from "../../data";
import { CodeBlock } from "../../parts/codeblock";
import { Markdown } from "../../parts/markdown";
import { fullDate, writeTime } from "../../parts/zone";
import { Badge, Button, CopyButton, When } from "../../ui";
import { Attachments } from "./attachments";

/** The metadata that a message may have. */
type Metadata = {
  author?: string;
  author_email?: string;
  execution_id?: string;
  simulated?: boolean;
  delivered_at?: string;
  delivery?: API.MessageDelivery;
  attachments?: unknown[];
};

const authors: Record<string, string> = { user: "", note: "Note", system: "System", tool: "Tool" };

/** The text of a message that only has files. */
const placeholder =
  /^(\[(attachment|photo|document|animation|audio|voice|video|video_note|sticker|image|file)(: [^\]]*)?\] ?)+$/;

const dayOf = (time: string) => writeTime(time, undefined, fullDate);

const metadataOf = (message: API.MessageDetails): Metadata => message.metadata ?? {};

const isByPerson = (message: API.MessageDetails) => metadataOf(message).author === "human";

const isByWorkflow = (message: API.MessageDetails) => metadataOf(message).author === "workflow";

/** Returns the delivery of a message. The event stream has it only in the metadata. */
function deliveryOf(message: API.MessageDetails): API.MessageDelivery | null | undefined {
  const { delivery, delivered_at } = metadataOf(message);
  return message.delivery ?? (delivery && { ...delivery, sent_at: delivered_at ?? null });
}

/** Returns the name of a message's author; empty for the contact. */
function authorOf(message: API.MessageDetails): string {
  const email = metadataOf(message).author_email;
  if (message.role === "assistant")
    return isByPerson(message) ? email || "A person" : isByWorkflow(message) ? "Workflow" : "Bot";
  if (message.role === "note" && email) return `Note of ${email}`;
  return authors[message.role];
}

type MessageProps = {
  message: API.MessageDetails;
  before?: API.MessageDetails;
  id: string;
  reload: () => Promise<void>;
};

/** A message, and above it its day if the message before is of another. */
export function Message({ message, before, id, reload }: MessageProps) {
  const day = dayOf(message.created_at);
  const author = authorOf(message);
  return (
    <>
      {(!before || dayOf(before.created_at) !== day) && (
        <p class="inbox-day">
          <span>{day}</span>
        </p>
      )}
      <article class={`inbox-said ${message.role} ${isByPerson(message) ? "person" : ""}`}>
        <p class="row nowrap muted small">
          <span class="grow">
            {author && (
              <>
                <Author message={message} name={author} /> ·{" "}
              </>
            )}
            <When time={message.created_at} />
            {metadataOf(message).simulated && " · simulated"}
          </span>
          <CopyButton text={message.content} />
        </p>
        <MessageText message={message} />
        <Attachments id={id} m={message} />
        <Delivery message={message} id={id} reload={reload} />
      </article>
    </>
  );
}

/** The author of a message, with a link to the execution that sent it. */
function Author({ message, name }: { message: API.MessageDetails; name: string }) {
  const { execution_id } = metadataOf(message);
  if (!isByWorkflow(message) || !execution_id) return <bdi>{name}</bdi>;
  return <a href={href(agentId.value, "workflows", "executions", execution_id)}>{name}</a>;
}

/** The text of a message: as Markdown if the bot wrote it; none if it only stands for files. */
function MessageText({ message }: { message: API.MessageDetails }) {
  if (message.role === "assistant" && !isByPerson(message)) return <Markdown text={message.content} Code={CodeBlock} />;
  if (metadataOf(message).attachments?.length && placeholder.test(message.content)) return null;
  return (
    <p class="inbox-text">
      <bdi>
        <Linked text={message.content} />
      </bdi>
    </p>
  );
}

type Tone = "good" | "bad" | "busy" | "plain";
const deliveryStates: Record<string, [tone: Tone, text: string]> = {
  failed: ["bad", "not sent"],
  sent: ["good", "sent"],
  simulated: ["plain", "simulated, not sent"],
};

/** Whether a message has been sent; one that failed can be sent again. */
function Delivery({ message, id, reload }: Omit<MessageProps, "before">) {
  const delivery = deliveryOf(message);
  if (!delivery) return null;
  const [tone, text] = deliveryStates[delivery.status] ?? ["busy", "sending"];
  const resend = async () => {
    await post(path("agents", id, "conversations", message.conversation_id, "messages", message.id, "resend"));
    await reload();
  };
  return (
    <p class="small inbox-delivery">
      <Badge tone={tone}>{text}</Badge>
      {delivery.error && (
        <span>
          {" "}
          <bdi>{delivery.error}</bdi>
        </span>
      )}
      {delivery.status === "failed" && mayEdit.value && <Button onClick={resend}>Send again</Button>}
    </p>
  );
}

/** A text whose web addresses are links; everything else is plain text. */
function Linked({ text }: { text: string }) {
  return (
    <>
      {text.split(/(https?:\/\/[^\s<>"']+)/).map((part, i) =>
        i % 2 ? (
          <a key={i} href={part} target="_blank" rel="noopener noreferrer">
            {part}
          </a>
        ) : (
          part
        ),
      )}
    </>
  );
}
