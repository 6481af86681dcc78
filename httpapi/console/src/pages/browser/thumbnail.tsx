// A small picture of a session, which is loaded again while the session is open.
import { useEffect, useRef, useState } from "preact/hooks";

import { onChange, request } from "../../data";
import { Icon } from "../../ui";
import { at, ended, type Session } from "./data";

const interval = 6_000; // milliseconds between pictures of an open session
const maxCached = 60;
const cache = new Map<string, string>();

/** Keeps a picture; the oldest one beyond the limit is dropped. */
function keep(id: string, picture: string) {
  cache.delete(id);
  cache.set(id, picture);
  if (cache.size > maxCached) cache.delete(cache.keys().next().value!);
}

async function load(id: string): Promise<string> {
  const response = await request("GET", at(id, "thumbnail"));
  const blob = await response.blob();
  return new Promise((resolve) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result));
    reader.readAsDataURL(blob);
  });
}

/** Calls show with pictures of a session while it is in view, of one that has ended once; returns what stops it. */
function watchPicture(id: string, over: boolean, element: Element, show: (picture: string) => void) {
  let stopped = false;
  let visible = false;
  let requestedAt = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const update = () => {
    clearTimeout(timer);
    const wait = requestedAt + interval - Date.now();
    if (wait > 0 && requestedAt) {
      if (!over) timer = setTimeout(update, wait);
      return;
    }
    if (!visible || document.hidden) return;
    requestedAt = Date.now();
    load(id).then(
      (picture) => {
        keep(id, picture);
        if (!stopped) show(picture);
      },
      () => {
        if (!stopped && !over) timer = setTimeout(update, interval);
      },
    );
  };
  const observer = new IntersectionObserver(([entry]) => {
    visible = entry.isIntersecting;
    if (visible && (!over || !cache.has(id) || requestedAt === 0)) update();
  });
  observer.observe(element);
  const unsubscribe = onChange("session", (change) => {
    if (!over && change.id === id) update();
  });
  return () => {
    stopped = true;
    clearTimeout(timer);
    observer.disconnect();
    unsubscribe();
  };
}

/** The page of a session as it looked last. */
export function Thumbnail({ session, alt = "" }: { session: Session; alt?: string }) {
  const ref = useRef<HTMLSpanElement>(null);
  const { id } = session;
  const over = ended(session);
  const [image, setImage] = useState(cache.get(id));
  useEffect(() => watchPicture(id, over, ref.current!, setImage), [id, over]);
  return (
    <span ref={ref} class="thumbnail">
      {image ? <img src={image} alt={alt} /> : <Icon name="Globe" size={20} />}
    </span>
  );
}
