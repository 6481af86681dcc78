// Who else has the workflow open.
import { usePresence } from "../data";
import { Badge, Icon } from "../ui";

export function Others({ at, editing }: { at: string; editing: boolean }) {
  const others = usePresence(at, editing);
  if (!others.length) return null;
  const names = [...new Set(others.map((o) => (o.who.includes("@") ? o.who : "Another tab")))];
  const changes = others.some((o) => o.editing);
  return <span class="others" role="status" title={`${names.join(", ")}: ${changes ? "changes it now" : "has it open"}`}><Badge tone={changes ? "warn" : undefined}><Icon name="Users" size={13} /> <bdi class="desk-text">{names.length === 1 ? names[0] : `${names.length} others`}</bdi><span class="desk"> {changes ? "changes it too" : "has it open"}</span></Badge></span>;
}
