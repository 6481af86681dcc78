// One credential: what it is, what uses it, and its form.
import { useState } from "preact/hooks";

import { agentId, go, href, invalidate, mayEdit, post, remove, useQuery, type API } from "../../data";
import { Button, confirm, Load, Menu, Name, showToast, When, type MenuItem } from "../../ui";
import { connect } from "../../parts/connect";
import { useFollow } from "../../parts/follow";
import { Editor } from "./editor";
import { credentialsAt, credentialsHref } from "./paths";
import { confirmUse, CredentialState, typeTitle } from "./state";

/** The page of one credential. */
export function CredentialPage({ id }: { id: string }) {
  const found = useQuery(credentialsAt(id));
  const [editing, setEditing] = useState(false);
  useFollow("credential", found.reload);
  const saved = async () => {
    setEditing(false);
    await found.reload();
  };
  return (
    <div class="page">
      <p class="crumb">
        <a href={credentialsHref()}>Credentials</a>
      </p>
      <Load of={found} lines={8} title="Credential">
        {(credential) => (
          <>
            <div class="page-head">
              <h1 class="grow" tabIndex={-1}>
                <Name>{credential.name}</Name>
              </h1>
              <CredentialState status={credential.status} />
              {mayEdit.value && !editing && (
                <Actions credential={credential} changed={found.reload} edit={() => setEditing(true)} />
              )}
            </div>
            {editing ? (
              <Editor key={credential.updated_at} stored={credential} saved={saved} cancel={() => setEditing(false)} />
            ) : (
              <>
                <Notices credential={credential} />
                <Facts credential={credential} />
                <Uses credential={credential} />
              </>
            )}
          </>
        )}
      </Load>
    </div>
  );
}

type CredentialProps = { credential: API.Credential };
type ActionsProps = CredentialProps & { changed: () => Promise<void>; edit: () => void };

/** Reports whether a person signs in for a credential. */
const hasLogin = ({ config }: API.Credential) => ["authorization_code", "device_code"].includes(config.grant ?? "");

function Actions(props: ActionsProps) {
  return (
    <>
      <MainAction {...props} />
      <Menu label="More" items={menuItems(props)} />
    </>
  );
}

/** What the credential needs to be used; if nothing, a test. */
function MainAction({ credential, changed }: ActionsProps) {
  const { id, type, status, config } = credential;
  const locked = status === "locked";
  const testable = config.test || type === "oauth2";
  const confirmHere = async () => {
    await confirmUse(credential);
    await changed();
  };
  const test = async () => {
    const { success, account, error } = await post(credentialsAt(id, "test"));
    if (success) showToast(account ? `It works: ${account}` : "It works");
    else showToast(new Error(error));
    await changed();
  };
  if (status === "needs_confirm")
    return (
      <Button kind="primary" onClick={confirmHere}>
        Confirm
      </Button>
    );
  if (hasLogin(credential) && status !== "ready" && !locked)
    return (
      <Button kind="primary" icon="LogIn" onClick={() => connect(credential)}>
        Connect
      </Button>
    );
  return (
    <Button
      icon="Activity"
      disabled={!testable || locked}
      reason={testable ? "Enter its secret again first." : "No test request: add one under Edit."}
      onClick={test}
    >
      Test
    </Button>
  );
}

function menuItems({ credential, changed, edit }: ActionsProps): MenuItem[] {
  const { id, name, status, used_by } = credential;
  const askToDisconnect = () =>
    confirm({
      title: `Disconnect ${name}?`,
      text: "Its tokens are deleted. Anything that uses it fails until it's connected again.",
      action: "Disconnect",
      run: async () => {
        await remove(credentialsAt(id, "connection"));
        await changed();
      },
    });
  const askToDelete = () =>
    confirm({
      title: `Delete ${name}?`,
      text: "Its secret can't be recovered.",
      action: "Delete",
      run: async () => {
        await remove(credentialsAt(id));
        invalidate(credentialsAt());
        go(credentialsHref());
      },
    });
  const items: MenuItem[] = [{ label: "Edit", icon: "Pencil", run: edit }];
  if (hasLogin(credential) && status === "ready")
    items.push(
      { label: "Connect again", icon: "RefreshCw", run: () => connect(credential) },
      { label: "Disconnect", icon: "Unplug", run: askToDisconnect },
    );
  items.push("-", {
    label: "Delete",
    icon: "Trash2",
    danger: true,
    disabled: used_by.length > 0,
    reason: "It's in use: remove it there first.",
    run: askToDelete,
  });
  return items;
}

