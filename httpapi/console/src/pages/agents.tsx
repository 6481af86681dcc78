// The list of agents.
import { useEffect, useRef, useState } from "preact/hooks";

import { ApiError, go, href, loadSession, post, route, session, setQuery, upload, useQuery } from "../data";
import {
  Badge,
  Button,
  Dialog,
  Empty,
  Icon,
  Load,
  Name,
  openDialog,
  Pager,
  plural,
  SearchField,
  showToast,
  TextArea,
  TextField,
  When,
  LinkButton,
} from "../ui";
import { deviceZone } from "../parts/zone";

/** A name that the service takes, out of one that a person typed. */
export function slug(name: string) {
  return name
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .replace(/[^A-Za-z0-9]+/g, "-")
    .replace(/^-+|-+$/g, "")
    .slice(0, 64);
}

const valid = /^[A-Za-z0-9]+(-[A-Za-z0-9]+)*$/;

const entryOf = (id: string) => session.value?.agents.find((x) => x.id === id);

/** What an agent has, where that is known without opening its file. */
function RecordCounts({ id }: { id: string }) {
  const h = entryOf(id)?.holds;
  if (!h) return null;
  const parts = [
    h.sources > 0 && plural(h.sources, "source"),
    h.conversations > 0 && plural(h.conversations, "open conversation"),
    h.workflows > 0 && plural(h.workflows, "active workflow"),
  ].filter(Boolean);
  return <span class="small">{parts.join(" · ") || "No sources, open conversations or active workflows"}</span>;
}

/** What waits for a person in an agent, and what failed in it. */
function Counts({ id }: { id: string }) {
  const a = entryOf(id);
  return (
    <>
      {(a?.waiting ?? 0) > 0 && <Badge tone="warn">{`${a!.waiting} waiting`}</Badge>}
      {(a?.failures ?? 0) > 0 && <Badge tone="bad">{`${a!.failures} failed`}</Badge>}
    </>
  );
}

export default function Agents() {
  const { query } = route.value;
  const search = query.get("search") ?? "";
  const offset = Number(query.get("offset")) || 0;
  const found = useQuery("agents", { search, limit: 24, offset });
  useEffect(() => {
    if (!query.has("new")) return;
    setQuery({ new: null });
    openDialog((close) => <NewAgent close={close} />);
  }, [query]);
  return (
    <div class="page">
      <div class="page-head">
        <h1 class="grow" tabIndex={-1}>
          Agents
        </h1>
        <LinkButton href="#/keys" icon="KeyRound">
          API keys
        </LinkButton>
        {session.value?.cluster && (
          <LinkButton href="#/cluster" icon="Database">
            Servers
          </LinkButton>
        )}
        <ImportButton />
        <Button
          kind="primary"
          icon="Plus"
          onClick={() => {
            openDialog((close) => <NewAgent close={close} />);
          }}
        >
          New agent
        </Button>
      </div>
      {((found.data.value?.meta.total ?? 0) > 6 || search) && (
        <div class="row">
          <SearchField
            label="Search agents"
            value={search}
            onInput={(text) => setQuery({ search: text, offset: null })}
          />
        </div>
      )}
      <Load of={found}>
        {({ agents, meta }) =>
          agents.length ? (
            <>
              <ul class="cards">
                {agents.map((a) => (
                  <li key={a.id}>
                    <a class="card" href={href(a.id)}>
                      <span class="row">
                        <Icon name="Bot" />
                        <strong class="grow">
                          <Name>{a.name}</Name>
                        </strong>
                        {a.status !== "active" && <Badge>{a.status}</Badge>}
                      </span>
                      <span class="muted">{a.description || "No description"}</span>
                      <RecordCounts id={a.id} />
                      <span class="row">
                        <span class="small muted">
                          Changed <When time={a.updated_at} />
                        </span>
                        <Counts id={a.id} />
                      </span>
                    </a>
                  </li>
                ))}
              </ul>
              <Pager meta={meta} go={(to) => setQuery({ offset: to || null })} />
            </>
          ) : (
            <Empty icon="Bot" title="No agent matches" />
          )
        }
      </Load>
    </div>
  );
}

function NewAgent({ close }: { close: () => void }) {
  const [name, setName] = useState("");
  const [description, setDescription] = useState("");
  const [issues, setIssues] = useState<Record<string, string>>({});
  const [busy, setBusy] = useState(false);
  const proposal = name && !valid.test(name) ? slug(name) : "";
  const create = async () => {
    if (busy) return;
    setBusy(true);
    try {
      const made = await post("agents", { name: proposal || name, description, timezone: deviceZone() });
      close();
      await loadSession();
      go(href(made.id));
    } catch (error) {
      if (error instanceof ApiError && Object.keys(error.issues).length) setIssues(error.issues);
      else showToast(error);
      setBusy(false);
    }
  };
  return (
    <Dialog title="New agent" close={close}>
      <form
        class="stack"
        onSubmit={(e) => {
          e.preventDefault();
          void create();
        }}
      >
        <TextField
          label="Name"
          value={name}
          onInput={setName}
          required
          autoFocus
          error={issues.name}
          hint={
            proposal ? (
              <>
                It will be named <b>{proposal}</b>: letters, digits and single hyphens.
              </>
            ) : (
              "Letters, digits and single hyphens."
            )
          }
        />
        <TextArea
          label="Description"
          value={description}
          onInput={setDescription}
          rows={2}
          error={issues.description}
        />
        <div class="row end">
          <Button onClick={close}>Cancel</Button>
          <Button kind="primary" submit disabled={busy || !name || (!valid.test(name) && !proposal)}>
            Create
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

/** Brings a backup back as a new, paused agent. */
function ImportButton() {
  const file = useRef<HTMLInputElement>(null);
  const [share, setShare] = useState<number>();
  const send = async () => {
    const chosen = file.current?.files?.[0];
    if (!chosen) return;
    setShare(0);
    try {
      const made = await upload("agents/import", { file: chosen }, setShare);
      showToast(`${made.name} is back, and paused.`);
      await loadSession();
      go(href(made.id));
    } catch (error) {
      showToast(error);
    }
    setShare(undefined);
    file.current!.value = "";
  };
  return (
    <>
      <input ref={file} type="file" accept=".db" hidden aria-label="Backup file" onChange={send} />
      <Button icon="Upload" onClick={() => file.current?.click()}>
        {share === undefined ? "Import backup" : `${Math.round(share * 100)} %`}
      </Button>
    </>
  );
}
