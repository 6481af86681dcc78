// Files that become sources: sent in batches, none lost to a rate limit, with
// what came of each.
import { signal } from "@preact/signals";

import { agentId, ApiError, invalidate, patient, path, send, type API } from "../data";
import { tell } from "../ui";

export type Upload = { id: number; name: string; agent: string; state: "waiting" | "sending" | "stored" | "failed"; share: number; error?: string; source?: string };

/** The files of this tab, newest first. */
export const uploads = signal<Upload[]>([]);

const batchFiles = 20;
const batchBytes = 20 << 20;
let next = 1;
let sending = Promise.resolve();

const change = (ids: number[], to: Partial<Upload>) => { uploads.value = uploads.value.map((u) => (ids.includes(u.id) ? { ...u, ...to } : u)); };

/** Stores files as sources of the agent that is shown; resolves when each is stored or refused. */
export function uploadFiles(files: File[]): Promise<void> {
  const agent = agentId.value;
  const mine = files.map((file) => ({ file, id: next++ }));
  uploads.value = [...mine.map(({ file, id }) => ({ id, name: file.name, agent, state: "waiting" as const, share: 0 })), ...uploads.value].slice(0, 500);
  sending = sending.then(async () => {
    for (const batch of batches(mine)) await sendBatch(agent, batch);
    invalidate(path("agents", agent, "sources"));
    const failed = uploads.value.filter((u) => mine.some((m) => m.id === u.id) && u.state === "failed").length;
    tell(failed ? `${files.length - failed} of ${files.length} files stored` : files.length === 1 ? `${files[0].name} is uploaded and being processed` : `${files.length} files stored`);
  });
  return sending;
}

function batches(files: { file: File; id: number }[]) {
  const out: { file: File; id: number }[][] = [];
  let bytes = Infinity;
  for (const f of files) {
    if (bytes + f.file.size > batchBytes || out.at(-1)!.length >= batchFiles) {
      out.push([]);
      bytes = 0;
    }
    out.at(-1)!.push(f);
    bytes += f.file.size;
  }
  return out;
}

async function sendBatch(agent: string, batch: { file: File; id: number }[]) {
  const ids = batch.map((b) => b.id);
  change(ids, { state: "sending" });
  try {
    const { results } = await patient(() => {
      const form = new FormData();
      for (const { file } of batch) form.append("files", file, file.name);
      return send(path("agents", agent, "sources", "batch"), form, (share) => change(ids, { share }));
    });
    (results as API.BatchDetails["results"]).forEach((r, i) => change([ids[i]], r.error ? { state: "failed", error: r.error.message } : { state: "stored", share: 1, source: r.source?.id }));
  } catch (error) {
    change(ids, { state: "failed", error: error instanceof ApiError ? error.message : "The connection was lost while sending." });
  }
}
