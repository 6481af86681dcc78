// The catalogue of node types: their names, the schemas of their data, and their outputs.
import { signal } from "@preact/signals";

import { get } from "../data";
import type { IconName } from "../ui";

/** The fields of a node, by name. */
export type Data = Record<string, unknown>;
/** The JSON Schema of a field, with the hints for its form: x-order, x-widget and so on. */
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
/** A type of node. handles are its outputs; handles_from names the field whose items are outputs too. */
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
/** The node types of the server, in groups, and the fields that all of them have in common. */
export type Catalog = { groups: string[]; common: Schema; types: NodeType[]; byType: Map<string, NodeType> };

const empty: Catalog = { groups: [], common: { properties: {} }, types: [], byType: new Map() };

/** The type of the data that is dragged: a type of node. */
export const nodeDataType = "application/x-satchel-node";

/** The catalogue; empty until it is loaded. */
export const catalog = signal<Catalog>(empty);
let loading: Promise<unknown> | undefined;

/** Loads the catalogue once; without it nodes are edited as JSON. */
export function loadCatalog() {
  loading ??= get("node-types").then(
    (response) => {
      const loaded = response as unknown as Omit<Catalog, "byType">; // the API's types leave schemas open
      catalog.value = { ...loaded, byType: new Map(loaded.types.map((type) => [type.type, type])) };
    },
    () => {
      loading = undefined;
    },
  );
  return loading;
}

/** Returns a type of the catalogue by its name. */
export const typeOf = (name: string) => catalog.value.byType.get(name);

/** Returns the CSS class of a type's group; types that are unknown have one too. */
export const groupClass = (type?: NodeType) => `group-${(type?.group ?? "none").toLowerCase()}`;

/** Returns the fields of a schema in their order. */
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
