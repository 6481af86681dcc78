// Changes that were not saved: kept in this browser for each workflow with the
// version that they are based on, and offered again after a reload or a crash.
import type { Doc } from "./base";

const database = "satchel.workflows";
const store = "drafts";
const keepDays = 30;

export type Draft = { key: string; agent: string; id: string; version: number; doc: Doc; at: number };

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

const keyOf = (agent: string, id: string) => `${agent}/${id}`;

export const keepDraft = (agent: string, id: string, version: number, doc: Doc) => run("readwrite", (s) => s.put({ key: keyOf(agent, id), agent, id, version, doc, at: Date.now() }));
export const dropDraft = (agent: string, id: string) => run("readwrite", (s) => s.delete(keyOf(agent, id)));

/** The draft of a workflow, unless it is older than a month. */
export async function readDraft(agent: string, id: string): Promise<Draft | undefined> {
  const draft = await run<Draft>("readonly", (s) => s.get(keyOf(agent, id)));
  if (draft && Date.now() - draft.at > keepDays * 86_400_000) {
    await dropDraft(agent, id);
    return undefined;
  }
  return draft;
}
