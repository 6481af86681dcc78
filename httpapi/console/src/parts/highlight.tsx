// Passages as people read them: Markdown without its marks, with what was found marked.
import type { ComponentChildren } from "preact";

type Range = number[]; // of two: from and to
type Kind = "hidden" | "heading" | "strong" | "best" | "match";
type Span = { kind: Kind; from: number; to: number };

/** How much of a text may come before its first mark in an excerpt. */
const lead = 160;

/** What stands around strong words, code, and the text of links and pictures. */
const inlineMarks = [/\*\*(?=\S)(.+?)\*\*/g, /`([^`]+)`/g, /!?\[([^\]]*)\]\([^)\s]*\)/g];

/**
 * What Markdown marks in a text: headings, strong words, and the marks themselves, which are hidden. Code keeps its
 * text.
 */
function markdownSpans(text: string): Span[] {
  const spans: Span[] = [];
  const hide = (from: number, to: number) => {
    if (to > from) spans.push({ kind: "hidden", from, to });
  };
  let at = 0,
    code = false;
  for (const line of text.split("\n")) {
    const end = at + line.length;
    const heading = /^ {0,3}#{1,6}\s+(?=\S)/.exec(line);
    if (/^\s*(```|~~~)/.test(line)) {
      code = !code;
      hide(at, Math.min(end + 1, text.length));
    } else if (!code && /^[|\s:-]*-{3}[|\s:-]*$/.test(line) && line.includes("|")) {
      hide(at, Math.min(end + 1, text.length)); // the line below the head of a table
    } else if (!code) {
      if (heading) {
        hide(at, at + heading[0].length);
        spans.push({ kind: "heading", from: at, to: end });
      }
      for (const pattern of inlineMarks) {
        for (const m of line.matchAll(pattern)) {
          const from = at + m.index!,
            to = from + m[0].length;
          const start = from + m[0].indexOf(m[1]);
          hide(from, start);
          hide(start + m[1].length, to);
          if (pattern === inlineMarks[0]) spans.push({ kind: "strong", from, to });
        }
      }
    }
    at = end + 1;
  }
  return spans;
}

/**
 * A passage with words and one sentence of it marked: [from, to) in UTF-16 code units. An excerpt begins at what is
 * marked and has no blank lines.
 */
export function Highlighted({
  text,
  ranges = [],
  best,
  excerpt,
}: {
  text: string;
  ranges?: Range[];
  best?: Range | null;
  excerpt?: boolean;
}) {
  const first = best?.[0] ?? ranges[0]?.[0] ?? 0;
  const start = excerpt && first > lead ? first : 0;
  const spans = markdownSpans(text);
  for (const [from, to] of ranges) spans.push({ kind: "match", from, to });
  if (excerpt)
    for (const m of text.matchAll(/\n(?:[ \t]*\n)+/g))
      spans.push({ kind: "hidden", from: m.index + 1, to: m.index + m[0].length }); // blank lines
  if (best) spans.push({ kind: "best", from: best[0], to: best[1] });
  return (
    <>
      {start ? "… " : ""}
      {pieces(text, start, spans)}
    </>
  );
}

/** The text from start, cut where a span begins or ends. */
function pieces(text: string, start: number, spans: Span[]): ComponentChildren[] {
  const cuts = new Set([start, text.length]);
  for (const { from, to } of spans) for (const n of [from, to]) if (n > start && n < text.length) cuts.add(n);
  const edges = [...cuts].sort((a, b) => a - b);
  return edges.slice(0, -1).map((from, i) => {
    const kinds = new Set(spans.filter((s) => s.from <= from && s.to > from).map((s) => s.kind));
    if (kinds.has("hidden")) return null;
    let piece: ComponentChildren = text.slice(from, edges[i + 1]);
    if (kinds.has("match")) piece = <mark>{piece}</mark>;
    if (kinds.has("heading") || kinds.has("strong")) piece = <strong>{piece}</strong>;
    return kinds.has("best") ? <span class="best-sentence">{piece}</span> : piece;
  });
}
