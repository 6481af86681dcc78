// Credentials: secrets that are bound to their hosts, and sign-ins with providers.
import { useState } from "preact/hooks";

import {
  agentId,
  go,
  href,
  invalidate,
  mayEdit,
  path,
  post,
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
  Icon,
  LinkButton,
  Load,
  Menu,
  Name,
  Pager,
  plural,
  SearchField,
  tell,
  When,
  type MenuItem,
} from "../ui";
import { connect } from "../parts/connect";
import { useFollow } from "../parts/follow";
import { style } from "../parts/styles";
import { Editor } from "./credentials/editor";
import { Gallery, PresetForm } from "./credentials/presets";
import "../css/credentials.css";

export const styles = style("./credentials.css");

export const credentialsAt = <const M extends string[]>(...more: M) =>
  path("agents", agentId.value, "credentials", ...more);
const to = (...more: string[]) => href(agentId.value, "credentials", ...more);

const states: Record<string, { title: string; tone: "good" | "warn" | "bad" }> = {
  ready: { title: "ready", tone: "good" },
  needs_login: { title: "needs login", tone: "warn" },
  needs_confirm: { title: "needs confirmation", tone: "warn" },
  failing: { title: "failing", tone: "bad" },
  locked: { title: "locked", tone: "bad" },
};
const State = ({ c }: { c: API.Credential }) => (
  <Badge tone={states[c.status]?.tone}>{states[c.status]?.title ?? c.status}</Badge>
);

const grants: Record<string, string> = {
  authorization_code: "sign-in",
  device_code: "sign-in on another device",
  client_credentials: "client credentials",
  jwt_bearer: "service account",
};
const types: Record<string, string> = {
  header: "Header",
  query: "Query parameter",
  basic: "User and password",
  oauth2: "OAuth 2",
  aws: "AWS signature",
  env: "Environment",
};
export const typeTitle = (c: Pick<API.Credential, "type"> & { config: API.CredentialConfig }) =>
  c.type === "oauth2" ? `OAuth 2, ${grants[c.config.grant ?? ""] ?? c.config.grant}` : (types[c.type] ?? c.type);

export default function Credentials() {
  const [id, preset] = route.value.rest;
  if (id === "new") return <New key={preset} preset={preset} />;
  return id ? <One key={id} id={id} /> : <List />;
}

function List() {
  const { query } = route.value;
  const [search, offset] = [query.get("q") ?? "", Number(query.get("offset")) || 0];
  const found = useQuery(credentialsAt(), { search, limit: 50, offset });
  useFollow("credential", found.reload);
  const add = mayEdit.value && (
    <LinkButton kind="primary" icon="Plus" href={to("new")}>
      Add credential
    </LinkButton>
  );
  return (
    <div class="page">
      <div class="page-head">
        <h1 class="grow" tabIndex={-1}>
          Credentials
        </h1>
        {((found.data.value?.meta.total ?? 0) > 0 || search) && (
          <SearchField label="Search credentials" value={search} onInput={(q) => setQuery({ q, offset: null })} />
        )}
        {add}
      </div>
      <Load of={found}>
        {({ credentials, meta }) =>
          credentials.length ? (
            <>
              <ul class="sources">
                {credentials.map((c) => (
                  <li key={c.id} class="source-row">
                    <span class="tile">
                      <Icon name="KeyRound" />
                    </span>
                    <div class="grow">
                      <a href={to(c.id)}>
                        <Name>{c.name}</Name>
                      </a>
                      <p class="muted small clip">
                        {typeTitle(c)}
                        {c.hosts.length > 0 && (
                          <>
                            {" "}
                            · <bdi>{c.hosts.join(", ")}</bdi>
                          </>
                        )}{" "}
                        · {c.used_by.length ? `used in ${plural(c.used_by.length, "place")}` : "not used"}
                        {c.account && (
                          <>
                            {" "}
                            · <Name>{c.account}</Name>
                          </>
                        )}
                      </p>
                      {c.last_error && (
                        <p class="issue small">
                          <bdi>{c.last_error}</bdi>
                        </p>
                      )}
                    </div>
                    <State c={c} />
                    {mayEdit.value && c.status === "needs_login" && <Button onClick={() => connect(c)}>Connect</Button>}
                    {mayEdit.value && c.status === "needs_confirm" && (
                      <Button onClick={() => confirmUse(c)}>Confirm</Button>
                    )}
                  </li>
                ))}
              </ul>
              <Pager meta={meta} go={(o) => setQuery({ offset: o || null })} />
            </>
          ) : search ? (
            <Empty icon="Search" title="No credentials match">
              Try different words.
            </Empty>
          ) : (
            <Empty icon="KeyRound" title="No credentials yet" action={add}>
              A credential is a key or sign-in for a service. Nodes, tools, APIs, sources and MCP servers use it by
              name; it is only ever sent to its own hosts.
            </Empty>
          )
        }
      </Load>
    </div>
  );
}

