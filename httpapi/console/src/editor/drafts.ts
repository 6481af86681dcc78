// Drafts: unsaved changes, stored in this browser for each workflow and editor with the version
// that they are based on, and offered again after a reload or a crash. The draft of an editor
// that is open in another tab is not offered.
import type { Doc } from "./graph";

const database = "satchel.workflows";
const storeName = "drafts";
const keepDays = 30;
const replyTime = 150; // milliseconds for other tabs to say which drafts they have open

/** Unsaved changes: the document, the version that it is based on, and when it was stored. */
export type Draft = { key: string; version: number; doc: Doc; at: number };

let opening: Promise<IDBDatabase> | undefined;

function openDatabase(): Promise<IDBDatabase> {
  opening ??= new Promise((resolve, reject) => {
    const request = indexedDB.open(database, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(storeName, { keyPath: "key" });
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
  return opening;
}

type Access = (store: IDBObjectStore) => IDBRequest;

/** Reads or changes the stored drafts; returns undefined if the browser's storage is unavailable or full. */
async function access<T>(mode: IDBTransactionMode, start: Access): Promise<T | undefined> {
  try {
    const db = await openDatabase();
    return await new Promise((resolve, reject) => {
      const request: IDBRequest<T> = start(db.transaction(storeName, mode).objectStore(storeName));
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
    });
  } catch {
    return undefined;
  }
}

// A tab that looks for a draft posts "who"; the others reply with the keys of their open drafts.
const tabs = new BroadcastChannel("satchel.drafts");
const ownKeys = new Set<string>();
const keysOfOthers = new Set<string>();
tabs.onmessage = ({ data }) => {
  if (data === "who") ownKeys.forEach((key) => tabs.postMessage(key));
  else keysOfOthers.add(data);
};

/** Opens the draft of a workflow's editor; it is released when the editor closes. */
export function openDraft(agent: string, id: string) {
  const key = `${agent}/${id}/${crypto.getRandomValues(new Uint32Array(2)).join("-")}`;
  ownKeys.add(key);
  return {
    keep: (version: number, doc: Doc) =>
      access("readwrite", (store) => store.put({ key, version, doc, at: Date.now() })),
    drop: () => dropDraft(key),
    release: () => {
      ownKeys.delete(key);
    },
  };
}

/** A draft that belongs to an open editor. */
export type OpenDraft = ReturnType<typeof openDraft>;

/** Removes a draft. */
export const dropDraft = (key: string) => access("readwrite", (store) => store.delete(key));

const isExpired = (draft: Draft) => Date.now() - draft.at >= keepDays * 86_400_000;

/** Returns the newest draft of a workflow that no other tab has open, and removes those older than a month. */
export async function readDraft(agent: string, id: string): Promise<Draft | undefined> {
  const prefix = `${agent}/${id}`;
  const range = IDBKeyRange.bound(prefix, `${prefix}/~`);
  const drafts = (await access<Draft[]>("readonly", (store) => store.getAll(range))) ?? [];
  if (!drafts.length) return undefined;
  keysOfOthers.clear();
  tabs.postMessage("who");
  await new Promise((resolve) => setTimeout(resolve, replyTime));
  const available = drafts.filter((draft) => !keysOfOthers.has(draft.key));
  for (const draft of available) if (isExpired(draft)) void dropDraft(draft.key);
  return available.filter((draft) => !isExpired(draft)).sort((a, b) => b.at - a.at)[0];
}
