// Contact files: read, mapped to fields, and written again.
import { guardFormula } from "./formula";

/** The types of files that fields for CSV offer. */
export const csvTypes = ".csv,.tsv,.txt,text/csv";

/** The fields that a column can be mapped to, as the service names them. */
export const fields: [string, string][] = [
  ["name", "Name"],
  ["email", "Email"],
  ["phone", "Phone"],
  ["tags", "Tags"],
  ["notes", "Notes"],
  ["chatbot_a", "Telegram"],
  ["chatbot_b", "WhatsApp"],
  ["social_handle", "Social handle"],
  ["external_id", "External ID"],
  ["metadata", "Custom fields as JSON"],
  ["id", "ID of an exported contact"],
];

/** Other names of columns, and the fields that they are mapped to. */
const aliases: Record<string, string> = {
  "full name": "name",
  "e-mail": "email",
  mail: "email",
  "email address": "email",
  "e-mail address": "email",
  "phone number": "phone",
  mobile: "phone",
  telephone: "phone",
  telefon: "phone",
  telefonnummer: "phone",
  mobil: "phone",
  handy: "phone",
  téléphone: "phone",
  teléfono: "phone",
  telefono: "phone",
  telefoon: "phone",
  nom: "name",
  nombre: "name",
  naam: "name",
  "e-mail-adresse": "email",
  "adresse e-mail": "email",
  courriel: "email",
  "correo electrónico": "email",
  tag: "tags",
  labels: "tags",
  note: "notes",
  notizen: "notes",
  telegram: "chatbot_a",
  whatsapp: "chatbot_b",
  "external id": "external_id",
};
const exportedOnly = ["created_at", "updated_at"];

/** A contact file that was read. */
export type File = {
  name: string;
  header: string[];
  /** The rows with their numbers in a spreadsheet. */
  rows: { row: number; cells: string[]; broken?: string }[];
  headerRow: number;
};
/** A row that the import rejected. */
export type Rejected = { row: number; field: string; issue: string };

/** Text of a file: UTF-8, UTF-16 with its mark, or what Excel writes on older Windows. */
export function decode(bytes: ArrayBuffer): string {
  const [a, b] = new Uint8Array(bytes);
  if (a === 0xff && b === 0xfe) return new TextDecoder("utf-16le").decode(bytes);
  if (a === 0xfe && b === 0xff) return new TextDecoder("utf-16be").decode(bytes);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return new TextDecoder("windows-1252").decode(bytes);
  }
}

type Record_ = { cells: string[]; broken?: string };

/** Reads records as RFC 4180 has them; a record with broken quotes is one line. */
function records(text: string, delimiter: string, maxRecords = Infinity): Record_[] {
  const found: Record_[] = [];
  let at = 0;
  const lineEnd = (from: number) => {
    const rest = /\r\n|\r|\n/g;
    rest.lastIndex = from;
    const m = rest.exec(text);
    return m ? { end: m.index, next: m.index + m[0].length } : { end: text.length, next: text.length };
  };
  while (at < text.length && found.length < maxRecords) {
    const begin = at;
    const cells: string[] = [];
    let broken: string | undefined;
    for (let more = true; more;) {
      let i = at;
      while (text[i] === " ") i++;
      let cell: string;
      if (text[i] === '"') {
        let end = i + 1;
        for (; end < text.length && (text[end] !== '"' || text[end + 1] === '"'); end++) if (text[end] === '"') end++;
        if (end >= text.length) {
          broken = "has a quote that is never closed";
          break;
        }
        cell = text.slice(i + 1, end).replaceAll('""', '"');
        for (at = end + 1; text[at] === " "; at++);
        if (at < text.length && text[at] !== delimiter && text[at] !== "\n" && text[at] !== "\r") {
          broken = "has text after a closing quote";
          break;
        }
      } else {
        for (i = at; i < text.length && text[i] !== delimiter && text[i] !== "\n" && text[i] !== "\r"; i++);
        cell = text.slice(at, i);
        if (cell.includes('"')) {
          broken = "has a quote within text that is not quoted";
          break;
        }
        at = i;
      }
      cells.push(cell);
      more = text[at] === delimiter;
      at += text[at] === "\r" && text[at + 1] === "\n" ? 2 : 1;
    }
    if (broken) {
      const line = lineEnd(begin);
      at = line.next;
      found.push({ cells: [text.slice(begin, line.end)], broken });
    } else found.push({ cells });
  }
  return found;
}

