// Templates: their paths and filters, filling them, and suggestions while one is typed.
import type { Editor } from "./index";
import { formatDate } from "./templatedate";

/** The filters of templates, with what each of them does. */
export const filters: [string, string][] = [
  ['default:""', "in place of what is missing"],
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

const pathSegment = /^\s*(?:\.?([\p{L}_$][\p{L}\p{N}_$-]*)|\[(\d+)\]|\["((?:[^"\\]|\\.)*)"\])/u;
const maxSuggestions = 40;
const maxIndexes = 20; // of a list, suggested

/** Reads a path such as a.b[0]["c d"]; null if it is not one. */
export function readPath(text: string): (string | number)[] | null {
  const path: (string | number)[] = [];
  for (let rest = text.trim(); rest;) {
    const segment = pathSegment.exec(rest);
    if (!segment) return null;
    const [matched, name, index, quoted] = segment;
    path.push(name ?? (index !== undefined ? Number(index) : JSON.parse(`"${quoted}"`)));
    rest = rest.slice(matched.length);
  }
  return path.length ? path : null;
}

/** Writes a path as templates do: a.b[0]["c d"]. */
export const writePath = (path: (string | number)[]) =>
  path
    .map((key, index) => {
      if (typeof key === "number") return `[${key}]`;
      if (!/^[\p{L}_$][\p{L}\p{N}_$-]*$/u.test(key)) return `[${JSON.stringify(key)}]`;
      return index ? `.${key}` : key;
    })
    .join("");

/** Returns the value at a path; undefined if the path leads nowhere. */
export const lookup = (scope: unknown, path: (string | number)[]) =>
  path.reduce(
    (value, key) =>
      value !== null && typeof value === "object" && Object.hasOwn(value, key)
        ? (value as Record<string | number, unknown>)[key]
        : undefined,
    scope,
  );

function asText(value: unknown): string {
  if (value === null || value === undefined) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

function lengthOf(value: unknown): number {
  if (typeof value === "string") return [...value].length;
  return value && typeof value === "object" ? Object.keys(value).length : 0;
}

function applyFilter(value: unknown, filter: string): unknown {
  const [name, ...args] = filter.trim().split(/:(.*)/s);
  let argument = "";
  try {
    argument = args[0] ? JSON.parse(args[0].trim()) : "";
  } catch {
    argument = args[0];
  }
  switch (name.trim()) {
    case "default":
      return value === undefined || value === null || value === "" ? argument : value;
    case "optional":
      return value ?? null;
    case "text":
      return value === undefined || value === null ? value : asText(value);
    case "upper":
      return asText(value).toUpperCase();
    case "lower":
      return asText(value).toLowerCase();
    case "trim":
      return asText(value).trim();
    case "json":
      return JSON.stringify(value ?? null);
    case "length":
      return lengthOf(value);
    case "first":
      return Array.isArray(value) ? value[0] : value;
    case "last":
      return Array.isArray(value) ? value.at(-1) : value;
    case "join":
      return Array.isArray(value) ? value.map(asText).join(argument) : value;
    case "date":
      return formatDate(value, String(argument));
    case "url":
      return encodeURIComponent(asText(value));
    default:
      return value;
  }
}

const templates = /\{\{((?:"(?:[^"\\]|\\.)*"|[^{}])*)\}\}/g;
const filterSeparator = /\|(?=(?:[^"]*"[^"]*")*[^"]*$)/; // a | outside of quotes

/** Returns the value of a template's head, which is a literal or a path. */
function valueOf(head: string, scope: unknown): unknown {
  const literal = /^\s*"(.*)"\s*$/s.exec(head);
  if (literal) return literal[1];
  const path = readPath(head);
  return path ? lookup(scope, path) : undefined;
}

/** Fills the templates of a text; missing lists those whose path leads nowhere. */
export function fill(text: string, scope: unknown): { text: string; missing: string[] } {
  const missing: string[] = [];
  const filled = text.replace(templates, (template, expression: string) => {
    const [head, ...filters] = expression.split(filterSeparator);
    let value = valueOf(head, scope);
    const isOptional = filters.some((filter) => /^\s*(default|optional)\b/.test(filter));
    if (value === undefined && !isOptional) missing.push(head.trim());
    for (const filter of filters) value = applyFilter(value, filter);
    return value === null && template === text ? "null" : asText(value); // a template alone keeps its type
  });
  return { text: filled, missing };
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

/** Returns suggestions for the cursor's position in a text; null outside of a template. names returns the name of a node by its id. */
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