function New({ preset }: { preset?: string }) {
  if (!mayEdit.value)
    return (
      <div class="page">
        <Empty icon="Eye" title="Read-only access">
          Adding credentials needs the admin role.
        </Empty>
      </div>
    );
  const saved = (c: API.Credential) => {
    invalidate(credentialsAt());
    go(to(c.id), true);
    if (c.status === "needs_login") connect(c);
  };
  return (
    <div class="page">
      <p class="crumb">
        <a href={to()}>Credentials</a>
        {preset && (
          <>
            {" "}
            / <a href={to("new")}>Add</a>
          </>
        )}
      </p>
      {!preset ? (
        <Gallery href={(id) => to("new", id)} />
      ) : preset === "custom" ? (
        <>
          <h1 tabIndex={-1}>Another service</h1>
          <Editor saved={saved} cancel={to("new")} />
        </>
      ) : (
        <PresetForm id={preset} saved={saved} cancel={to("new")} />
      )}
    </div>
  );
}

function One({ id }: { id: string }) {
  const found = useQuery(credentialsAt(id));
  useFollow("credential", found.reload);
  const [edit, setEdit] = useState(false);
  return (
    <div class="page">
      <p class="crumb">
        <a href={to()}>Credentials</a>
      </p>
      <Load of={found} lines={8} title="Credential">
        {(c) => (
          <>
            <div class="page-head">
              <h1 class="grow" tabIndex={-1}>
                <Name>{c.name}</Name>
              </h1>
              <State c={c} />
              {mayEdit.value && !edit && <Actions c={c} changed={found.reload} edit={() => setEdit(true)} />}
            </div>
            {edit ? (
              <Editor
                key={c.updated_at}
                stored={c}
                saved={async () => {
                  setEdit(false);
                  await found.reload();
                }}
                cancel={() => setEdit(false)}
              />
            ) : (
              <Facts c={c} />
            )}
          </>
        )}
      </Load>
    </div>
  );
}

function Actions({ c, changed, edit }: { c: API.Credential; changed: () => Promise<void>; edit: () => void }) {
  const person = ["authorization_code", "device_code"].includes(c.config.grant ?? "");
  const testable = c.config.test || c.type === "oauth2";
  const test = async () => {
    const t = await post(credentialsAt(c.id, "test"));
    tell(t.success ? (t.account ? `It works: ${t.account}` : "It works") : new Error(t.error));
    await changed();
  };
  const items: MenuItem[] = [
    { label: "Edit", icon: "Pencil", run: edit },
    ...(person && c.status === "ready"
      ? ([
          { label: "Connect again", icon: "RefreshCw", run: () => connect(c) },
          {
            label: "Disconnect",
            icon: "Unplug",
            run: () =>
              confirm({
                title: `Disconnect ${c.name}?`,
                text: "Its tokens are deleted. Anything that uses it fails until it's connected again.",
                action: "Disconnect",
                run: async () => {
                  await remove(credentialsAt(c.id, "connection"));
                  await changed();
                },
              }),
          },
        ] as MenuItem[])
      : []),
    "-",
    {
      label: "Delete",
      icon: "Trash2",
      danger: true,
      disabled: c.used_by.length > 0,
      reason: "It's in use: remove it there first.",
      run: () =>
        confirm({
          title: `Delete ${c.name}?`,
          text: "Its secret can't be recovered.",
          action: "Delete",
          run: async () => {
            await remove(credentialsAt(c.id));
            invalidate(credentialsAt());
            go(to());
          },
        }),
    },
  ];
  return (
    <>
      {c.status === "needs_confirm" ? (
        <Button
          kind="primary"
          onClick={async () => {
            await confirmUse(c);
            await changed();
          }}
        >
          Confirm
        </Button>
      ) : person && c.status !== "ready" && c.status !== "locked" ? (
        <Button kind="primary" icon="LogIn" onClick={() => connect(c)}>
          Connect
        </Button>
      ) : (
        <Button
          icon="Activity"
          disabled={!testable || c.status === "locked"}
          reason={testable ? "Enter its secret again first." : "No test request: add one under Edit."}
          onClick={test}
        >
          Test
        </Button>
      )}
      <Menu label="More" items={items} />
    </>
  );
}

