import { agentId, path } from "../../data";

/** The address of the agent's sources in the API, or of a part of them. */
export const sourcesAt = <const M extends string[]>(...more: M) => path("agents", agentId.value, "sources", ...more);
