// JSON as a tree whose branches are made when they are opened.
import { useState } from "preact/hooks";

import { Button } from "./button";

const pageSize = 50;

function Leaf({ value }: { value: unknown }) {
  const [shown, setShown] = useState(2000); // characters
  if (typeof value !== "string")
    return <span class={`json-${value === null ? "null" : typeof value}`}>{String(value)}</span>;
  return (
    <>
      <span class="json-string">{JSON.stringify(value.slice(0, shown))}</span>
      {value.length > shown && (
        <Button
          kind="quiet"
          onClick={() => setShown(shown * 10)}
        >{`${(value.length - shown).toLocaleString()} more characters`}</Button>
      )}
    </>
  );
}

/** A value; name is its key in what it is part of. */
export function JsonTree({ value, name, depth = 0 }: { value: unknown; name?: string; depth?: number }) {
  const [open, setOpen] = useState(depth < 2);
  const [shown, setShown] = useState(pageSize);
  const label = name !== undefined && <span class="json-key">{name}: </span>;
  if (value === null || typeof value !== "object")
    return (
      <div class="json">
        {label}
        <Leaf value={value} />
      </div>
    );
  const list = Array.isArray(value);
  const keys = list ? value.length : Object.keys(value).length;
  const entries: [string, unknown][] = open
    ? list
      ? value.slice(0, shown).map((v, i) => [String(i), v])
      : Object.entries(value).slice(0, shown)
    : [];
  return (
    <div class="json">
      <button type="button" class="json-toggle" aria-expanded={open} onClick={() => setOpen(!open)}>
        {open ? "▾" : "▸"} {label}
        <span class="muted">{list ? `[${keys}]` : `{${keys}}`}</span>
      </button>
      {open && (
        <div class="json-children">
          {entries.map(([k, v]) => (
            <JsonTree key={k} name={k} value={v} depth={depth + 1} />
          ))}
          {keys > shown && (
            <Button kind="quiet" onClick={() => setShown(shown + pageSize * 4)}>{`${keys - shown} more`}</Button>
          )}
        </div>
      )}
    </div>
  );
}
