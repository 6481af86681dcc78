// The state of a source, and how far it is read.
import { progress, type API } from "../../data";
import { Badge } from "../../ui";
import { wasStopped } from "../../parts/stop";
import { timeLeft } from "../../parts/timeleft";

/** The kinds of sources, by their type. */
export const kindNames: Record<string, string> = {
  file: "File",
  crawl: "Site",
  url: "Page",
  database: "Table",
  api: "API",
};

/** Reports whether a source is being read. */
export const isBusy = (source: API.Source) => !["ready", "error"].includes(source.status);

/** The state of a source; one that was stopped has not failed. */
export function SourceStatus({ source }: { source: API.Source }) {
  if (wasStopped(source) && !isBusy(source)) return <Badge tone="warn">stopped</Badge>;
  return <Badge>{source.status}</Badge>;
}

/** Why a source could not be read, as a sentence. */
export function problemOf(source: API.Source) {
  const text = source.error?.message ?? "";
  if (wasStopped(source) && isBusy(source)) return `Crawl ${text}; the pages that were read are being indexed.`;
  return text && text[0].toUpperCase() + text.slice(1);
}

/** The pages of a crawl that could not be read. */
export const failedPages = ({ config }: API.Source) =>
  (config.failedPages ?? []) as { url: string; status?: number; error?: string }[];

/** How far a source is read, while it is. */
export function SourceProgress({ source }: { source: API.Source }) {
  const live = progress.value[source.id];
  const current = live ?? source.progress;
  if (!isBusy(source) || !current?.total) return null;
  const rate = live?.rate && `${live.rate.toFixed(1)}/s`;
  const text = [`${current.done}/${current.total}`, rate, timeLeft(live?.seconds_left)].filter(Boolean).join(" · ");
  return (
    <p class="row nowrap">
      <progress max={current.total} value={current.done} aria-label="Progress" />
      <span class="muted small">{text}</span>
    </p>
  );
}
