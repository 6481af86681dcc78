// Queries that were run, and those that were saved: kept in this browser.
import { signal } from "@preact/signals";
import { useState } from "preact/hooks";

import { Button, confirm, FormDialog, Name, openDialog, plural, SearchField, span, TextField, When } from "../../ui";

export type Entry = {
  query: string;
  params: Record<string, string>;
  at: number;
  ms?: number;
  rows?: number;
  name?: string;
};

const maxEntries = 50;
const changes = signal(0);

const nameOf = (kind: "history" | "saved", agent: string) => `satchel.sql.${kind}.${agent}`;

function read(kind: "history" | "saved", agent: string): Entry[] {
  try {
    const list = JSON.parse(localStorage.getItem(nameOf(kind, agent)) ?? "[]");
    return Array.isArray(list)
      ? list.filter((e) => typeof e?.query === "string").map((e) => ({ ...e, params: e.params ?? {} }))
      : [];
  } catch {
    return [];
  }
}

function write(kind: "history" | "saved", agent: string, list: Entry[]) {
  try {
    localStorage.setItem(nameOf(kind, agent), JSON.stringify(list));
  } catch {
    /* the storage is full or closed */
  }
  changes.value++;
}

/** Puts a query that was run at the head of the history. */
export function remember(agent: string, entry: Entry) {
  if (entry.query.length > 20_000) return;
  write(
    "history",
    agent,
    [entry, ...read("history", agent).filter((e) => e.query !== entry.query)].slice(0, maxEntries),
  );
}

/** Asks for a name and saves a query under it. */
export function saveQuery(agent: string, query: string, params: Record<string, string>) {
  openDialog((close) => (
    <FormDialog
      title="Save query"
      action="Save"
      close={close}
      initial={{ name: "" }}
      run={async ({ name }) => {
        if (!name.trim()) throw new Error("Enter a name.");
        write("saved", agent, [
          { query, params, name: name.trim(), at: Date.now() },
          ...read("saved", agent).filter((e) => e.name !== name.trim()),
        ]);
      }}
    >
      {(f) => (
        <TextField
          label="Name"
          autoFocus
          hint="Saved in this browser. To share the query, copy this page's address."
          {...f.text("name")}
        />
      )}
    </FormDialog>
  ));
}

export function History({ agent, choose }: { agent: string; choose: (e: Entry) => void }) {
  void changes.value;
  const [search, setSearch] = useState("");
  const [allSaved, allPast] = [read("saved", agent), read("history", agent)];
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const [saved, past] = [allSaved, allPast].map((entries) =>
    entries.filter((e) => words.every((w) => `${e.name ?? ""} ${e.query}`.toLowerCase().includes(w))),
  );
  const list = (entries: Entry[], kind: "history" | "saved") => (
    <ul class="entries queries">
      {entries.map((e) => (
        <li key={`${e.name}-${e.at}`}>
          <button type="button" class="query" onClick={() => choose(e)}>
            {e.name ? (
              <b>
                <Name>{e.name}</Name>
              </b>
            ) : null}
            <code class="clip">{e.query.replace(/\s+/g, " ").slice(0, 200)}</code>
            <span class="small muted">
              <When time={new Date(e.at).toISOString()} />
              {e.rows !== undefined && ` · ${plural(e.rows, "row")}`}
              {e.ms !== undefined && ` · ${span(e.ms)}`}
            </span>
          </button>
          <Button
            kind="quiet"
            icon="X"
            label={`Remove ${e.name || e.query.slice(0, 60)}`}
            onClick={() =>
              write(
                kind,
                agent,
                read(kind, agent).filter((x) => x.at !== e.at || x.name !== e.name),
              )
            }
          />
        </li>
      ))}
    </ul>
  );
  return (
    <div class="card stack data-history">
      {allSaved.length + allPast.length > 6 && (
        <SearchField label="Search queries" value={search} onInput={setSearch} />
      )}
      <h2>Saved</h2>
      {saved.length ? (
        list(saved, "saved")
      ) : (
        <p class="muted small">{allSaved.length ? "No saved query matches." : "Saved queries appear here."}</p>
      )}
      <div class="row">
        <h2 class="grow">History</h2>
        {allPast.length > 0 && (
          <Button
            kind="quiet"
            onClick={() =>
              confirm({
                title: "Clear the history?",
                text: "Queries you ran are removed from this browser. Saved ones stay.",
                action: "Clear",
                run: async () => write("history", agent, []),
              })
            }
          >
            Clear
          </Button>
        )}
      </div>
      {past.length ? (
        list(past, "history")
      ) : (
        <p class="muted small">{allPast.length ? "No query matches." : "Queries you run appear here."}</p>
      )}
    </div>
  );
}
