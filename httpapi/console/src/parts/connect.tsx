// Connecting a credential or an MCP server: a person signs in with the provider.
import { useEffect, useState } from "preact/hooks";

import { agentId, type API, asError, get, path, post, reasonOf, useQuery } from "../data";
import { Button, CopyField, Dialog, openDialog, showToast, TextField } from "../ui";
import { useFollow } from "./follow";

const credentialPath = <const M extends string[]>(...more: M) => path("agents", agentId.value, "credentials", ...more);

/** Connects a credential: the person signs in with the provider, in another tab. */
export async function connect(credential: API.Credential) {
  try {
    const connection = await post(credentialPath(credential.id, "connect"));
    openDialog((close) => <ConnectDialog credential={credential} connection={connection} close={close} />);
  } catch (error) {
    showToast(error);
  }
}

/** Connects an MCP server: the person signs in at the address that the server names. */
export async function connectServer(server: API.MCPServer) {
  try {
    const connection = await post(path("agents", agentId.value, "mcp", server.id, "connect"));
    const credential = await get(credentialPath(connection.credential_id));
    openDialog((close) => (
      <ConnectDialog credential={{ ...credential, name: server.name }} connection={connection} close={close} />
    ));
  } catch (error) {
    showToast(error);
  }
}

type Connection = API.Connection & { credential_id?: string };

type ConnectDialogProps = { credential: API.Credential; connection: Connection; close: () => void };

/** Explains how to sign in, and closes when the credential is connected. */
function ConnectDialog({ credential, connection, close }: ConnectDialogProps) {
  const current = useQuery(credentialPath(credential.id));
  useFollow("credential", current.reload);
  const changed = current.data.value && current.data.value.updated_at !== credential.updated_at;
  useEffect(() => {
    if (changed && current.data.value?.status === "ready") {
      showToast(`${credential.name} is connected`);
      close();
    }
  }, [changed]);
  return (
    <Dialog title={`Connect ${credential.name}`} close={close}>
      {connection.user_code ? (
        <DeviceCode id={credential.id} connection={connection} code={connection.user_code} />
      ) : (
        <SignIn id={credential.id} connection={connection} reload={current.reload} />
      )}
    </Dialog>
  );
}

const defaultInterval = 5; // seconds between two requests

/** A code that is entered at the provider's page on any device. */
function DeviceCode({ id, connection, code }: { id: string; connection: Connection; code: string }) {
  const [issue, setIssue] = useState("");
  useEffect(() => {
    const interval = (connection.interval ?? defaultInterval) * 1000;
    let timer: ReturnType<typeof setTimeout>;
    const poll = async () => {
      try {
        const { connected } = await post(credentialPath(id, "connect", "complete"), {});
        if (!connected) timer = setTimeout(poll, interval);
      } catch (error) {
        setIssue(asError(error).message);
      }
    };
    timer = setTimeout(poll, interval);
    return () => clearTimeout(timer);
  }, []);
  return (
    <div class="stack">
      <p>Open the provider's page on any device, and type this code there:</p>
      <CopyField label="Code" text={code} />
      <div class="row">
        <a class="button primary" href={connection.verification_url} target="_blank" rel="noreferrer">
          Open the page
        </a>
        <span class="muted grow" role="status">
          {issue || "Waiting for your approval…"}
        </span>
      </div>
    </div>
  );
}

type SignInProps = { id: string; connection: Connection; reload: () => Promise<void> };

/** A link to the provider's page, which opens in another tab. */
function SignIn({ id, connection, reload }: SignInProps) {
  return (
    <div class="stack">
      <p>Confirm and sign in with the provider in the other tab. This page updates when you're done.</p>
      {!connection.credential_id && (
        <CopyField label="Redirect address to register with the provider" text={connection.redirect_url ?? ""} />
      )}
      <div class="row">
        <a
          class="button primary"
          href={new URL(connection.url ?? "", location.href).pathname}
          target="_blank"
          rel="opener"
        >
          Sign in
        </a>
        <span class="muted grow">The link works once, for ten minutes.</span>
      </div>
      <details>
        <summary>Couldn't open the last page?</summary>
        <RedirectForm id={id} reload={reload} />
      </details>
    </div>
  );
}

/** Completes a connection by the address to which the provider redirected. */
function RedirectForm({ id, reload }: { id: string; reload: () => Promise<void> }) {
  const [address, setAddress] = useState("");
  const [issue, setIssue] = useState("");
  const complete = async () => {
    setIssue("");
    try {
      await post(credentialPath(id, "connect", "complete"), { redirected_to: address.trim() });
      await reload();
    } catch (error) {
      setIssue(reasonOf(error));
    }
  };
  return (
    <form
      class="stack"
      onSubmit={(event) => {
        event.preventDefault();
        void complete();
      }}
    >
      <TextField
        label="Its address"
        hint="Copy the whole address from the browser's address bar."
        value={address}
        onInput={setAddress}
        error={issue}
      />
      <div class="row end">
        <Button submit disabled={!address.trim()}>
          Complete
        </Button>
      </div>
    </form>
  );
}
