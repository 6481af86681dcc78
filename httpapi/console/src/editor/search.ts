// Finding types of nodes by words.
import { catalog, type NodeType } from "./catalog";

/** Scores how well a type fits a word: its label counts more than its synonyms, these more than the rest. */
function scoreOf(type: NodeType, word: string): number {
  const label = type.label.toLowerCase();
  const synonyms = type.synonyms.map((synonym) => synonym.toLowerCase());
  if (label.startsWith(word)) return 8;
  if (synonyms.includes(word)) return 6;
  if (label.includes(word)) return 4;
  if (synonyms.some((synonym) => synonym.startsWith(word))) return 3;
  return `${type.summary} ${type.group} ${type.type}`.toLowerCase().includes(word) ? 1 : 0;
}

/** Returns the types that fit every word of a search, the best first. */
export function searchTypes(search: string): NodeType[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const { types } = catalog.value;
  if (!words.length) return types;
  return types
    .map((type) => {
      const scores = words.map((word) => scoreOf(type, word));
      return { type, score: scores.includes(0) ? 0 : scores.reduce((sum, score) => sum + score) };
    })
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score)
    .map(({ type }) => type);
}
