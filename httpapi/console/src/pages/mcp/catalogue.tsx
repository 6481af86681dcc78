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
  TextField,
} from "../../ui";
import { connectServer } from "../../parts/connect";
import { mcpAt } from "./paths";
import { showConnectionToast } from "./state";

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

type CataloguePage = { enabled: boolean; registry: string; servers: Listed[]; next_cursor: string };

const serversHref = () => href(agentId.value, "mcp");

/** The page of the catalogue. */
export function Catalogue() {
  const { query } = route.value;
  const search = query.get("q") ?? "";
  const cursor = query.get("after") ?? "";
  const found = useQuery<CataloguePage>("mcp-catalogue", { search, ...(cursor && { cursor }) });
  return (
    <div class="page">
      <p class="crumb">
        <a href={serversHref()}>MCP servers</a>
      </p>
      <div class="page-head">
        <h1 class="grow" tabIndex={-1}>
          Catalogue
        </h1>
        <SearchField label="Search by name" value={search} onInput={(q) => setQuery({ q: q || null, after: null })} />
      </div>
      <Load of={found} lines={8}>
        {(page) => (page.enabled ? <ServerList page={page} search={search} cursor={cursor} /> : <CatalogueDisabled />)}
      </Load>
    </div>
  );
}

function CatalogueDisabled() {
  const action = (
    <a class="button" href={serversHref()}>
      MCP servers
    </a>
  );
  return (
    <Empty icon="Plug" title="The catalogue is turned off" action={action}>
      The operator turned it off. Add servers by their address.
    </Empty>
  );
}

type ServerListProps = { page: CataloguePage; search: string; cursor: string };

