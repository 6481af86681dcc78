import { agentId, path } from "../../data";

/** The address of the agent's MCP servers in the API, or of a part of them. */
export const mcpAt = <const M extends string[]>(...more: M) => path("agents", agentId.value, "mcp", ...more);
