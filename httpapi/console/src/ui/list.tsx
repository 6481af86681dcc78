// Lists and tables.
import type { ComponentChildren } from "preact";

import type { Result } from "../data/query";
import { go } from "../data/route";
import { Button } from "./button";
import { ErrorCard, Skeleton } from "./feedback";
import { Icon } from "./icon";

/**
 * Shows an answer when it is there, and until then a skeleton or the error; title is that of a page whose own comes
 * with the answer.
 */
export function Load<T>({
  of,
  children,
  lines,
  title,
}: {
  of: Pick<Result<T>, "data" | "error" | "reload">;
  children: (data: T) => ComponentChildren;
  lines?: number;
  title?: string;
}) {
  const data = of.data.value;
  if (data !== undefined)
    return (
      <>
        {of.error.value && <ErrorCard error={of.error.value} retry={of.reload} />}
        {children(data)}
      </>
    );
  if (of.error.value)
    return (
      <>
        {title && <h1 tabIndex={-1}>{title}</h1>}
        <ErrorCard error={of.error.value} retry={of.reload} />
      </>
    );
  return <Skeleton lines={lines} title={title} />;
}

/** A column of a table. */
export type Column<T> = {
  title: string;
  cell: (row: T) => ComponentChildren;
  class?: string;
  /** The name by which the list can be sorted; a click on the title sorts. */
  sort?: string;
  /** What stands in the head in place of the title. */
  head?: ComponentChildren;
};

/** The column by which a list is sorted, and in which order. */
export type Sorting = { by: string; order: "asc" | "desc" };

function Head<T>({
  column: c,
  sorting,
  onSort,
}: {
  column: Column<T>;
  sorting?: Sorting;
  onSort?: (s: Sorting) => void;
}) {
  const order = c.sort && sorting?.by === c.sort ? sorting.order : undefined;
  if (!c.title && !c.head) return <td class={c.class} />;
  const turn = () => onSort!({ by: c.sort!, order: order === "asc" ? "desc" : "asc" });
  return (
    <th scope="col" class={c.class} aria-sort={order && (order === "asc" ? "ascending" : "descending")}>
      {c.sort && onSort ? (
        <button type="button" class="sort" onClick={turn}>
          {c.title}
          {order && <Icon name={order === "asc" ? "ChevronUp" : "ChevronDown"} size={14} />}
        </button>
      ) : (
        (c.head ?? c.title)
      )}
    </th>
  );
}

/** A table; on a phone each row becomes a card. */
export function Table<T>({
  columns,
  rows,
  keyOf,
  open,
  sorting,
  onSort,
}: {
  columns: Column<T>[];
  rows: T[];
  keyOf: (row: T) => string | number;
  open?: (row: T) => string;
  sorting?: Sorting;
  onSort?: (s: Sorting) => void;
}) {
  return (
    <div class="table-frame">
      <table class="table">
        <thead>
          <tr>
            {columns.map((c) => (
              <Head column={c} sorting={sorting} onSort={onSort} />
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr
              key={keyOf(row)}
              class={open ? "link" : ""}
              onClick={(e) => {
                if (open && !(e.target as Element).closest("a,button,input,label")) go(open(row));
              }}
            >
              {columns.map((c) => (
                <td class={c.class} data-label={c.title}>
                  {c.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The size of a list, and which part of it is shown. */
export type Meta = { total: number; limit: number; offset: number };

/** Goes through the pages of a list. */
export function Pager({ meta, go }: { meta: Meta; go: (offset: number) => void }) {
  const last = meta.offset + meta.limit;
  if (meta.total <= meta.limit && meta.offset === 0) return null;
  return (
    <nav class="row pager" aria-label="Pages">
      <Button disabled={meta.offset === 0} onClick={() => go(Math.max(0, meta.offset - meta.limit))}>
        Back
      </Button>
      <span class="muted">
        {Math.min(meta.offset + 1, meta.total)}–{Math.min(last, meta.total)} of {meta.total.toLocaleString()}
      </span>
      <Button disabled={last >= meta.total} onClick={() => go(last)}>
        Next
      </Button>
    </nav>
  );
}

/**
 * The ref of the tab that is shown, which a narrow page may have out of view. It is one function, so it is called once
 * for an element and not at each drawing.
 */
export const intoView = (tab: Element | null) => {
  tab?.scrollIntoView({ block: "nearest", inline: "center" });
};