const blank = (cells: string[]) => cells.every((c) => !c.trim());

/** Reads a contact file; the delimiter is the one that makes the most columns. */
export function readFile(name: string, text: string): File {
  text = text.replace(/^\ufeff/, "");
  let delimiters = [",", ";", "\t"];
  const sep = /^sep=([,;\t|])(\r\n|\r|\n)/i.exec(text);
  if (sep) {
    delimiters = [sep[1]];
    text = text.slice(sep[0].length);
  }
  const first = (d: string) => records(text, d, 20).find((r) => !blank(r.cells))?.cells.length ?? 0;
  const delimiter = delimiters.reduce((best, d) => (first(d) > first(best) ? d : best));
  const all = records(text, delimiter);
  const at = all.findIndex((r) => !blank(r.cells));
  if (at < 0) throw new Error("The file is empty.");
  const header = all[at].cells.map((c) => c.trim());
  const rows = all
    .slice(at + 1)
    .map((r, i) => ({
      row: at + 2 + i,
      cells: r.cells,
      broken:
        r.broken ??
        (r.cells.length !== header.length && !blank(r.cells)
          ? `has ${r.cells.length} cells where the header row has ${header.length}`
          : undefined),
    }))
    .filter((r) => r.broken || !blank(r.cells));
  return { name, header, rows, headerRow: at + 1 };
}

/** What a column is likely to be: a field, "+" a custom field, "" left out. */
export function guess(header: string[]): string[] {
  const taken = new Set<string>();
  return header.map((title) => {
    const plain = title.toLowerCase();
    const known = fields.find(([field]) => field === plain.replace(/[ -]/g, "_"))?.[0] ?? aliases[plain];
    if (exportedOnly.includes(plain) || !title) return "";
    if (!known) return "+";
    if (taken.has(known)) return "";
    taken.add(known);
    return known;
  });
}

/** A cell of a file that was read, for people: the import makes the same of it with the apostrophe. */
const shown = (cell: string) => (cell.startsWith("'") ? cell : guardFormula(cell));

const quoted = (cell: string) => (/[",\r\n]|^\s|\s$/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell);
const line = (cells: string[]) => (cells.length === 1 && !cells[0] ? '""' : cells.map(quoted).join(","));

/**
 * The file as the service reads it: the mapped columns, each row where it was. Rows that cannot be read are left empty.
 */
export function mapped(file: File, mapping: string[]): string {
  const kept = mapping.map((m, i) => [m, i] as const).filter(([m]) => m);
  const out = [
    ...Array<string>(file.headerRow - 1).fill(""),
    line(kept.map(([m, i]) => (m === "+" ? file.header[i] : m))),
  ];
  for (const r of file.rows)
    if (!r.broken) {
      while (out.length < r.row - 1) out.push("");
      out.push(line(kept.map(([, i]) => r.cells[i])));
    }
  return out.join("\r\n");
}

/** The rows that were rejected, as they were, each with why. */
export function rejectedFile(file: File, rejected: Rejected[]): string {
  const why = new Map<number, string[]>();
  for (const r of rejected) why.set(r.row, [...(why.get(r.row) ?? []), `${r.field} ${r.issue}`]);
  const rows = file.rows
    .filter((r) => why.has(r.row))
    .map((r) =>
      line([
        ...r.cells.map(shown),
        ...Array<string>(Math.max(0, file.header.length - r.cells.length)).fill(""),
        String(r.row),
        guardFormula(why.get(r.row)!.join("; ")),
      ]),
    );
  return [line([...file.header.map(guardFormula), "Row", "Problem"]), ...rows].join("\r\n");
}
