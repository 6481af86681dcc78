// Data: the agent's own tables by SQL. The query stands in the address; from
// there only reading statements run without a click.
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

type Outcome = { query: string; answer?: Answer; plan?: Answer; error?: Error; writes?: boolean };

export default function Data() {
  return <Console />;
}

function Console() {
  const id = agentId.value;
  const at = path("agents", id, "sql");
  const schema = useQuery<{ tables: Table[] }>(`${at}/schema`);
  const tables = schema.data.value?.tables;
  const draft = useDraft(`sql.${id}`);
  const asked = route.value.query.get("q");
  const askedParams = route.value.query.get("p") ?? "";
  const [text, setText] = useState(asked ?? (draft.value || example));
  const [params, setParams] = useState<Record<string, string>>(() => readAddress(askedParams));
  const [outcome, setOutcome] = useState<Outcome>();
  const [busy, setBusy] = useState(false);
  const [row, setRow] = useState<number>();
  const [panel, setPanel] = useState("");
  const done = useRef("");
  const abort = useRef<AbortController>(undefined);
  const write = (value: string) => {
    setText(value);
    draft.value = value;
  };

  const run = async (
    query: string,
    given: Record<string, string>,
    { explain = false, readonly = false, keep = false } = {},
  ) => {
    if (!query.trim()) return;
    abort.current?.abort();
    const mine = new AbortController();
    abort.current = mine;
    setBusy(true);
    if (!keep) setRow(undefined);
    const began = Date.now();
    try {
      const body = {
        query: explain ? `EXPLAIN QUERY PLAN ${query}` : query,
        ...readParameters(query, given),
        ...(readonly && { read_only: true }),
      };
      const answer: Answer = await post(path("agents", agentId.value, "sql", "execute"), body, mine.signal);
      setOutcome(explain ? { query, plan: answer } : { query, answer });
      if (!explain && !keep)
        remember(id, { query, params: given, ms: answer.duration_ms, rows: answer.row_count, at: began });
    } catch (error) {
      if (mine.signal.aborted) return;
      const writes = readonly && error instanceof ApiError && error.details.reason === "read_only";
      setOutcome({ query, error: writes ? undefined : asError(error), writes });
    }
    if (abort.current === mine) setBusy(false);
  };
  const start = (query = text, given = params) => {
    const address = addressOf(id, query, given);
    done.current = address;
    go(address);
    void run(query, given);
  };
  useEffect(() => {
    // the address changed, other than by a run
    if (asked === null || location.hash === done.current) return;
    done.current = location.hash;
    setText(asked);
    const given = readAddress(askedParams);
    setParams(given);
    void run(asked, given, { readonly: true });
  }, [asked, askedParams, id]);
  useEffect(() => () => abort.current?.abort(), []);

  const names = useMemo(() => parameterNames(text), [text]);
  const from = useMemo(
    () => (outcome?.answer && tables ? source(outcome.query, outcome.answer, tables) : undefined),
    [outcome, tables],
  );
  const again = () => {
    if (outcome) void run(outcome.query, params, { readonly: true, keep: true });
  };
  const answer = outcome?.answer;
  return (
    <div class={`page full data ${panel ? `with-${panel}` : ""} ${row !== undefined ? "with-record" : ""}`}>
      <aside class="data-side" aria-label="Tables">
        <Load of={schema} lines={8}>
          {({ tables: all }) => (
            <Schema
              tables={all}
              show={(t) => {
                setPanel("");
                const query = `SELECT *\nFROM ${quoteName(t.name)}\nLIMIT 100`;
                write(query);
                setParams({});
                start(query, {});
              }}
            />
          )}
        </Load>
      </aside>
      <section class="data-main">
        <div class="page-head">
          <h1 class="grow" tabIndex={-1}>
            Data
          </h1>
          <Button
            class="phone"
            icon="ListTree"
            pressed={panel === "tables"}
            onClick={() => setPanel(panel === "tables" ? "" : "tables")}
          >
            Tables
          </Button>
          <Button
            icon="History"
            pressed={panel === "history"}
            onClick={() => setPanel(panel === "history" ? "" : "history")}
          >
            History
          </Button>
        </div>
        <DataTabs now="sql" />
        {panel === "history" && (
          <History
            agent={id}
            choose={(e) => {
              write(e.query);
              setParams(e.params);
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
            <Button
              icon="CircleStop"
              onClick={() => {
                abort.current?.abort();
                setBusy(false);
              }}
            >
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
            <Menu
              label="Export"
              icon="Download"
              items={[
                {
                  label: "CSV, all rows",
                  icon: "Table",
                  run: () =>
                    exportCSV(`${at}/execute`, { query: outcome!.query, ...readParameters(outcome!.query, params) }),
                },
                { label: "JSON, the rows shown", icon: "Braces", run: () => exportJSON(answer) },
              ]}
            >
              <span class="row nowrap">Export</span>
            </Menu>
          )}
        </div>
        <div class="data-result" aria-live="polite" aria-busy={busy}>
          {busy && !outcome && <Skeleton lines={6} />}
          {outcome?.writes && (
            <div class="card warn stack">
              <p>This statement changes data. It came from a link, so it only runs when you confirm.</p>
              <div class="row">
                {mayEdit.value ? (
                  <Button kind="primary" onClick={() => start()}>
                    Run it
                  </Button>
                ) : (
                  <span class="muted">Viewers can only run SELECT.</span>
                )}
              </div>
            </div>
          )}
          {outcome?.error && <Wrong error={outcome.error} query={outcome.query} />}
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
          step={(by) => setRow(Math.min(answer.rows.length - 1, Math.max(0, row + by)))}
          changed={again}
        />
      )}
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

/** Why a statement failed, with the place in it. */
function Wrong({ error, query }: { error: Error; query: string }) {
  const offset = error instanceof ApiError ? error.details.offset : undefined;
  const line = typeof offset === "number" ? [...query].slice(0, offset).join("").split("\n").length : 0;
  const near =
    typeof offset === "number"
      ? [...query]
          .slice(offset, offset + 30)
          .join("")
          .split("\n")[0]
      : "";
  return (
    <div class="stack">
      <ErrorCard error={error} />
      {near && (
        <p class="muted small">
          Line {line}, at <code>{near}</code>
        </p>
      )}
    </div>
  );
}

const readAddress = (text: string): Record<string, string> => {
  try {
    const raw = JSON.parse(text);
    return raw && typeof raw === "object"
      ? Object.fromEntries(Object.entries(raw).map(([k, v]) => [k, String(v)]))
      : {};
  } catch {
    return {};
  }
};

function addressOf(id: string, query: string, params: Record<string, string>) {
  const of = parameterNames(query);
  const given = Object.fromEntries(of.filter((n) => params[n] !== undefined).map((n) => [n, params[n]]));
  const search = new URLSearchParams({ q: query, ...(of.length ? { p: JSON.stringify(given) } : {}) });
  return `${href(id, "sql")}?${search}`;
}

const fileName = (ending: string) => `${agent.value?.name ?? "agent"}-rows.${ending}`;

async function exportCSV(at: string, body: Options["body"]) {
  const response = await request("POST", at, { body, accept: "text/csv" });
  const content = await response.blob().catch(() => {
    throw new Error("Exports are limited to 100,000 rows. Add a LIMIT or a condition.");
  });
  saveFile(content, fileName("csv"));
}

function exportJSON(answer: Answer) {
  const rows = answer.rows.map((r) => Object.fromEntries(answer.columns.map((c, i) => [c, r[i]])));
  saveFile(new Blob([JSON.stringify(rows, null, 2)], { type: "application/json" }), fileName("json"));
}
