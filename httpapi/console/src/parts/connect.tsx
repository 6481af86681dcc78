// Connecting a credential or an MCP server: a person signs in with the provider.
import { useEffect, useState } from "preact/hooks";

import { agentId, ApiError, get, path, post, useQuery, type API, asError, reasonOf } from "../data";
import { Button, CopyField, Dialog, openDialog, tell, TextField } from "../ui";
import { useFollow } from "./follow";

const at = <const M extends string[]>(...more: M) => path("agents", agentId.value, "credentials", ...more);

/** Connects a credential: the person signs in with the provider, in another tab. */
export async function connect(c: API.Credential) {
  try {
    const begun = await post(at(c.id, "connect"));
    openDialog((close) => <Connect c={c} begun={begun} close={close} />);
  } catch (error) {
    tell(error);
  }
}

/** Connects an MCP server: the person logs in where the server says. */
export async function connectServer(s: API.MCPServer) {
  try {
    const begun = await post(path("agents", agentId.value, "mcp", s.id, "connect"));
    const c = await get(at(begun.credential_id));
    openDialog((close) => <Connect c={{ ...c, name: s.name }} begun={begun} close={close} />);
  } catch (error) {
    tell(error);
  }
}

function Connect({
  c,
  begun,
  close,
}: {
  c: API.Credential;
  begun: API.Connection & { credential_id?: string };
  close: () => void;
}) {
  const now = useQuery(at(c.id));
  useFollow("credential", now.reload);
  const [pasted, setPasted] = useState("");
  const [issue, setIssue] = useState("");
  const changed = now.data.value && now.data.value.updated_at !== c.updated_at;
  useEffect(() => {
    if (changed && now.data.value?.status === "ready") {
      tell(`${c.name} is connected`);
      close();
    }
  }, [changed]);
  useEffect(() => {
    if (!begun.user_code) return;
    let timer: ReturnType<typeof setTimeout>;
    const ask = async () => {
      try {
        if ((await post(at(c.id, "connect", "complete"), {})).connected) return;
        timer = setTimeout(ask, (begun.interval ?? 5) * 1000);
      } catch (error) {
        setIssue(asError(error).message);
      }
    };
    timer = setTimeout(ask, (begun.interval ?? 5) * 1000);
    return () => clearTimeout(timer);
  }, []);
  const complete = async () => {
    setIssue("");
    try {
      await post(at(c.id, "connect", "complete"), { redirected_to: pasted.trim() });
      await now.reload();
    } catch (error) {
      setIssue(reasonOf(error));
    }
  };
  if (begun.user_code)
    return (
      <Dialog title={`Connect ${c.name}`} close={close}>
        <div class="stack">
          <p>Open the provider's page on any device, and type this code there:</p>
          <CopyField label="Code" text={begun.user_code} />
          <div class="row">
            <a class="button primary" href={begun.verification_url} target="_blank" rel="noreferrer">
              Open the page
            </a>
            <span class="muted grow" role="status">
              {issue || "Waiting for your approval…"}
            </span>
          </div>
        </div>
      </Dialog>
    );
  return (
    <Dialog title={`Connect ${c.name}`} close={close}>
      <div class="stack">
        <p>Sign in with the provider in the other tab. This page updates when you're done.</p>
        {!begun.credential_id && (
          <CopyField label="Redirect address to register with the provider" text={begun.redirect_url ?? ""} />
        )}
        <div class="row">
          <a
            class="button primary"
            href={new URL(begun.url ?? "", location.href).pathname}
            target="_blank"
            rel="opener"
          >
            Sign in
          </a>
          <span class="muted grow">The link works once, for ten minutes.</span>
        </div>
        <details>
          <summary>Couldn't open the last page?</summary>
          <form
            class="stack"
            onSubmit={(e) => {
              e.preventDefault();
              void complete();
            }}
          >
            <TextField
              label="Its address"
              hint="Copy the whole address from the browser's address bar."
              value={pasted}
              onInput={setPasted}
              error={issue}
            />
            <div class="row end">
              <Button submit disabled={!pasted.trim()}>
                Complete
              </Button>
            </div>
          </form>
        </details>
      </div>
    </Dialog>
  );
}
