import type { ComponentChildren } from "preact";

type Range = number[]; // of two: from and to

/** How much of a text may come before its first mark in an excerpt. */
const lead = 160;

/** A text with words marked, and one sentence of it: [from, to) in UTF-16 code units. An excerpt begins at what is marked. */
export function Highlighted({ text, ranges = [], best, excerpt }: { text: string; ranges?: Range[]; best?: Range | null; excerpt?: boolean }) {
  const first = best?.[0] ?? ranges[0]?.[0] ?? 0;
  const start = excerpt && first > lead ? first : 0;
  const before = start ? "… " : "";
  if (!best || best[1] <= best[0]) return <>{before}{marked(text, start, text.length, ranges)}</>;
  const [from, to] = best;
  return <>{before}{marked(text, start, from, ranges)}<span class="best-sentence">{marked(text, from, to, ranges)}</span>{marked(text, to, text.length, ranges)}</>;
}

/** A part of a text with the ranges marked that are in it. */
function marked(text: string, start: number, end: number, ranges: Range[]): ComponentChildren[] {
  const parts: ComponentChildren[] = [];
  let at = start;
  for (const [from, to] of [...ranges].sort((a, b) => a[0] - b[0])) {
    if (from < at || to <= from || to > end) continue;
    parts.push(text.slice(at, from), <mark>{text.slice(from, to)}</mark>);
    at = to;
  }
  return [...parts, text.slice(at, end)];
}
