// SQL over the agent's data. The address contains the statement; one that comes from the
// address runs without a click only if it reads.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import {
  agent,
  agentId,
  ApiError,
  go,
  href,
  mayEdit,
  path,
  post,
  request,
  route,
  saveFile,
  useDraft,
  useQuery,
  type Options,
  asError,
} from "../data";
import { DataTabs } from "../parts/datatabs";
import { style } from "../parts/styles";
import { Button, Code, Empty, ErrorCard, Load, Menu, plural, Skeleton, span } from "../ui";
import { History, remember, saveQuery } from "./sql/history";
import { Grid } from "./sql/grid";
import { Parameters, readParameters, parameterNames } from "./sql/parameters";
import { Plan } from "./sql/plan";
import { Record } from "./sql/record";
import { Schema } from "./sql/schema";
import { quoteName, source, type Answer, type Table } from "./sql/statement";
import "../css/data.css";

export const styles = style("./sql.css");

const example = "SELECT name, email, created_at\nFROM contacts\nORDER BY created_at DESC\nLIMIT 50";

/** What became of the last statement; writes says that it was refused because it would change data. */
type Outcome = { query: string; answer?: Answer; plan?: Answer; error?: Error; writes?: boolean };

type RunOptions = { explain?: boolean; readonly?: boolean; keep?: boolean };

/** Runs statements, one at a time: a new one cancels the last. */
function useExecution(id: string, closeRow: () => void) {
  const [outcome, setOutcome] = useState<Outcome>();
  const [busy, setBusy] = useState(false);
  const current = useRef<AbortController>(undefined);
  useEffect(() => () => current.current?.abort(), []);

  /**
   * Runs a statement; explain shows its plan, readonly refuses one that writes, and keep leaves the opened row open and
   * the history as it is.
   */
  const run = async (
    query: string,
    params: Record<string, string>,
    { explain = false, readonly = false, keep = false }: RunOptions = {},
  ) => {
    if (!query.trim()) return;
    current.current?.abort();
    const abort = new AbortController();
    current.current = abort;
    setBusy(true);
    if (!keep) closeRow();
    const startedAt = Date.now();
    try {
      const body = {
        query: explain ? `EXPLAIN QUERY PLAN ${query}` : query,
        ...readParameters(query, params),
        ...(readonly && { read_only: true }),
      };
      const answer: Answer = await post(path("agents", agentId.value, "sql", "execute"), body, abort.signal);
      setOutcome(explain ? { query, plan: answer } : { query, answer });
      if (!explain && !keep)
        remember(id, { query, params, ms: answer.duration_ms, rows: answer.row_count, at: startedAt });
    } catch (error) {
      if (abort.signal.aborted) return;
      const writes = readonly && error instanceof ApiError && error.details.reason === "read_only";
      setOutcome({ query, error: writes ? undefined : asError(error), writes });
    }
    if (current.current === abort) setBusy(false);
  };
  const stop = () => {
    current.current?.abort();
    setBusy(false);
  };
  return { outcome, busy, run, stop };
}

/** Keeps the statement that is being written and its parameters, those of the address at first. */
function useStatement(id: string, run: ReturnType<typeof useExecution>["run"]) {
  const draft = useDraft(`sql.${id}`);
  const asked = route.value.query.get("q");
  const askedParams = route.value.query.get("p") ?? "";
  const [text, setText] = useState(asked ?? (draft.value || example));
  const [params, setParams] = useState<Record<string, string>>(() => readAddress(askedParams));
  const executedAddress = useRef("");
  useEffect(() => {
    // the address changed, other than by a run
    if (asked === null || location.hash === executedAddress.current) return;
    executedAddress.current = location.hash;
    setText(asked);
    const given = readAddress(askedParams);
    setParams(given);
    void run(asked, given, { readonly: true });
  }, [asked, askedParams, id]);
  const write = (value: string) => {
    setText(value);
    draft.value = value;
  };
  /** Runs a statement and puts it into the address. */
  const start = (query = text, given = params) => {
    const address = addressOf(id, query, given);
    executedAddress.current = address;
    go(address);
    void run(query, given);
  };
  return { asked, text, write, params, setParams, start };
}

