// The platforms that a channel can be on: what each needs, and how to get it.
import type { IconName } from "../../ui";

export type PlatformField = {
  name: string;
  label: string;
  hint?: string;
  placeholder?: string;
  required?: boolean;
  kind?: "secret" | "number" | "email" | "url" | "choice" | "pairs";
  options?: [string, string][];
  /** Few set it: it is folded away. */
  more?: boolean;
};

export type Platform = {
  /** What the API takes as the type of a new channel. */
  id: string;
  /** The type of its records. */
  type: string;
  title: string;
  icon: IconName;
  about: string;
  /** What one needs before one begins. */
  needs: string;
  steps: string[];
  link?: [address: string, text: string];
  fields: PlatformField[];
  /** How its people and chats are called in a test message. */
  to: string;
  /** How messages come in. */
  receives: "poll" | "webhook" | "manual" | "none";
  /** The section that has its forms, where they are not here. */
  section?: string;
};

const secret = (name: string, label: string, more: Partial<PlatformField> = {}): PlatformField => ({
  name,
  label,
  kind: "secret",
  ...more,
});
const base: PlatformField = {
  name: "apiBaseUrl",
  label: "Address of the platform's API",
  kind: "url",
  more: true,
  hint: "Only if it differs from the platform's own.",
};
const twilio = (number: string): PlatformField[] => [
  { name: "accountSid", label: "Account SID", required: true, placeholder: "AC…" },
  secret("authToken", "Auth token", { required: true }),
  {
    name: "phoneNumber",
    label: number,
    required: true,
    placeholder: "+15550001111",
    hint: "Or a messaging service, MG…",
  },
  base,
];
const from: PlatformField[] = [
  { name: "fromAddress", label: "From: address", kind: "email", required: true, placeholder: "support@example.com" },
  { name: "fromName", label: "From: name", placeholder: "Support" },
];

