// Reads statements, and finds the table that an answer is of.
import type { API } from "../../data";

export type Table = API.SQLTable;
export type Answer = API.SQLResult;

/** A name as it is written in a statement. */
export const quoteName = (name: string) => (/^[a-z_][a-z0-9_]*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`);

/** A statement without comments and texts, which hold no parameters or names. */
export const bare = (query: string) => query.replace(/'(?:[^']|'')*'|--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)/g, " ");

/** The table of an answer's rows, and the indexes of the answer's columns that are its key. */
export type Source = { table: Table; keys: number[] };

/** A SELECT from one table, which may have an alias. */
const fromTable = new RegExp(
  String.raw`^\s*select\b[\s\S]*?\bfrom\s+"?(\w+)"?\s*` +
    String.raw`(?:(?:as\s+)?(?!where|order|limit|group|join|left|inner|cross|natural|union|having|window\b)\w+\s*)?` +
    String.raw`(?:$|;|where\b|order\b|limit\b)`,
  "i",
);

/** Finds the one table of an answer's rows; undefined when a row could not be identified by its key. */
export function source(query: string, answer: Answer, tables: Table[]): Source | undefined {
  const text = bare(query);
  const match = fromTable.exec(text);
  const table = match && tables.find(({ name }) => name.toLowerCase() === match[1].toLowerCase());
  if (!table || /\b(join|union|group\s+by|distinct|intersect|except)\b/i.test(text)) return undefined;
  const keys = table.columns.filter((c) => c.primary_key).map((c) => answer.columns.indexOf(c.name));
  const repeated = new Set(answer.columns).size < answer.columns.length;
  return keys.length && !keys.includes(-1) && !repeated ? { table, keys } : undefined;
}
