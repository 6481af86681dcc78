// The button below a list of rows that adds another.
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

import { Button } from "./button";

const fieldsOf = (list: Element) => [...list.querySelectorAll<HTMLElement>("input, select, textarea")];

/** A reference that gives an element the focus when it appears; autofocus works in new pages and dialogs only. */
export const focusAppeared = (element: HTMLElement | null) => element?.focus();

type Props = {
  title: string;
  /** What the list belongs to, if there are several on the page; for screen readers. */
  of?: string;
  /** Adds the row to the list that the button stands in. */
  add: () => void;
  /** What stands beside the button. */
  children?: ComponentChildren;
};

/**
 * Returns a reference for the element at the end of a list, and a function to call before a row is added to the list;
 * the first field of the new row then has the focus.
 */
export function useFocusAdded() {
  const place = useRef<HTMLDivElement>(null);
  const before = useRef<HTMLElement[] | null>(null);
  useLayoutEffect(() => {
    if (!before.current) return;
    const added = fieldsOf(place.current!.parentElement!).find((field) => !before.current!.includes(field));
    if (!added) return; // the row is not there yet
    before.current = null;
    added.focus();
  });
  const adding = () => {
    before.current = fieldsOf(place.current!.parentElement!);
  };
  return { place, adding };
}

/** A button that adds a row to the list around it; the first field of the new row then has the focus. */
export function AddRow({ title, of, add, children }: Props) {
  const { place, adding } = useFocusAdded();
  return (
    <div class="row" ref={place}>
      <Button
        icon="Plus"
        name={of && `${title} to ${of}`}
        onClick={() => {
          adding();
          add();
        }}
      >
        {title}
      </Button>
      {children}
    </div>
  );
}
