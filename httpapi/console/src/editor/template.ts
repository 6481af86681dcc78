// Templates: their paths and filters, filling them, and suggestions while one is typed.
import type { Editor } from "./state";
import { applyFilter, asText, type Operand } from "./templatefilters";
import { parse, Parser, type Expression, type Path } from "./templateparser";
import { zone } from "./zone";

/** The filters of templates, with what each of them does. */
export const filters: [string, string][] = [
  ['default:""', "in place of what is missing"],
  ["default:[]", "an empty list in place of what is missing"],
  ["optional", "null if it is missing"],
  ["text", "as text"],
  ["upper", "in capitals"],
  ["lower", "in small letters"],
  ["trim", "without space around it"],
  ["json", "as JSON"],
  ["length", "how many"],
  ["first", "of a list"],
  ["last", "of a list"],
  ['join:", "', "a list as text"],
  ['date:"D MMMM YYYY HH:mm"', "a time"],
  ["url", "for an address"],
];

const maxSuggestions = 40;
const maxIndexes = 20; // of a list, suggested

/** Reads a path such as a.b[0]["c d"]; null if it is not one. */
export function readPath(text: string): Path | null {
  try {
    const parser = new Parser(text.trim());
    const path = parser.path();
    return parser.atEnd ? path : null;
  } catch {
    return null;
  }
}

/** Writes a path as templates do: a.b[0]["c d"]. */
export const writePath = (path: Path) =>
  path
    .map((key, index) => {
      if (typeof key === "number") return `[${key}]`;
      if (!/^[\p{L}_$][\p{L}\p{N}_$-]*$/u.test(key)) return `[${JSON.stringify(key)}]`;
      return index ? `.${key}` : key;
    })
    .join("");

/** Returns the value at a path; undefined if the path leads nowhere. */
export const lookup = (scope: unknown, path: Path) =>
  path.reduce((value, key) => {
    if (Array.isArray(value)) return typeof key === "number" ? value[key] : undefined;
    const holds = value !== null && typeof value === "object" && Object.hasOwn(value, key);
    return holds ? (value as Record<string | number, unknown>)[key] : undefined;
  }, scope);

/** A text with its templates filled: value is that of a template alone, with its type. */
export type Filled = { value: unknown; text: string; missing: string[]; problem?: string };

/** Fills the templates of a text; missing lists those without a value, problem says why the text is not a template. */
export function fill(text: string, scope: unknown, timeZone = zone.value): Filled {
  const missing: string[] = [];
  const valueOf = (expression: Expression) => {
    const { source, path, literal, filters } = expression;
    const found = path ? lookup(scope, path) : literal;
    const operand: Operand = found === undefined ? { value: "", missing: true } : { value: found };
    const result = filters.reduce((value, call) => applyFilter(value, call, timeZone), operand);
    if (result.missing) missing.push(source);
    return result.value;
  };
  try {
    const parts = parse(text);
    const [first] = parts;
    const isAlone = parts.length === 1 && typeof first !== "string";
    const value = isAlone
      ? valueOf(first)
      : parts.map((part) => (typeof part === "string" ? part : asText(valueOf(part)))).join("");
    return { value, text: value === null ? "null" : asText(value), missing };
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return { value: text, text, missing, problem: error.message };
  }
}

/** Reports whether a value is a text with a template. */
export const hasTemplate = (value: unknown) => typeof value === "string" && value.includes("{{");

/** A completion of a template: what is inserted, and what is shown of it. */
export type Suggestion = { insert: string; label: string; value?: unknown; note?: string };

/** Suggestions, and where the text that they replace begins. */
type Completion = { from: number; list: Suggestion[] };

function suggestFilters(typed: string, cursor: number): Completion {
  const word = typed.trimStart();
  const matching = filters.filter(([filter]) => filter.startsWith(word));
  return {
    from: cursor - word.length,
    list: matching.map(([filter, note]) => ({ insert: filter, label: filter, note })),
  };
}

/** Returns the keys of an object or list; null for other values. */
function keysOf(value: unknown): (string | number)[] | null {
  if (value === null || typeof value !== "object") return null;
  return Array.isArray(value) ? value.slice(0, maxIndexes).map((_, index) => index) : Object.keys(value);
}

/**
 * Returns suggestions for the cursor's position in a text; null outside of a template. names returns the name of a node
 * by its id.
 */
export function suggest(
  text: string,
  cursor: number,
  scope: Record<string, unknown>,
  names: (id: string) => string,
): Completion | null {
  const before = text.slice(0, cursor);
  const open = before.lastIndexOf("{{");
  if (open < 0 || before.indexOf("}}", open) >= 0) return null;
  const typed = before.slice(open + 2);
  const bar = typed.lastIndexOf("|");
  if (bar >= 0) return suggestFilters(typed.slice(bar + 1), cursor);

  const typedPath = typed.trimStart();
  const separator = Math.max(typedPath.lastIndexOf("."), typedPath.lastIndexOf("["));
  const parentPath = separator < 0 ? [] : readPath(typedPath.slice(0, separator));
  if (parentPath === null) return null;
  const parent = parentPath.length ? lookup(scope, parentPath) : scope;
  const keys = keysOf(parent);
  if (!keys) return { from: cursor, list: [] };
  const word = typedPath
    .slice(separator + 1)
    .replace(/^"/, "")
    .toLowerCase();
  const areNodes = parentPath[0] === "nodes" && parentPath.length === 1;
  const noteOf = (key: string | number) => (areNodes ? names(String(key)) : undefined);
  const matches = (key: string | number) =>
    [String(key), noteOf(key)].some((name) => name?.toLowerCase().includes(word));
  const list = keys.filter(matches).map((key) => {
    const path = writePath([...parentPath, key]);
    return { insert: path, label: path, value: (parent as Record<string | number, unknown>)[key], note: noteOf(key) };
  });
  return { from: cursor - typedPath.length, list: list.slice(0, maxSuggestions) };
}

/** Returns a function that returns the name of a node by its id. */
export const labelsOf = (editor: Editor) => (id: string) => editor.nameOf(id);
