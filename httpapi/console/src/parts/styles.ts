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
