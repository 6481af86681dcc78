// Activity: what the agent did, what happened, what was delivered, what people thought of answers, and the log.
import { agentId, href, route } from "../data";
import { Empty, intoView } from "../ui";
import { Deliveries } from "../parts/deliveries";
import { Executions } from "../workflows/executions";
import { Events } from "./activity/events";
import { Feedback } from "./activity/feedback";
import { Log } from "./activity/log";
import { style } from "../parts/styles";
import "../css/activity.css";

export const styles = style("./activity.css");

const tabs: [string, string][] = [
  ["executions", "Executions"],
  ["events", "Events"],
  ["deliveries", "Deliveries"],
  ["feedback", "Feedback"],
  ["log", "Log"],
];

export default function Activity() {
  const tab = route.value.rest[0] ?? "executions";
  return (
    <div class="page" key={tab}>
      <h1 tabIndex={-1}>Activity</h1>
      <nav class="tabs" aria-label="Activity">
        {tabs.map(([id, title]) => (
          <a
            ref={tab === id ? intoView : undefined}
            href={href(agentId.value, "activity", id)}
            aria-current={tab === id ? "page" : undefined}
          >
            {title}
          </a>
        ))}
      </nav>
      {tab === "executions" ? (
        <Executions exact />
      ) : tab === "events" ? (
        <Events />
      ) : tab === "deliveries" ? (
        <Deliveries />
      ) : tab === "feedback" ? (
        <Feedback />
      ) : tab === "log" ? (
        <Log />
      ) : (
        <Empty icon="CircleHelp" title="Page not found" />
      )}
    </div>
  );
}
