// A value that is changed where it stands: a click or Enter begins, Enter or
// leaving it saves, Escape gives up. What the service refuses stays to be mended.
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

import { ApiError, reasonOf } from "../data";
import { showToast } from "../ui";
import { TagsInput } from "./tags";

type Common = {
  /** What the value is called, for those who cannot see where it stands. */
  label: string;
  may: boolean;
  /** How it is shown; its text when left out. */
  children?: ComponentChildren;
};

/** What went wrong with a value, in a few words. */

function useEdit(save: () => Promise<unknown>) {
  const [editing, setEditing] = useState(false);
  const [issue, setIssue] = useState("");
  const [busy, setBusy] = useState(false);
  const frame = useRef<HTMLSpanElement>(null);
  const back = useRef(false); // the focus goes back to the value
  useLayoutEffect(() => {
    if (!editing && back.current) frame.current?.querySelector<HTMLElement>("button")?.focus();
    back.current = false;
  }, [editing]);
  const leave = (focus: boolean) => {
    back.current = focus;
    setEditing(false);
    setIssue("");
  };
  const commit = async (changed: boolean, focus: boolean) => {
    if (!changed) return leave(focus);
    if (busy) return;
    setBusy(true);
    try {
      await save();
      leave(focus);
    } catch (error) {
      setIssue(reasonOf(error));
      if (!(error instanceof ApiError)) showToast(error);
    }
    setBusy(false);
  };
  return { editing, begin: () => setEditing(true), issue, busy, frame, leave, commit };
}

/** A text in place. */
export function TextCell({
  label,
  may,
  children,
  text,
  save,
  type = "text",
  rows,
}: Common & {
  text: string;
  save: (text: string) => Promise<unknown>;
  type?: "text" | "email" | "tel";
  rows?: number;
}) {
  const [typed, setTyped] = useState(text);
  const newest = useRef(text); // what is typed, before it is shown
  const note = (t: string) => {
    newest.current = t;
    setTyped(t);
  };
  const edit = useEdit(() => save(newest.current));
  const commit = (focus: boolean) => void edit.commit(newest.current !== text, focus);
  const shown = children ?? (text ? <bdi>{text}</bdi> : may ? <span class="cell-none">–</span> : "");
  if (!may) return <>{shown}</>;
  if (!edit.editing)
    return (
      <span class="cell-frame" ref={edit.frame}>
        <button
          type="button"
          class="cell"
          aria-label={`${label}: ${text || "empty"}`}
          onClick={() => {
            note(text);
            edit.begin();
          }}
        >
          {shown}
        </button>
      </span>
    );
  const keys = (e: KeyboardEvent) => {
    e.stopPropagation();
    if (e.key === "Escape") edit.leave(true);
    else if (e.key === "Enter" && (!rows || e.ctrlKey || e.metaKey)) {
      e.preventDefault();
      commit(true);
    }
  };
  const field = {
    "aria-label": label,
    value: typed,
    "aria-invalid": Boolean(edit.issue),
    autoFocus: true,
    ref: (el: HTMLElement | null) => {
      if (el && document.activeElement !== el && !edit.issue) el.focus();
    },
    onInput: (e: { currentTarget: HTMLInputElement | HTMLTextAreaElement }) => note(e.currentTarget.value),
    onKeyDown: keys,
    onBlur: (e: FocusEvent) => {
      if (document.activeElement !== e.currentTarget) commit(false);
    },
  }; // not when the window is left
  return (
    <span class={edit.issue ? "cell-frame wrong" : "cell-frame"} ref={edit.frame} aria-busy={edit.busy}>
      {rows ? <textarea rows={rows} {...field} /> : <input type={type as "text"} {...field} />}
      {edit.issue && (
        <small class="issue" role="alert">
          {edit.issue}
        </small>
      )}
    </span>
  );
}

/** Tags in place. */
export function TagsCell({
  label,
  may,
  children,
  tags,
  save,
  known,
}: Common & { tags: string[]; save: (tags: string[]) => Promise<unknown>; known: string[] }) {
  const [list, setList] = useState(tags);
  const edit = useEdit(() => save(list));
  const same = list.length === tags.length && list.every((t, i) => t === tags[i]);
  const shown =
    children ??
    (tags.length ? (
      <span class="tags">
        {tags.map((t) => (
          <span class="tag" key={t}>
            <bdi>{t}</bdi>
          </span>
        ))}
      </span>
    ) : may ? (
      <span class="cell-none">–</span>
    ) : (
      ""
    ));
  if (!may) return <>{shown}</>;
  if (!edit.editing)
    return (
      <span class="cell-frame" ref={edit.frame}>
        <button
          type="button"
          class="cell"
          onClick={() => {
            setList(tags);
            edit.begin();
          }}
        >
          <span class="hidden">{label}: </span>
          {shown}
        </button>
      </span>
    );
  return (
    <span
      class={edit.issue ? "cell-frame wrong" : "cell-frame"}
      ref={edit.frame}
      aria-busy={edit.busy}
      onKeyDown={(e) => {
        if (e.key === "Escape") {
          e.stopPropagation();
          edit.leave(true);
        } else if (e.key === "Enter" && !e.defaultPrevented) {
          e.preventDefault();
          void edit.commit(!same, true);
        }
      }}
      onFocusOut={(e) => {
        const next = e.relatedTarget as Node | null;
        const el = e.currentTarget;
        if (!next || !el.contains(next))
          setTimeout(() => {
            if (!el.contains(document.activeElement)) el.querySelector<HTMLElement>("[data-done]")?.click();
          });
      }}
    >
      <TagsInput label={label} value={list} onChange={setList} known={known} autoFocus />
      <button
        type="button"
        class="hidden"
        tabIndex={-1}
        data-done
        aria-hidden="true"
        onClick={() => void edit.commit(!same, false)}
      />
      {edit.issue && (
        <small class="issue" role="alert">
          {edit.issue}
        </small>
      )}
    </span>
  );
}
