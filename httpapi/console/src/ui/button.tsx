import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";

import { Icon, type IconName } from "./icon";
import { showToast } from "./toast";

type Props = {
  children?: ComponentChildren;
  /** "primary" is the page's one main action. */
  kind?: "primary" | "quiet" | "danger";
  icon?: IconName;
  /** What a button without text is called; also shown on hover. */
  label?: string;
  /** What screen readers call a button whose text is not enough; it begins with the text. */
  name?: string;
  disabled?: boolean;
  /** Why it is disabled, shown on hover. */
  reason?: string;
  /** May take time: the button is disabled meanwhile, and a failure is shown as a toast. */
  onClick?: () => unknown;
  submit?: boolean;
  class?: string;
  pressed?: boolean;
};

/** A button. While a promise of onClick is pending it is busy; an error is shown as a message. */
export function Button({
  children,
  kind,
  icon,
  label,
  name,
  disabled,
  reason,
  onClick,
  submit,
  class: more = "",
  pressed,
}: Props) {
  const [busy, setBusy] = useState(false);
  const mounted = useRef(true);
  const click = async () => {
    if (!onClick || busy) return;
    const result = onClick();
    if (!(result instanceof Promise)) return;
    setBusy(true);
    try {
      await result;
    } catch (error) {
      showToast(error);
    }
    if (mounted.current) setBusy(false);
  };
  return (
    <button
      type={submit ? "submit" : "button"}
      class={`button ${kind ?? ""} ${children ? "" : "only"} ${more}`}
      disabled={disabled || busy}
      onClick={click}
      title={disabled && reason ? reason : label}
      aria-label={name ?? (children ? undefined : label)}
      aria-pressed={pressed}
      aria-busy={busy || undefined}
    >
      {busy ? <Icon name="LoaderCircle" size={16} /> : icon && <Icon name={icon} size={16} />}
      {children && <span>{children}</span>}
    </button>
  );
}

/** A link that looks like a button. */
export function LinkButton({
  href,
  children,
  icon,
  kind,
}: {
  href: string;
  children: ComponentChildren;
  icon?: IconName;
  kind?: "primary" | "quiet";
}) {
  return (
    <a class={`button ${kind ?? ""}`} href={href}>
      {icon && <Icon name={icon} size={16} />}
      <span>{children}</span>
    </a>
  );
}

/** Copies a text. */
export function CopyButton({ text, children }: { text: string | (() => string); children?: ComponentChildren }) {
  const [done, setDone] = useState(false);
  const copy = async () => {
    const value = typeof text === "string" ? text : text();
    await copyText(value);
    setDone(true);
    setTimeout(() => setDone(false), 1500);
  };
  return (
    <Button kind="quiet" icon={done ? "Check" : "Copy"} label={done ? "Copied" : "Copy"} onClick={copy}>
      {children}
    </Button>
  );
}

/** Puts a text into the clipboard. */
export async function copyText(text: string) {
  if (navigator.clipboard) await navigator.clipboard.writeText(text);
  else copyBySelection(text); // over plain HTTP from elsewhere there is no clipboard
}

function copyBySelection(text: string) {
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}
