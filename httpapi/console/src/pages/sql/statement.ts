// What the page knows of statements and their answers.
import type { API } from "../../data";

export type Table = API.SQLTable;
export type Answer = API.SQLResult;

/** A name as it is written in a statement. */
export const quoteName = (name: string) => (/^[a-z_][a-z0-9_]*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`);

/** A statement without comments and texts, which hold no parameters or names. */
export const bare = (query: string) => query.replace(/'(?:[^']|'')*'|--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)/g, " ");

export type Source = { table: Table; keys: number[] };

/** The one table that the rows of an answer are of, and which columns are its key; undefined when a row cannot be found again. */
export function source(query: string, answer: Answer, tables: Table[]): Source | undefined {
  const text = bare(query);
  const found =
    /^\s*select\b[\s\S]*?\bfrom\s+"?(\w+)"?\s*(?:(?:as\s+)?(?!where|order|limit|group|join|left|inner|cross|natural|union|having|window\b)\w+\s*)?(?:$|;|where\b|order\b|limit\b)/i.exec(
      text,
    );
  const table = found && tables.find((t) => t.name.toLowerCase() === found[1].toLowerCase());
  if (!table || /\b(join|union|group\s+by|distinct|intersect|except)\b/i.test(text)) return undefined;
  const keys = table.columns.filter((c) => c.primary_key).map((c) => answer.columns.indexOf(c.name));
  const twice = new Set(answer.columns).size < answer.columns.length;
  return keys.length && !keys.includes(-1) && !twice ? { table, keys } : undefined;
}
