// Rows out of a CSV file: into a table, or as a new one.
import { useState } from "preact/hooks";

import { agentId, go, href, invalidate, post, saveFile, upload } from "../../data";
import { Button, Dialog, plural, SelectField, Table, showToast, TextField } from "../../ui";
import { csvTypes, decode, mapped, readFile, rejectedFile, type File as CSVFile, type Rejected } from "../../parts/csv";
import { FileDrop } from "../../parts/files";
import { columnTypes, slug, tablesAt, type ColumnType, type DataTable } from "../../parts/tables";

type Outcome = { dry: boolean; total: number; imported: number; updated: number; errors: Rejected[] };

const maxBytes = 10 << 20;

/** Takes a CSV file that is dropped or chosen. */
function Drop({ read }: { read: (file: CSVFile) => void }) {
  const take = async (file?: File) => {
    if (!file) return;
    try {
      if (file.size > maxBytes) throw new Error("The file can be at most 10 MB.");
      read(readFile(file.name, decode(await file.arrayBuffer())));
    } catch (error) {
      showToast(error);
    }
  };
  return (
    <FileDrop field="CSV file" accept={csvTypes} choose={(file) => void take(file)}>
      <span>Drop a CSV file here, or choose one. Its first row names the columns.</span>
    </FileDrop>
  );
}

/** The file to upload, with these names for its columns; those without a name are left out. */
function renamedFile(file: CSVFile, names: string[]) {
  const kept = names.map((name) => (name ? "+" : ""));
  return new File([mapped({ ...file, header: names }, kept)], "rows.csv", { type: "text/csv" });
}

/** Reports whether two names differ in case and punctuation at most. */
const sameName = (a: string, b: string) => {
  const plain = (name: string) => name.toLowerCase().replace(/[\s\-_./]/g, "");
  return plain(a) === plain(b);
};

/** The first values of a column of a file. */
function Examples({ file, index }: { file: CSVFile; index: number }) {
  const values = file.rows.slice(0, 3).map((row) => row.cells[index]);
  return (
    <span class="muted clip">
      <bdi>{values.filter(Boolean).join(" · ") || "empty"}</bdi>
    </span>
  );
}

/** Imports a file into a table: its columns are assigned, the import is checked, then done. */
export function ImportRows({ table, close, done }: { table: DataTable; close: () => void; done: () => void }) {
  const [file, setFile] = useState<CSVFile>();
  const [names, setNames] = useState<string[]>([]);
  const [key, setKey] = useState("");
  const [outcome, setOutcome] = useState<Outcome>();
  const ownNames = ["id", ...table.columns.map((c) => c.name)];
  const read = (csv: CSVFile) => {
    setFile(csv);
    setNames(csv.header.map((title) => ownNames.find((name) => sameName(title, name)) ?? ""));
  };
  const run = async (dry: boolean) => {
    const answer = await upload(tablesAt(table.name, "import"), {
      key,
      dry_run: String(dry),
      file: renamedFile(file!, names),
    });
    setOutcome({ ...answer, dry });
    if (!dry) done();
  };
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
  const duplicate = names.find((name, i) => name && names.indexOf(name) !== i);
  const keys = table.columns.filter((c) => c.unique).map((c) => c.name);
  return (
    <Dialog title={`Import ${file.name}`} close={close} wide>
      <div class="stack">
        <Mapping file={file} names={names} setNames={setNames} choices={ownNames} />
        <SelectField
          label="Existing rows"
          value={key}
          onChange={setKey}
          hint="Rows with the same value in this column are updated instead of added."
          options={[
            ["", names.includes("id") ? "Match by id" : "Add all rows"],
            ...keys.filter((name) => names.includes(name)).map((name): [string, string] => [name, `Match by ${name}`]),
          ]}
        />
        {duplicate && (
          <p class="issue" role="alert">
            Two columns map to {duplicate}.
          </p>
        )}
        <div class="row end">
          <Button onClick={() => setFile(undefined)}>Choose another file</Button>
          <Button
            kind="primary"
            disabled={Boolean(duplicate) || !names.some(Boolean) || !file.rows.length}
            onClick={() => run(true)}
          >
            Check
          </Button>
        </div>
      </div>
    </Dialog>
  );
}

/** For each column of the file the column of the table that it goes into. */
function Mapping({
  file,
  names,
  setNames,
  choices,
}: {
  file: CSVFile;
  names: string[];
  setNames: (names: string[]) => void;
  choices: string[];
}) {
  const assign = (index: number, name: string) => setNames(names.map((old, i) => (i === index ? name : old)));
  return (
    <Table
      rows={file.header.map((title, index) => ({ title, index }))}
      keyOf={(c) => c.index}
      columns={[
        { title: "In the file", class: "title", cell: (c) => <bdi>{c.title || `Column ${c.index + 1}`}</bdi> },
        { title: "For example", cell: (c) => <Examples file={file} index={c.index} /> },
        {
          title: "Goes into",
          cell: ({ title, index }) => (
            <select
              aria-label={`Where ${title || `column ${index + 1}`} goes`}
              value={names[index]}
              onChange={(e) => assign(index, e.currentTarget.value)}
            >
              <option value="" selected={!names[index]}>
                Skip
              </option>
              {choices.map((name) => (
                <option value={name} selected={name === names[index]}>
                  {name}
                </option>
              ))}
            </select>
          ),
        },
      ]}
    />
  );
}

