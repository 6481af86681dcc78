// The field in which a visitor writes, and the files that go with the message.
import type { ComponentChildren, RefObject } from "preact";
import { useRef, useState } from "preact/hooks";

import { checkFiles, FileChips, type FileLimits, limitsText } from "./files";
import { Shape } from "./shape";
import { words } from "./words";

const maxLength = 4000;

type Attachments = ReturnType<typeof useAttachments>;

/** Keeps the files for the next message, none without limits; focus is called when they were changed. */
export function useAttachments(limits: FileLimits | null | undefined, focus: () => void) {
  const [files, setFiles] = useState<File[]>([]);
  const [issue, setIssue] = useState("");
  const add = (list: FileList | null | undefined) => {
    if (!list?.length || !limits) return;
    const { taken, issue } = checkFiles(limits, files, [...list]);
    setFiles(taken);
    setIssue(issue);
    focus();
  };
  const clear = () => {
    setFiles([]);
    setIssue("");
  };
  const remove = (file: File) => {
    setFiles(files.filter((other) => other !== file));
    setIssue("");
    focus();
  };
  return { limits, files, issue, add, remove, clear };
}

type Props = {
  textarea: RefObject<HTMLTextAreaElement | null>;
  attachments: Attachments;
  draft?: string;
  keepDraft?: (text: string) => void;
  /** Reports whether the rest of the form is filled in. */
  canSend: () => boolean;
  send: (text: string, more: { files?: File[] }) => void;
  /** Asks for a person, where that can be asked. */
  askPerson?: () => void;
  /** What is asked for above the text. */
  children?: ComponentChildren;
};

/** The form for a message. */
export function Composer({ textarea, attachments, draft, keepDraft, canSend, send, askPerson, children }: Props) {
  const [text, setText] = useState(draft ?? "");
  const { limits, files, issue } = attachments;
  const excess = text.length - maxLength;
  const empty = !text.trim() && files.length === 0;
  const write = (value: string) => {
    setText(value);
    keepDraft?.(value);
  };
  const submit = () => {
    if (empty || excess > 0 || !canSend()) return;
    send(text.trim(), files.length ? { files } : {});
    write("");
    attachments.clear();
    textarea.current?.focus();
  };
  return (
    <form
      class="sw-composer"
      noValidate
      onSubmit={(e) => {
        e.preventDefault();
        submit();
      }}
    >
      {children}
      {limits && (files.length > 0 || issue) && (
        <FileChips files={files} limits={limits} issue={issue} remove={attachments.remove} />
      )}
      <div class="sw-row">
        {limits && <AttachButton limits={limits} add={attachments.add} />}
        <textarea
          ref={textarea}
          rows={1}
          value={text}
          placeholder={words.write}
          aria-label={words.write}
          aria-invalid={excess > 0}
          onInput={(e) => write(e.currentTarget.value)}
          onPaste={(e) => {
            if (limits && e.clipboardData?.files.length) {
              e.preventDefault();
              attachments.add(e.clipboardData.files);
            }
          }}
          onKeyDown={(e) => {
            if (e.key === "Enter" && !e.shiftKey && !e.isComposing) {
              e.preventDefault();
              submit();
            }
          }}
        />
        <button type="submit" class="sw-icon sw-send" aria-label={words.send} disabled={empty || excess > 0}>
          <Shape d="M5 12h14M13 6l6 6-6 6" />
        </button>
      </div>
      <div class="sw-foot">
        {excess > 0 ? (
          <small class="sw-issue" role="alert">
            {words.tooLong(excess)}
          </small>
        ) : (
          <span />
        )}
        {askPerson && (
          <button type="button" class="sw-link" onClick={askPerson}>
            {words.askPerson}
          </button>
        )}
      </div>
    </form>
  );
}

function AttachButton({ limits, add }: { limits: FileLimits; add: Attachments["add"] }) {
  const picker = useRef<HTMLInputElement>(null);
  return (
    <>
      <input
        ref={picker}
        type="file"
        hidden
        multiple={limits.max > 1}
        accept={limits.types.map((type) => `.${type}`).join()}
        aria-label={words.attach}
        onChange={(e) => {
          add(e.currentTarget.files);
          e.currentTarget.value = "";
        }}
      />
      <button
        type="button"
        class="sw-icon sw-attach"
        aria-label={words.attach}
        title={limitsText(limits)}
        onClick={() => picker.current?.click()}
      >
        <Shape d="m21 12-8.5 8.5a5.7 5.7 0 0 1-8-8L13 4a3.8 3.8 0 0 1 5.4 5.4l-8.6 8.5a1.9 1.9 0 0 1-2.7-2.7l7.9-7.8" />
      </button>
    </>
  );
}