function ServerList({ page: { registry, servers, next_cursor }, search, cursor }: ServerListProps) {
  return (
    <>
      <p class="muted">
        From <bdi>{new URL(registry).host}</bdi>. That a server is listed proves who owns its name, not that it is
        harmless.
      </p>
      {servers.length > 0 ? (
        <ul class="sources">
          {servers.map((server) => (
            <ServerItem key={server.name} server={server} />
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
  );
}

function ServerItem({ server }: { server: Listed }) {
  const [open, setOpen] = useState(false);
  const { name, title, version, description, remotes, packages } = server;
  const openForm = () => {
    openDialog((close) => <AddListed server={server} close={close} />);
  };
  return (
    <li class="stack tight catalogue-entry">
      <div class="row">
        <div class="grow">
          <strong>
            <Name>{title}</Name>
          </strong>{" "}
          <span class="muted small">{version}</span>
          <p class="muted small">
            <bdi>{name}</bdi>
          </p>
        </div>
        {remotes.length > 0 && mayEdit.value && (
          <Button icon="Plus" onClick={openForm}>
            Add
          </Button>
        )}
        {packages.length > 0 && (
          <Button pressed={open} onClick={() => setOpen(!open)}>
            Program
          </Button>
        )}
      </div>
      {description && (
        <p>
          <bdi>{description}</bdi>
        </p>
      )}
      {open && packages.map((item) => <Program key={item.registry + item.identifier} server={name} item={item} />)}
    </li>
  );
}

/** The name of a server in the operator's file. */
const entryName = (server: string) =>
  server
    .split("/")
    .at(-1)!
    .replace(/[^A-Za-z0-9._-]/g, "-");

/** A program, which only the operator can allow. */
function Program({ server, item }: { server: string; item: Package }) {
  const { registry, identifier, entry, secrets } = item;
  return (
    <div class="card stack tight">
      <p class="row">
        <Badge>{registry}</Badge>
        <code class="grow">{identifier}</code>
      </p>
      <p class="muted small">
        Programs run with Satchel's own privileges. The operator adds this to the file of <code>--allow-stdio-mcp</code>
        ; then it can be added here by its name.
      </p>
      <CopyField label="Configuration entry" text={JSON.stringify({ mcpServers: { [entryName(server)]: entry } })} />
      {secrets.length > 0 && (
        <p class="muted small">
          Variables for an Environment credential:{" "}
          {secrets.map(({ name }, index) => (
            <>
              {index > 0 && ", "}
              <code key={name}>{name}</code>
            </>
          ))}
        </p>
      )}
    </div>
  );
}

/** The host of an address, as credentials are bound to it. */
function hostOf(address: string) {
  const { protocol, host } = new URL(address);
  return protocol === "http:" ? `http://${host}` : host;
}

/**
 * The authentication for headers that were filled in: a login without any, a value of the server's own for one, a new
 * credential for several.
 */
async function authFor(name: string, url: string, headers: [string, string][]) {
  if (headers.length === 0) return { auth: { type: "login" } };
  if (headers.length > 1) {
    const { id } = await post(path("agents", agentId.value, "credentials"), {
      name,
      type: "header",
      hosts: [hostOf(url)],
      secret: Object.fromEntries(headers),
    });
    return { credential: id };
  }
  const [[header, value]] = headers;
  const token = header.toLowerCase() === "authorization" && /^bearer (.+)$/i.exec(value)?.[1];
  return { auth: token ? { type: "bearer", token } : { type: "header", name: header, value } };
}

const placeholder = /\{[^}]*\}/;

/** Puts what was entered into a value with a {variable}. */
const fill = (pattern: string, entered: string) =>
  placeholder.test(pattern) ? pattern.replace(placeholder, () => entered) : entered;

const urlField = ({ name }: Input) => `url.${name}`;
const headerField = ({ name }: Input) => `header.${name}`;

type AddValues = Record<string, string>;

/** The address of a server, with the variables that were entered. */
const urlOf = ({ url, variables }: Remote, values: AddValues) =>
  variables.reduce(
    (address, variable) =>
      address.replaceAll(`{${variable.name}}`, encodeURIComponent(values[urlField(variable)] ?? "")),
    url,
  );

/** The headers that were filled in. */
const headersOf = ({ headers }: Remote, values: AddValues) =>
  headers
    .filter((header) => values[headerField(header)])
    .map((header): [string, string] => [header.name, fill(header.value, values[headerField(header)])]);

/** The dialog that adds a server of the catalogue, at the first of its addresses. */
function AddListed({ server, close }: { server: Listed; close: () => void }) {
  const [remote] = server.remotes;
  const fields = [
    ...remote.variables.map((input) => ({ ...input, field: urlField(input) })),
    ...remote.headers.map((input) => ({ ...input, field: headerField(input) })),
  ];
  const initial: AddValues = { name: server.title.slice(0, 60) };
  for (const { field, value } of fields) initial[field] = placeholder.test(value) ? "" : value;
  const save = async (values: AddValues) => {
    const { name } = values;
    const url = urlOf(remote, values);
    const auth = await authFor(name, url, headersOf(remote, values));
    const added = await post(mcpAt(), { name, url, ...auth });
    showConnectionToast(added);
    invalidate(mcpAt());
    go(href(agentId.value, "mcp", added.id));
    if (added.status === "needs_login") void connectServer(added);
  };
  return (
    <FormDialog
      title={`Add ${server.title}`}
      close={close}
      action="Add"
      run={save}
      initial={initial}
      ready={(values) => fields.every(({ required, field }) => !required || values[field])}
    >
      {(form) => (
        <>
          <TextField label="Name" autoFocus required {...form.text("name")} />
          <CopyField label="Address" text={remote.url} />
          {form.issue("url") && (
            <p class="issue small" role="alert">
              The address {form.issue("url")}.
            </p>
          )}
          {fields.map(({ field, name, description, required, secret }) => {
            const props = { label: name, hint: description, ...form.text(field) };
            return secret ? (
              <SecretField key={field} {...props} />
            ) : (
              <TextField key={field} required={required} {...props} />
            );
          })}
          {!remote.headers.length && (
            <p class="muted small">If the server requires a login, you sign in after adding it.</p>
          )}
        </>
      )}
    </FormDialog>
  );
}
