// APIs: services by the description of their API, with their operations.
import { useState } from "preact/hooks";

import {
  ApiError,
  agentId,
  go,
  href,
  invalidate,
  mayEdit,
  path,
  post,
  put,
  remove,
  route,
  setQuery,
  useQuery,
  type API,
} from "../data";
import {
  Badge,
  Button,
  confirm,
  Empty,
  FormDialog,
  Icon,
  Load,
  Menu,
  Name,
  openDialog,
  Pager,
  plural,
  SearchField,
  Segments,
  showToast,
  TextArea,
  TextField,
  When,
  type MenuItem,
} from "../ui";
import { CredentialSelect, RedirectAddress } from "../parts/credentials";
import { useFollow } from "../parts/follow";
import { Operation, Operations } from "./apis/operations";
import { apisAt } from "./apis/paths";

const apisHref = (...more: string[]) => href(agentId.value, "apis", ...more);

/** The page of APIs: the list, or the API or the operation of the address. */
export default function APIs() {
  const [id, operation] = route.value.rest;
  if (id && operation) return <Operation key={id + operation} api={id} id={operation} />;
  return id ? <ApiPage key={id} id={id} /> : <ApiList />;
}

function ApiList() {
  const { query } = route.value;
  const search = query.get("q") ?? "";
  const offset = Number(query.get("offset")) || 0;
  const found = useQuery<API.ApiList>(apisAt(), { search, limit: 50, offset });
  useFollow("api", found.reload);
  const searchable = search !== "" || (found.data.value?.meta.total ?? 0) > 0;
  const add = mayEdit.value && (
    <Button kind="primary" icon="Plus" onClick={() => openDialog((close) => <Import close={close} />)}>
      Import API
    </Button>
  );
  return (
    <div class="page">
      <div class="page-head">
        <h1 class="grow" tabIndex={-1}>
          APIs
        </h1>
        {searchable && (
          <SearchField label="Search APIs" value={search} onInput={(q) => setQuery({ q, offset: null })} />
        )}
        {add}
      </div>
      <Load of={found}>
        {({ apis, meta }) => {
          if (!apis.length && search)
            return (
              <Empty icon="Search" title="No APIs match">
                Try different words.
              </Empty>
            );
          if (!apis.length)
            return (
              <Empty icon="Layers" title="No APIs yet" action={add}>
                Most services publish a description of their API: OpenAPI, Swagger or a Postman collection. Import one,
                and its operations become workflow steps and agent tools.
              </Empty>
            );
          return (
            <>
              <ul class="sources">
                {apis.map((api) => (
                  <ApiRow key={api.id} api={api} />
                ))}
              </ul>
              <Pager meta={meta} go={(to) => setQuery({ offset: to || null })} />
            </>
          );
        }}
      </Load>
    </div>
  );
}

function ApiRow({ api }: { api: API.ApiList["apis"][number] }) {
  const { id, name, title, server_url, used_by, operations } = api;
  return (
    <li class="source-row">
      <span class="tile">
        <Icon name="Layers" />
      </span>
      <div class="grow">
        <a href={apisHref(id)}>
          <Name>{name}</Name>
        </a>
        <p class="muted small clip">
          <Name>{title}</Name> · <bdi>{server_url}</bdi> ·{" "}
          {used_by.length ? `used in ${plural(used_by.length, "place")}` : "not used"}
        </p>
      </div>
      <Badge>{plural(operations, "operation")}</Badge>
    </li>
  );
}

/** Imports an API from an address or a text. */
function Import({ close }: { close: () => void }) {
  const [from, setFrom] = useState<"url" | "document">("url");
  const initial = { name: "", url: "", document: "", server: "", credential: "" };
  const run = async (v: typeof initial) => {
    if (!v[from].trim())
      throw new ApiError(400, {
        error: { details: { errors: [{ field: from, issue: "is required", severity: "error" }] } },
      });
    const made: API.API = await post(apisAt(), {
      name: v.name,
      ...(from === "url" ? { url: v.url.trim() } : { document: v.document }),
      ...(v.server && { server: v.server }),
      ...(v.credential && { credential: v.credential }),
    });
    invalidate(apisAt());
    showToast(`${plural(made.operations, "operation")} imported`);
    go(apisHref(made.id));
  };
  return (
    <FormDialog title="Import API" close={close} action="Import" wide run={run} initial={initial}>
      {(f) => (
        <>
          <TextField
            label="Name"
            autoFocus
            required
            placeholder="shop"
            hint="Workflows and tools refer to the API by this name."
            {...f.text("name")}
          />
          <Segments
            label="Description"
            value={from}
            onChange={(to) => setFrom(to as "url" | "document")}
            options={[
              ["url", "From an address"],
              ["document", "Paste it"],
            ]}
          />
          {from === "url" ? (
            <TextField
              label="Description address"
              type="url"
              required
              placeholder="https://api.example.com/openapi.json"
              hint="OpenAPI 3, Swagger 2.0 or a Postman collection, in JSON or YAML."
              {...f.text("url")}
              error={f.issue("url") ?? f.issue("document")}
            />
          ) : (
            <TextArea
              label="Description"
              code
              rows={8}
              hint="OpenAPI 3, Swagger 2.0 or a Postman collection, in JSON or YAML."
              {...f.text("document")}
              error={f.issue("document") ?? f.issue("url")}
            />
          )}
          <details open={Boolean(f.issue("server") || f.issue("credential"))}>
            <summary>More</summary>
            <div class="stack">
              <TextField
                label="Server"
                type="url"
                placeholder="the first that the description names"
                {...f.text("server")}
              />
              <CredentialSelect
                value={f.values.credential}
                onChange={(id) => f.set("credential", id)}
                error={f.issue("credential")}
              />
              <RedirectAddress />
            </div>
          </details>
        </>
      )}
    </FormDialog>
  );
}

