import { agentId, path } from "../../data";

/** The address of the agent in the API, or of a part of it. */
export const agentAt = <const M extends string[]>(...more: M) => path("agents", agentId.value, ...more);
