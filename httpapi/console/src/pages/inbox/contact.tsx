// The contact of a conversation, beside it.
import { href, mayEdit, path, put, useQuery, type API } from "../../data";
import { Button, Load, unmarked, When } from "../../ui";
import { TagsCell, TextCell } from "../../parts/cell";
import { ContactExecutions } from "../../parts/executions";

type Props = { id: string; conversation: string; close: () => void };

/** The contact of a conversation, with their other conversations and executions. */
export function ContactPane({ id, conversation, close }: Props) {
  const found = useQuery(path("agents", id, "conversations", conversation));
  const contactId = found.data.value?.contact?.id;
  return (
    <aside class="inbox-contact" aria-label="Contact">
      {contactId && <LoadedContact id={id} conversation={conversation} contactId={contactId} close={close} />}
      {!contactId && found.data.value && (
        <>
          <CloseButton close={close} />
          <p class="muted">No contact for this conversation.</p>
        </>
      )}
    </aside>
  );
}

const CloseButton = ({ close }: { close: () => void }) => (
  <Button kind="quiet" icon="X" label="Close contact" class="narrow" onClick={close} />
);

function LoadedContact({ id, conversation, contactId, close }: Props & { contactId: string }) {
  const found = useQuery(path("agents", id, "contacts", contactId));
  return (
    <Load of={found}>
      {(contact) => (
        <div class="stack">
          <div class="row">
            <h2 class="grow">
              <a href={href(id, "contacts", contactId)}>
                <bdi>{contact.name}</bdi>
              </a>
            </h2>
            <CloseButton close={close} />
          </div>
          <Facts id={id} contact={contact} reload={found.reload} />
          <h3>Conversations</h3>
          <OtherConversations id={id} contactId={contactId} conversation={conversation} />
          <h3>Executions</h3>
          <ContactExecutions id={contactId} limit={5} />
        </div>
      )}
    </Load>
  );
}

/** The addresses of a contact; the tags and the notes can be changed. */
function Facts({ id, contact, reload }: { id: string; contact: API.Contact; reload: () => Promise<void> }) {
  const tagList = useQuery(path("agents", id, "contacts", "tags"));
  const save = async (change: object) => {
    await put(path("agents", id, "contacts", contact.id), change);
    await Promise.all([reload(), tagList.reload()]);
  };
  const addresses = [
    ["Email", contact.email],
    ["Phone", contact.phone],
    ["Telegram", contact.chatbot_a],
    ["WhatsApp", contact.chatbot_b],
    ["Social handle", contact.social_handle],
    ["External ID", contact.external_id],
  ].filter(([, address]) => address);
  return (
    <dl class="inbox-facts">
      {addresses.map(([title, address]) => (
        <>
          <dt>{title}</dt>
          <dd>
            <bdi>{address}</bdi>
          </dd>
        </>
      ))}
      <dt>Tags</dt>
      <dd>
        <TagsCell
          label="Tags"
          may={mayEdit.value}
          tags={contact.tags}
          known={tagList.data.value?.tags ?? []}
          save={(tags) => save({ tags })}
        />
      </dd>
      <dt>Notes</dt>
      <dd class="inbox-notes">
        <TextCell
          label="Notes"
          may={mayEdit.value}
          rows={3}
          text={contact.notes ?? ""}
          save={(notes) => save({ notes })}
        />
      </dd>
    </dl>
  );
}

type OtherConversationsProps = { id: string; contactId: string; conversation: string };

function OtherConversations({ id, contactId, conversation }: OtherConversationsProps) {
  const found = useQuery(path("agents", id, "conversations"), {
    contact_id: contactId,
    limit: 20,
    sort: "last_message_at",
    order: "desc",
  });
  const conversations = found.data.value?.conversations ?? [];
  return (
    <ul class="plain">
      {conversations
        .filter((other) => other.id !== conversation)
        .map(({ id: otherId, last_message, created_at }) => (
          <li key={otherId}>
            <a href={href(id, "inbox", otherId)}>
              <bdi class="clip">{unmarked(last_message?.content ?? "No messages yet")}</bdi>
            </a>{" "}
            <span class="muted small">
              <When time={last_message?.created_at ?? created_at} />
            </span>
          </li>
        ))}
      {conversations.length === 1 && <li class="muted">No others</li>}
    </ul>
  );
}
