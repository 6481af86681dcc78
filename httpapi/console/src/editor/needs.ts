// What types of nodes need of the agent, such as a channel or a model.
const channels: Record<string, string> = {
  email: "an email channel",
  telegram: "a Telegram channel",
  whatsapp: "a WhatsApp channel",
  sms: "an SMS channel",
  slack: "a Slack channel",
  discord: "a Discord channel",
};

/** Returns what a type needs of the agent as text; empty for needs that are unknown. */
export function needText(need: string): string {
  if (need === "model") return "Needs a model";
  if (need === "browser") return "Needs a browser";
  if (!need.startsWith("gateway:")) return "";
  return `Needs ${channels[need.slice("gateway:".length)] ?? "a channel"}`;
}
