// The grammar of templates, which is that of the service (agent/template): both read
// agent/template/testdata/cases.json.
import { type Call, filterTakes } from "./templatefilters";

/** Where a value is in another: names of members, and indexes, which may also be names. */
export type Path = (string | number)[];

/** What is between {{ and }}: a path or a quoted text, and filters. */
export type Expression = { source: string; path?: Path; literal?: string; filters: Call[] };

const maxSegments = 64;
const maxFilters = 16;
const space = /\p{White_Space}*/uy;
const nameCharacters = /[^\p{White_Space}\p{Cc}.[\]{}()|:,;"'`+*/=<>!?&^~\\]*/uy;
const quoted = /"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'/sy;
const number = /^-?(0|[1-9]\d*)(\.\d+)?([eE]-?\d+)?$/;
const constants: Record<string, unknown> = { true: true, false: false, null: null };

/** Reads the parts of a text: templates, and the text around them. It throws a SyntaxError. */
export function parse(text: string): (string | Expression)[] {
  const parts: (string | Expression)[] = [];
  const parser = new Parser(text);
  while (!parser.atEnd) parts.push(parser.textBefore("{{") || parser.template());
  return parts;
}

/** Reads a text from its position. */
export class Parser {
  private at = 0;
  constructor(private readonly text: string) {}

  get atEnd() {
    return this.at >= this.text.length;
  }

  get position() {
    return this.at;
  }

  textBefore(mark: string) {
    const end = this.text.indexOf(mark, this.at);
    const start = this.at;
    this.at = end < 0 ? this.text.length : end;
    return this.text.slice(start, this.at);
  }

  template(): Expression {
    const start = this.at;
    this.at += 2;
    this.match(space);
    const head = this.isQuote ? { literal: this.quoted() } : { path: this.path() };
    const source = this.text.slice(start + 2, this.at).trim();
    const filters: Call[] = [];
    for (;;) {
      this.match(space);
      if (this.take("}}")) return { source, ...head, filters };
      if (!this.take("|")) throw this.unexpected("| or }}");
      filters.push(this.filter());
      if (filters.length > maxFilters) throw this.error(start, `more than ${maxFilters} filters`);
    }
  }

  path(): Path {
    const start = this.at;
    const path: Path = [this.key("a path")];
    for (;;) {
      if (this.take(".")) path.push(this.key("a key"));
      else if (this.take("[")) path.push(this.bracketed());
      else return path;
      if (path.length > maxSegments) throw this.error(start, `a path of more than ${maxSegments} steps`);
    }
  }

  private key(wanted: string) {
    const name = this.match(nameCharacters);
    if (!name) throw this.unexpected(wanted);
    return /^(0|[1-9]\d{0,8})$/.test(name) ? Number(name) : name;
  }

  private bracketed() {
    const start = this.at;
    const key = this.isQuote ? this.quoted() : Number(/^\d{1,9}$/.exec(this.match(nameCharacters))?.[0] ?? NaN);
    if (Number.isNaN(key)) throw this.unexpected("an index or a quoted key", start);
    if (!this.take("]")) throw this.unexpected("]");
    return key;
  }

  private filter(): Call {
    this.match(space);
    const start = this.at;
    const name = this.match(nameCharacters);
    if (!name) throw this.unexpected("a filter");
    if (!Object.hasOwn(filterTakes, name)) throw this.error(start, `there is no filter "${name}"`);
    this.match(space);
    if (!this.take(":")) return { name };
    this.match(space);
    const argument = this.argument();
    const [takes, words] = filterTakes[name];
    if (!takes(argument)) throw this.error(start, `${name} takes ${words}`);
    return { name, argument };
  }

  private argument(): unknown {
    if (this.isQuote) return this.quoted();
    const start = this.at;
    if (this.take("[")) {
      this.match(space);
      if (!this.take("]")) throw this.unexpected("] of an empty list");
      return [];
    }
    let word = this.match(nameCharacters);
    if (this.take(".")) word += `.${this.match(nameCharacters)}`;
    if (Object.hasOwn(constants, word)) return constants[word];
    if (number.test(word) && Number.isFinite(Number(word))) return Number(word);
    throw this.unexpected("an argument in quotes, a number, true, false, null or []", start);
  }

  private get isQuote() {
    return this.text[this.at] === '"' || this.text[this.at] === "'";
  }

  private quoted(): string {
    const start = this.at;
    const inQuotes = this.match(quoted);
    if (!inQuotes) throw this.error(start, "a quoted text that does not end");
    const body = inQuotes.slice(1, -1).replace(/\\.|["\p{Cc}]/gsu, (found) => {
      if (found === "\\'") return "'";
      return found.length > 1 ? found : JSON.stringify(found).slice(1, -1);
    });
    try {
      return JSON.parse(`"${body}"`);
    } catch {
      throw this.error(start, "a quoted text with an escape that JSON does not have");
    }
  }

  private match(pattern: RegExp): string {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text)?.[0] ?? "";
    this.at += found.length;
    return found;
  }

  private take(mark: string) {
    const found = this.text.startsWith(mark, this.at);
    if (found) this.at += mark.length;
    return found;
  }

  private unexpected(wanted: string, at = this.at) {
    const [next] = this.text.slice(at);
    return this.error(at, `expected ${wanted}, found ${next === undefined ? "the end of the text" : `'${next}'`}`);
  }

  private error(at: number, issue: string) {
    return new SyntaxError(`${issue} at character ${[...this.text.slice(0, at)].length + 1}`);
  }
}
