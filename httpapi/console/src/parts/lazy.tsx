// Parts of a page whose files are loaded when they are first shown.
import type { ComponentChildren, ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";

import { ErrorCard, Skeleton } from "../ui";

/** A component whose file is loaded when it is first shown, or by preload before. */
export type LazyComponent<P> = ComponentType<P> & { preload: () => Promise<unknown> };

/** Makes a component of a file that is loaded later; until then, waiting is shown in its place. */
export function lazy<P extends object>(
  load: () => Promise<ComponentType<P>>,
  waiting: () => ComponentChildren = () => <Skeleton />,
): LazyComponent<P> {
  let Loaded: ComponentType<P> | undefined;
  let loading: Promise<unknown> | undefined;
  const preload = () =>
    (loading ??= load().then(
      (c) => {
        Loaded = c;
      },
      (error) => {
        loading = undefined;
        throw error;
      },
    ));
  const Waiting = waiting;
  function Part(props: P) {
    const [failed, setFailed] = useState(false);
    const [, show] = useState(0);
    const start = () => {
      setFailed(false);
      preload().then(
        () => show((n) => n + 1),
        () => setFailed(true),
      );
    };
    const drawn = Boolean(Loaded);
    useEffect(() => {
      if (!drawn) start();
    }, []);
    if (Loaded) return <Loaded {...props} />;
    return failed ? <ErrorCard error={new Error("This part could not be loaded.")} retry={start} /> : <Waiting />;
  }
  return Object.assign(Part, { preload });
}

/** Runs when the browser has nothing else to do. */
export const whenIdle: (run: () => void) => void =
  typeof requestIdleCallback === "function"
    ? (run) => {
        requestIdleCallback(run, { timeout: 2000 });
      }
    : (run) => {
        setTimeout(run, 500);
      };
