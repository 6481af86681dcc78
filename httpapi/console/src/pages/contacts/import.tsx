// Contacts out of a CSV file: columns are mapped, the import is tried, then done.
import { useState } from "preact/hooks";

import { agentId, path, saveFile, session, upload } from "../../data";
import { Button, Dialog, Empty, Icon, plural, SelectField, Table, tell } from "../../ui";
import {
  decode,
  fields,
  guess,
  mapped,
  readFile,
  rejectedFile,
  type File as ContactFile,
  type Rejected,
} from "../../parts/csv";

type Outcome = { dry: boolean; total: number; imported: number; updated: number; skipped: number; errors: Rejected[] };

const mostBytes = 10 << 20;

export function Import({ close, done }: { close: () => void; done: () => void }) {
  const [file, setFile] = useState<ContactFile>();
  const read = async (f?: globalThis.File) => {
    if (!f) return;
    try {
      if (f.size > Math.min(mostBytes, session.value?.limits.upload_bytes || mostBytes))
        throw new Error("The file can be at most 10 MB.");
      setFile(readFile(f.name, decode(await f.arrayBuffer())));
    } catch (error) {
      tell(error);
    }
  };
  return (
    <Dialog title={file ? `Import ${file.name}` : "Import contacts"} close={close} wide>
      {file ? (
        <Mapping file={file} back={() => setFile(undefined)} close={close} done={done} />
      ) : (
        <label
          class="drop"
          onDragOver={(e) => e.preventDefault()}
          onDrop={(e) => {
            e.preventDefault();
            void read(e.dataTransfer?.files[0]);
          }}
        >
          <Icon name="Upload" size={28} />
          <span>Choose a CSV file, or drop it here</span>
          <small class="muted">
            With a header row. You map the columns and see a preview before anything is stored.
          </small>
          <input
            type="file"
            accept=".csv,.tsv,.txt,text/csv"
            aria-label="CSV file"
            onChange={(e) => void read(e.currentTarget.files?.[0])}
          />
        </label>
      )}
    </Dialog>
  );
}

const duplicates: [string, string][] = [
  ["update", "are updated from the file"],
  ["skip", "are left as they are"],
  ["error", "are rejected"],
];

function Mapping({
  file,
  back,
  close,
  done,
}: {
  file: ContactFile;
  back: () => void;
  close: () => void;
  done: () => void;
}) {
  const [mapping, setMapping] = useState(guess(file.header));
  const [on, setOn] = useState("update");
  const [outcome, setOutcome] = useState<Outcome>();
  const [share, setShare] = useState<number>();
  const problem = mappingProblem(file, mapping);
  const run = async (dry: boolean) => {
    setShare(0);
    try {
      const body = new File([mapped(file, mapping)], "contacts.csv", { type: "text/csv" });
      const answer = await upload(
        path("agents", agentId.value, "contacts", "import"),
        { on_duplicate: on, dry_run: String(dry), file: body },
        setShare,
      );
      const broken = file.rows.filter((r) => r.broken).map((r) => ({ row: r.row, field: "row", issue: r.broken! }));
      setOutcome({
        ...answer,
        dry,
        total: answer.total + broken.length,
        errors: [...broken, ...answer.errors].sort((a, b) => a.row - b.row),
      });
      if (!dry) done();
    } finally {
      setShare(undefined);
    }
  };
  if (outcome)
    return (
      <Result
        file={file}
        outcome={outcome}
        share={share}
        back={() => setOutcome(undefined)}
        run={() => run(false)}
        close={close}
      />
    );
  return (
    <form class="stack" onSubmit={(e) => e.preventDefault()}>
      <p class="muted">
        {plural(file.rows.length, "row")}, {plural(file.header.length, "column")}. Map each column.
      </p>
      <Table
        rows={file.header.map((title, i) => ({ title, i }))}
        keyOf={(c) => c.i}
        columns={[
          { title: "Column", class: "title", cell: (c) => <bdi>{c.title || `Column ${c.i + 1}`}</bdi> },
          {
            title: "For example",
            cell: (c) => (
              <span class="muted clip sample">
                <bdi>
                  {file.rows
                    .filter((r) => !r.broken)
                    .map((r) => r.cells[c.i])
                    .filter(Boolean)
                    .slice(0, 3)
                    .join(" · ") || "empty"}
                </bdi>
              </span>
            ),
          },
          {
            title: "Becomes",
            cell: (c) => (
              <select
                aria-label={`What ${c.title || `column ${c.i + 1}`} becomes`}
                value={mapping[c.i]}
                onChange={(e) => setMapping(mapping.map((m, i) => (i === c.i ? e.currentTarget.value : m)))}
              >
                {fields.map(([value, title]) => (
                  <option value={value} selected={mapping[c.i] === value}>
                    {title}
                  </option>
                ))}
                {c.title && (
                  <option value="+" selected={mapping[c.i] === "+"}>
                    A custom field
                  </option>
                )}
                <option value="" selected={mapping[c.i] === ""}>
                  Skip
                </option>
              </select>
            ),
          },
        ]}
      />
      <SelectField
        label="Existing contacts"
        value={on}
        options={duplicates}
        onChange={setOn}
        hint="Matched by email, phone, Telegram, WhatsApp or external ID."
      />
      {problem && (
        <p class="issue" role="alert">
          {problem}
        </p>
      )}
      {share !== undefined && <progress max={1} value={share} aria-label="Sent so far" />}
      <div class="row end">
        <Button onClick={back}>Choose another file</Button>
        <Button kind="primary" disabled={Boolean(problem) || !file.rows.length} onClick={() => run(true)}>
          Check
        </Button>
      </div>
    </form>
  );
}