/** What keeps a credential from being used. */
function Notices({ credential: { last_error, status, type } }: CredentialProps) {
  return (
    <>
      {last_error && (
        <div class="card bad" role="status">
          <p>
            <bdi>{last_error}</bdi>
          </p>
        </div>
      )}
      {status === "needs_confirm" && (
        <div class="card" role="status">
          <p>
            This agent is a copy and the credential came with it. Confirm that the copy may use it.
            {type === "oauth2" && " If both copies are to stay connected, connect one of them again."}
          </p>
        </div>
      )}
      {status === "locked" && (
        <div class="card bad" role="status">
          <p>Encrypted with another master key. Enter its secret again under Edit.</p>
        </div>
      )}
    </>
  );
}

function Facts({ credential }: CredentialProps) {
  const { hosts, configured_fields, account, config, expires_at, updated_at } = credential;
  return (
    <section class="card" aria-label="Credential">
      <dl class="facts-list">
        <dt>Type</dt>
        <dd>{typeTitle(credential)}</dd>
        {hosts.length > 0 && (
          <>
            <dt>Sent to</dt>
            <dd class="credential-hosts">
              {hosts.map((host) => (
                <code key={host}>{host}</code>
              ))}
            </dd>
          </>
        )}
        {configured_fields.length > 0 && (
          <>
            <dt>Secret</dt>
            <dd>
              <bdi>{configured_fields.join(", ")}</bdi>
            </dd>
          </>
        )}
        {account && (
          <>
            <dt>Account</dt>
            <dd>
              <Name>{account}</Name>
            </dd>
          </>
        )}
        {config.scope && (
          <>
            <dt>Scopes</dt>
            <dd>
              <bdi>{config.scope}</bdi>
            </dd>
          </>
        )}
        {expires_at && (
          <>
            <dt>Token</dt>
            <dd>
              ends <When time={expires_at} />, and is renewed before
            </dd>
          </>
        )}
        <dt>Changed</dt>
        <dd>
          <When time={updated_at} />
        </dd>
      </dl>
    </section>
  );
}

/** The kinds of records that use credentials, and the sections of their pages. */
const userKinds: Record<string, { title: string; section: string }> = {
  workflow: { title: "Workflow", section: "workflows" },
  tool: { title: "Tool", section: "tools" },
  source: { title: "Source", section: "knowledge" },
  mcp: { title: "MCP server", section: "mcp" },
  api: { title: "API", section: "apis" },
};

function Uses({ credential: { name: credentialName, used_by } }: CredentialProps) {
  return (
    <section class="card stack" aria-label="Used by">
      <h2>Used by</h2>
      {used_by.length > 0 ? (
        <ul class="credential-uses">
          {used_by.map(({ kind, id, name }) => (
            <li key={kind + id}>
              <span class="muted">{userKinds[kind].title}</span>{" "}
              <a href={href(agentId.value, userKinds[kind].section, id)}>
                <Name>{name || id}</Name>
              </a>
            </li>
          ))}
        </ul>
      ) : (
        <p class="muted">
          Nothing yet. Choose it in a workflow's HTTP request, a tool, an API source or an MCP server, or use it in
          code: <code>{`fetch(url, {credential: "${credentialName}"})`}</code>
        </p>
      )}
    </section>
  );
}
