import * as icons from "lucide";

export type IconName = keyof typeof icons;

/** A drawing from Lucide. With a label it is read out, else it is decoration. */
export function Icon({ name, label, size = 18 }: { name: IconName; label?: string; size?: number }) {
  const shapes = (icons[name] ?? icons.CircleHelp) as unknown as [string, Record<string, string>][];
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="1.75" stroke-linecap="round" stroke-linejoin="round"
      role={label ? "img" : undefined} aria-label={label} aria-hidden={label ? undefined : "true"}>
      {shapes.map(([Tag, attributes]: any) => <Tag {...attributes} />)}
    </svg>
  );
}
