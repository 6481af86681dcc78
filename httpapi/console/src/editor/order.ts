// The order of the results of an execution.
import { iterationPath, type NodeResult } from "./run";

/** The keys by which results are sorted. */
function sortKeys(result: NodeResult): { startedAt: number; iterations: number[] } {
  const path = iterationPath(result);
  return { startedAt: Date.parse(result.started_at), iterations: path === "" ? [] : path.split(".").map(Number) };
}

function compareIterations(a: number[], b: number[]): number {
  for (let i = 0; i < Math.max(a.length, b.length); i++) {
    const difference = (a[i] ?? -1) - (b[i] ?? -1);
    if (difference) return difference;
  }
  return 0;
}

/**
 * Returns results in the order in which they started; those of the same time by iteration, then in the order of their
 * nodes.
 */
export function inOrder(results: NodeResult[], nodes: readonly { id: string }[]): NodeResult[] {
  const positions = new Map(nodes.map((node, index) => [node.id, index]));
  const positionOf = (result: NodeResult) => positions.get(result.node_id) ?? positions.size;
  return results
    .map((result) => ({ result, ...sortKeys(result) }))
    .sort(
      (a, b) =>
        a.startedAt - b.startedAt ||
        compareIterations(a.iterations, b.iterations) ||
        positionOf(a.result) - positionOf(b.result),
    )
    .map(({ result }) => result);
}
