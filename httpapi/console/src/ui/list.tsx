// Lists and tables.
import type { ComponentChildren } from "preact";

import type { Result } from "../data/query";
import { Button } from "./button";
import { ErrorCard, Skeleton } from "./feedback";

/** Shows an answer when it is there, and until then a skeleton or the error. */
export function Load<T>({ of, children, lines }: { of: Result<T>; children: (data: T) => ComponentChildren; lines?: number }) {
  const data = of.data.value;
  if (data !== undefined) return <>{of.error.value && <ErrorCard error={of.error.value} retry={of.reload} />}{children(data)}</>;
  if (of.error.value) return <ErrorCard error={of.error.value} retry={of.reload} />;
  return <Skeleton lines={lines} />;
}

export type Column<T> = { title: string; cell: (row: T) => ComponentChildren; class?: string };

/** A table; on a phone each row becomes a card. */
export function Table<T>({ columns, rows, keyOf, open }: { columns: Column<T>[]; rows: T[]; keyOf: (row: T) => string | number; open?: (row: T) => string }) {
  return (
    <div class="table-frame">
      <table class="table">
        <thead><tr>{columns.map((c) => c.title ? <th scope="col" class={c.class}>{c.title}</th> : <td class={c.class} />)}</tr></thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)} class={open ? "link" : ""} onClick={(e) => { if (open && !(e.target as Element).closest("a,button,input,label")) location.hash = open(row); }}>
              {columns.map((c) => <td class={c.class} data-label={c.title}>{c.cell(row)}</td>)}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export type Meta = { total: number; limit: number; offset: number };

/** Goes through the pages of a list. */
export function Pager({ meta, go }: { meta: Meta; go: (offset: number) => void }) {
  const last = meta.offset + meta.limit;
  if (meta.total <= meta.limit && meta.offset === 0) return null;
  return (
    <nav class="row pager" aria-label="Pages">
      <Button disabled={meta.offset === 0} onClick={() => go(Math.max(0, meta.offset - meta.limit))}>Back</Button>
      <span class="muted">{Math.min(meta.offset + 1, meta.total)}–{Math.min(last, meta.total)} of {meta.total.toLocaleString()}</span>
      <Button disabled={last >= meta.total} onClick={() => go(last)}>Next</Button>
    </nav>
  );
}
