// Dialogs, drawers and menus. The topmost closes by Escape and keeps the keys to itself.
import { signal } from "@preact/signals";
import { type ComponentChildren, Fragment, type VNode } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

import { useBack } from "./back";
import { Button } from "./button";
import { Icon, type IconName } from "./icon";
import { showToast } from "./toast";

/** A dialog over the page; close is called by Escape, the cross and a click beside it, unless it is persistent. */
export function Dialog({
  title,
  close,
  children,
  wide,
  persistent,
  held,
  more = wide ? "wide" : "",
}: {
  title: string;
  close: () => void;
  children: ComponentChildren;
  wide?: boolean;
  persistent?: boolean;
  /** A click beside it does not close it, as something was typed into it. */
  held?: boolean;
  /** A class of its own. */ more?: string;
}) {
  const ref = useRef<HTMLDialogElement>(null);
  useBack(close, { persistent });
  useLayoutEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    const el = ref.current!;
    el.showModal();
    // The browser would choose the button that closes it.
    if (!el.querySelector("[autofocus]"))
      el.querySelector<HTMLElement>(".dialog-frame > :not(header) :is(input, select, textarea):enabled")?.focus();
    return () => {
      el.close();
      before?.focus?.();
    };
  }, []);
  return (
    <dialog
      ref={ref}
      class={`dialog ${more}`}
      aria-label={title}
      onCancel={(e) => {
        e.preventDefault();
        if (!persistent) close();
      }}
      onKeyDown={(e) => {
        e.stopPropagation();
        if (persistent && e.key === "Escape") e.preventDefault();
      }}
      onMouseDown={(e) => {
        if (e.target === ref.current && !persistent && !held) close();
      }}
    >
      <div class="dialog-frame">
        <header class="row">
          <h2 class="grow">{title}</h2>
          {!persistent && <Button kind="quiet" icon="X" label="Close" onClick={close} />}
        </header>
        {children}
      </div>
    </dialog>
  );
}

/** A record beside its list; on a phone it covers the page. One whose address is a page of its own is addressed. */
export function Drawer({
  title,
  close,
  children,
  addressed,
}: {
  title: ComponentChildren;
  close: () => void;
  children: ComponentChildren;
  addressed?: boolean;
}) {
  const ref = useRef<HTMLElement>(null);
  useBack(close, { disabled: addressed });
  useLayoutEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    const el = ref.current!;
    el.focus();
    return () => {
      if (el.contains(document.activeElement)) before?.focus?.();
    };
  }, []);
  return (
    <aside
      ref={ref}
      class="drawer"
      tabIndex={-1}
      onKeyDown={(e) => {
        if (e.key === "Escape") {
          e.stopPropagation();
          close();
        }
      }}
    >
      <header class="row">
        <h2 class="grow">{title}</h2>
        <Button kind="quiet" icon="X" label="Close" onClick={close} />
      </header>
      <div class="drawer-body">{children}</div>
    </aside>
  );
}

const opened = signal<{ id: number; show: (close: () => void) => VNode }[]>([]);
let nextOpened = 1;

/** Opens what show returns, over the page, until it calls close. */
export function openDialog(show: (close: () => void) => VNode) {
  const id = nextOpened++;
  const close = () => {
    opened.value = opened.value.filter((o) => o.id !== id);
  };
  opened.value = [...opened.value, { id, show }];
  return close;
}

/** The dialogs that openDialog opened. */
export function Dialogs() {
  return (
    <>
      {opened.value.map(({ id, show }) => (
        <Fragment key={id}>
          {show(() => {
            opened.value = opened.value.filter((o) => o.id !== id);
          })}
        </Fragment>
      ))}
    </>
  );
}

/** Asks before something that cannot be undone; with typed, the person types that word first. */
export function confirm({
  title,
  text,
  action,
  typed,
  run,
}: {
  title: string;
  text: ComponentChildren;
  action: string;
  typed?: string;
  run: () => Promise<unknown>;
}) {
  openDialog((close) => <Confirm {...{ title, text, action, typed, run, close }} />);
}

