import type { Answer } from "./statement";

/** How SQLite goes about a statement: EXPLAIN QUERY PLAN as a tree. */
export function Plan({ answer }: { answer: Answer }) {
  const depth = new Map<unknown, number>([[0, -1]]);
  const steps = answer.rows.map(([id, parent, , detail]) => {
    depth.set(id, (depth.get(parent) ?? -1) + 1);
    return { depth: depth.get(id)!, detail: String(detail) };
  });
  return (
    <div class="card stack">
      <h2>Plan</h2>
      {steps.length ? (
        <ol class="plain plan">
          {steps.map((s) => (
            <li style={{ paddingLeft: `${s.depth * 1.4}rem` }}>
              <code>{s.detail}</code> {/^SCAN\b/.test(s.detail) && <span class="muted small">reads every row</span>}
              {/USING (COVERING )?INDEX|PRIMARY KEY/.test(s.detail) && <span class="muted small">by an index</span>}
            </li>
          ))}
        </ol>
      ) : (
        <p class="muted">Nothing to look up.</p>
      )}
    </div>
  );
}
