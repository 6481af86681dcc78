import { agentId, path } from "../../data";

/** The address of the agent's APIs in the service's own API, or of a part of them. */
export const apisAt = <const M extends string[]>(...more: M) => path("agents", agentId.value, "apis", ...more);
