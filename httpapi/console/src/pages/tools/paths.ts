import { agentId, path } from "../../data";

/** The address of the agent's tools in the API, or of a part of them. */
export const toolsAt = <const M extends string[]>(...more: M) => path("agents", agentId.value, "tools", ...more);
