// Rows out of a CSV file: into a table, or as a new one.
import { useState } from "preact/hooks";

import { agentId, go, href, invalidate, post, saveFile, upload } from "../../data";
import { Button, Dialog, Icon, plural, SelectField, Table, tell, TextField } from "../../ui";
import { decode, mapped, readFile, rejectedFile, type File as CSVFile, type Rejected } from "../../parts/csv";
import { columnTypes, slug, tablesAt, type ColumnType, type DataTable } from "../../parts/tables";

type Outcome = { dry: boolean; total: number; imported: number; updated: number; errors: Rejected[] };

const mostBytes = 10 << 20;

function Drop({ read }: { read: (file: CSVFile) => void }) {
  const take = async (f?: File) => {
    if (!f) return;
    try {
      if (f.size > mostBytes) throw new Error("The file can be at most 10 MB.");
      read(readFile(f.name, decode(await f.arrayBuffer())));
    } catch (error) {
      tell(error);
    }
  };
  return (
    <label
      class="drop"
      onDragOver={(e) => e.preventDefault()}
      onDrop={(e) => {
        e.preventDefault();
        void take(e.dataTransfer?.files[0]);
      }}
    >
      <Icon name="Upload" size={28} />
      <span>Drop a CSV file here, or choose one. Its first row names the columns.</span>
      <input
        type="file"
        accept=".csv,.tsv,.txt,text/csv"
        aria-label="CSV file"
        onChange={(e) => void take(e.currentTarget.files?.[0])}
      />
    </label>
  );
}

const asFile = (file: CSVFile, names: string[]) =>
  new File(
    [
      mapped(
        { ...file, header: names },
        names.map((n) => (n ? "+" : "")),
      ),
    ],
    "rows.csv",
    { type: "text/csv" },
  );

const sameName = (a: string, b: string) => {
  const plain = (name: string) => name.toLowerCase().replace(/[\s\-_./]/g, "");
  return plain(a) === plain(b);
};

export function ImportRows({ table, close, done }: { table: DataTable; close: () => void; done: () => void }) {
  const [file, setFile] = useState<CSVFile>();
  const [names, setNames] = useState<string[]>([]);
  const [key, setKey] = useState("");
  const [outcome, setOutcome] = useState<Outcome>();
  const own = ["id", ...table.columns.map((c) => c.name)];
  const read = (f: CSVFile) => {
    setFile(f);
    setNames(f.header.map((title) => own.find((name) => sameName(title, name)) ?? ""));
  };
  const run = async (dry: boolean) => {
    const answer = await upload(tablesAt(table.name, "import"), {
      key,
      dry_run: String(dry),
      file: asFile(file!, names),
    });
    setOutcome({ ...answer, dry });
    if (!dry) done();
  };
  const twice = names.find((n, i) => n && names.indexOf(n) !== i);
  if (!file)
    return (
      <Dialog title={`Import into ${table.name}`} close={close} wide>
        <Drop read={read} />
      </Dialog>
    );
  if (outcome)
    return (
      <Dialog title={`Import ${file.name}`} close={close} wide>
        <Result file={file} outcome={outcome} back={() => setOutcome(undefined)} run={() => run(false)} close={close} />
      </Dialog>
    );
  return (
    <Dialog title={`Import ${file.name}`} close={close} wide>
      <div class="stack">
        <Table
          rows={file.header.map((title, i) => ({ title, i }))}
          keyOf={(c) => c.i}
          columns={[
            { title: "In the file", class: "title", cell: (c) => <bdi>{c.title || `Column ${c.i + 1}`}</bdi> },
            {
              title: "For example",
              cell: (c) => (
                <span class="muted clip">
                  <bdi>
                    {file.rows
                      .slice(0, 3)
                      .map((r) => r.cells[c.i])
                      .filter(Boolean)
                      .join(" · ") || "empty"}
                  </bdi>
                </span>
              ),
            },
            {
              title: "Goes into",
              cell: (c) => (
                <select
                  aria-label={`Where ${c.title || `column ${c.i + 1}`} goes`}
                  value={names[c.i]}
                  onChange={(e) => setNames(names.map((n, i) => (i === c.i ? e.currentTarget.value : n)))}
                >
                  <option value="" selected={!names[c.i]}>
                    Skip
                  </option>
                  {own.map((n) => (
                    <option value={n} selected={n === names[c.i]}>
                      {n}
                    </option>
                  ))}
                </select>
              ),
            },
          ]}
        />
        <SelectField
          label="Existing rows"
          value={key}
          onChange={setKey}
          hint="Rows with the same value in this column are updated instead of added."
          options={[
            ["", "Add all rows"],
            ...["id", ...table.columns.filter((c) => c.unique).map((c) => c.name)]
              .filter((n) => names.includes(n))
              .map((n): [string, string] => [n, `Match by ${n}`]),
          ]}
        />
        {twice && (
          <p class="issue" role="alert">
            Two columns map to {twice}.
          </p>
        )}
        <div class="row end">
          <Button onClick={() => setFile(undefined)}>Choose another file</Button>
          <Button
            kind="primary"
            disabled={Boolean(twice) || !names.some(Boolean) || !file.rows.length}
            onClick={() => run(true)}
          >
            Check
          </Button>
        </div>
      </div>
    </Dialog>
  );
}