/** The page: the tables, the statement and what it answered, and the row that is opened. */
export default function Data() {
  const id = agentId.value;
  const at = path("agents", id, "sql");
  const schema = useQuery<{ tables: Table[] }>(`${at}/schema`);
  const tables = schema.data.value?.tables;
  const [row, setRow] = useState<number>();
  const [panel, setPanel] = useState("");
  const { outcome, busy, run, stop } = useExecution(id, () => setRow(undefined));
  const { asked, text, write, params, setParams, start } = useStatement(id, run);
  const names = useMemo(() => parameterNames(text), [text]);
  const from = useMemo(
    () => (outcome?.answer && tables ? source(outcome.query, outcome.answer, tables) : undefined),
    [outcome, tables],
  );
  const answer = outcome?.answer;
  const toggle = (name: string) => setPanel(panel === name ? "" : name);
  const showTable = (table: Table) => {
    const query = `SELECT *\nFROM ${quoteName(table.name)}\nLIMIT 100`;
    setPanel("");
    write(query);
    setParams({});
    start(query, {});
  };
  return (
    <div class={`page full data ${panel ? `with-${panel}` : ""} ${row !== undefined ? "with-record" : ""}`}>
      <aside class="data-side" aria-label="Tables">
        <Load of={schema} lines={8}>
          {(loaded) => <Schema tables={loaded.tables} show={showTable} />}
        </Load>
      </aside>
      <section class="data-main">
        <div class="page-head">
          <h1 class="grow" tabIndex={-1}>
            Data
          </h1>
          <Button class="phone" icon="ListTree" pressed={panel === "tables"} onClick={() => toggle("tables")}>
            Tables
          </Button>
          <Button icon="History" pressed={panel === "history"} onClick={() => toggle("history")}>
            History
          </Button>
        </div>
        <DataTabs now="sql" />
        {panel === "history" && (
          <History
            agent={id}
            choose={(entry) => {
              write(entry.query);
              setParams(entry.params);
              setPanel("");
            }}
          />
        )}
        <Code
          language="sql"
          label="SQL statement"
          value={text}
          onInput={write}
          onRun={() => start()}
          rows={5}
          tables={tables}
          autoFocus={asked === null}
        />
        {names.length > 0 && <Parameters names={names} values={params} set={setParams} run={() => start()} />}
        <div class="row data-bar">
          <Button kind="primary" icon="Play" disabled={busy || !text.trim()} onClick={() => start()}>
            Run
          </Button>
          {busy && (
            <Button icon="CircleStop" onClick={stop}>
              Stop
            </Button>
          )}
          <Button onClick={() => run(text, params, { explain: true })} disabled={!text.trim()}>
            Explain
          </Button>
          <Button icon="Save" onClick={() => saveQuery(id, text, params)} disabled={!text.trim()}>
            Save
          </Button>
          <span class="muted small grow">
            <span class="data-hint">
              <kbd>Ctrl</kbd> <kbd>Enter</kbd> runs it{mayEdit.value ? "" : "; you may only read"}
            </span>
          </span>
          {answer && answer.columns.length > 0 && (
            <ExportMenu
              answer={answer}
              request={{ query: outcome!.query, ...readParameters(outcome!.query, params) }}
            />
          )}
        </div>
        <div class="data-result" aria-live="polite" aria-busy={busy}>
          {busy && !outcome && <Skeleton lines={6} />}
          {outcome?.writes && <ConfirmWrite run={() => start()} />}
          {outcome?.error && <Failure error={outcome.error} query={outcome.query} />}
          {outcome?.plan && <Plan answer={outcome.plan} />}
          {answer && <Result answer={answer} table={from?.table.name} open={setRow} opened={row} />}
          {!outcome && !busy && (
            <Empty icon="Database" title="Ask your data">
              Write a statement, or choose a table to see its rows.
            </Empty>
          )}
        </div>
      </section>
      {answer && row !== undefined && answer.rows[row] && (
        <Record
          key={`${row}-${outcome!.query}`}
          at={path("agents", agentId.value, "sql", "execute")}
          answer={answer}
          row={row}
          from={from}
          close={() => setRow(undefined)}
          step={(offset) => setRow(Math.min(answer.rows.length - 1, Math.max(0, row + offset)))}
          changed={() => void run(outcome!.query, params, { readonly: true, keep: true })}
        />
      )}
    </div>
  );
}

