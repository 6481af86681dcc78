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
