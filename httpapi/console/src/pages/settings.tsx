// Settings: the model, the agent itself, who may use it, and copies of it.
import { agentId, href, route } from "../data";
import { Empty, intoView, LinkButton } from "../ui";
import { Access } from "./settings/access";
import { AgentSettings } from "./settings/agent";
import { Copies } from "./settings/copies";
import { ModelSettings } from "./settings/model";

const tabs: [string, string][] = [
  ["model", "Model"],
  ["agent", "Agent"],
  ["access", "Access & keys"],
  ["copies", "Backup & copies"],
];

/** The page of settings, of which the address names a tab. */
export default function Settings() {
  const tab = route.value.rest[0] ?? "model";
  return (
    <div class="page settings" key={tab}>
      <h1 tabIndex={-1}>Settings</h1>
      <nav class="tabs" aria-label="Settings">
        {tabs.map(([id, title]) => (
          <a
            ref={tab === id ? intoView : undefined}
            href={href(agentId.value, "settings", id)}
            aria-current={tab === id ? "page" : undefined}
          >
            {title}
          </a>
        ))}
      </nav>
      <Tab name={tab} />
    </div>
  );
}

function Tab({ name }: { name: string }) {
  switch (name) {
    case "model":
      return <ModelSettings />;
    case "agent":
      return <AgentSettings />;
    case "access":
      return <Access />;
    case "copies":
      return <Copies />;
    default:
      return (
        <Empty
          icon="CircleHelp"
          title="Page not found"
          action={<LinkButton href={href(agentId.value, "settings")}>All settings</LinkButton>}
        />
      );
  }
}
