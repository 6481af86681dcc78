// Files that become sources: sent in batches, none lost to a rate limit, with
// what came of each.
import { useState } from "preact/hooks";

import {
  agentId,
  ApiError,
  invalidate,
  mayEdit,
  retryLater,
  path,
  send,
  type API,
  type Upload,
  uploadId,
  uploads,
} from "../data";
import { Button, plural, showToast } from "../ui";

const batchFiles = 20;
const batchBytes = 20 << 20;
let sending = Promise.resolve();

const change = (ids: number[], to: Partial<Upload>) => {
  uploads.value = uploads.value.map((u) => (ids.includes(u.id) ? { ...u, ...to } : u));
};

/** Stores files as sources of the agent that is shown; resolves when each is stored or refused. */
export function uploadFiles(files: File[]): Promise<void> {
  const agent = agentId.value;
  const queued = files.map((file) => ({ file, id: uploadId() }));
  uploads.value = [
    ...queued.map(({ file, id }) => ({ id, name: file.name, agent, state: "waiting" as const, share: 0 })),
    ...uploads.value,
  ].slice(0, 500);
  sending = sending.then(async () => {
    const failed: string[] = []; // why; the list keeps the newest files only
    for (const batch of batches(queued)) failed.push(...(await sendBatch(agent, batch)));
    invalidate(path("agents", agent, "sources"));
    showToast(
      failed.length
        ? files.length === 1
          ? new Error(`${files[0].name}: ${failed[0]}`)
          : `${files.length - failed.length} of ${files.length} files stored`
        : files.length === 1
          ? `${files[0].name} is uploaded and being processed`
          : `${files.length} files stored`,
    );
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

/** Sends files, and returns why some failed. */
async function sendBatch(agent: string, batch: { file: File; id: number }[]): Promise<string[]> {
  const ids = batch.map((b) => b.id);
  change(ids, { state: "sending" });
  try {
    const { results } = await retryLater(() => {
      const form = new FormData();
      for (const { file } of batch) form.append("files", file, file.name);
      return send(path("agents", agent, "sources", "batch"), form, (share) => change(ids, { share }));
    });
    (results as API.BatchDetails["results"]).forEach((r, i) =>
      change(
        [ids[i]],
        r.error ? { state: "failed", error: r.error.message } : { state: "stored", share: 1, source: r.source?.id },
      ),
    );
    return (results as API.BatchDetails["results"]).flatMap((r) => (r.error ? [r.error.message] : []));
  } catch (thrown) {
    const error = thrown instanceof ApiError ? thrown.message : "The connection was lost while sending.";
    change(ids, { state: "failed", error });
    return ids.map(() => error);
  }
}

/** The files of a drop, those in folders too; hidden ones are left out. */
export async function droppedFiles(data: DataTransfer | null): Promise<File[]> {
  const items = [...(data?.items ?? [])]
    .filter((i) => i.kind === "file")
    .map((i) => ({ entry: i.webkitGetAsEntry?.(), file: i.getAsFile() })); // before the event ends
  const files: File[] = [];
  const walk = async (entry: FileSystemEntry): Promise<void> => {
    if (entry.isFile) files.push(await new Promise<File>((ok, bad) => (entry as FileSystemFileEntry).file(ok, bad)));
    else {
      const reader = (entry as FileSystemDirectoryEntry).createReader();
      for (let some; (some = await new Promise<FileSystemEntry[]>((ok, bad) => reader.readEntries(ok, bad))).length;)
        for (const e of some) await walk(e);
    }
  };
  for (const { entry, file } of items) {
    if (entry?.isDirectory) await walk(entry);
    else if (file) files.push(file);
  }
  return files.filter((f) => !f.name.startsWith("."));
}

/** Makes a part of the page take dropped files into the knowledge. */
export function useDrop() {
  const [over, setOver] = useState(false);
  const handlers = {
    onDragOver: (e: DragEvent) => {
      if (mayEdit.value && e.dataTransfer?.types.includes("Files")) {
        e.preventDefault();
        setOver(true);
      }
    },
    onDragLeave: (e: DragEvent) => {
      if (!(e.currentTarget as Element).contains(e.relatedTarget as Node | null)) setOver(false);
    },
    onDrop: (e: DragEvent) => {
      if (!e.dataTransfer?.types.includes("Files")) return; // a text that is dragged into a field
      e.preventDefault();
      setOver(false);
      if (mayEdit.value)
        droppedFiles(e.dataTransfer).then((files) => {
          if (files.length) void uploadFiles(files);
          else showToast("No files to upload");
        }, showToast);
    },
  };
  return { over, handlers };
}

/** The files that are on their way, and those that were refused with the reason. */
export function UploadList({ maxShown }: { maxShown: number }) {
  const unfinished = uploads.value.filter((u) => u.agent === agentId.value && u.state !== "stored");
  const shown = unfinished.filter((u) => u.state !== "waiting").slice(0, maxShown);
  if (!unfinished.length) return null;
  const dismiss = (matches: (u: Upload) => boolean) => {
    uploads.value = uploads.value.filter((u) => !matches(u));
  };
  const failed = shown.filter((u) => u.state === "failed").length;
  return (
    <ul class="card uploads" aria-label="Uploads">
      {shown.map((u) => (
        <li key={u.id}>
          <span class="grow">
            <bdi>{u.name}</bdi>
            {u.error && <p class="issue small">{u.error}</p>}
          </span>
          {u.state === "failed" ? (
            <Button kind="quiet" icon="X" label={`Dismiss ${u.name}`} onClick={() => dismiss((x) => x.id === u.id)} />
          ) : (
            <progress max={1} value={u.share} aria-label={`Sending ${u.name}`} />
          )}
        </li>
      ))}
      {(unfinished.length > shown.length || failed > 1) && (
        <li>
          <span class="grow muted small">
            {unfinished.length > shown.length && plural(unfinished.length - shown.length, "more file")}
          </span>
          {failed > 1 && (
            <Button kind="quiet" onClick={() => dismiss((u) => u.agent === agentId.value && u.state === "failed")}>
              Dismiss all
            </Button>
          )}
        </li>
      )}
    </ul>
  );
}
