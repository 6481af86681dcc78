// Changes that were not saved: kept in this browser for each workflow and
// editor, with the version that they are based on, and offered again after a
// reload or a crash. Those of an editor that is open in another tab are not.
import type { Doc } from "./index";

const database = "satchel.workflows";
const store = "drafts";
const keepDays = 30;
const answerTime = 150; // milliseconds in which other tabs say what they have open

/** Unsaved changes: the document, the version that it is based on, and when it was kept. */
export type Draft = { key: string; version: number; doc: Doc; at: number };

let opening: Promise<IDBDatabase> | undefined;

function open(): Promise<IDBDatabase> {
  opening ??= new Promise((resolve, reject) => {
    const request = indexedDB.open(database, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(store, { keyPath: "key" });
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
  return opening;
}

async function run<T>(mode: IDBTransactionMode, ask: (s: IDBObjectStore) => IDBRequest<T>): Promise<T | undefined> {
  try {
    const db = await open();
    return await new Promise((resolve, reject) => {
      const request = ask(db.transaction(store, mode).objectStore(store));
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
    });
  } catch {
    return undefined; // the storage is closed or full: the changes stay on the page
  }
}

const tabs = new BroadcastChannel("satchel.drafts");
const held = new Set<string>(); // the keys of this tab's drafts
const alive = new Set<string>(); // what other tabs have said of theirs
tabs.onmessage = ({ data }) => {
  if (data === "who") held.forEach((key) => tabs.postMessage(key));
  else alive.add(data);
};

/** A draft of a workflow, for the time that an editor shows it. */
export function openDraft(agent: string, id: string) {
  const key = `${agent}/${id}/${crypto.getRandomValues(new Uint32Array(2)).join("-")}`;
  held.add(key);
  return {
    keep: (version: number, doc: Doc) => run("readwrite", (s) => s.put({ key, version, doc, at: Date.now() })),
    drop: () => dropDraft(key),
    release: () => {
      held.delete(key);
    },
  };
}

/** A draft that belongs to an open editor. */
export type OpenDraft = ReturnType<typeof openDraft>;

/** Removes a draft. */
export const dropDraft = (key: string) => run("readwrite", (s) => s.delete(key));

/** The newest draft of a workflow that no other tab works on. Those older than a month are removed. */
export async function readDraft(agent: string, id: string): Promise<Draft | undefined> {
  const at = `${agent}/${id}`;
  const all = (await run<Draft[]>("readonly", (s) => s.getAll(IDBKeyRange.bound(at, `${at}/~`)))) ?? [];
  if (!all.length) return undefined;
  alive.clear();
  tabs.postMessage("who");
  await new Promise((answered) => setTimeout(answered, answerTime));
  return all
    .filter((d) => !alive.has(d.key))
    .sort((a, b) => b.at - a.at)
    .find((d) => Date.now() - d.at < keepDays * 86_400_000 || void dropDraft(d.key));
}
