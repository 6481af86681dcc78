// Problems of the graph that the service found.
import { ApiError } from "../data";
import type { Issue } from "./state";

/** The problems of a graph that an error of the API lists; empty for other errors. */
export function issuesOf(error: unknown): Issue[] {
  if (!(error instanceof ApiError)) return [];
  const { errors, field, issue = error.message, node_id, edge_id } = error.details;
  return errors ?? (field ? [{ node_id, edge_id, field, issue, severity: "error" }] : []);
}
