// The records that an event is about: what they are called, and where they are.
import { agentId, href } from "../data";

type NamedRecord = { id?: string; name?: string; title?: string };
type Failed = NamedRecord & { error?: { message?: string } | null };
/** What an event says of the records that it is about. */
export type EventData = {
  message?: { content?: string };
  conversation?: NamedRecord & { status?: string; gateway_id?: string };
  contact?: NamedRecord;
  execution?: Failed;
  workflow?: NamedRecord;
  source?: Failed;
  takeover?: { reason?: string };
  schedule?: NamedRecord;
  task?: NamedRecord;
  session?: NamedRecord;
  gateway?: NamedRecord & { last_error?: string };
  table?: string;
  row?: NamedRecord;
  agent?: NamedRecord;
};

/** One line about an event. */
export function aboutRecord({ type, data }: { type: string; data?: EventData | null }): string {
  const d = data ?? {};
  const name = (r?: NamedRecord) => r?.name ?? r?.title ?? r?.id ?? "";
  if (d.message) return [name(d.contact), d.message.content].filter(Boolean).join(": ");
  if (d.execution) return [name(d.workflow), d.execution.error?.message].filter(Boolean).join(": ");
  if (d.source) return [name(d.source), d.source.error?.message].filter(Boolean).join(": ");
  if (d.takeover) return d.takeover.reason || "A browser session";
  if (d.schedule) return name(d.schedule);
  if (d.task) return name(d.task);
  if (d.conversation) return [name(d.contact), d.conversation.status].filter(Boolean).join(": ");
  if (d.contact) return name(d.contact);
  if (d.gateway)
    return [name(d.gateway), type === "gateway.error" ? d.gateway.last_error : ""].filter(Boolean).join(": ");
  if (d.row) return [d.table, d.row.name ?? d.row.title ?? d.row.id].filter((x) => x != null).join(": ");
  if (d.agent) return name(d.agent);
  return "";
}

/** The pages of the records of an event. */
export function recordLinks({ data }: { data?: EventData | null }): [title: string, to: string][] {
  const d = data ?? {};
  const id = agentId.value;
  const found: [NamedRecord | undefined, string, (string | undefined)[]][] = [
    [
      d.conversation,
      "Conversation",
      d.gateway || d.conversation?.gateway_id ? ["inbox", d.conversation?.id] : ["chat", d.conversation?.id],
    ],
    [d.contact, "Contact", ["contacts", d.contact?.id]],
    [d.execution, "Execution", ["workflows", "executions", d.execution?.id]],
    [d.workflow, "Workflow", ["workflows", d.workflow?.id]],
    [d.source, "Source", ["knowledge", d.source?.id]],
    [d.schedule, "Schedule", ["schedules", d.schedule?.id]],
    [d.task, "Calendar", ["calendar"]],
    [d.session, "Browser session", ["browser", d.session?.id]],
    [d.table ? { id: d.table } : undefined, "Table", ["tables", d.table]],
    [d.gateway, "Channel", ["channels", d.gateway?.id]],
  ];
  return found.filter(([r]) => r?.id).map(([, title, to]) => [title, href(id, ...to.map((part) => part ?? ""))]);
}
