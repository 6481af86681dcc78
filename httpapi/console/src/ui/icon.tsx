import * as icons from "lucide";
import { h, type VNode } from "preact";

/** The name of an icon of the console. */
export type IconName = keyof typeof icons;

const drawings = new Map<IconName, VNode[]>(); // made once for each icon: a graph has hundreds

function drawing(name: IconName): VNode[] {
  let shapes = drawings.get(name);
  if (!shapes)
    drawings.set(
      name,
      (shapes = ((icons[name] ?? icons.CircleHelp) as [string, Record<string, string | number>][]).map(
        ([tag, attributes]) => h(tag, attributes),
      )),
    );
  return shapes;
}

/** A drawing from Lucide. With a label it is read out, else it is decoration. */
export function Icon({ name, label, size = 18 }: { name: IconName; label?: string; size?: number }) {
  return (
    <svg
      class="icon"
      width={size}
      height={size}
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      stroke-width="1.75"
      stroke-linecap="round"
      stroke-linejoin="round"
      role={label ? "img" : undefined}
      aria-label={label}
      aria-hidden={label ? undefined : "true"}
    >
      {drawing(name)}
    </svg>
  );
}
