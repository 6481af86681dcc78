// Who else has a record open.
import { usePresence } from "../data";
import { Badge, Icon } from "../ui";

/** Others who have the record at an address open, and what those do who are changing it. */
export function OtherViewers({
  at,
  editing,
  doing,
}: {
  at: string;
  editing: boolean;
  doing: { one: string; several: string };
}) {
  const others = usePresence(at, editing);
  if (!others.length) return null;
  const busy = others.filter((o) => o.editing);
  const names = [...new Set((busy.length ? busy : others).map((o) => (o.who.includes("@") ? o.who : "Another tab")))];
  const one = names.length === 1;
  const does = busy.length ? (one ? doing.one : doing.several) : one ? "has it open" : "have it open";
  return (
    <span class="others" role="status" title={`${names.join(", ")}: ${does}`}>
      <Badge tone={busy.length ? "warn" : undefined}>
        <Icon name="Users" size={13} /> <bdi class="desk-text">{one ? names[0] : `${names.length} others`}</bdi>
        <span class="desk"> {does}</span>
      </Badge>
    </span>
  );
}
