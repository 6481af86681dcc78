// How the state of an MCP server is shown.
import { mayEdit, type API } from "../../data";
import { Badge, Button, showToast, When } from "../../ui";
import { connectServer } from "../../parts/connect";
import { credentialTitle } from "../../parts/credentials";

type ServerProps = { server: API.MCPServer };

const tones: Record<string, "good" | "bad"> = { connected: "good", error: "bad" };

/** Whether a server can be used. */
export function ServerState({ server: { status } }: ServerProps) {
  return <Badge tone={tones[status] ?? "warn"}>{status.replace("_", " ")}</Badge>;
}

/** Where a server is, how the agent identifies itself there, and when it last answered. */
export function ServerSummary({ server }: ServerProps) {
  return (
    <>
      {server.command && "program "}
      <bdi>{server.command || server.url}</bdi> · {credentialText(server)} · seen <When time={server.checked_at} />
    </>
  );
}

function credentialText({ command, credential, auth_type, status }: API.MCPServer) {
  if (command) return credential ? "with a stored environment" : "no credentials";
  if (auth_type === "login") return status === "needs_login" ? "not logged in" : "logged in";
  if (credential) return "a stored credential";
  return auth_type === "none" ? "no credentials" : `${credentialTitle(auth_type)}, set`;
}

/** Logs in to a server that waits for it. */
export function LogIn({ server, primary }: ServerProps & { primary?: boolean }) {
  if (!mayEdit.value || server.auth_type !== "login" || server.status !== "needs_login") return null;
  return (
    <Button kind={primary ? "primary" : undefined} icon="LogIn" onClick={() => connectServer(server)}>
      Log in
    </Button>
  );
}

/** Shows a notice whether a server that was saved answers. */
export function showConnectionToast({ name, status, last_error }: API.MCPServer) {
  if (status === "needs_login") return;
  showToast(status === "connected" ? `${name} answers` : new Error(`${name} is ${status}: ${last_error}`));
}