function Result({
  file,
  outcome: o,
  back,
  run,
  close,
}: {
  file: CSVFile;
  outcome: Outcome;
  back: () => void;
  run: () => Promise<void>;
  close: () => void;
}) {
  const rejected = new Set(o.errors.map((e) => e.row)).size;
  const changes = o.imported + o.updated;
  return (
    <div class="stack">
      <p>{o.dry ? "Nothing is stored yet. This is what the import would do:" : "The import is done."}</p>
      <p>
        <b>{plural(o.imported, "row")}</b> {o.dry ? "would be added" : "added"}, <b>{o.updated.toLocaleString()}</b>{" "}
        changed, <b class={rejected ? "bad-text" : ""}>{rejected.toLocaleString()}</b> rejected.
      </p>
      {rejected > 0 && (
        <>
          <Table
            rows={o.errors.slice(0, 100)}
            keyOf={(e) => `${e.row} ${e.field}`}
            columns={[
              { title: "Line", class: "number", cell: (e) => e.row },
              {
                title: "Problem",
                cell: (e) => (
                  <span class="issue">
                    <bdi>{e.field}</bdi> {e.issue}
                  </span>
                ),
              },
            ]}
          />
          <div class="row">
            <Button
              icon="Download"
              onClick={() =>
                saveFile(
                  new Blob(["\ufeff", rejectedFile(file, o.errors)], { type: "text/csv" }),
                  `rejected-${file.name}`,
                )
              }
            >
              Download rejected rows
            </Button>
          </div>
        </>
      )}
      <div class="row end">
        {o.dry ? (
          <>
            <Button onClick={back}>Back</Button>
            <Button kind="primary" disabled={!changes} onClick={run}>{`Import ${plural(changes, "row")}`}</Button>
          </>
        ) : (
          <Button kind="primary" onClick={close}>
            Close
          </Button>
        )}
      </div>
    </div>
  );
}

/** What a column of a file seems to hold. */
function guessType(cells: string[]): ColumnType {
  const some = cells.filter((c) => c.trim());
  const every = (test: (c: string) => boolean) => some.length > 0 && some.every(test);
  if (every((c) => /^(true|false|yes|no)$/i.test(c))) return "boolean";
  if (every((c) => /^-?(0|[1-9]\d{0,14})(\.\d+)?$/.test(c))) return "number";
  if (every((c) => /^\d{4}-\d\d-\d\d(T\d\d:\d\d.*(Z|[+-]\d\d:\d\d))?$/.test(c) && !Number.isNaN(Date.parse(c))))
    return "time";
  return "text";
}

/** Makes a table of a CSV file. */
export function NewFromFile({ close }: { close: () => void }) {
  const [file, setFile] = useState<CSVFile>();
  const [name, setName] = useState("");
  const [columns, setColumns] = useState<{ name: string; type: ColumnType }[]>([]);
  const [outcome, setOutcome] = useState<Outcome>();
  const read = (f: CSVFile) => {
    const taken = new Set(["id", "created_at", "updated_at", "rowid", "oid"]);
    setFile(f);
    setName(slug(f.name.replace(/\.[^.]*$/, ""), "table"));
    setColumns(
      f.header.map((title, i) => {
        let name = slug(title, `column_${i + 1}`);
        for (let n = 2; taken.has(name); n++) name = `${slug(title, `column_${i + 1}`).slice(0, 44)}_${n}`;
        taken.add(name);
        return {
          name,
          type: guessType(
            f.rows
              .slice(0, 1000)
              .filter((r) => !r.broken)
              .map((r) => r.cells[i] ?? ""),
          ),
        };
      }),
    );
  };
  const open = () => {
    close();
    go(href(agentId.value, "tables", name));
  };
  const run = async () => {
    await post(tablesAt(), { name, columns });
    invalidate(tablesAt());
    const answer = await upload(tablesAt(name, "import"), {
      file: asFile(
        file!,
        columns.map((c) => c.name),
      ),
    });
    if (answer.errors.length) setOutcome({ ...answer, dry: false });
    else open();
  };
  if (!file)
    return (
      <Dialog title="New table from CSV" close={close} wide>
        <Drop read={read} />
      </Dialog>
    );
  if (outcome)
    return (
      <Dialog title={`Import ${file.name}`} close={open} wide>
        <Result file={file} outcome={outcome} back={open} run={async () => open()} close={open} />
      </Dialog>
    );
  return (
    <Dialog title={`New table from ${file.name}`} close={close} wide>
      <div class="stack">
        <TextField label="Name" value={name} onInput={setName} hint="Lower-case letters, digits and _." />
        <Table
          rows={columns.map((c, i) => ({ ...c, i }))}
          keyOf={(c) => c.i}
          columns={[
            { title: "In the file", cell: (c) => <bdi>{file.header[c.i]}</bdi> },
            {
              title: "For example",
              cell: (c) => (
                <span class="muted clip">
                  <bdi>
                    {file.rows
                      .slice(0, 3)
                      .map((r) => r.cells[c.i])
                      .filter(Boolean)
                      .join(" · ") || "empty"}
                  </bdi>
                </span>
              ),
            },
            { title: "Column", class: "title", cell: (c) => <code>{c.name}</code> },
            {
              title: "Type",
              cell: (c) => (
                <select
                  aria-label={`Type of ${c.name}`}
                  value={c.type}
                  onChange={(e) =>
                    setColumns(
                      columns.map((x, i) => (i === c.i ? { ...x, type: e.currentTarget.value as ColumnType } : x)),
                    )
                  }
                >
                  {columnTypes
                    .filter(([t]) => t !== "choice")
                    .map(([v, title]) => (
                      <option value={v} selected={v === c.type}>
                        {title}
                      </option>
                    ))}
                </select>
              ),
            },
          ]}
        />
        <div class="row end">
          <Button onClick={() => setFile(undefined)}>Choose another file</Button>
          <Button
            kind="primary"
            disabled={!name}
            onClick={run}
          >{`Create with ${plural(file.rows.length, "row")}`}</Button>
        </div>
      </div>
    </Dialog>
  );
}
