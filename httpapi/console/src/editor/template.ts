// Templates: what a path leads to, what may stand in one, and what a text
// with templates comes to.
import { type Editor, type GraphNode, typeOf, upstream, zone } from "./index";

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

const steps = /^\s*(?:\.?([\p{L}_$][\p{L}\p{N}_$-]*)|\[(\d+)\]|\["((?:[^"\\]|\\.)*)"\])/u;

/** Reads a path such as a.b[0]["c d"]; null if it is not one. */
export function readPath(text: string): (string | number)[] | null {
  const path: (string | number)[] = [];
  for (let rest = text.trim(); rest;) {
    const found = steps.exec(rest);
    if (!found) return null;
    path.push(found[1] ?? (found[2] !== undefined ? Number(found[2]) : JSON.parse(`"${found[3]}"`)));
    rest = rest.slice(found[0].length);
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
    (v, key) =>
      v !== null && typeof v === "object" && Object.hasOwn(v, key)
        ? (v as Record<string | number, unknown>)[key]
        : undefined,
    scope,
  );

const asText = (v: unknown) =>
  v === null || v === undefined ? "" : typeof v === "object" ? JSON.stringify(v) : String(v);

const months = [
  "January",
  "February",
  "March",
  "April",
  "May",
  "June",
  "July",
  "August",
  "September",
  "October",
  "November",
  "December",
];
const days = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const two = (n: number) => String(n).padStart(2, "0");

/** How far the clocks of a time zone are ahead of UTC at a moment, in minutes. */
function offsetOf(at: Date, timeZone: string): number {
  try {
    const parts = Object.fromEntries(
      new Intl.DateTimeFormat("en-US", {
        timeZone,
        hourCycle: "h23",
        year: "numeric",
        month: "numeric",
        day: "numeric",
        hour: "numeric",
        minute: "numeric",
        second: "numeric",
      })
        .formatToParts(at)
        .map((p) => [p.type, Number(p.value)]),
    );
    return Math.round(
      (Date.UTC(parts.year, parts.month - 1, parts.day, parts.hour, parts.minute, parts.second) - at.getTime()) /
        60_000,
    );
  } catch {
    return 0;
  }
}

/** Writes a moment by a format and the agent's time zone. */
function writeDate(value: unknown, format: string): unknown {
  const moment = new Date(typeof value === "number" ? (Math.abs(value) < 1e11 ? value * 1000 : value) : String(value));
  if (Number.isNaN(moment.getTime())) return value;
  const ahead = offsetOf(moment, zone.value);
  const at = new Date(moment.getTime() + ahead * 60_000);
  const shift = (colon: string) =>
    `${ahead < 0 ? "-" : "+"}${two(Math.trunc(Math.abs(ahead) / 60))}${colon}${two(Math.abs(ahead) % 60)}`;
  const [y, mo, d, w, h, mi, s] = [
    at.getUTCFullYear(),
    at.getUTCMonth(),
    at.getUTCDate(),
    at.getUTCDay(),
    at.getUTCHours(),
    at.getUTCMinutes(),
    at.getUTCSeconds(),
  ];
  const tokens: Record<string, string | number> = {
    YYYY: y,
    YY: two(y % 100),
    MMMM: months[mo],
    MMM: months[mo].slice(0, 3),
    MM: two(mo + 1),
    M: mo + 1,
    DD: two(d),
    D: d,
    dddd: days[w],
    ddd: days[w].slice(0, 3),
    d: w,
    HH: two(h),
    H: h,
    hh: two(h % 12 || 12),
    h: h % 12 || 12,
    mm: two(mi),
    m: mi,
    ss: two(s),
    s,
    SSS: String(at.getUTCMilliseconds()).padStart(3, "0"),
    A: h < 12 ? "AM" : "PM",
    a: h < 12 ? "am" : "pm",
    ZZ: shift(""),
    Z: shift(":"),
    X: Math.floor(moment.getTime() / 1000),
    x: moment.getTime(),
  };
  return format.replace(
    /\[([^\]]*)\]|YYYY|YY|MMMM|MMM|MM|M|DD|D|dddd|ddd|d|HH|H|hh|h|mm|m|ss|s|SSS|A|a|ZZ|Z|X|x/g,
    (t, literal) => (literal !== undefined ? literal : String(tokens[t])),
  );
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
      return writeDate(value, String(argument));
    case "url":
      return encodeURIComponent(asText(value));
    default:
      return value;
  }
}

