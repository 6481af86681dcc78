// Imports contacts from a CSV file: its columns are mapped to fields, the import is checked, then run.
import { useState } from "preact/hooks";

import { saveFile, session, upload } from "../../data";
import { Button, Dialog, Empty, plural, SelectField, Table, showToast } from "../../ui";
import {
  csvTypes,
  decode,
  fields,
  guess,
  mapped,
  readFile,
  rejectedFile,
  type File as ContactFile,
  type Rejected,
} from "../../parts/csv";
import { FileDrop } from "../../parts/files";
import { contactsAt } from "./paths";

/** What an import did, or as a dry run would do. */
type Outcome = {
  dryRun: boolean;
  total: number;
  imported: number;
  updated: number;
  skipped: number;
  errors: Rejected[];
};

const maxBytes = 10 << 20;
const maxShownErrors = 100;

/** The dialog that imports contacts; done is called after an import. */
export function Import({ close, done }: { close: () => void; done: () => void }) {
  const [file, setFile] = useState<ContactFile>();
  const read = async (chosen?: globalThis.File) => {
    if (!chosen) return;
    try {
      if (chosen.size > Math.min(maxBytes, session.value?.limits.upload_bytes || maxBytes))
        throw new Error("The file can be at most 10 MB.");
      setFile(readFile(chosen.name, decode(await chosen.arrayBuffer())));
    } catch (error) {
      showToast(error);
    }
  };
  return (
    <Dialog title={file ? `Import ${file.name}` : "Import contacts"} close={close} wide>
      {file ? (
        <ImportForm file={file} back={() => setFile(undefined)} close={close} done={done} />
      ) : (
        <FileDrop field="CSV file" accept={csvTypes} choose={(chosen) => void read(chosen)}>
          <span>Choose a CSV file, or drop it here</span>
          <small class="muted">
            With a header row. You map the columns and see a preview before anything is stored.
          </small>
        </FileDrop>
      )}
    </Dialog>
  );
}

const duplicatePolicies: [string, string][] = [
  ["update", "are updated from the file"],
  ["skip", "are left as they are"],
  ["error", "are rejected"],
];

/** Imports a file, and keeps how much of it was sent and the outcome. */
function useImport(file: ContactFile, done: () => void) {
  const [outcome, setOutcome] = useState<Outcome>();
  const [progress, setProgress] = useState<number>();
  const run = async (mapping: string[], onDuplicate: string, dryRun: boolean) => {
    setProgress(0);
    try {
      const answer = await upload(
        contactsAt("import"),
        {
          on_duplicate: onDuplicate,
          dry_run: String(dryRun),
          file: new File([mapped(file, mapping)], "contacts.csv", { type: "text/csv" }),
        },
        setProgress,
      );
      const broken = brokenRows(file);
      const errors = [...broken, ...answer.errors].sort((a, b) => a.row - b.row);
      setOutcome({ ...answer, dryRun, total: answer.total + broken.length, errors });
      if (!dryRun) done();
    } finally {
      setProgress(undefined);
    }
  };
  return { outcome, progress, run, reset: () => setOutcome(undefined) };
}

/** The rows that could not be read, which are not sent. */
function brokenRows(file: ContactFile): Rejected[] {
  return file.rows.flatMap(({ row, broken }) => (broken ? [{ row, field: "row", issue: broken }] : []));
}

type ImportFormProps = { file: ContactFile; back: () => void; close: () => void; done: () => void };

function ImportForm({ file, back, close, done }: ImportFormProps) {
  const [mapping, setMapping] = useState(guess(file.header));
  const [onDuplicate, setOnDuplicate] = useState("update");
  const { outcome, progress, run, reset } = useImport(file, done);
  const problem = mappingProblem(file, mapping);
  if (outcome)
    return (
      <Result
        file={file}
        outcome={outcome}
        progress={progress}
        back={reset}
        run={() => run(mapping, onDuplicate, false)}
        close={close}
      />
    );
  return (
    <form class="stack" onSubmit={(e) => e.preventDefault()}>
      <p class="muted">
        {plural(file.rows.length, "row")}, {plural(file.header.length, "column")}. Map each column.
      </p>
      <Mapping file={file} mapping={mapping} setMapping={setMapping} />
      <SelectField
        label="Existing contacts"
        value={onDuplicate}
        options={duplicatePolicies}
        onChange={setOnDuplicate}
        hint="Matched by email, phone, Telegram, WhatsApp or external ID."
      />
      {problem && (
        <p class="issue" role="alert">
          {problem}
        </p>
      )}
      {progress !== undefined && <progress max={1} value={progress} aria-label="Sent so far" />}
      <div class="row end">
        <Button onClick={back}>Choose another file</Button>
        <Button
          kind="primary"
          disabled={Boolean(problem) || !file.rows.length}
          onClick={() => run(mapping, onDuplicate, true)}
        >
          Check
        </Button>
      </div>
    </form>
  );
}

type MappingProps = { file: ContactFile; mapping: string[]; setMapping: (mapping: string[]) => void };

