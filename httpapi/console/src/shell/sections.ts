// The pages of an agent: how they are called and where they are.
import type { IconName } from "../ui";

/** A section of the console: its part of the address, title, icon and file. */
export type Section = {
  /** Its part of the address. */
  id: string;
  title: string;
  icon: IconName;
  /** The file of its page. */
  page: string;
  /** The key that follows g. */
  key?: string;
  group?: string;
  /** The section that it is a part of: it has no entry of its own in the rail. */
  of?: string;
};

/** The section whose entry in the rail stands for one. */
export const railOf = (id: string) => sections.find((s) => s.id === id)?.of ?? id;

/** The sections, in the order of the navigation. */
export const sections: Section[] = [
  { id: "home", title: "Home", icon: "House", page: "home", key: "h" },
  { id: "chat", title: "Chat", icon: "MessageSquare", page: "chat", key: "c" },
  { id: "inbox", title: "Inbox", icon: "Inbox", page: "inbox", key: "i" },
  { id: "workflows", title: "Workflows", icon: "Workflow", page: "workflows", key: "w" },
  { id: "knowledge", title: "Knowledge", icon: "BookOpen", page: "knowledge", key: "k" },
  { id: "browser", title: "Browser", icon: "Globe", page: "browser", key: "b" },
  { id: "calendar", title: "Calendar & schedules", icon: "CalendarClock", page: "calendar", key: "s" },
  { id: "contacts", title: "Contacts", icon: "Users", page: "contacts", key: "p" },
  { id: "tables", title: "Data", icon: "Database", page: "tables", key: "d" },
  { id: "forms", title: "Forms", icon: "ListChecks", page: "forms", of: "tables" },
  { id: "sql", title: "SQL", icon: "Database", page: "sql", of: "tables" },
  { id: "channels", title: "Channels", icon: "Send", page: "channels", key: "n", group: "Connections" },
  { id: "widget", title: "Website widget", icon: "MessageCircle", page: "widget", group: "Connections" },
  { id: "tools", title: "Tools", icon: "Wrench", page: "tools", key: "t", group: "Connections" },
  { id: "apis", title: "APIs", icon: "Layers", page: "apis", group: "Connections" },
  { id: "credentials", title: "Credentials", icon: "KeyRound", page: "credentials", group: "Connections" },
  { id: "mcp", title: "MCP servers", icon: "Plug", page: "mcp", key: "m", group: "Connections" },
  { id: "webhooks", title: "Webhooks", icon: "Webhook", page: "webhooks", group: "Connections" },
  { id: "activity", title: "Activity", icon: "Activity", page: "activity", key: "a" },
  { id: "settings", title: "Settings", icon: "Settings", page: "settings", key: "," },
];

/** The sections of the bottom bar of a phone; the others are under More. */
export const mainSections = ["home", "chat", "inbox", "workflows"];

/** Addresses of earlier versions, and where they lead now. */
export const moved: Record<string, string[]> = {
  overview: ["home"],
  schedules: ["calendar", "schedules"],
  conversations: ["inbox"],
  data: ["tables"],
  gateways: ["channels"],
  logs: ["activity", "log"],
  access: ["settings", "access"],
};
