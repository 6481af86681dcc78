import { useEffect, useState } from "preact/hooks";

/** Loads a style sheet that lies beside the page's file, once; resolves when it counts. */
export function style(address: string): Promise<void> {
  const href = new URL(address, import.meta.url).href;
  if ([...document.styleSheets].some((s) => s.href === href)) return Promise.resolve();
  return new Promise((resolve) => {
    const link = Object.assign(document.createElement("link"), { rel: "stylesheet", href });
    link.onload = link.onerror = () => resolve();
    document.head.append(link);
  });
}

/** Reports whether style sheets of a page are loaded. */
export function useStyles(loading: Promise<unknown>): boolean {
  const [ready, setReady] = useState(false);
  useEffect(() => { void loading.then(() => setReady(true)); }, []);
  return ready;
}
