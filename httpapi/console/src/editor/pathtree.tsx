// A JSON value as a tree whose parts become templates.
import { useState } from "preact/hooks";

import { showToast } from "../ui";
import { writePath } from "./template";
import { insertTemplate, pathDataType } from "./templatefield";

const maxEntries = 50; // shown of an object or array
const maxText = 70; // characters shown of a value

type Path = (string | number)[];

type PathTreeProps = {
  value: unknown;
  path: Path;
  /** The key of the value; the root has none. */
  name?: string;
  /** Copies templates instead of inserting them, for use in another node. */
  copies?: boolean;
};

function shortValue(value: unknown): string {
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "nothing");
  return text.length > maxText ? `${text.slice(0, maxText)}…` : text;
}

/** Inserts a template at the cursor, or copies it. */
async function pickTemplate(path: string, copies?: boolean) {
  if (!copies && insertTemplate(path)) return;
  try {
    await navigator.clipboard.writeText(`{{${path}}}`);
    showToast("Copied");
  } catch {
    showToast(`{{${path}}}`);
  }
}

/** Returns the attributes of a button that can be clicked or dragged for the template of a path. */
function templateSource(path: string, copies?: boolean) {
  return {
    type: "button" as const,
    draggable: true,
    title: `{{${path}}}`,
    onMouseDown: (event: MouseEvent) => event.preventDefault(), // the field keeps the focus
    onDragStart: (event: DragEvent) => {
      event.dataTransfer!.setData(pathDataType, path);
      event.dataTransfer!.setData("text/plain", `{{${path}}}`);
      event.stopPropagation();
    },
    onClick: () => pickTemplate(path, copies),
  };
}

/** A value as a tree. Its parts are inserted as templates when they are clicked or dragged to a field. */
export function PathTree(props: PathTreeProps) {
  const { value, name } = props;
  if (value === null || typeof value !== "object") return <PathLeaf {...props} />;
  if (name !== undefined) return <PathBranch {...props} name={name} value={value} />;
  return (
    <div class="path-tree">
      <Entries {...props} value={value} />
      {Object.keys(value).length === 0 && <p class="muted small">It is empty.</p>}
    </div>
  );
}

function PathLeaf({ value, path, name, copies }: PathTreeProps) {
  return (
    <div class="path-leaf">
      <button {...templateSource(writePath(path), copies)}>
        {name !== undefined && (
          <span class="json-key">
            <bdi>{name}</bdi>:{" "}
          </span>
        )}
        <bdi class="muted">{shortValue(value)}</bdi>
      </button>
    </div>
  );
}

function PathBranch(props: PathTreeProps & { name: string; value: object }) {
  const { value, path, name, copies } = props;
  const [open, setOpen] = useState(false);
  const size = Object.keys(value).length;
  const templatePath = writePath(path);
  return (
    <div>
      <button type="button" class="path-branch" aria-expanded={open} onClick={() => setOpen(!open)}>
        {open ? "▾" : "▸"} <bdi class="json-key">{name}</bdi>{" "}
        <span class="muted">{Array.isArray(value) ? `[${size}]` : `{${size}}`}</span>
      </button>
      {path.length > 0 && (
        <button
          class="path-use"
          aria-label={`${copies ? "Copy" : "Insert"} ${templatePath}`}
          {...templateSource(templatePath, copies)}
        >
          +
        </button>
      )}
      {open && (
        <div class="json-children">
          <Entries {...props} />
          {size > maxEntries && <p class="muted small">{size - maxEntries} more</p>}
        </div>
      )}
    </div>
  );
}

/** The first entries of an object or array. */
function Entries({ value, path, copies }: PathTreeProps & { value: object }) {
  const keys: Path = Array.isArray(value)
    ? Array.from({ length: Math.min(value.length, maxEntries) }, (_, index) => index)
    : Object.keys(value).slice(0, maxEntries);
  return (
    <>
      {keys.map((key) => (
        <PathTree
          key={key}
          name={String(key)}
          value={(value as Record<string | number, unknown>)[key]}
          path={[...path, key]}
          copies={copies}
        />
      ))}
    </>
  );
}
