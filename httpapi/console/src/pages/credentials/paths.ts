import { agentId, href, path } from "../../data";

/** The address of the agent's credentials in the API, or of a part of them. */
export const credentialsAt = <const M extends string[]>(...more: M) =>
  path("agents", agentId.value, "credentials", ...more);

/** The address of the page of credentials, or of one below it. */
export const credentialsHref = (...more: string[]) => href(agentId.value, "credentials", ...more);
