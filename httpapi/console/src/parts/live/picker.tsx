// The list or picker of a field in the session's page: Chromium shows it in a window of its own,
// which the picture lacks.
import { useEffect, useRef } from "preact/hooks";

import type { Field, Live } from "./connection";

const maxRows = 10;

/** The options in their groups. */
function options(field: Field) {
  const groups: { label: string; options: Field["options"] }[] = [];
  for (const o of field.options) {
    if (groups.at(-1)?.label !== o.group) groups.push({ label: o.group, options: [] });
    groups.at(-1)!.options.push(o);
  }
  return groups.map((g) => {
    const list = g.options.map((o) => (
      <option value={o.value} selected={o.selected} disabled={o.disabled}>
        {o.label}
      </option>
    ));
    return g.label ? <optgroup label={g.label}>{list}</optgroup> : list;
  });
}

/** The control that stands for the field, at its place in the picture. */
export function FieldPicker({ live, field, screen }: { live: Live; field: Field; screen: HTMLCanvasElement }) {
  const control = useRef<HTMLSelectElement & HTMLInputElement>(null);
  const takesFocus = field.kind !== "datalist"; // of which people go on typing into the page
  useEffect(() => {
    if (takesFocus) control.current!.focus();
  }, [field]);
  const close = () => {
    live.field.value = null;
    document.getElementById("stage")?.focus();
  };
  const choose = (value = control.current!.value) => {
    live.send({ type: "setField", value });
    close();
  };
  const keys = (e: KeyboardEvent) => {
    e.stopPropagation();
    if (e.key === "Escape" || e.key === "Tab") close();
    else if (e.key === "Enter") choose();
    else return;
    e.preventDefault();
  };
  const box = screen.getBoundingClientRect();
  const stage = screen.parentElement!.getBoundingClientRect();
  const scale = box.width / live.viewport.value.width;
  const left = box.left - stage.left + field.rect.x * scale;
  const below = box.top - stage.top + (field.rect.y + field.rect.height) * scale;
  const up = below > stage.height * 0.6;
  const place = up ? { bottom: `${stage.height - below + field.rect.height * scale}px` } : { top: `${below}px` };
  const list = field.kind === "select" || field.kind === "datalist";
  const name = field.label || "Value";
  const touch = matchMedia("(pointer: coarse)").matches;
  return (
    <div
      id="picker"
      role="group"
      aria-label={name}
      style={{ left: `${Math.max(0, Math.min(left, stage.width - 220))}px`, ...place }}
      onKeyDown={keys}
      onPointerDown={(e) => e.stopPropagation()}
    >
      {list ? (
        <select
          ref={control}
          aria-label={name}
          size={Math.max(2, Math.min(maxRows, field.options.length))}
          style={{ minWidth: `${field.rect.width * scale}px` }}
          onClick={(e) => {
            if (!touch && e.target instanceof HTMLOptionElement && !e.target.disabled) choose(e.target.value);
          }}
          onChange={() => {
            if (touch) choose();
          }}
        >
          {options(field)}
        </select>
      ) : (
        <input
          ref={control}
          type={field.kind as "date"}
          aria-label={name}
          defaultValue={field.value}
          min={field.min}
          max={field.max}
          step={field.step || "any"}
        />
      )}
      {!list && (
        <button type="button" class="button primary" onClick={() => choose()}>
          Set
        </button>
      )}
      <button type="button" class="button" onClick={close}>
        Close
      </button>
    </div>
  );
}
