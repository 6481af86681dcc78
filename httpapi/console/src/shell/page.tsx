// The page that the address points to, whose file is loaded when it is first shown.
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";

import { ErrorCard, Skeleton } from "../ui";

/** The file of a page; styles resolves when the style sheet of the page counts. */
type PageFile = { default: ComponentType<Record<string, unknown>>; styles?: Promise<void> };

const loaded = new Map<string, Promise<PageFile>>();

/** Loads the file of a page; a failed load is tried again the next time. */
export function loadPage(name: string) {
  let found = loaded.get(name);
  if (!found) {
    const address = new URL(`./${name}.js`, import.meta.url).href;
    found = import(address).then(async (m: PageFile) => {
      await m.styles;
      return m;
    });
    loaded.set(name, found);
    found.catch(() => loaded.delete(name));
  }
  return found;
}

/** Gives the focus to the page when what had it is gone, so that Tab goes on there. */
export function keepFocus() {
  if (document.activeElement === document.body) document.getElementById("main")?.focus({ preventScroll: true });
}

/** A page, whose file is loaded when it is first shown. */
export function Page({ name, title = "Loading", ...props }: { name: string; title?: string; [prop: string]: unknown }) {
  const [state, setState] = useState<{ name: string; Component?: PageFile["default"]; error?: Error }>({ name: "" });
  const load = () =>
    loadPage(name).then(
      (m) => setState({ name, Component: m.default }),
      (error) => setState({ name, error }),
    );
  useEffect(() => {
    void load();
  }, [name]);
  useEffect(keepFocus, [state]);
  if (state.name !== name)
    return (
      <div class="page">
        <Skeleton title={title} />
      </div>
    );
  if (state.error)
    return (
      <div class="page">
        <h1 tabIndex={-1}>{title}</h1>
        <ErrorCard error={new Error("This page could not be loaded.")} retry={load} />
      </div>
    );
  const Component = state.Component!;
  return <Component {...props} />;
}
