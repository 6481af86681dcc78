import { agentId, path } from "../../data";

/** The address of the agent's contacts in the API, or of a part of them. */
export const contactsAt = <const M extends string[]>(...more: M) => path("agents", agentId.value, "contacts", ...more);
