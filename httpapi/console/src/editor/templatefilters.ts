// The filters of templates, which do what those of the service do (agent/template/filter.go).
import { formatDate } from "./templatedate";

/** A filter with its argument; null and undefined are different arguments. */
export type Call = { name: string; argument?: unknown };

/** A value on its way through filters; missing: there is none, and value stands in its place. */
export type Operand = { value: unknown; missing?: boolean };

type Takes = [(argument: unknown) => boolean, string];
const nothing: Takes = [() => false, "no argument"];
const maxFormat = 200; // bytes
const isFormat = (argument: unknown) =>
  typeof argument === "string" && new TextEncoder().encode(argument).length <= maxFormat;

/** The filters by name: which arguments they take, and these in words. */
export const filterTakes: Record<string, Takes> = {
  ...Object.fromEntries(
    ["optional", "text", "upper", "lower", "trim", "url", "json", "length", "first", "last"].map((f) => [f, nothing]),
  ),
  default: [() => true, ""],
  join: [(argument) => typeof argument === "string", "a text in quotes"],
  date: [isFormat, `a format in quotes of at most ${maxFormat} bytes`],
};

/** Writes a value as JSON as the service does, whose objects are sorted by key. */
function jsonText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(jsonText).join(",")}]`;
  if (value !== null && typeof value === "object") {
    const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
    return `{${members.map(([key, member]) => `${jsonText(key)}:${jsonText(member)}`).join(",")}}`;
  }
  return JSON.stringify(value ?? null).replace(/[\u2028\u2029]/g, (c) => `\\u${c.charCodeAt(0).toString(16)}`);
}

/** Writes a value within text. */
export function asText(value: unknown): string {
  if (value === null || value === undefined) return "";
  return typeof value === "object" ? jsonText(value) : String(value);
}

/** Changes each character to one other, as the service does: ß has no capital. */
const eachCharacter = (text: string, change: (character: string) => string) =>
  Array.from(text, (c) => ([...change(c)].length === 1 ? change(c) : c)).join("");

const urlText = (text: string) =>
  encodeURIComponent(text.replace(/\p{Surrogate}/gu, "\ufffd")).replace(
    /[!'()*]/g,
    (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`,
  );

function lengthOf(value: unknown): number {
  if (value !== null && typeof value === "object") return Object.keys(value).length;
  return [...asText(value)].length;
}

/** Returns an element of a list or a character of a text; undefined if there is none. */
function elementOf(value: unknown, index: 0 | -1): unknown {
  if (typeof value === "string") return [...value].at(index) ?? "";
  return Array.isArray(value) ? value.at(index) : undefined;
}

function filtered(value: unknown, { name, argument }: Call, timeZone: string): unknown {
  switch (name) {
    case "default":
      return value === null || value === "" ? (argument === undefined ? "" : argument) : value;
    case "text":
      return value === null ? null : asText(value);
    case "upper":
      return eachCharacter(asText(value), (c) => c.toUpperCase());
    case "lower":
      return eachCharacter(asText(value), (c) => c.toLowerCase());
    case "trim":
      return asText(value).replace(/^\p{White_Space}+|\p{White_Space}+$/gu, "");
    case "url":
      return urlText(asText(value));
    case "json":
      return jsonText(value);
    case "length":
      return lengthOf(value);
    case "first":
      return elementOf(value, 0);
    case "last":
      return elementOf(value, -1);
    case "join":
      return Array.isArray(value) ? value.map(asText).join((argument ?? ", ") as string) : asText(value);
    case "date":
      return formatDate(value, (argument ?? "YYYY-MM-DD") as string, timeZone);
  }
  return value; // optional
}

/** Applies a filter. What is missing stays missing, except for default and optional; json writes it as null. */
export function applyFilter(operand: Operand, call: Call, timeZone: string): Operand {
  if (operand.missing) {
    if (call.name === "default") return { value: call.argument === undefined ? "" : call.argument };
    if (call.name === "optional") return { value: null };
    return call.name === "json" ? { value: "null", missing: true } : operand;
  }
  const value = filtered(operand.value, call, timeZone);
  return value === undefined ? { value: "", missing: true } : { value };
}