/** Saves an answer as a file; the CSV file has the rows too that the answer left out. */
function ExportMenu({ answer, request: body }: { answer: Answer; request: Options["body"] }) {
  return (
    <Menu
      label="Export"
      icon="Download"
      items={[
        { label: "CSV, all rows", icon: "Table", run: () => exportCSV(body) },
        { label: "JSON, the rows shown", icon: "Braces", run: () => exportJSON(answer) },
      ]}
    >
      <span class="row nowrap">Export</span>
    </Menu>
  );
}

/** Asks before a statement of a link changes data. */
function ConfirmWrite({ run }: { run: () => void }) {
  return (
    <div class="card warn stack">
      <p>This statement changes data. It came from a link, so it only runs when you confirm.</p>
      <div class="row">
        {mayEdit.value ? (
          <Button kind="primary" onClick={run}>
            Run it
          </Button>
        ) : (
          <span class="muted">Viewers can only run SELECT.</span>
        )}
      </div>
    </div>
  );
}

function Result({
  answer,
  table,
  open,
  opened,
}: {
  answer: Answer;
  table?: string;
  open: (row: number) => void;
  opened?: number;
}) {
  const changed = answer.columns.length === 0;
  const facts = [
    changed ? `${plural(answer.changes, "row")} changed` : plural(answer.row_count, "row"),
    span(answer.duration_ms),
    table && !changed ? `of ${table}` : "",
  ].filter(Boolean);
  return (
    <>
      <p class="muted small data-facts">
        {facts.join(" · ")}
        {answer.truncated && (
          <>
            {" "}
            · <b class="warn-text">Showing the first 1,000 rows. Export CSV to get them all.</b>
          </>
        )}
      </p>
      {!changed && answer.rows.length === 0 && <Empty title="No rows match">No rows.</Empty>}
      {answer.rows.length > 0 && <Grid answer={answer} open={open} opened={opened} />}
    </>
  );
}

/** Returns the line of a statement at an offset, and the text there. */
function placeOf(query: string, offset: number) {
  const characters = [...query];
  const before = characters.slice(0, offset).join("");
  const after = characters.slice(offset, offset + 30).join("");
  return { line: before.split("\n").length, near: after.split("\n")[0] };
}

/** Why a statement failed, and where in it. */
function Failure({ error, query }: { error: Error; query: string }) {
  const offset = error instanceof ApiError ? error.details.offset : undefined;
  const place = typeof offset === "number" ? placeOf(query, offset) : undefined;
  return (
    <div class="stack">
      <ErrorCard error={error} />
      {place?.near && (
        <p class="muted small">
          Line {place.line}, at <code>{place.near}</code>
        </p>
      )}
    </div>
  );
}

/** Reads the parameters of an address. */
const readAddress = (text: string): Record<string, string> => {
  try {
    const params = JSON.parse(text);
    if (!params || typeof params !== "object") return {};
    return Object.fromEntries(Object.entries(params).map(([name, value]) => [name, String(value)]));
  } catch {
    return {};
  }
};

/** The address of a statement with those of the parameters that it has. */
function addressOf(id: string, query: string, params: Record<string, string>) {
  const names = parameterNames(query);
  const given = Object.fromEntries(names.filter((n) => params[n] !== undefined).map((n) => [n, params[n]]));
  const search = new URLSearchParams({ q: query, ...(names.length ? { p: JSON.stringify(given) } : {}) });
  return `${href(id, "sql")}?${search}`;
}

const fileName = (extension: string) => `${agent.value?.name ?? "agent"}-rows.${extension}`;

async function exportCSV(body: Options["body"]) {
  const response = await request("POST", path("agents", agentId.value, "sql", "execute"), { body, accept: "text/csv" });
  const content = await response.blob().catch(() => {
    throw new Error("Exports are limited to 100,000 rows. Add a LIMIT or a condition.");
  });
  saveFile(content, fileName("csv"));
}

function exportJSON(answer: Answer) {
  const rows = answer.rows.map((row) => Object.fromEntries(answer.columns.map((column, i) => [column, row[i]])));
  saveFile(new Blob([JSON.stringify(rows, null, 2)], { type: "application/json" }), fileName("json"));
}
