// The tabs of the section Data.
import { agentId, href } from "../data";

const parts: [section: string, title: string][] = [
  ["tables", "Tables"],
  ["forms", "Forms"],
  ["sql", "SQL"],
];

/** The tabs of Data; now is the section that is open. */
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
