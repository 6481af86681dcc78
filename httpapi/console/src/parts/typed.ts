// What is typed into a field whose value is not text.
import { useRef, useState } from "preact/hooks";

/**
 * The text of a field, and how it is set with the value that it stands for. The
 * text stays as it was typed, such as 0.50 or half of a list, until the value
 * becomes another than that. It is compared while the field is drawn: an effect
 * may run after the next key.
 */
export function useTyped(
  value: unknown,
  show: (value: unknown) => string,
): [string, (text: string, value: unknown) => void] {
  const now = JSON.stringify(value);
  const [, draw] = useState({});
  const held = useRef<{ text: string; value?: string; drawn?: string }>(undefined);
  if (!held.current || (now !== held.current.drawn && now !== held.current.value))
    held.current = { text: show(value), value: now };
  held.current.drawn = now;
  return [
    held.current.text,
    (text, stands) => {
      held.current = { ...held.current, text, value: JSON.stringify(stands) };
      draw({});
    },
  ];
}