const sections: Record<string, string> = {
  workflow: "workflows",
  tool: "tools",
  source: "knowledge",
  mcp: "mcp",
  api: "apis",
};
const kinds: Record<string, string> = {
  workflow: "Workflow",
  tool: "Tool",
  source: "Source",
  mcp: "MCP server",
  api: "API",
};

function Facts({ c }: { c: API.Credential }) {
  return (
    <>
      {c.last_error && (
        <div class="card bad" role="status">
          <p>
            <bdi>{c.last_error}</bdi>
          </p>
        </div>
      )}
      {c.status === "needs_confirm" && (
        <div class="card" role="status">
          <p>
            This agent is a copy and the credential came with it. Confirm that the copy may use it.
            {c.type === "oauth2" && " If both copies are to stay connected, connect one of them again."}
          </p>
        </div>
      )}
      {c.status === "locked" && (
        <div class="card bad" role="status">
          <p>Encrypted with another master key. Enter its secret again under Edit.</p>
        </div>
      )}
      <section class="card" aria-label="Credential">
        <dl class="facts-list">
          <dt>Type</dt>
          <dd>{typeTitle(c)}</dd>
          {c.hosts.length > 0 && (
            <>
              <dt>Sent to</dt>
              <dd class="credential-hosts">
                {c.hosts.map((h: string) => (
                  <code key={h}>{h}</code>
                ))}
              </dd>
            </>
          )}
          {c.configured_fields.length > 0 && (
            <>
              <dt>Secret</dt>
              <dd>
                <bdi>{c.configured_fields.join(", ")}</bdi>
              </dd>
            </>
          )}
          {c.account && (
            <>
              <dt>Account</dt>
              <dd>
                <Name>{c.account}</Name>
              </dd>
            </>
          )}
          {c.config.scope && (
            <>
              <dt>Scopes</dt>
              <dd>
                <bdi>{c.config.scope}</bdi>
              </dd>
            </>
          )}
          {c.expires_at && (
            <>
              <dt>Token</dt>
              <dd>
                ends <When time={c.expires_at} />, and is renewed before
              </dd>
            </>
          )}
          <dt>Changed</dt>
          <dd>
            <When time={c.updated_at} />
          </dd>
        </dl>
      </section>
      <section class="card stack" aria-label="Used by">
        <h2>Used by</h2>
        {c.used_by.length ? (
          <ul class="credential-uses">
            {c.used_by.map((u) => (
              <li key={u.kind + u.id}>
                <span class="muted">{kinds[u.kind]}</span>{" "}
                <a href={href(agentId.value, sections[u.kind], u.id)}>
                  <Name>{u.name || u.id}</Name>
                </a>
              </li>
            ))}
          </ul>
        ) : (
          <p class="muted">
            Nothing yet. Choose it in a workflow's HTTP request, a tool, an API source or an MCP server, or use it in
            code: <code>{`fetch(url, {credential: "${c.name}"})`}</code>
          </p>
        )}
      </section>
    </>
  );
}

async function confirmUse(c: API.Credential) {
  try {
    await post(credentialsAt(c.id, "confirm"));
    tell(`${c.name} may be used`);
  } catch (error) {
    tell(error);
  }
}
