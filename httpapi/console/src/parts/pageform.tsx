// Forms of pages, whose values others may save while they are shown.
import { useEffect, useRef, useState } from "preact/hooks";

import { agentId, path, useQuery } from "../data";
import { Author, Button, type FormIssues, type FormState, useFields, type Values } from "../ui";

/** What was typed and is not saved, with the saved values of that time. */
type Draft = { typed: Values; saved: object };

/** The drafts of forms by their address and name, until the tab is closed. */
const drafts = new Map<string, Draft>();

const same = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b);

/** Keeps the value of a field that differs from the one that is saved. */
function keep(form: string, name: string, value: unknown, saved: object) {
  const draft = drafts.get(form) ?? { typed: {}, saved };
  const { [name]: _, ...typed } = draft.typed;
  if (!same(value, (saved as Values)[name])) typed[name] = value;
  if (Object.keys(typed).length) drafts.set(form, { ...draft, typed });
  else drafts.delete(form);
}

/** A form of a page. */
export type PageForm<V extends object = object> = FormState<V> &
  FormIssues & {
    /** Values differ from those that are saved. */
    unsaved: boolean;
    /** Others were saved since these were typed. */
    outdated: boolean;
    /** Shows the saved values; called when those that were typed are saved, or are not wanted. */
    reset: () => void;
  };

/**
 * Holds what is typed into a form of a page and not saved, by the form's name: it is still there when the page is left
 * and opened again. The other fields show what is saved now, also when another form or person saves it. Secrets are not
 * kept when the page is left.
 */
export function usePageForm<V extends object>(saved: V, name: string, secrets: string[] = []): PageForm<V> {
  const form = useRef(`${location.hash.split("?", 1)[0]} ${name}`).current;
  const [, draw] = useState({});
  useEffect(
    () => () => {
      for (const secret of secrets) keep(form, secret, (saved as Values)[secret], saved);
    },
    [],
  );
  const draft = drafts.get(form);
  const fields = useFields<V>({ ...saved, ...draft?.typed }, (field, value) => {
    keep(form, field, value, saved);
    draw({});
  });
  return {
    ...fields,
    unsaved: Boolean(draft),
    outdated: Boolean(draft && !same(draft.saved, saved)),
    reset: () => {
      drafts.delete(form);
      fields.setIssues({});
      draw({});
    },
  };
}

/** Says beside the button of a form that values are not saved; audit is the entry of the log about saving them. */
export function Unsaved({ form, audit }: { form: PageForm; audit?: string }) {
  if (!form.unsaved) return null;
  return (
    <>
      {form.outdated ? (
        <span class="warn-text small grow" role="status">
          Other values were saved meanwhile{audit && <SavedBy audit={audit} />}. Save keeps what you typed, Discard
          shows them.
        </span>
      ) : (
        <span class="muted small">Not saved</span>
      )}
      <Button kind="quiet" onClick={form.reset}>
        Discard
      </Button>
    </>
  );
}

/** Who saved last, as the log has it. */
function SavedBy({ audit }: { audit: string }) {
  const logs = useQuery(path("agents", agentId.value, "logs"), { source: "audit", search: audit, limit: 1 });
  const by = logs.data.value?.logs[0]?.data?.by;
  return by ? (
    <>
      {" "}
      by <Author who={String(by)} />
    </>
  ) : null;
}
