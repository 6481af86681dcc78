// The catalogue: MCP servers that a registry lists, to be added by their address or allowed by the operator.
import { useState } from "preact/hooks";

import { agentId, go, href, invalidate, mayEdit, path, post, route, setQuery, useQuery, type API } from "../../data";
import {
  Badge,
  Button,
  CopyField,
  Empty,
  FormDialog,
  Load,
  Name,
  openDialog,
  SearchField,
  SecretField,
  tell,
  TextField,
} from "../../ui";
import { connectServer } from "../../parts/connect";

type Input = { name: string; description: string; required: boolean; secret: boolean; value: string };
type Remote = { type: string; url: string; headers: Input[]; variables: Input[] };
type Package = { registry: string; identifier: string; version: string; entry: API.Command; secrets: Input[] };
type Listed = {
  name: string;
  title: string;
  description: string;
  version: string;
  remotes: Remote[];
  packages: Package[];
};

const list = () => href(agentId.value, "mcp");

export function Catalogue() {
  const { query } = route.value;
  const [search, cursor] = [query.get("q") ?? "", query.get("after") ?? ""];
  const found = useQuery<{ enabled: boolean; registry: string; servers: Listed[]; next_cursor: string }>(
    "mcp-catalogue",
    { search, ...(cursor && { cursor }) },
  );
  return (
    <div class="page">
      <p class="crumb">
        <a href={list()}>MCP servers</a>
      </p>
      <div class="page-head">
        <h1 class="grow" tabIndex={-1}>
          Catalogue
        </h1>
        <SearchField label="Search by name" value={search} onInput={(q) => setQuery({ q: q || null, after: null })} />
      </div>
      <Load of={found} lines={8}>
        {({ enabled, registry, servers, next_cursor }) =>
          !enabled ? (
            <Empty
              icon="Plug"
              title="The catalogue is turned off"
              action={
                <a class="button" href={list()}>
                  MCP servers
                </a>
              }
            >
              The operator turned it off. Add servers by their address.
            </Empty>
          ) : (
            <>
              <p class="muted">
                From <bdi>{new URL(registry).host}</bdi>. That a server is listed proves who owns its name, not that it
                is harmless.
              </p>
              {servers.length ? (
                <ul class="sources">
                  {servers.map((s) => (
                    <Entry key={s.name} s={s} />
                  ))}
                </ul>
              ) : (
                <Empty icon="Search" title={search ? "No servers match" : "No more servers"}>
                  {search ? "The registry searches names only: try a shorter word." : "Go back to the first page."}
                </Empty>
              )}
              {(cursor || next_cursor) && (
                <div class="row end">
                  {cursor && <Button onClick={() => setQuery({ after: null })}>First page</Button>}
                  {next_cursor && <Button onClick={() => setQuery({ after: next_cursor })}>Next page</Button>}
                </div>
              )}
            </>
          )
        }
      </Load>
    </div>
  );
}

function Entry({ s }: { s: Listed }) {
  const [open, setOpen] = useState(false);
  const remote = s.remotes[0];
  return (
    <li class="stack tight catalogue-entry">
      <div class="row">
        <div class="grow">
          <strong>
            <Name>{s.title}</Name>
          </strong>{" "}
          <span class="muted small">{s.version}</span>
          <p class="muted small">
            <bdi>{s.name}</bdi>
          </p>
        </div>
        {remote && mayEdit.value && (
          <Button
            icon="Plus"
            onClick={() => {
              openDialog((close) => <Add s={s} close={close} />);
            }}
          >
            Add
          </Button>
        )}
        {s.packages.length > 0 && (
          <Button pressed={open} onClick={() => setOpen(!open)}>
            Program
          </Button>
        )}
      </div>
      {s.description && (
        <p>
          <bdi>{s.description}</bdi>
        </p>
      )}
      {open && s.packages.map((p) => <Program key={p.registry + p.identifier} s={s} p={p} />)}
    </li>
  );
}