/** Why a mapping cannot be used; undefined when it can. */
function mappingProblem(file: ContactFile, mapping: string[]) {
  if (!mapping.includes("name")) return "Map one column to the name.";
  const names = mapping.map((m, i) => (m === "+" ? file.header[i].toLowerCase() : m)).filter(Boolean);
  const twice = names.find((n, i) => names.indexOf(n) !== i);
  if (twice) return `Two columns become ${fields.find(([f]) => f === twice)?.[1] ?? twice}.`;
}

function Result({
  file,
  outcome: o,
  share,
  back,
  run,
  close,
}: {
  file: ContactFile;
  outcome: Outcome;
  share?: number;
  back: () => void;
  run: () => Promise<void>;
  close: () => void;
}) {
  const rejected = new Set(o.errors.map((e) => e.row)).size;
  const changes = o.imported + o.updated;
  const counts: [number, string, string][] = [
    [o.imported, o.dry ? "would be new" : "are new", "good"],
    [o.updated, o.dry ? "would be updated" : "were updated", "busy"],
    [o.skipped, "left as they are", ""],
    [rejected, "rejected", rejected ? "bad" : ""],
  ];
  return (
    <div class="stack import-result">
      <p>{o.dry ? "Nothing is stored yet. This is what the import would do:" : "The import is done."}</p>
      <ul class="counts">
        {counts.map(([n, text, tone]) => (
          <li class={`card ${n ? tone : ""}`} key={text}>
            <b>{n.toLocaleString()}</b>
            <span>{text}</span>
          </li>
        ))}
      </ul>
      {rejected > 0 && (
        <>
          <div class="row">
            <h3 class="grow">Rejected rows</h3>
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
          <Table
            rows={o.errors.slice(0, 100)}
            keyOf={(e) => `${e.row} ${e.field} ${e.issue}`}
            columns={[
              { title: "Row", class: "number", cell: (e) => e.row },
              {
                title: "Contact",
                cell: (e) => (
                  <bdi>
                    {file.rows
                      .find((r) => r.row === e.row)
                      ?.cells.filter(Boolean)
                      .slice(0, 2)
                      .join(" · ")}
                  </bdi>
                ),
              },
              {
                title: "Problem",
                cell: (e) => (
                  <span class="issue">
                    <bdi>{e.field === "row" ? "The row" : (fields.find(([f]) => f === e.field)?.[1] ?? e.field)}</bdi>{" "}
                    {e.issue}
                  </span>
                ),
              },
            ]}
          />
          {o.errors.length > 100 && <p class="muted small">And {o.errors.length - 100} more, in the file.</p>}
        </>
      )}
      {o.dry && !changes && !rejected && <Empty icon="Check" title="Nothing to change" />}
      {share !== undefined && <progress max={1} value={share} aria-label="Sent so far" />}
      <div class="row end">
        {o.dry ? (
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
