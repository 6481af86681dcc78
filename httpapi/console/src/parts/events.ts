// The events of the service, in groups.
/** Events of one kind, and the pattern that matches them all. */
export type EventGroup = { title: string; pattern: string; events: [name: string, about: string][] };

/** The groups of events. */
export const eventGroups: EventGroup[] = [
  {
    title: "Messages",
    pattern: "message.*",
    events: [
      ["message.received", "Someone wrote to the agent"],
      ["message.sent", "The agent, or a person, answered"],
    ],
  },
  {
    title: "Conversations",
    pattern: "conversation.*",
    events: [
      ["conversation.created", "A conversation started"],
      ["conversation.updated", "Its status, its assignee, or whether the agent answers automatically changed"],
    ],
  },
  {
    title: "Contacts",
    pattern: "contact.*",
    events: [
      ["contact.created", "A contact was created"],
      ["contact.updated", "A contact changed"],
      ["contact.deleted", "A contact was deleted"],
    ],
  },
  {
    title: "Workflows",
    pattern: "workflow.*",
    events: [
      ["workflow.started", "An execution started"],
      ["workflow.complete", "An execution completed"],
      ["workflow.errored", "An execution failed"],
      ["workflow.terminated", "An execution was terminated"],
    ],
  },
  {
    title: "Tables",
    pattern: "row.*",
    events: [
      ["row.created", "A row was added to a table"],
      ["row.updated", "A table row changed"],
      ["row.deleted", "A table row was deleted"],
    ],
  },
  {
    title: "Knowledge",
    pattern: "source.*",
    events: [
      ["source.ready", "A source is ready to search"],
      ["source.error", "A source failed"],
    ],
  },
  {
    title: "Schedules",
    pattern: "schedule.*",
    events: [
      ["schedule.executed", "A schedule ran"],
      ["schedule.missed", "A schedule did not run when it was due"],
    ],
  },
  { title: "Calendar", pattern: "calendar.*", events: [["calendar.due", "A task is due"]] },
  {
    title: "Channels",
    pattern: "gateway.*",
    events: [
      ["gateway.active", "A channel was verified"],
      ["gateway.error", "A channel failed"],
      ["gateway.event", "A platform sent something other than a message"],
    ],
  },
  {
    title: "Credentials",
    pattern: "credential.*",
    events: [["credential.failed", "A credential was refused, or needs a new sign-in"]],
  },
  {
    title: "Browser",
    pattern: "browser.*",
    events: [
      ["browser.takeover.requested", "A session needs a person"],
      ["browser.takeover.completed", "The person handed back"],
      ["browser.takeover.expired", "Nobody took over in time"],
    ],
  },
  {
    title: "Agent",
    pattern: "agent.*",
    events: [["agent.updated", "The agent's name, description or status changed"]],
  },
];

/** Reports whether a pattern takes in the name of an event. */
export const matches = (pattern: string, name: string) =>
  pattern === "*" || pattern === name || (pattern.endsWith(".*") && name.startsWith(pattern.slice(0, -1)));

/** What an event tells. */
export const aboutEvent = (name: string) =>
  eventGroups.flatMap((g) => g.events).find(([n]) => n === name)?.[1] ??
  (name === "webhook.test" ? "A manual test" : "");
