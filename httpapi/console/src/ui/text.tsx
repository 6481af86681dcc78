// How values are written.
import type { ComponentChildren } from "preact";

import { clockTime, fullTime, mediumDate, mediumTime, secondTime, writeTime } from "../parts/zone";

/** A name that somebody chose, kept apart from the text around it whatever its direction. */
export const Name = ({ children }: { children: ComponentChildren }) => <bdi>{children}</bdi>;

/** Who did something, as versions and the log have it. Without access control nobody is known. */
export const Author = ({ who }: { who: string }) =>
  who === "open mode" ? <>Anyone (no login)</> : who === "anonymous" ? <>Anonymous</> : <Name>{who}</Name>;

/** A time span in milliseconds as people say it. */
export function span(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1).replace(".0", "")} s`;
  let left = Math.round(ms / 1000);
  const parts = (
    [
      ["d", 86_400],
      ["h", 3600],
      ["min", 60],
      ["s", 1],
    ] as const
  ).map(([unit, seconds]) => {
    const n = Math.floor(left / seconds);
    left -= n * seconds;
    return n ? `${n} ${unit}` : "";
  });
  const first = parts.findIndex(Boolean);
  return parts
    .slice(first, first + 2)
    .filter(Boolean)
    .join(" ");
}

/** How long ago, or in how long, a moment is. */
export function ago(time: string | number | Date, now = Date.now()): string {
  const ms = now - new Date(time).getTime();
  const far = Math.abs(ms);
  if (far < 45_000) return ms >= 0 ? "now" : "in a moment";
  const [n, unit] =
    far < 3_570_000
      ? [Math.round(far / 60_000), "min"]
      : far < 84_600_000
        ? [Math.round(far / 3_600_000), "h"]
        : [Math.round(far / 86_400_000), "d"];
  return ms >= 0 ? `${n} ${unit} ago` : `in ${n} ${unit}`;
}

/** A moment: how long ago it is, in full on hover. Older than a week: its date. */
export function When({ time, full = false }: { time?: string | null; full?: boolean }) {
  if (!time) return <span class="muted">never</span>;
  const date = new Date(time);
  const old = Math.abs(Date.now() - date.getTime()) > 7 * 86_400_000;
  const text = full ? writeTime(date, undefined, mediumTime) : old ? writeTime(date, undefined, mediumDate) : ago(date);
  return (
    <time dateTime={time} title={writeTime(date, undefined, secondTime)}>
      {text}
    </time>
  );
}

/** A moment to the second. */
export function Moment({ time }: { time?: string | null }) {
  if (!time) return <span class="muted">–</span>;
  const date = new Date(time);
  const now = new Date();
  const year = date.getFullYear() === now.getFullYear() ? undefined : "numeric";
  const day =
    date.toDateString() === now.toDateString()
      ? ""
      : `${writeTime(date, undefined, { day: "numeric", month: "short", year })}, `;
  return (
    <time class="moment" dateTime={time} title={writeTime(date, undefined, fullTime)}>
      {day}
      {writeTime(date, undefined, clockTime)}
    </time>
  );
}

/** Bytes as people say them. */
export function size(bytes: number): string {
  const units = ["B", "KB", "MB", "GB"];
  let n = 0;
  for (; bytes >= 1024 && n < 3; n++) bytes /= 1024;
  return `${bytes < 10 && n > 0 ? bytes.toFixed(1) : Math.round(bytes)} ${units[n]}`;
}

/** A number with its noun: 1 source, 2 sources. */
export const plural = (n: number, noun: string, many = `${noun}s`) => `${n.toLocaleString()} ${n === 1 ? noun : many}`;

const tones: Record<string, string> = {
  ready: "good",
  complete: "good",
  success: "good",
  active: "good",
  delivered: "good",
  connected: "good",
  sent: "good",
  completed: "good",
  error: "bad",
  errored: "bad",
  failed: "bad",
  locked: "bad",
  terminated: "bad",
  expired: "bad",
  rejected: "bad",
  processing: "busy",
  crawling: "busy",
  updating: "busy",
  running: "busy",
  queued: "busy",
  pending: "busy",
  waiting: "warn",
  paused: "warn",
  disabled: "warn",
  muted: "warn",
};

/** A state in a word, coloured by what it means. */
export function Badge({
  children,
  tone,
  title,
}: {
  children: ComponentChildren;
  tone?: "good" | "bad" | "busy" | "warn" | "plain";
  title?: string;
}) {
  const text = typeof children === "string" ? children : "";
  return (
    <span class={`badge ${tone ?? tones[text] ?? ""}`} title={title}>
      {children}
    </span>
  );
}

/** Markdown without its marks, for one line of a list. */
export const unmarked = (text: string) =>
  text.replace(/\*\*|__|`+|\s*\[\d+\]/g, "").replace(/^\s*(#{1,6}|>|[-*])\s+/gm, "");

/** A key of the keyboard. */
export const Key = ({ children }: { children: ComponentChildren }) => <kbd>{children}</kbd>;

const platformNames: Record<string, string> = {
  chatbot_a: "Telegram",
  chatbot_b: "WhatsApp",
  team_chat: "Slack",
  community_chat: "Discord",
  sms: "SMS",
  email: "Email",
  email_provider_a: "Resend",
  email_provider_b: "SMTP",
  sms_provider: "Twilio",
  webhook: "Webhook",
  web: "Website",
};

/** What a platform is called, from its name in the API. */
export const platformName = (type?: string | null) => (type ? (platformNames[type] ?? type) : "");
