import { href, mayEdit, path, put, useQuery } from "../../data";
import { Button, Load, unmarked, When } from "../../ui";
import { TagsCell, TextCell } from "../../parts/cell";
import { ContactExecutions } from "../../parts/executions";

/** Who a conversation is with, and what else was said with them. */
export function ContactPane({ id, conversation, close }: { id: string; conversation: string; close: () => void }) {
  const found = useQuery(path("agents", id, "conversations", conversation));
  const contactId = found.data.value?.contact?.id;
  const contact = useQuery(contactId ? path("agents", id, "contacts", contactId) : null);
  const others = useQuery(contactId ? path("agents", id, "conversations") : null, {
    contact_id: contactId,
    limit: 20,
    sort: "last_message_at",
    order: "desc",
  });
  const known = useQuery(contactId ? path("agents", id, "contacts", "tags") : null);
  const save = async (change: object) => {
    await put(path("agents", id, "contacts", contactId!), change);
    await Promise.all([contact.reload(), known.reload()]);
  };
  const back = <Button kind="quiet" icon="X" label="Close contact" class="narrow" onClick={close} />;
  if (found.data.value && !contactId)
    return (
      <aside class="inbox-contact" aria-label="Contact">
        {back}
        <p class="muted">No contact for this conversation.</p>
      </aside>
    );
  return (
    <aside class="inbox-contact" aria-label="Contact">
      {contactId && (
        <Load of={contact}>
          {(c) => (
            <div class="stack">
              <div class="row">
                <h2 class="grow">
                  <a href={href(id, "contacts", contactId)}>
                    <bdi>{c.name}</bdi>
                  </a>
                </h2>
                {back}
              </div>
              <dl class="inbox-facts">
                {[
                  ["Email", c.email],
                  ["Phone", c.phone],
                  ["Telegram", c.chatbot_a],
                  ["WhatsApp", c.chatbot_b],
                  ["Social handle", c.social_handle],
                  ["External ID", c.external_id],
                ]
                  .filter(([, v]) => v)
                  .map(([name, value]) => (
                    <>
                      <dt>{name}</dt>
                      <dd>
                        <bdi>{value}</bdi>
                      </dd>
                    </>
                  ))}
                <dt>Tags</dt>
                <dd>
                  <TagsCell
                    label="Tags"
                    may={mayEdit.value}
                    tags={c.tags}
                    known={known.data.value?.tags ?? []}
                    save={(tags) => save({ tags })}
                  />
                </dd>
                <dt>Notes</dt>
                <dd class="inbox-notes">
                  <TextCell
                    label="Notes"
                    may={mayEdit.value}
                    rows={3}
                    text={c.notes ?? ""}
                    save={(notes) => save({ notes })}
                  />
                </dd>
              </dl>
              <h3>Conversations</h3>
              <ul class="plain">
                {(others.data.value?.conversations ?? [])
                  .filter((o) => o.id !== conversation)
                  .map((o) => (
                    <li key={o.id}>
                      <a href={href(id, "inbox", o.id)}>
                        <bdi class="clip">{unmarked(o.last_message?.content ?? "No messages yet")}</bdi>
                      </a>{" "}
                      <span class="muted small">
                        <When time={o.last_message?.created_at ?? o.created_at} />
                      </span>
                    </li>
                  ))}
                {others.data.value?.conversations.length === 1 && <li class="muted">No others</li>}
              </ul>
              <h3>Executions</h3>
              <ContactExecutions id={contactId} limit={5} />
            </div>
          )}
        </Load>
      )}
    </aside>
  );
}
