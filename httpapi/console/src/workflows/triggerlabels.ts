// The triggers of workflows in words.
const words: Record<string, string> = {
  manual: "By hand",
  webhook: "Webhook",
  schedule: "On a schedule",
  calendar: "Calendar task",
  workflow: "Another workflow",
  retry: "A retry",
  test: "A test",
  "message.received": "When a message arrives",
  "message.sent": "When a message is sent",
  "conversation.created": "When a conversation starts",
  "contact.created": "When a contact is created",
  "contact.updated": "When a contact changes",
  "source.ready": "When a source is ready",
  "source.error": "When a source fails",
  "workflow.errored": "When a workflow fails",
  "workflow.complete": "When a workflow completes",
};

/** Returns in words what started an execution. */
export const triggerLabel = (event: string) => words[event] ?? (event ? `On ${event}` : "");

/** Returns in words what starts a workflow. */
export const triggerLabels = (events?: string[]) => [...new Set(events ?? [])].map(triggerLabel).join(", ");
