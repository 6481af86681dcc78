// The types of nodes: what they are called, their forms and their ways out.
import { signal } from "@preact/signals";

import { get } from "../data";
import type { IconName } from "../ui";
import type { Data } from "./graph";

export type Schema = {
  type?: string | string[];
  title?: string;
  description?: string;
  enum?: string[];
  default?: unknown;
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  minimum?: number;
  maximum?: number;
  writeOnly?: boolean;
  oneOf?: { required: string[] }[];
  "x-order"?: string[];
  "x-widget"?: string;
  "x-ref"?: string;
  "x-unit"?: string;
  "x-advanced"?: boolean;
  "x-when"?: Record<string, string[]>;
};
export type NodeType = {
  type: string;
  label: string;
  group: string;
  icon: IconName;
  summary: string;
  synonyms: string[];
  handles: string[];
  handles_from?: string;
  normal_handle?: string;
  data: Schema;
  example: Data;
  output: { schema: Schema; example: unknown };
  needs: string[];
  docs: string;
};
export type Catalog = { groups: string[]; common: Schema; types: NodeType[]; byType: Map<string, NodeType> };

const none: Catalog = { groups: [], common: { properties: {} }, types: [], byType: new Map() };

/** The catalogue; empty until it is there. */
export const catalog = signal<Catalog>(none);
let asked: Promise<unknown> | undefined;

/** Asks for the catalogue once; without it nodes are edited as JSON. */
export function loadCatalog() {
  asked ??= get("node-types").then(
    (found) => {
      const c = found as unknown as Omit<Catalog, "byType">; // the schemas are known better here
      catalog.value = { ...c, byType: new Map(c.types.map((t) => [t.type, t])) };
    },
    () => {
      asked = undefined;
    },
  );
  return asked;
}

export const typeOf = (name: string) => catalog.value.byType.get(name);

/** The fields of a schema in their order. */
export const fieldsOf = (s?: Schema): [string, Schema][] => {
  const all = s?.properties ?? {};
  const names = s?.["x-order"] ?? Object.keys(all);
  return names.filter((n) => all[n]).map((n) => [n, all[n]]);
};

/** The data of a new node. */
export function newData(type: NodeType): Data {
  const data: Data = {};
  for (const [name, field] of fieldsOf(type.data))
    if (field.default !== undefined && type.data.required?.includes(name)) data[name] = field.default;
  if (type.handles_from === "cases") data.cases = [{ id: "case1", value: "" }];
  return data;
}

/** The types that fit what was typed, the best first: by label, then synonyms, then the rest. */
export function searchTypes(typed: string): NodeType[] {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  const all = catalog.value.types;
  if (!words.length) return all;
  const scored = all.map((t) => {
    const [label, synonyms, rest] = [
      t.label.toLowerCase(),
      t.synonyms.map((s) => s.toLowerCase()),
      `${t.summary} ${t.group} ${t.type}`.toLowerCase(),
    ];
    let score = 0;
    for (const w of words) {
      const found = label.startsWith(w)
        ? 8
        : synonyms.includes(w)
          ? 6
          : label.includes(w)
            ? 4
            : synonyms.some((s) => s.startsWith(w))
              ? 3
              : rest.includes(w)
                ? 1
                : 0;
      if (!found) return { t, score: 0 };
      score += found;
    }
    return { t, score };
  });
  return scored
    .filter((s) => s.score > 0)
    .sort((a, b) => b.score - a.score)
    .map((s) => s.t);
}

export const needText = (need: string) =>
  need === "model"
    ? "Needs a model"
    : need === "browser"
      ? "Needs a browser"
      : channelOf(need)
        ? `Needs ${channelOf(need)}`
        : "";

const channels: Record<string, string> = {
  email: "an email channel",
  telegram: "a Telegram channel",
  whatsapp: "a WhatsApp channel",
  sms: "an SMS channel",
  slack: "a Slack channel",
  discord: "a Discord channel",
};
const channelOf = (need: string) => (need.startsWith("gateway:") ? (channels[need.slice(8)] ?? "a channel") : "");
