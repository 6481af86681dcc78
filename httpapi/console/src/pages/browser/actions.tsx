// What was done in a session.
import { get, useQuery } from "../../data";
import { CopyButton, Icon, Load, openDialog, Dialog, plural, span, showToast } from "../../ui";
import { secondTime, writeTime } from "../../parts/zone";
import { at, stepsOf, useReloading, type Action } from "./data";

const reloadDelay = 3_000; // milliseconds

/** Where an action was done: its address, element or key. */
const target = (a: Action) => a.input.url ?? a.input.selector ?? a.input.key ?? a.input.direction ?? "";
const what = (a: Action) =>
  [target(a), a.action === "type" && (a.input.text === undefined ? "(not shown)" : JSON.stringify(a.input.text))]
    .filter(Boolean)
    .join(" ");

export function Actions({ id }: { id: string }) {
  const found = useQuery<{ actions: Action[]; meta: { total: number } }>(at(id, "actions"), { limit: 100 });
  useReloading(id, found, reloadDelay);
  return (
    <div class="session-actions">
      <Load of={found}>
        {({ actions, meta }) => (
          <>
            {!actions.length && <p class="muted small">No scripted actions yet. What a person does isn't logged.</p>}
            <ol class="plain">
              {actions.map((a) => (
                <li key={a.seq} class={a.error ? "failed" : ""} title={writeTime(a.created_at, undefined, secondTime)}>
                  <Icon name={a.error ? "CircleAlert" : "Check"} size={14} label={a.error ? "Failed" : "Done"} />
                  <span class="grow">
                    <b>{a.action}</b> <bdi class="muted">{what(a)}</bdi>
                    {a.error && <span class="issue">{a.error}</span>}
                  </span>
                  <span class="muted small">{span(a.duration_ms)}</span>
                </li>
              ))}
            </ol>
            {meta.total > actions.length && (
              <p class="muted small">
                The newest {actions.length} of {plural(meta.total, "action")}.
              </p>
            )}
          </>
        )}
      </Load>
    </div>
  );
}

/** Copies the actions that were done as nodes, to be pasted into a workflow. */
export async function copySteps(id: string) {
  const pages = await Promise.all([0, 200, 400].map((offset) => get(at(id, "actions"), { limit: 200, offset })));
  const { text, nodes, left } = stepsOf(pages.flatMap((p) => p.actions));
  if (!nodes) return showToast("None of these actions can become a workflow step.");
  openDialog((close) => (
    <Dialog title="Workflow steps" close={close} wide>
      <p>
        {plural(nodes, "step")}. Paste them into a workflow's canvas with Ctrl+V.
        {left > 0 &&
          ` ${plural(left, "action")} that workflows have no node for ${left === 1 ? "is" : "are"} left out.`}{" "}
        What was typed into password fields is not in the log and has to be filled in.
      </p>
      <pre class="record-value">{text}</pre>
      <div class="row end">
        <CopyButton text={text}>Copy</CopyButton>
      </div>
    </Dialog>
  ));
}
