// JSON as a tree whose branches are made when they are opened.
import { useState } from "preact/hooks";

import { Button } from "./button";

const pageSize = 50;
const longText = 2000; // characters

function Leaf({ value }: { value: unknown }) {
  const kind = value === null ? "null" : typeof value;
  const [shown, setShown] = useState(longText);
  const rest = typeof value === "string" ? value.length - shown : 0;
  const text = typeof value !== "string" ? String(value) : JSON.stringify(rest > 0 ? value.slice(0, shown) : value);
  return <><span class={`json-${kind}`}>{text}{rest > 0 && "…"}</span>{rest > 0 && <> <Button kind="quiet" onClick={() => setShown(shown * 10)}>{`${rest.toLocaleString()} more characters`}</Button></>}</>;
}

/** A value; name is its key in what it is part of. */
export function JsonTree({ value, name, depth = 0 }: { value: unknown; name?: string; depth?: number }) {
  const [open, setOpen] = useState(depth < 2);
  const [shown, setShown] = useState(pageSize);
  const label = name !== undefined && <span class="json-key">{name}: </span>;
  if (value === null || typeof value !== "object") return <div class="json">{label}<Leaf value={value} /></div>;
  const list = Array.isArray(value);
  const keys = list ? value.length : Object.keys(value).length;
  const entries: [string, unknown][] = open ? (list ? value.slice(0, shown).map((v, i) => [String(i), v]) : Object.entries(value).slice(0, shown)) : [];
  return (
    <div class="json">
      <button type="button" class="json-toggle" aria-expanded={open} onClick={() => setOpen(!open)}>
        {open ? "▾" : "▸"} {label}<span class="muted">{list ? `[${keys}]` : `{${keys}}`}</span>
      </button>
      {open && <div class="json-children">
        {entries.map(([k, v]) => <JsonTree key={k} name={k} value={v} depth={depth + 1} />)}
        {keys > shown && <Button kind="quiet" onClick={() => setShown(shown + pageSize * 4)}>{`${keys - shown} more`}</Button>}
      </div>}
    </div>
  );
}