function Confirm({
  title,
  text,
  action,
  typed,
  run,
  close,
}: {
  title: string;
  text: ComponentChildren;
  action: string;
  typed?: string;
  run: () => Promise<unknown>;
  close: () => void;
}) {
  const [word, setWord] = useState("");
  const [busy, setBusy] = useState(false);
  return (
    <Dialog title={title} close={close}>
      <form
        class="stack"
        onSubmit={async (e) => {
          e.preventDefault();
          if (busy || (typed && word !== typed)) return;
          setBusy(true);
          try {
            await run();
            close();
          } catch (error) {
            showToast(error);
          }
          setBusy(false);
        }}
      >
        <p>{text}</p>
        {typed && (
          <label class="field">
            <span>
              Type <bdi>{typed}</bdi> to confirm
            </span>
            <input value={word} onInput={(e) => setWord(e.currentTarget.value)} autoFocus />
          </label>
        )}
        <div class="row end">
          <Button onClick={close}>Cancel</Button>
          <Button kind="danger" submit disabled={busy || (Boolean(typed) && word !== typed)}>
            {action}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

/** An entry of a menu; a dash separates groups of entries. */
export type MenuItem =
  { label: string; icon?: IconName; run: () => unknown; danger?: boolean; disabled?: boolean; reason?: string } | "-";

/** Moves the focus through the items of a menu by arrows; Escape calls close. */
const walkItems = (list: HTMLElement, close: () => void) => (e: KeyboardEvent) => {
  const all = [...list.querySelectorAll<HTMLElement>("[role=menuitem]:not(:disabled)")];
  const at = all.indexOf(document.activeElement as HTMLElement);
  if (e.key === "ArrowDown" || e.key === "ArrowUp") {
    e.preventDefault();
    all[(at + (e.key === "ArrowDown" ? 1 : all.length - 1)) % all.length]?.focus();
  } else if (e.key === "Escape") {
    e.stopPropagation();
    close();
  }
};

function Items({ items, close }: { items: MenuItem[]; close: () => void }) {
  return (
    <>
      {items.map((item) =>
        item === "-" ? (
          <hr />
        ) : (
          <button
            type="button"
            role="menuitem"
            class={item.danger ? "danger" : ""}
            disabled={item.disabled}
            title={item.reason}
            onClick={() => {
              close();
              Promise.resolve(item.run()).catch(showToast);
            }}
          >
            {item.icon && <Icon name={item.icon} size={16} />}
            <span>{item.label}</span>
          </button>
        ),
      )}
    </>
  );
}

/** Opens a list of actions at a point of the window. */
export function openMenu(label: string, items: MenuItem[], at: { x: number; y: number }) {
  openDialog((close) => <PointMenu label={label} items={items} at={at} close={close} />);
}

function PointMenu({
  label,
  items,
  at,
  close,
}: {
  label: string;
  items: MenuItem[];
  at: { x: number; y: number };
  close: () => void;
}) {
  const ref = useRef<HTMLDivElement>(null);
  useBack(close);
  useLayoutEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    const el = ref.current!;
    el.style.left = `${Math.max(4, Math.min(at.x, innerWidth - el.offsetWidth - 4))}px`;
    el.style.top = `${Math.max(4, Math.min(at.y, innerHeight - el.offsetHeight - 4))}px`;
    el.querySelector<HTMLElement>("[role=menuitem]:not(:disabled)")?.focus();
    const closeOutside = (e: Event) => {
      if (!el.contains(e.target as Node)) close();
    };
    addEventListener("pointerdown", closeOutside, true);
    return () => {
      removeEventListener("pointerdown", closeOutside, true);
      if (el.contains(document.activeElement)) before?.focus?.();
    };
  }, []);
  return (
    <div
      ref={ref}
      class="menu-list at-point"
      role="menu"
      aria-label={label}
      onKeyDown={(e) => walkItems(ref.current!, close)(e)}
    >
      <Items items={items} close={close} />
    </div>
  );
}

/** A button that opens a list of actions; arrows walk it. */
export function Menu({
  label,
  icon = "Ellipsis",
  items,
  children,
}: {
  label: string;
  icon?: IconName;
  items: MenuItem[];
  children?: ComponentChildren;
}) {
  const [open, setOpen] = useState(false);
  const ref = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    if (!open) return;
    const closeOutside = (e: Event) => {
      if (!ref.current?.contains(e.target as Node)) setOpen(false);
    };
    addEventListener("pointerdown", closeOutside);
    ref.current?.querySelector<HTMLElement>("[role=menuitem]")?.focus();
    return () => removeEventListener("pointerdown", closeOutside);
  }, [open]);
  const close = () => {
    setOpen(false);
    ref.current!.querySelector<HTMLElement>("button")?.focus();
  };
  const walk = (e: KeyboardEvent) => {
    if (open) walkItems(ref.current!, close)(e);
  };
  return (
    <div class="menu" ref={ref} onKeyDown={walk}>
      <button
        type="button"
        class={`button quiet ${children ? "" : "only"}`}
        aria-haspopup="menu"
        aria-expanded={open}
        aria-label={children ? undefined : label}
        title={label}
        onClick={() => setOpen(!open)}
      >
        {children ?? <Icon name={icon} size={16} />}
      </button>
      {open && (
        <div class="menu-list" role="menu" aria-label={label}>
          <Items items={items} close={() => setOpen(false)} />
        </div>
      )}
    </div>
  );
}
