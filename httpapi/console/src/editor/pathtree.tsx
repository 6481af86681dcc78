// JSON whose leaves are put into templates.
import { useState } from "preact/hooks";

import { tell } from "../ui";
import { writePath } from "./template";
import { insertTemplate } from "./templatefield";

const most = 50;

const short = (v: unknown) => {
  const t = typeof v === "string" ? v : (JSON.stringify(v) ?? "nothing");
  return t.length > 70 ? `${t.slice(0, 70)}…` : t;
};

async function use(path: string, copies?: boolean) {
  if (!copies && insertTemplate(path)) return;
  try {
    await navigator.clipboard.writeText(`{{${path}}}`);
    tell("Copied");
  } catch {
    tell(`{{${path}}}`);
  }
}

/** A value as a tree; a leaf that is clicked or dragged becomes a template. */
export function PathTree({
  value,
  path,
  name,
  depth = 0,
  copies,
}: {
  value: unknown;
  path: (string | number)[];
  name?: string;
  depth?: number;
  /** For another node: copied, not inserted here. */ copies?: boolean;
}) {
  const [open, setOpen] = useState(depth < 1);
  const written = writePath(path);
  const drag = (e: DragEvent) => {
    e.dataTransfer!.setData("application/x-satchel-path", written);
    e.dataTransfer!.setData("text/plain", `{{${written}}}`);
    e.stopPropagation();
  };
  if (value === null || typeof value !== "object") {
    return (
      <div class="path-leaf">
        <button
          type="button"
          draggable
          title={`{{${written}}}`}
          onMouseDown={(e) => e.preventDefault()}
          onDragStart={drag}
          onClick={() => use(written, copies)}
        >
          {name !== undefined && (
            <span class="json-key">
              <bdi>{name}</bdi>:{" "}
            </span>
          )}
          <bdi class="muted">{short(value)}</bdi>
        </button>
      </div>
    );
  }
  const entries: [string | number, unknown][] = Array.isArray(value)
    ? value.slice(0, most).map((v, i) => [i, v])
    : Object.entries(value).slice(0, most);
  const size = Array.isArray(value) ? value.length : Object.keys(value).length;
  const rows = entries.map(([k, v]) => (
    <PathTree key={k} name={String(k)} value={v} path={[...path, k]} depth={depth + 1} copies={copies} />
  ));
  if (name === undefined)
    return (
      <div class="path-tree">
        {rows}
        {size === 0 && <p class="muted small">It is empty.</p>}
      </div>
    );
  return (
    <div>
      <button type="button" class="path-branch" aria-expanded={open} onClick={() => setOpen(!open)}>
        {open ? "▾" : "▸"} <bdi class="json-key">{name}</bdi>{" "}
        <span class="muted">{Array.isArray(value) ? `[${size}]` : `{${size}}`}</span>
      </button>
      {path.length > 0 && (
        <button
          type="button"
          class="path-use"
          draggable
          title={`{{${written}}}`}
          aria-label={`${copies ? "Copy" : "Insert"} ${written}`}
          onMouseDown={(e) => e.preventDefault()}
          onDragStart={drag}
          onClick={() => use(written, copies)}
        >
          +
        </button>
      )}
      {open && (
        <div class="json-children">
          {rows}
          {size > most && <p class="muted small">{size - most} more</p>}
        </div>
      )}
    </div>
  );
}