/** A program, which only the operator can allow. */
function Program({ s, p }: { s: Listed; p: Package }) {
  const name = s.name
    .split("/")
    .at(-1)!
    .replace(/[^A-Za-z0-9._-]/g, "-");
  return (
    <div class="card stack tight">
      <p class="row">
        <Badge>{p.registry}</Badge>
        <code class="grow">{p.identifier}</code>
      </p>
      <p class="muted small">
        Programs run with Satchel's own privileges. The operator adds this to the file of <code>--allow-stdio-mcp</code>
        ; then it can be added here by its name.
      </p>
      <CopyField label="Configuration entry" text={JSON.stringify({ mcpServers: { [name]: p.entry } })} />
      {p.secrets.length > 0 && (
        <p class="muted small">
          Variables for an Environment credential:{" "}
          {p.secrets.map((v, i) => (
            <>
              {i > 0 && ", "}
              <code key={v.name}>{v.name}</code>
            </>
          ))}
        </p>
      )}
    </div>
  );
}

/** The host of an address, as credentials are bound to it. */
const hostOf = (address: string) => {
  const u = new URL(address);
  return u.protocol === "http:" ? `http://${u.host}` : u.host;
};

/** The authentication that filled-in headers make: one of its own, or a new credential for several. */
async function authFor(name: string, url: string, headers: [string, string][]) {
  if (headers.length === 0) return { auth: { type: "login" } };
  const [[header, value]] = headers;
  if (headers.length > 1) {
    const made = await post(path("agents", agentId.value, "credentials"), {
      name,
      type: "header",
      hosts: [hostOf(url)],
      secret: Object.fromEntries(headers),
    });
    return { credential: made.id };
  }
  const token = /^bearer (.+)$/i.exec(value);
  return {
    auth:
      header.toLowerCase() === "authorization" && token
        ? { type: "bearer", token: token[1] }
        : { type: "header", name: header, value },
  };
}

/** Fills what a person typed into a value with {variables}. */
const filled = (pattern: string, typed: string) =>
  /\{[^}]*\}/.test(pattern) ? pattern.replace(/\{[^}]*\}/, () => typed) : typed;

function Add({ s, close }: { s: Listed; close: () => void }) {
  const [remote] = s.remotes;
  const inputs = [
    ...remote.variables.map((v) => ({ ...v, at: `url.${v.name}` })),
    ...remote.headers.map((h) => ({ ...h, at: `header.${h.name}` })),
  ];
  const plain = (v: Input) => (/\{[^}]*\}/.test(v.value) ? "" : v.value);
  const initial: Record<string, string> = {
    name: s.title.slice(0, 60),
    ...Object.fromEntries(inputs.map((i) => [i.at, plain(i)])),
  };
  const save = async (v: typeof initial) => {
    const url = remote.variables.reduce(
      (address, x) => address.replaceAll(`{${x.name}}`, encodeURIComponent(v[`url.${x.name}`] ?? "")),
      remote.url,
    );
    const headers = remote.headers
      .filter((h) => v[`header.${h.name}`])
      .map((h) => [h.name, filled(h.value, v[`header.${h.name}`])] as [string, string]);
    const made = await post(path("agents", agentId.value, "mcp"), {
      name: v.name,
      url,
      ...(await authFor(v.name, url, headers)),
    });
    if (made.status !== "needs_login")
      tell(
        made.status === "connected"
          ? `${made.name} answers`
          : new Error(`${made.name} is ${made.status}: ${made.last_error}`),
      );
    invalidate(path("agents", agentId.value, "mcp"));
    go(href(agentId.value, "mcp", made.id));
    if (made.status === "needs_login") void connectServer(made);
  };
  return (
    <FormDialog
      title={`Add ${s.title}`}
      close={close}
      action="Add"
      run={save}
      initial={initial}
      ready={(v) => inputs.every((i) => !i.required || v[i.at])}
    >
      {(f) => (
        <>
          <TextField label="Name" autoFocus required {...f.text("name")} />
          <CopyField label="Address" text={remote.url} />
          {f.issue("url") && (
            <p class="issue small" role="alert">
              The address {f.issue("url")}.
            </p>
          )}
          {inputs.map((i) =>
            i.secret ? (
              <SecretField key={i.at} label={i.name} hint={i.description} {...f.text(i.at)} />
            ) : (
              <TextField key={i.at} label={i.name} hint={i.description} required={i.required} {...f.text(i.at)} />
            ),
          )}
          {!remote.headers.length && (
            <p class="muted small">If the server requires a login, you sign in after adding it.</p>
          )}
        </>
      )}
    </FormDialog>
  );
}
