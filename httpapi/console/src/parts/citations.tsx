// Citations: [1] in an answer leads to the passage that it stands on.
import type { ComponentChildren } from "preact";

/** A passage that the model was given, by the number that it cites. */
export type Citation = {
  n: number;
  chunk: string;
  source: string;
  name: string;
  place: string;
  url: string;
  score: number;
  content: string;
  matches: [number, number][];
  best: [number, number] | null;
};

type Place = { source_name?: string; place?: string; page?: number; section?: string; url?: string };

/** A citation of the API, or as it was stored with a message. */
export type Cited = Place & {
  n?: number;
  number?: number;
  id?: string;
  chunk_id?: string;
  source_id?: string;
  score?: number;
  content?: string;
  matches?: number[][];
  best_sentence?: number[] | null;
  metadata?: Place;
};

/** Reads citations of the API, from a stream, a stored message or a search. */
export function citationsOf(list: Cited[] | undefined): Citation[] {
  return (list ?? []).map((s, i) => {
    const at: Place = s.metadata ?? s;
    return {
      n: s.n ?? s.number ?? i + 1,
      chunk: s.chunk_id ?? s.id ?? "",
      source: s.source_id ?? "",
      name: s.source_name ?? at.source_name ?? "",
      // Answers stored by earlier versions have no place.
      place: at.place || [at.page && `page ${at.page}`, at.section].filter(Boolean).join(" · "),
      url: at.url ?? "",
      score: s.score ?? 0,
      content: s.content ?? "",
      matches: (s.matches ?? []) as [number, number][],
      best: (s.best_sentence ?? null) as [number, number] | null,
    };
  });
}

/** Where in its source a passage is. */
export const placeOf = (c: Citation) => [c.name, c.place].filter(Boolean).join(" · ");

const pattern = /\[(\d{1,3})\]/g;

/** The numbers that a text cites, of those that were given. */
export function cited(text: string, given: Citation[]): Set<number> {
  return new Set([...text.matchAll(pattern)].map((m) => Number(m[1])).filter((n) => given.some((c) => c.n === n)));
}

/** Replaces [n] by a button where n was given; other numbers stay text. */
export function withCitations(text: string, given: Citation[], open: (c: Citation) => void): ComponentChildren {
  const parts: ComponentChildren[] = [];
  let from = 0;
  for (const match of text.matchAll(pattern)) {
    const found = given.find((c) => c.n === Number(match[1]));
    if (!found) continue;
    parts.push(
      text.slice(from, match.index),
      <button
        type="button"
        class="cite"
        title={placeOf(found)}
        aria-label={`Source ${found.n}: ${placeOf(found)}`}
        onClick={() => open(found)}
      >
        {found.n}
      </button>,
    );
    from = match.index + match[0].length;
  }
  return from ? [...parts, text.slice(from)] : text;
}