type ResultProps = {
  file: CSVFile;
  outcome: Outcome;
  back: () => void;
  run: () => Promise<void>;
  close: () => void;
};

/** What an import did, or would do. */
function Result({ file, outcome, back, run, close }: ResultProps) {
  const { dry, imported, updated, errors } = outcome;
  const rejected = new Set(errors.map((e) => e.row)).size;
  const changes = imported + updated;
  return (
    <div class="stack">
      <p>{dry ? "Nothing is stored yet. This is what the import would do:" : "The import is done."}</p>
      <p>
        <b>{plural(imported, "row")}</b>
        {dry ? " would be added, " : " added, "}
        <b>{updated.toLocaleString()}</b>
        {" changed, "}
        <b class={rejected ? "bad-text" : ""}>{rejected.toLocaleString()}</b> rejected.
      </p>
      {rejected > 0 && <RejectedRows file={file} errors={errors} />}
      <div class="row end">
        {dry ? (
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

function RejectedRows({ file, errors }: { file: CSVFile; errors: Rejected[] }) {
  const save = () => {
    const content = new Blob(["\ufeff", rejectedFile(file, errors)], { type: "text/csv" });
    return saveFile(content, `rejected-${file.name}`);
  };
  return (
    <>
      <Table
        rows={errors.slice(0, 100)}
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
        <Button icon="Download" onClick={save}>
          Download rejected rows
        </Button>
      </div>
    </>
  );
}

/** Guesses the type of a column from its cells. */
function guessType(cells: string[]): ColumnType {
  const filled = cells.filter((cell) => cell.trim());
  const every = (test: (cell: string) => boolean) => filled.length > 0 && filled.every(test);
  const isTime = (cell: string) =>
    /^\d{4}-\d\d-\d\d(T\d\d:\d\d.*(Z|[+-]\d\d:\d\d))?$/.test(cell) && !Number.isNaN(Date.parse(cell));
  if (every((cell) => /^(true|false|yes|no)$/i.test(cell))) return "boolean";
  if (every((cell) => /^-?(0|[1-9]\d{0,14})(\.\d+)?$/.test(cell))) return "number";
  if (every(isTime)) return "time";
  return "text";
}

type NewColumn = { name: string; type: ColumnType };

/** Proposes a column for each column of a file, with a name that is valid and not taken. */
function columnsOf(file: CSVFile): NewColumn[] {
  const taken = new Set(["id", "created_at", "updated_at", "rowid", "oid"]);
  const sample = file.rows.slice(0, 1000).filter((row) => !row.broken);
  return file.header.map((title, i) => {
    const base = slug(title, `column_${i + 1}`);
    let name = base;
    for (let n = 2; taken.has(name); n++) name = `${base.slice(0, 44)}_${n}`;
    taken.add(name);
    return { name, type: guessType(sample.map((row) => row.cells[i] ?? "")) };
  });
}

/** Makes a table of a CSV file. */
export function NewFromFile({ close }: { close: () => void }) {
  const [file, setFile] = useState<CSVFile>();
  const [name, setName] = useState("");
  const [columns, setColumns] = useState<NewColumn[]>([]);
  const [outcome, setOutcome] = useState<Outcome>();
  const read = (csv: CSVFile) => {
    setFile(csv);
    setName(slug(csv.name.replace(/\.[^.]*$/, ""), "table"));
    setColumns(columnsOf(csv));
  };
  const open = () => {
    close();
    go(href(agentId.value, "tables", name));
  };
  const run = async () => {
    await post(tablesAt(), { name, columns });
    invalidate(tablesAt());
    const content = renamedFile(
      file!,
      columns.map((c) => c.name),
    );
    const answer = await upload(tablesAt(name, "import"), { file: content });
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
        <NewColumns file={file} columns={columns} setColumns={setColumns} />
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

/** The columns of the new table, whose types can be changed. */
function NewColumns({
  file,
  columns,
  setColumns,
}: {
  file: CSVFile;
  columns: NewColumn[];
  setColumns: (columns: NewColumn[]) => void;
}) {
  const types = columnTypes.filter(([type]) => type !== "choice");
  const setType = (index: number, type: ColumnType) =>
    setColumns(columns.map((column, i) => (i === index ? { ...column, type } : column)));
  return (
    <Table
      rows={columns.map((column, index) => ({ ...column, index }))}
      keyOf={(c) => c.index}
      columns={[
        { title: "In the file", cell: (c) => <bdi>{file.header[c.index]}</bdi> },
        { title: "For example", cell: (c) => <Examples file={file} index={c.index} /> },
        { title: "Column", class: "title", cell: (c) => <code>{c.name}</code> },
        {
          title: "Type",
          cell: (c) => (
            <select
              aria-label={`Type of ${c.name}`}
              value={c.type}
              onChange={(e) => setType(c.index, e.currentTarget.value as ColumnType)}
            >
              {types.map(([type, label]) => (
                <option value={type} selected={type === c.type}>
                  {label}
                </option>
              ))}
            </select>
          ),
        },
      ]}
    />
  );
}
