// Back closes what lies over the page before it leaves the page: while something
// does, the newest entry of the history, "open", stands for it. When it is closed
// otherwise the entry stays as "spent": the next one uses it, and Back skips it.
import { useLayoutEffect, useRef } from "preact/hooks";

type Layer = { close: () => void; persistent?: boolean; page: string };

const layers: Layer[] = [];
const page = () => location.hash.split("?", 1)[0];
const entry = (): "open" | "spent" | undefined => history.state?.layer;
let last = entry();

/** Makes the history fit what is open. */
function fit() {
  if (layers.length && !entry()) {
    history.replaceState({ under: true }, "");
    history.pushState({ layer: "open" }, "");
  } else if (entry()) history.replaceState({ layer: layers.length ? "open" : "spent" }, "");
  last = entry();
}
const settle = () => setTimeout(fit); // as one layer may give way to the next
settle();

addEventListener("popstate", () => {
  const left = layers.filter((l) => l.page !== page());
  const back = history.state?.under;
  if (left.length || (back && layers.length)) {
    for (const l of left.length ? left : layers.slice(-1)) if (!l.persistent) l.close();
  } else if (back && last === "spent") history.back();
  settle();
});

/** Calls close when a person goes back, or to another page; not while it is persistent, and never while disabled. */
export function useBack(
  close: () => void,
  { persistent, disabled }: { persistent?: boolean; disabled?: boolean } = {},
) {
  const latest = useRef(close);
  latest.current = close;
  useLayoutEffect(() => {
    if (disabled) return;
    const layer: Layer = { close: () => latest.current(), persistent, page: page() };
    layers.push(layer);
    settle();
    return () => {
      layers.splice(layers.indexOf(layer), 1);
      settle();
    };
  }, [persistent, disabled]);
}
