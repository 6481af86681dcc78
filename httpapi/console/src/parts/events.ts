// The events that there are, by what they are about.
export type EventGroup = { title: string; pattern: string; events: [name: string, about: string][] };

export const eventGroups: EventGroup[] = [
  { title: "Messages", pattern: "message.*", events: [["message.received", "Somebody wrote to the agent"], ["message.sent", "The agent, or a person for it, answered"]] },
  { title: "Conversations", pattern: "conversation.*", events: [["conversation.created", "A conversation began"], ["conversation.updated", "Its status, its assignee, or whether the agent answers automatically changed"]] },
  { title: "Contacts", pattern: "contact.*", events: [["contact.created", "A contact was made"], ["contact.updated", "A contact changed"], ["contact.deleted", "A contact was deleted"]] },
  { title: "Workflows", pattern: "workflow.*", events: [["workflow.started", "An execution began"], ["workflow.complete", "An execution was completed"], ["workflow.errored", "An execution failed"], ["workflow.terminated", "An execution was terminated"]] },
  { title: "Tables", pattern: "row.*", events: [["row.created", "A row was added to a table"], ["row.updated", "A row of a table changed"], ["row.deleted", "A row of a table was deleted"]] },
  { title: "Knowledge", pattern: "source.*", events: [["source.ready", "A source was read and can be searched"], ["source.error", "A source could not be read"]] },
  { title: "Schedules", pattern: "schedule.*", events: [["schedule.executed", "A schedule ran"], ["schedule.missed", "A schedule did not run when it was due"]] },
  { title: "Calendar", pattern: "calendar.*", events: [["calendar.due", "A task is due"]] },
  { title: "Channels", pattern: "gateway.*", events: [["gateway.active", "A channel was verified"], ["gateway.error", "A channel failed"], ["gateway.event", "A platform told something that is no message"]] },
  { title: "Credentials", pattern: "credential.*", events: [["credential.failed", "A provider refused a credential, or a person has to sign in again"]] },
  { title: "Browser", pattern: "browser.*", events: [["browser.takeover.requested", "A session asks for a person"], ["browser.takeover.completed", "The person handed it back"], ["browser.takeover.expired", "Nobody came in time"]] },
  { title: "Agent", pattern: "agent.*", events: [["agent.updated", "The agent's name, description or status changed"]] },
];

/** Reports whether a pattern takes in the name of an event. */
export const matches = (pattern: string, name: string) => pattern === "*" || pattern === name || (pattern.endsWith(".*") && name.startsWith(pattern.slice(0, -1)));

/** What an event tells. */
export const aboutEvent = (name: string) => eventGroups.flatMap((g) => g.events).find(([n]) => n === name)?.[1] ?? (name === "webhook.test" ? "A test, sent by hand" : "");