/** The columns of a file with examples of their values, and the field that each becomes. */
function Mapping({ file, mapping, setMapping }: MappingProps) {
  return (
    <Table
      rows={file.header.map((title, index) => ({ title, index }))}
      keyOf={(column) => column.index}
      columns={[
        { title: "Column", class: "title", cell: ({ title, index }) => <bdi>{title || `Column ${index + 1}`}</bdi> },
        {
          title: "For example",
          cell: ({ index }) => (
            <span class="muted clip sample">
              <bdi>{examples(file, index) || "empty"}</bdi>
            </span>
          ),
        },
        {
          title: "Becomes",
          cell: ({ title, index }) => (
            <TargetSelect
              title={title}
              label={`What ${title || `column ${index + 1}`} becomes`}
              value={mapping[index]}
              set={(field) => setMapping(mapping.with(index, field))}
            />
          ),
        },
      ]}
    />
  );
}

/** The first values of a column. */
function examples(file: ContactFile, column: number) {
  const values = file.rows.filter((row) => !row.broken).map((row) => row.cells[column]);
  return values.filter(Boolean).slice(0, 3).join(" · ");
}

type TargetSelectProps = { title: string; label: string; value: string; set: (field: string) => void };

/** The field that a column becomes: "+" is a custom field with the column's title, "" none. */
function TargetSelect({ title, label, value, set }: TargetSelectProps) {
  const options = [...fields];
  if (title) options.push(["+", "A custom field"]);
  options.push(["", "Skip"]);
  return (
    <select aria-label={label} value={value} onChange={(e) => set(e.currentTarget.value)}>
      {options.map(([field, text]) => (
        <option value={field} selected={field === value}>
          {text}
        </option>
      ))}
    </select>
  );
}

const fieldTitle = (field: string) => fields.find(([name]) => name === field)?.[1] ?? field;

/** Why a mapping cannot be used; undefined when it can. */
function mappingProblem(file: ContactFile, mapping: string[]) {
  if (!mapping.includes("name")) return "Map one column to the name.";
  const targets = mapping
    .map((target, column) => (target === "+" ? file.header[column].toLowerCase() : target))
    .filter(Boolean);
  const repeated = targets.find((target, index) => targets.indexOf(target) !== index);
  if (repeated) return `Two columns become ${fieldTitle(repeated)}.`;
}

type ResultProps = {
  file: ContactFile;
  outcome: Outcome;
  progress?: number;
  back: () => void;
  run: () => Promise<void>;
  close: () => void;
};

function Result({ file, outcome, progress, back, run, close }: ResultProps) {
  const { dryRun, errors } = outcome;
  const changes = outcome.imported + outcome.updated;
  return (
    <div class="stack import-result">
      <p>{dryRun ? "Nothing is stored yet. This is what the import would do:" : "The import is done."}</p>
      <Counts outcome={outcome} />
      {errors.length > 0 && <RejectedRows file={file} errors={errors} />}
      {dryRun && !changes && !errors.length && <Empty icon="Check" title="Nothing to change" />}
      {progress !== undefined && <progress max={1} value={progress} aria-label="Sent so far" />}
      <div class="row end">
        {dryRun ? (
          <>
            <Button onClick={back}>Back</Button>
            <Button kind="primary" disabled={!changes} onClick={run}>{`Import ${plural(changes, "contact")}`}</Button>
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

function Counts({ outcome }: { outcome: Outcome }) {
  const { dryRun, imported, updated, skipped, errors } = outcome;
  const rejected = new Set(errors.map((error) => error.row)).size;
  const counts: [count: number, text: string, tone: string][] = [
    [imported, dryRun ? "would be new" : "are new", "good"],
    [updated, dryRun ? "would be updated" : "were updated", "busy"],
    [skipped, "left as they are", ""],
    [rejected, "rejected", "bad"],
  ];
  return (
    <ul class="counts">
      {counts.map(([count, text, tone]) => (
        <li class={`card ${count ? tone : ""}`} key={text}>
          <b>{count.toLocaleString()}</b>
          <span>{text}</span>
        </li>
      ))}
    </ul>
  );
}

function RejectedRows({ file, errors }: { file: ContactFile; errors: Rejected[] }) {
  const saveRejected = () => {
    const content = new Blob(["\ufeff", rejectedFile(file, errors)], { type: "text/csv" });
    saveFile(content, `rejected-${file.name}`);
  };
  const firstCells = (row: number) => {
    const cells = file.rows.find((other) => other.row === row)?.cells;
    return cells?.filter(Boolean).slice(0, 2).join(" · ");
  };
  return (
    <>
      <div class="row">
        <h3 class="grow">Rejected rows</h3>
        <Button icon="Download" onClick={saveRejected}>
          Download rejected rows
        </Button>
      </div>
      <Table
        rows={errors.slice(0, maxShownErrors)}
        keyOf={({ row, field, issue }) => `${row} ${field} ${issue}`}
        columns={[
          { title: "Row", class: "number", cell: ({ row }) => row },
          { title: "Contact", cell: ({ row }) => <bdi>{firstCells(row)}</bdi> },
          {
            title: "Problem",
            cell: ({ field, issue }) => (
              <span class="issue">
                <bdi>{field === "row" ? "The row" : fieldTitle(field)}</bdi> {issue}
              </span>
            ),
          },
        ]}
      />
      {errors.length > maxShownErrors && (
        <p class="muted small">And {errors.length - maxShownErrors} more, in the file.</p>
      )}
    </>
  );
}
