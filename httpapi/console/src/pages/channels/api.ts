import { agentId, ApiError, path, post } from "../../data";

export const channelsAt = <const M extends string[]>(...more: M) => path("agents", agentId.value, "gateways", ...more);

/**
 * Has the platform check a channel and returns what it says of the account. A refusal is an error at the field that it
 * is about.
 */
export async function verify(id: string): Promise<Record<string, unknown>> {
  const answer = await post(channelsAt(id, "verify"));
  if (answer.success) return (answer.info ?? {}) as Record<string, unknown>;
  throw new ApiError(400, {
    error: {
      code: "NOT_VERIFIED",
      message: answer.error,
      details: answer.field ? { field: answer.field, issue: answer.error } : {},
    },
  });
}