const inside = /\{\{((?:"(?:[^"\\]|\\.)*"|[^{}])*)\}\}/g;

/** Fills the templates of a text. missing lists what leads nowhere. */
export function fill(text: string, scope: unknown): { text: string; missing: string[] } {
  const missing: string[] = [];
  const filled = text.replace(inside, (template, expression: string) => {
    const [head, ...rest] = expression.split(/\|(?=(?:[^"]*"[^"]*")*[^"]*$)/);
    const literal = /^\s*"(.*)"\s*$/s.exec(head);
    const path = literal ? null : readPath(head);
    let value = literal ? literal[1] : path ? lookup(scope, path) : undefined;
    if (value === undefined && !rest.some((f) => /^\s*(default|optional)\b/.test(f))) missing.push(head.trim());
    for (const filter of rest) value = applyFilter(value, filter);
    return value === null && template === text ? "null" : asText(value); // a template alone keeps its type
  });
  return { text: filled, missing };
}

/** Reports whether a text holds a template. */
export const hasTemplate = (v: unknown) => typeof v === "string" && v.includes("{{");

const examplePayload = (editor: Editor) => {
  const trigger = editor.doc.value.nodes.find((n) => n.type === "trigger");
  return typeOf("trigger")?.output.example && String(trigger?.data?.event ?? "").startsWith("message.")
    ? typeOf("trigger")!.output.example
    : {};
};

/** What a node gives, from its pin, the last test, the newest execution, or the catalogue's example. */
export function sampleOf(editor: Editor, node: GraphNode): unknown {
  if (node.metadata?.pin !== undefined) return node.metadata.pin;
  const samples = editor.samples.value;
  if (Object.hasOwn(samples, node.id)) return samples[node.id];
  if (node.type === "trigger") return editor.payload.value ?? examplePayload(editor);
  if (node.type === "set") return node.data?.values ?? {};
  return typeOf(node.type)?.output.example ?? {};
}

const passed = new Set(["if-else", "switch"]);

/** What templates of a node see, with sample values. */
export function scopeOf(editor: Editor, node: GraphNode): Record<string, unknown> {
  const doc = editor.doc.value;
  const before = upstream(doc, node.id).filter((n) => n.id !== node.id);
  const trigger = before.find((n) => n.type === "trigger") ?? doc.nodes.find((n) => n.type === "trigger");
  const payload = trigger ? sampleOf(editor, trigger) : {};
  const nodes: Record<string, unknown> = {};
  for (const n of before) nodes[n.id] = sampleOf(editor, n);
  const loops: Record<string, unknown> = {};
  const items = new Map<string, unknown>();
  for (const n of before.filter((b) => b.type === "loop").reverse()) {
    const given = n.data?.items;
    const path = typeof given === "string" ? readPath(given.replace(/^\{\{|\}\}$/g, "")) : null;
    const list = Array.isArray(given)
      ? given
      : path
        ? lookup({ ...(payload as object), ...loops, nodes }, path)
        : undefined;
    items.set(n.id, Array.isArray(list) ? list[0] : null);
    loops[String(n.data?.item_variable ?? "item")] = items.get(n.id);
    loops.index = 0;
  }
  return {
    ...(payload && typeof payload === "object" ? payload : {}),
    ...loops,
    nodes,
    input: inputOf(editor, node, nodes, items),
    trigger: payload,
    execution: { id: "execution-…", started_at: new Date().toISOString() },
    workflow: { name: doc.name },
    agent: { name: "" },
    now: new Date().toISOString(),
  };
}

/** What flows into a node: the output of the one before it, past decisions; in the body of a loop, its item. */
function inputOf(
  editor: Editor,
  node: GraphNode,
  nodes: Record<string, unknown>,
  items: ReadonlyMap<string, unknown>,
): unknown {
  const doc = editor.doc.value;
  const from = (id: string, seen = new Set<string>()): [GraphNode, unknown][] =>
    doc.edges
      .filter((e) => e.target === id && !seen.has(e.source))
      .flatMap((e): [GraphNode, unknown][] => {
        seen.add(e.source);
        const source = editor.node(e.source);
        if (!source) return [];
        if (passed.has(source.type)) return from(source.id, seen);
        return [
          [
            source,
            source.type === "loop" && e.sourceHandle !== "done" && e.sourceHandle !== "error"
              ? items.get(source.id)
              : (nodes[source.id] ?? sampleOf(editor, source)),
          ],
        ];
      });
  const sources = from(node.id);
  return sources.length === 1 ? sources[0][1] : Object.fromEntries(sources.map(([s, value]) => [s.id, value]));
}

/** A completion of a template: what is inserted, and what is shown of it. */
export type Suggestion = { insert: string; label: string; value?: unknown; note?: string };

/** What may stand at the cursor of a text with templates: the start of what is replaced, and the suggestions. Null outside of a template. */
export function suggest(
  text: string,
  cursor: number,
  scope: Record<string, unknown>,
  names: (id: string) => string,
): { from: number; list: Suggestion[] } | null {
  const before = text.slice(0, cursor);
  const open = before.lastIndexOf("{{");
  if (open < 0 || before.indexOf("}}", open) >= 0) return null;
  const typed = before.slice(open + 2);
  const bar = typed.lastIndexOf("|");
  if (bar >= 0) {
    const word = typed.slice(bar + 1).trimStart();
    return {
      from: cursor - word.length,
      list: filters.filter(([f]) => f.startsWith(word)).map(([f, note]) => ({ insert: f, label: f, note })),
    };
  }
  const written = typed.trimStart();
  const dot = Math.max(written.lastIndexOf("."), written.lastIndexOf("["));
  const parent = dot < 0 ? [] : readPath(written.slice(0, dot));
  if (parent === null) return null;
  const word = written
    .slice(dot + 1)
    .replace(/^"/, "")
    .toLowerCase();
  const holder = parent.length ? lookup(scope, parent) : scope;
  if (holder === null || typeof holder !== "object") return { from: cursor, list: [] };
  const keys: (string | number)[] = Array.isArray(holder) ? holder.slice(0, 20).map((_, i) => i) : Object.keys(holder);
  const fits = (k: string | number) =>
    String(k).toLowerCase().includes(word) ||
    (parent[0] === "nodes" && parent.length === 1 && names(String(k)).toLowerCase().includes(word));
  const list = keys.filter(fits).map((k) => {
    const path = writePath([...parent, k]);
    return {
      insert: path,
      label: path,
      value: (holder as Record<string | number, unknown>)[k],
      note: parent[0] === "nodes" && parent.length === 1 ? names(String(k)) : undefined,
    };
  });
  return { from: open + 2 + (typed.length - written.length), list: list.slice(0, 40) };
}

/** Returns a function that gives the name of a node by its id. */
export const labelsOf = (editor: Editor) => (id: string) => editor.nameOf(id);
