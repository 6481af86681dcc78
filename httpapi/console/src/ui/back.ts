// Back closes what lies over the page before it leaves the page: while something
// does, the newest entry of the history is one for it.
import { useLayoutEffect, useRef } from "preact/hooks";

type Layer = { close: () => void; firm?: boolean; page: string };

const layers: Layer[] = [];
const page = () => location.hash.split("?", 1)[0];
const onEntry = () => Boolean(history.state?.layer);

/** Makes the history fit what is open; later, as one layer may give way to the next. */
const settle = () => setTimeout(() => {
  if (layers.length && !onEntry()) history.pushState({ layer: true }, "");
  else if (!layers.length && onEntry()) history.back();
});

if (onEntry()) history.replaceState(null, ""); // left by a reload

addEventListener("popstate", () => {
  if (onEntry()) { // forward, or back to the page of a layer that was left by a link
    if (!layers.length) history.back();
    return;
  }
  const left = layers.filter((l) => l.page !== page());
  for (const l of left.length ? left : layers.slice(-1)) if (!l.firm) l.close();
  settle();
});

/** Calls close when a person goes back, or to another page; not while it is firm, and never with off. */
export function useBack(close: () => void, { firm, off }: { firm?: boolean; off?: boolean } = {}) {
  const latest = useRef(close);
  latest.current = close;
  useLayoutEffect(() => {
    if (off) return;
    const mine: Layer = { close: () => latest.current(), firm, page: page() };
    layers.push(mine);
    settle();
    return () => {
      layers.splice(layers.indexOf(mine), 1);
      settle();
    };
  }, [firm, off]);
}