function ApiPage({ id }: { id: string }) {
  const found = useQuery<API.API>(apisAt(id));
  useFollow("api", found.reload);
  return (
    <div class="page">
      <p class="crumb">
        <a href={apisHref()}>APIs</a>
      </p>
      <Load of={found} lines={8} title="API">
        {(a) => (
          <>
            <div class="page-head">
              <h1 class="grow" tabIndex={-1}>
                <Name>{a.name}</Name>
              </h1>
              {mayEdit.value && <Actions a={a} changed={found.reload} />}
            </div>
            <Facts api={a} />
            <Operations api={a} />
          </>
        )}
      </Load>
    </div>
  );
}

const refresh = async (changed: () => Promise<void>) => {
  invalidate(apisAt());
  await changed();
};

/** Changes an API, and asks before what would break something. */
async function update(a: API.API, body: Record<string, unknown>, changed: () => Promise<void>) {
  const u: API.UpdatedAPI = await put(apisAt(a.id), body);
  if (!u.confirm) {
    const news = (
      [
        [u.added, "added"],
        [u.changed, "changed"],
        [u.removed, "removed"],
      ] as const
    )
      .filter(([list]) => list.length)
      .map(([list, word]) => `${list.length} ${word}`);
    showToast(news.length ? `Updated: ${news.join(", ")}` : "Updated; no operations changed");
    await refresh(changed);
    return;
  }
  confirm({
    title: `Change ${a.name}?`,
    action: "Change it",
    text: (
      <ul class="reasons">
        {u.reasons.map((r) => (
          <li key={r}>
            <bdi>{r}</bdi>
          </li>
        ))}
      </ul>
    ),
    run: async () => {
      await put(apisAt(a.id), { ...body, confirm: u.confirm });
      await refresh(changed);
    },
  });
}

function Actions({ a, changed }: { a: API.API; changed: () => Promise<void> }) {
  const again = async () => {
    try {
      await update(a, {}, changed);
    } catch (error) {
      showToast(error);
    }
  };
  const items: MenuItem[] = [
    { label: "Edit", icon: "Pencil", run: () => openDialog((close) => <Edit a={a} close={close} changed={changed} />) },
    {
      label: "Replace description",
      icon: "Upload",
      run: () => openDialog((close) => <Replace a={a} close={close} changed={changed} />),
    },
    "-",
    {
      label: "Delete",
      icon: "Trash2",
      danger: true,
      disabled: a.used_by.length > 0,
      reason: "It's in use: remove it there first.",
      run: () =>
        confirm({
          title: `Delete ${a.name}?`,
          text: "Its operations can no longer be called.",
          action: "Delete",
          run: async () => {
            await remove(apisAt(a.id));
            invalidate(apisAt());
            go(apisHref());
          },
        }),
    },
  ];
  return (
    <>
      <Button
        icon="RefreshCw"
        disabled={!a.url}
        reason={a.url ? undefined : "Its description was pasted: replace it under More."}
        onClick={again}
      >
        Read again
      </Button>
      <Menu label="More" items={items} />
    </>
  );
}

function Edit({ a, close, changed }: { a: API.API; close: () => void; changed: () => Promise<void> }) {
  return (
    <FormDialog
      title={`Edit ${a.name}`}
      close={close}
      action="Save"
      run={async (v) => {
        await put(apisAt(a.id), v);
        showToast("Saved");
        await refresh(changed);
      }}
      initial={{ name: a.name, server: a.server_url, credential: a.credential }}
    >
      {(f) => (
        <>
          <TextField label="Name" autoFocus required {...f.text("name")} />
          <TextField
            label="Server"
            type="url"
            required
            list={a.servers.map((s) => s.url)}
            hint="Operation paths are appended to it."
            {...f.text("server")}
          />
          <CredentialSelect
            value={f.values.credential}
            onChange={(id) => f.set("credential", id)}
            error={f.issue("credential")}
          />
        </>
      )}
    </FormDialog>
  );
}

