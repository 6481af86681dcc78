// A small picture of a session: of an open one a new one now and then.
import { useEffect, useRef, useState } from "preact/hooks";

import { onChange, request } from "../../data";
import { Icon } from "../../ui";
import { at, ended, type Session } from "./data";

const again = 6_000; // milliseconds between pictures of an open session
const kept = new Map<string, string>();
const mostKept = 60;

async function load(id: string): Promise<string> {
  const response = await request("GET", at(id, "thumbnail"));
  const blob = await response.blob();
  return new Promise((resolve) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result));
    reader.readAsDataURL(blob);
  });
}

export function Thumbnail({ s, alt = "" }: { s: Session; alt?: string }) {
  const ref = useRef<HTMLSpanElement>(null);
  const [image, setImage] = useState(kept.get(s.id));
  const over = ended(s);
  useEffect(() => {
    let gone = false;
    let seen = false;
    let asked = 0;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const look = () => {
      clearTimeout(timer);
      const wait = asked + again - Date.now();
      if (wait > 0 && asked) {
        if (!over) timer = setTimeout(look, wait);
        return;
      }
      if (!seen || document.hidden) return;
      asked = Date.now();
      load(s.id).then(
        (found) => {
          kept.delete(s.id);
          kept.set(s.id, found);
          if (kept.size > mostKept) kept.delete(kept.keys().next().value!);
          if (!gone) setImage(found);
        },
        () => {
          if (!gone && !over) timer = setTimeout(look, again);
        },
      );
    };
    const view = new IntersectionObserver(([entry]) => {
      seen = entry.isIntersecting;
      if (seen && (!over || !kept.has(s.id) || asked === 0)) look();
    });
    view.observe(ref.current!);
    const off = over
      ? () => {}
      : onChange("session", (c) => {
          if (c.id === s.id) look();
        });
    return () => {
      gone = true;
      clearTimeout(timer);
      view.disconnect();
      off();
    };
  }, [s.id, over]);
  return (
    <span ref={ref} class="thumbnail">
      {image ? <img src={image} alt={alt} /> : <Icon name="Globe" size={20} />}
    </span>
  );
}
