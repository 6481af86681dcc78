// The settings of a source, as facts.
import type { API } from "../../data";
import { When } from "../../ui";
import { kindNames } from "./status";

const settingTitles: Record<string, string> = {
  url: "Address",
  maxPages: "Maximum pages",
  maxDepth: "Links deep",
  includePatterns: "Only these",
  excludePatterns: "Exclude",
  pageCount: "Pages",
  changedPages: "Pages changed the last time",
  unchangedPages: "Pages unchanged the last time",
  removedPages: "Pages removed the last time",
  lastCrawledAt: "Last crawled",
  ignore_robots: "Ignores robots.txt",
  ignoreRobots: "Ignores robots.txt",
  chunk_size: "Chunk size",
  overlap: "Overlap of chunks",
  method: "Method of chunking",
  chunk_method: "Method of chunking",
  items_path: "Path to the items",
  id_path: "Path to an item's ID",
  content_template: "Text of an item",
  record_count: "Records",
  changed_records: "Records changed the last time",
  unchanged_records: "Records unchanged the last time",
  removed_records: "Records removed the last time",
  last_read_at: "Last read",
  more_pages: "More pages than were read",
  auth: "Credentials",
  id_column: "ID column",
  title_column: "Title column",
};

/** The title of a setting: a known one, or its name in words, such as "Max pages" for maxPages. */
function titleOf(name: string) {
  if (settingTitles[name]) return settingTitles[name];
  const words = name.replace(/_/g, " ").replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  return words[0].toUpperCase() + words.slice(1);
}

/** Reports whether a setting has no value that is worth showing. */
function isEmpty(value: unknown) {
  if (value === "" || value === null || value === false) return true;
  if (typeof value !== "object") return false;
  return Object.keys(value).length === 0 || (value as { type?: string }).type === "none";
}

/** The value of a setting. */
function SettingValue({ value }: { value: unknown }) {
  if (typeof value === "string" && /^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(value)) return <When time={value} full />;
  if (value === true) return <>Yes</>;
  if (typeof value === "number") return <>{value.toLocaleString()}</>;
  if (Array.isArray(value) && value.every((item) => typeof item === "string")) return <bdi>{value.join(", ")}</bdi>;
  return typeof value === "object" ? <code>{JSON.stringify(value)}</code> : <bdi>{String(value)}</bdi>;
}

/** What a source is, and how it is read. */
export function Facts({ source }: { source: API.Source }) {
  const { pageHashes: _, failedPages: __, ...config } = source.config ?? {};
  const settings = Object.entries(config).filter(([, value]) => !isEmpty(value));
  return (
    <dl class="facts-list card">
      <dt>ID</dt>
      <dd>
        <code>{source.id}</code>
      </dd>
      <dt>Kind</dt>
      <dd>{kindNames[source.type] ?? source.type}</dd>
      {source.embedding_model && (
        <>
          <dt>Embedded by</dt>
          <dd>{source.embedding_model}</dd>
        </>
      )}
      {settings.map(([name, value]) => (
        <>
          <dt>{titleOf(name)}</dt>
          <dd>
            <SettingValue value={value} />
          </dd>
        </>
      ))}
      <dt>Added</dt>
      <dd>
        <When time={source.created_at} full />
      </dd>
      <dt>Changed</dt>
      <dd>
        <When time={source.updated_at} full />
      </dd>
    </dl>
  );
}
