// What ends work, after a confirmation: the same wherever it is offered.
import { agentId, invalidate, path, post, type API } from "../data";
import { confirm } from "../ui";

/** Terminates an execution. */
export const terminate = (id: string) =>
  confirm({
    title: "Terminate",
    text: "Running nodes are stopped, and no further nodes run.",
    action: "Terminate",
    run: () => post(path("agents", agentId.value, "workflows", "executions", id, "terminate")),
  });

/** Reports whether someone stopped a source; a crawl still indexes what it read. */
export const wasStopped = (s: API.Source) => s.error?.code === "STOPPED";

const isCrawl = (s: API.Source) => s.type === "crawl" || s.type === "url";

function stopSummary(s: API.Source): string {
  if (wasStopped(s)) return "Pages that are not indexed yet are found by words only, or not at all.";
  if (isCrawl(s)) return "No further pages are fetched. Those that were read stay and can be searched.";
  return "What was read so far stays. Read it again later to complete it.";
}

/** Stops a source that is being read. */
export const stopSource = (s: API.Source) =>
  confirm({
    title: `Stop ${s.name}`,
    text: stopSummary(s),
    action: wasStopped(s) ? "Stop indexing" : "Stop",
    run: async () => {
      await post(path("agents", agentId.value, "sources", s.id, "stop"));
      invalidate(path("agents", agentId.value, "sources"));
    },
  });
