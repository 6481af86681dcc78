// The rows of an answer: only those in view are elements.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import type { Answer } from "./statement";

const rowHeight = 32;
const beyond = 8; // rows before and after what is in view

const text = (v: unknown) => (v === null ? "null" : typeof v === "object" ? JSON.stringify(v) : String(v));

/** How wide each column is, from its first rows, in characters. */
const widths = (a: Answer) =>
  a.columns.map((c, i) =>
    Math.min(42, Math.max(6, c.length + 3, ...a.rows.slice(0, 100).map((r) => text(r[i]).slice(0, 60).length + 2))),
  );

export function Grid({ answer, open, opened }: { answer: Answer; open: (row: number) => void; opened?: number }) {
  const ref = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ from: 0, to: 40 });
  const wide = useMemo(() => widths(answer), [answer]);
  const measure = () => {
    const el = ref.current;
    if (!el) return;
    const from = Math.max(0, Math.floor(el.scrollTop / rowHeight) - beyond);
    const to = Math.ceil((el.scrollTop + el.clientHeight) / rowHeight) + beyond;
    setView((v) => (v.from === from && v.to === to ? v : { from, to }));
  };
  useEffect(() => {
    ref.current!.scrollTop = 0;
    measure();
    let frame = 0;
    const sizes = new ResizeObserver(() => {
      // in the next frame, because it can change the size again
      cancelAnimationFrame(frame);
      frame = requestAnimationFrame(measure);
    });
    sizes.observe(ref.current!);
    return () => {
      sizes.disconnect();
      cancelAnimationFrame(frame);
    };
  }, [answer]);
  const rows = answer.rows.slice(view.from, view.to);
  const number = answer.columns.map((_, i) =>
    answer.rows.slice(0, 20).every((r) => r[i] === null || typeof r[i] === "number"),
  );
  const keys = (e: KeyboardEvent) => {
    const at = Number((e.target as HTMLElement).dataset.row ?? -1);
    const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
    if (at < 0 || !step) return;
    e.preventDefault();
    ref.current!.querySelector<HTMLElement>(`[data-row="${at + step}"]`)?.focus();
  };
  return (
    <div class="grid-frame" ref={ref} onScroll={measure} onKeyDown={keys} tabIndex={0} role="region" aria-label="Rows">
      <table
        class="grid"
        aria-rowcount={answer.rows.length + 1}
        style={{ width: `calc(${wide.reduce((a, b) => a + b, 0)} * .55rem + 3.5rem)` }}
      >
        <colgroup>
          <col style={{ width: "3.5rem" }} />
          {wide.map((w) => (
            <col style={{ width: `${w * 0.55}rem` }} />
          ))}
          <col />
        </colgroup>
        <thead>
          <tr>
            <th scope="col">
              <span class="hidden">Row</span>
            </th>
            {answer.columns.map((c, i) => (
              <th scope="col" class={number[i] ? "number" : ""} title={c}>
                <bdi>{c}</bdi>
              </th>
            ))}
            <td />
          </tr>
        </thead>
        <tbody>
          {view.from > 0 && (
            <tr aria-hidden="true" style={{ height: `${view.from * rowHeight}px` }}>
              <td colSpan={answer.columns.length + 2} />
            </tr>
          )}
          {rows.map((r, i) => {
            const n = view.from + i;
            return (
              <tr key={n} class={n === opened ? "on" : ""} aria-rowindex={n + 2} onClick={() => open(n)}>
                <td class="number muted">
                  <button type="button" data-row={n} aria-label={`Open row ${n + 1}`} onClick={() => open(n)}>
                    {n + 1}
                  </button>
                </td>
                {r.map((v, c) => (
                  <td class={number[c] ? "number" : ""}>
                    {v === null ? <i class="muted">null</i> : <bdi>{text(v).slice(0, 300)}</bdi>}
                  </td>
                ))}
                <td />
              </tr>
            );
          })}
          {view.to < answer.rows.length && (
            <tr aria-hidden="true" style={{ height: `${(answer.rows.length - view.to) * rowHeight}px` }}>
              <td colSpan={answer.columns.length + 2} />
            </tr>
          )}
        </tbody>
      </table>
    </div>
  );
}
