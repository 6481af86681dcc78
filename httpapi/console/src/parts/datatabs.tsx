// The parts of Data.
import { agentId, href } from "../data";

const parts: [string, string][] = [
  ["tables", "Tables"],
  ["forms", "Forms"],
  ["sql", "SQL"],
];

export function DataTabs({ now }: { now: string }) {
  return (
    <nav class="tabs" aria-label="Data">
      {parts.map(([id, title]) => (
        <a href={href(agentId.value, id)} aria-current={id === now ? "page" : undefined}>
          {title}
        </a>
      ))}
    </nav>
  );
}