function Replace({ a, close, changed }: { a: API.API; close: () => void; changed: () => Promise<void> }) {
  return (
    <FormDialog
      title={`Replace description of ${a.name}`}
      close={close}
      action="Read it"
      wide
      run={(v) => update(a, v.url.trim() ? { url: v.url.trim() } : { document: v.document }, changed)}
      initial={{ url: a.url, document: "" }}
    >
      {(f) => (
        <>
          <TextField label="Description address" type="url" {...f.text("url")} />
          <TextArea
            label="Or paste the description"
            code
            rows={8}
            hint="Leave the address empty."
            {...f.text("document")}
          />
        </>
      )}
    </FormDialog>
  );
}

const formats: Record<string, string> = {
  "swagger-2.0": "Swagger 2.0",
  "openapi-3.0": "OpenAPI 3.0",
  "openapi-3.1": "OpenAPI 3.1",
  "postman-2.1": "Postman 2.1",
};

/** What an API is, where it is, and what uses it. */
function Facts({ api }: { api: API.API }) {
  const { title, version, server_url, credential, format, url, updated_at, used_by, security, warnings } = api;
  return (
    <section class="card stack" aria-label="API">
      <dl class="facts-list">
        <dt>API</dt>
        <dd>
          <Name>{title}</Name>{" "}
          <span class="muted">
            <bdi>{version}</bdi>
          </span>
        </dd>
        <dt>Server</dt>
        <dd>
          <code>{server_url}</code>
        </dd>
        <dt>Credential</dt>
        <dd>{credential ? <CredentialLink credential={credential} /> : <span class="muted">none</span>}</dd>
        <dt>Description</dt>
        <dd>
          {formats[format] ?? format}
          {url && (
            <>
              {" "}
              at <bdi>{url}</bdi>
            </>
          )}
          , read <When time={updated_at} />
        </dd>
        {used_by.length > 0 && (
          <>
            <dt>Used by</dt>
            <dd>
              <Uses uses={used_by} />
            </dd>
          </>
        )}
      </dl>
      {!credential && security.length > 0 && <MissingCredential security={security} />}
      {warnings.length > 0 && <UnusedParts warnings={warnings} />}
    </section>
  );
}

/** A credential by its name; an API refers to it by id or name. */
function CredentialLink({ credential }: { credential: string }) {
  const found = useQuery<API.CredentialList>(path("agents", agentId.value, "credentials"), { limit: 200 });
  const stored = found.data.value?.credentials.find(
    ({ id, name }) => id === credential || name.toLowerCase() === credential.toLowerCase(),
  );
  return (
    <a href={href(agentId.value, "credentials", stored?.id ?? credential)}>
      <Name>{stored?.name ?? credential}</Name>
    </a>
  );
}

function Uses({ uses }: { uses: API.API["used_by"] }) {
  return (
    <>
      {uses.map(({ kind, id, name }, index) => (
        <span key={kind + id + index}>
          {index > 0 && ", "}
          <a href={href(agentId.value, kind === "tool" ? "tools" : "workflows", id)}>
            <Name>{name || id}</Name>
          </a>
        </span>
      ))}
    </>
  );
}

/** What credentials the description asks for, while none is chosen. */
function MissingCredential({ security }: { security: API.API["security"] }) {
  const [host] = security[0].hosts;
  return (
    <p class="small">
      It asks for{" "}
      {security.map(({ name, fields }, index) => (
        <span key={name}>
          {index > 0 && " or "}
          <bdi>{fields.map((field) => field.name).join(" and ") || name}</bdi>
        </span>
      ))}
      .{" "}
      {mayEdit.value && (
        <>
          Add <a href={href(agentId.value, "credentials", "new", "custom")}>a credential</a> for{" "}
          {host ? <code>{host}</code> : "its server"}, then choose it under Edit.
        </>
      )}
    </p>
  );
}

function UnusedParts({ warnings }: { warnings: string[] }) {
  return (
    <details>
      <summary>
        {plural(warnings.length, "part")} of the description {warnings.length === 1 ? "is" : "are"} not used
      </summary>
      <ul class="reasons small">
        {warnings.map((warning) => (
          <li key={warning}>
            <bdi>{warning}</bdi>
          </li>
        ))}
      </ul>
    </details>
  );
}
