// The order of the results of an execution.
import { iterationPath, type NodeResult } from "./index";

/** Results in the order in which they began; those of one moment by their iterations, then as their nodes are listed. */
export function inOrder(results: NodeResult[], nodes: readonly { id: string }[]): NodeResult[] {
  const listed = new Map(nodes.map((n, i) => [n.id, i]));
  const keys = new Map(
    results.map((r) => [
      r,
      {
        at: Date.parse(r.started_at),
        iterations: iterationPath(r) === "" ? [] : iterationPath(r).split(".").map(Number),
        listed: listed.get(r.node_id) ?? listed.size,
      },
    ]),
  );
  return [...results].sort((a, b) => {
    const [x, y] = [keys.get(a)!, keys.get(b)!];
    if (x.at !== y.at) return x.at - y.at;
    for (let i = 0; i < Math.max(x.iterations.length, y.iterations.length); i++) {
      const by = (x.iterations[i] ?? -1) - (y.iterations[i] ?? -1);
      if (by) return by;
    }
    return x.listed - y.listed;
  });
}