export const platforms: Platform[] = [
  {
    id: "web",
    type: "web",
    title: "Website",
    icon: "Globe",
    about: "A chat widget on your own pages.",
    needs: "A website, and a public address of this server.",
    steps: [],
    fields: [],
    to: "",
    receives: "none",
    section: "widget",
  },
  {
    id: "telegram",
    type: "chatbot_a",
    title: "Telegram",
    icon: "Send",
    about: "A bot that people write to, alone or in groups.",
    needs: "A bot token from @BotFather. No public address.",
    steps: [
      "In Telegram, write /newbot to @BotFather and choose a name.",
      "BotFather replies with the bot token, such as 110201543:AAHdqTcv…",
      "Message your bot: it shows up in the Inbox.",
    ],
    link: ["https://t.me/BotFather", "Open @BotFather"],
    fields: [
      secret("botToken", "Bot token", { required: true, hint: "From @BotFather." }),
      secret("webhookSecret", "Webhook secret", { more: true, hint: "Empty: one is generated." }),
      base,
    ],
    to: "Chat id, or @channel",
    receives: "poll",
  },
  {
    id: "whatsapp",
    type: "chatbot_b",
    title: "WhatsApp",
    icon: "MessageCircle",
    about: "WhatsApp Business through Twilio.",
    needs: "A Twilio account with a WhatsApp sender, and a public address.",
    steps: [
      "In Twilio's console, find Account SID and Auth token.",
      "Under Messaging › Senders, take the number of your WhatsApp sender.",
      "After connecting, enter the webhook address there.",
    ],
    link: ["https://console.twilio.com/", "Open Twilio"],
    fields: twilio("Sender number"),
    to: "Number, such as +15551234567",
    receives: "manual",
  },
  {
    id: "slack",
    type: "team_chat",
    title: "Slack",
    icon: "Hash",
    about: "An app in your workspace: direct messages, mentions, channels.",
    needs: "A Slack app with a bot token and a signing secret, and a public address.",
    steps: [
      "On api.slack.com/apps, create an app from scratch.",
      "Under OAuth & Permissions, give the bot chat:write, im:history and app_mentions:read, install it, " +
        "and copy the Bot User OAuth Token.",
      "From Basic Information, copy the Signing Secret.",
      "After connecting, enter the webhook address under Event Subscriptions.",
    ],
    link: ["https://api.slack.com/apps", "Open Slack's apps"],
    fields: [
      secret("botToken", "Bot User OAuth Token", { required: true, hint: "Begins with xoxb-." }),
      secret("signingSecret", "Signing secret", { required: true }),
      base,
    ],
    to: "Channel or user, such as C024BE91L",
    receives: "manual",
  },
  {
    id: "discord",
    type: "community_chat",
    title: "Discord",
    icon: "MessagesSquare",
    about: "A command such as /ask in your servers.",
    needs: "A Discord application with a bot, and a public address.",
    steps: [
      "On discord.com/developers, create an application; under Bot, reset and copy the token.",
      "From General Information, copy Application ID and Public Key.",
      "Invite the bot and give it a command, such as /ask with a text option.",
    ],
    link: ["https://discord.com/developers/applications", "Open Discord's applications"],
    fields: [
      secret("botToken", "Bot token", { required: true }),
      { name: "applicationId", label: "Application ID", required: true },
      { name: "publicKey", label: "Public key", required: true, hint: "64 hexadecimal digits." },
      base,
    ],
    to: "Channel id",
    receives: "webhook",
  },
  {
    id: "twilio",
    type: "sms",
    title: "SMS",
    icon: "Smartphone",
    about: "Text messages through Twilio.",
    needs: "A Twilio account with a number, and a public address to receive.",
    steps: ["In Twilio's console, find Account SID and Auth token.", "Buy a number, or use one you have."],
    link: ["https://console.twilio.com/", "Open Twilio"],
    fields: twilio("Your number"),
    to: "Number, such as +15551234567",
    receives: "webhook",
  },
  {
    id: "resend",
    type: "email",
    title: "Resend",
    icon: "Mail",
    about: "Email in and out through Resend.",
    needs: "A Resend API key and a domain that it has verified.",
    steps: [
      "In Resend, add your domain and verify it.",
      "Create an API key with full access.",
      "To receive email too, add the webhook address with the event email.received and copy its signing secret.",
    ],
    link: ["https://resend.com/api-keys", "Open Resend"],
    fields: [
      secret("apiKey", "API key", { required: true, hint: "Begins with re_." }),
      ...from,
      secret("webhookSecret", "Webhook signing secret", { hint: "For incoming email." }),
      base,
    ],
    to: "Email address",
    receives: "manual",
  },
  {
    id: "smtp",
    type: "email",
    title: "SMTP",
    icon: "Mail",
    about: "Sends email over your own mail server.",
    needs: "The mail server's name and a login. Sending only.",
    steps: [
      "Ask your mail provider for the server's name and port.",
      "Many providers require an app password instead of your own.",
    ],
    fields: [
      { name: "smtpHost", label: "Server", required: true, placeholder: "mail.example.com" },
      { name: "smtpPort", label: "Port", kind: "number", placeholder: "587" },
      {
        name: "smtpTls",
        label: "Encryption",
        kind: "choice",
        options: [
          ["", "STARTTLS"],
          ["tls", "TLS from the start"],
          ["none", "None"],
        ],
      },
      { name: "smtpUsername", label: "User name" },
      secret("smtpPassword", "Password"),
      ...from,
    ],
    to: "Email address",
    receives: "none",
  },
  {
    id: "webhook",
    type: "webhook",
    title: "Custom webhook",
    icon: "Webhook",
    about: "Anything that speaks HTTP: your shop, your app, another bot.",
    needs: "An address of yours that accepts messages, or just a secret to receive them.",
    steps: [
      "The agent's messages are posted to your address, signed.",
      "Post incoming messages to the channel's webhook address, with its secret.",
    ],
    fields: [
      {
        name: "url",
        label: "Your address",
        kind: "url",
        placeholder: "https://shop.example.com/from-satchel",
        hint: "The agent's messages are posted here. Empty: the channel only receives.",
      },
      secret("secret", "Secret", {
        hint: "Signs and verifies messages. Empty: one is generated; a channel that only receives needs your own.",
      }),
      { name: "headers", label: "Headers", kind: "pairs", more: true, hint: "Sent with every message." },
    ],
    to: "Any name, such as customer-42",
    receives: "manual",
  },
];

/** The platform of a channel. Email has two; which it is depends on the fields that are set. */
export function platformOf(g: { type: string; configured_fields: string[] }): Platform | undefined {
  if (g.type !== "email") return platforms.find((p) => p.type === g.type);
  const resend = g.configured_fields.includes("apiKey") || !g.configured_fields.some((f) => f.startsWith("smtp"));
  return platforms.find((p) => p.id === (resend ? "resend" : "smtp"));
}
