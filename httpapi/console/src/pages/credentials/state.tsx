// The type and the state of a credential.
import { post, type API } from "../../data";
import { Badge, showToast } from "../../ui";
import { credentialsAt } from "./paths";

const states: Record<string, { title: string; tone: "good" | "warn" | "bad" }> = {
  ready: { title: "ready", tone: "good" },
  needs_login: { title: "needs login", tone: "warn" },
  needs_confirm: { title: "needs confirmation", tone: "warn" },
  failing: { title: "failing", tone: "bad" },
  locked: { title: "locked", tone: "bad" },
};

/** Whether a credential can be used. */
export function CredentialState({ status }: { status: API.Credential["status"] }) {
  return <Badge tone={states[status]?.tone}>{states[status]?.title ?? status}</Badge>;
}

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

/** What a type of credential is called; for OAuth 2 with where its tokens come from. */
export function typeTitle({ type, config }: Pick<API.Credential, "type"> & { config: API.CredentialConfig }) {
  if (type !== "oauth2") return types[type] ?? type;
  return `OAuth 2, ${grants[config.grant ?? ""] ?? config.grant}`;
}

/** Confirms that a copied agent may use a credential that came with it. */
export async function confirmUse({ id, name }: API.Credential) {
  try {
    await post(credentialsAt(id, "confirm"));
    showToast(`${name} may be used`);
  } catch (error) {
    showToast(error);
  }
}
