// What schedules call.
import { agentId, href, path, useQuery, type API } from "../../data";
import { Name } from "../../ui";
import { calls, titleOf } from "./labels";

const listPaths = [
  ["workflow", "workflows"],
  ["tool", "tools"],
  ["source", "sources"],
] as const;

/** Loads the names of what schedules call, by id; only the lists that are needed. */
export function useNames(schedules: Pick<API.Schedule, "callback_type">[] | undefined): Map<string, string> {
  const lists = listPaths.map(([type, name]) => {
    const needed = schedules?.some(({ callback_type }) => callback_type === type);
    return useQuery(needed ? path("agents", agentId.value, name) : null, { limit: 200 }).data.value;
  });
  const records = lists.flatMap((list) =>
    list ? (Object.values(list).find(Array.isArray) as { id: string; name: string }[]) : [],
  );
  return new Map(records.map(({ id, name }) => [id, name]));
}

const sections: Record<string, string> = { workflow: "workflows", source: "knowledge", tool: "tools" };

/** What a schedule calls, by its name. */
export function CallbackTarget({ schedule, names }: { schedule: API.Schedule; names: Map<string, string> }) {
  const { callback_type: type, callback_id: id, payload } = schedule;
  if (type === "agent")
    return (
      <span class="muted prompt">
        The agent: <bdi>{String(payload.prompt ?? "")}</bdi>
      </span>
    );
  if (type === "webhook") return <bdi>{id}</bdi>;
  const name = <Name>{names.get(id) ?? titleOf(calls, type)}</Name>;
  return sections[type] ? <a href={href(agentId.value, sections[type], id)}>{name}</a> : name;
}
