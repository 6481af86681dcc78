import { useMemo, useState } from "preact/hooks";

import { Button, Icon } from "../../ui";
import type { Table } from "./statement";

/** The tables and their columns, with what each holds. */
export function Schema({ tables, show }: { tables: Table[]; show: (t: Table) => void }) {
  const [search, setSearch] = useState("");
  const [open, setOpen] = useState<string[]>([]);
  const wanted = search.trim().toLowerCase();
  const shown = useMemo(
    () =>
      tables.filter(
        (t) =>
          !wanted ||
          t.name.includes(wanted) ||
          t.description.toLowerCase().includes(wanted) ||
          t.columns.some((c) => c.name.includes(wanted)),
      ),
    [tables, wanted],
  );
  return (
    <>
      <input
        type="search"
        aria-label="Search tables and columns"
        placeholder="Search tables"
        data-search
        value={search}
        onInput={(e) => setSearch(e.currentTarget.value)}
      />
      <ul class="schema">
        {shown.map((t) => {
          const on = open.includes(t.name) || (wanted !== "" && t.columns.some((c) => c.name.includes(wanted)));
          return (
            <li key={t.name}>
              <div class="schema-table">
                <button
                  type="button"
                  class="schema-name"
                  aria-expanded={on}
                  title={t.description}
                  onClick={() => setOpen(on ? open.filter((o) => o !== t.name) : [...open, t.name])}
                >
                  <Icon name={on ? "ChevronDown" : "ChevronRight"} size={14} />
                  <span class="clip">{t.name}</span>
                </button>
                <Button kind="quiet" icon="Table" label={`Show rows of ${t.name}`} onClick={() => show(t)} />
              </div>
              {on && (
                <div class="schema-columns">
                  {t.description && <p class="small muted">{t.description}</p>}
                  <dl>
                    {t.columns.map((c) => (
                      <div key={c.name}>
                        <dt>
                          <code>{c.name}</code>{" "}
                          <span class="muted small">
                            {c.type.toLowerCase()}
                            {c.primary_key ? " key" : ""}
                            {c.nullable ? "" : " not null"}
                          </span>
                        </dt>
                        {c.description && <dd class="small muted">{c.description}</dd>}
                      </div>
                    ))}
                  </dl>
                </div>
              )}
            </li>
          );
        })}
      </ul>
      {!shown.length && <p class="muted small">No tables or columns match.</p>}
    </>
  );
}
