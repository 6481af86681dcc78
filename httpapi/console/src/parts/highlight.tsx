import type { ComponentChildren } from "preact";

/** A text with ranges marked: [from, to) in UTF-16 code units. */
export function Highlighted({ text, ranges = [] }: { text: string; ranges?: [number, number][] }) {
  const parts: ComponentChildren[] = [];
  let at = 0;
  for (const [from, to] of [...ranges].sort((a, b) => a[0] - b[0])) {
    if (from < at || to <= from) continue;
    parts.push(text.slice(at, from), <mark>{text.slice(from, to)}</mark>);
    at = to;
  }
  return <>{[...parts, text.slice(at)]}</>;
}

/** Where the words of a query stand in a text, for results that do not say it themselves. */
export function wordRanges(text: string, query: string): [number, number][] {
  const words = query.split(/[^\p{L}\p{N}]+/u).filter((w) => w.length > 2).map((w) => w.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  if (!words.length) return [];
  return [...text.matchAll(new RegExp(`(?<![\\p{L}\\p{N}])(?:${words.join("|")})`, "giu"))].map((m) => [m.index!, m.index! + m[0].length]);
}
