// The code editor, whose library is loaded when one is first shown.
import { useEffect, useRef, useState } from "preact/hooks";

import type { CodeLanguage, CodeTable, CodeTemplates, OpenEditor } from "./codetypes";

const load = (): Promise<typeof import("../lazy/codemirror")> =>
  import(new URL("./codemirror.js", import.meta.url).href);

type Props = {
  value: string;
  onInput: (value: string) => void;
  language: CodeLanguage;
  /** What the editor is called for screen readers. */
  label: string;
  /** What Ctrl+Enter does; without it the page gets the key. */
  onRun?: () => void;
  readonly?: boolean;
  invalid?: boolean;
  /** How many lines are shown at least. */
  rows?: number;
  placeholder?: string;
  /** The tables that SQL is completed with. */
  tables?: CodeTable[];
  /** Completes templates; it stays the same for one editor. */
  templates?: CodeTemplates;
  onOpen?: (editor: OpenEditor) => void;
  /** Puts the cursor into the editor when it is first shown. */
  autoFocus?: boolean;
};

/** The keys with Ctrl that pages use also while somebody writes code. */
const pageKeys = ["s", "k", "enter"];

/**
 * Edits JavaScript, SQL, JSON or plain text with colours, completion and undo: <Code language="sql" label="Query"
 * value={v} onInput={set} />.
 */
export function Code(props: Props) {
  const host = useRef<HTMLDivElement>(null);
  const editor = useRef<OpenEditor>(undefined);
  const now = useRef(props);
  now.current = props;
  const sent = useRef<string[]>([]); // what was typed and did not come back as value yet
  const [failed, setFailed] = useState(false);
  const { value, language, label, readonly = false, invalid = false, rows = 3, placeholder, tables } = props;
  useEffect(() => {
    let closed = false;
    load().then(
      ({ openEditor }) => {
        if (closed || !host.current) return;
        const opened = openEditor(host.current, {
          text: now.current.value,
          label,
          rows,
          placeholder,
          templates: now.current.templates,
          changed: (text) => {
            sent.current.push(text);
            now.current.onInput(text);
          },
        });
        editor.current = opened;
        now.current.onOpen?.(opened);
        opened.configure(now.current.language, now.current.readonly ?? false, now.current.tables);
        opened.setText(now.current.value);
        if (now.current.autoFocus) opened.focus();
      },
      () => setFailed(true),
    );
    return () => {
      closed = true;
      editor.current?.close();
      editor.current = undefined;
    };
  }, []);
  useEffect(() => {
    const at = sent.current.lastIndexOf(value);
    sent.current.splice(0, at < 0 ? Infinity : at + 1);
    if (at < 0) editor.current?.setText(value); // it comes from elsewhere
  }, [value]);
  useEffect(() => editor.current?.configure(language, readonly, tables), [language, readonly, tables]);
  const keys = (e: KeyboardEvent) => {
    const command = e.ctrlKey || e.metaKey;
    if (command && e.key === "Enter" && now.current.onRun) {
      e.preventDefault();
      now.current.onRun();
    }
    if (e.defaultPrevented || !command || !pageKeys.includes(e.key.toLowerCase())) e.stopPropagation();
  };
  if (failed)
    return (
      <textarea
        class="code"
        rows={rows}
        value={value}
        readOnly={readonly}
        aria-label={label}
        spellcheck={false}
        onInput={(e) => props.onInput(e.currentTarget.value)}
        onKeyDown={keys}
      />
    );
  return (
    <div
      ref={host}
      class={invalid ? "code-editor wrong" : "code-editor"}
      style={{ minHeight: `${rows * 1.3 + 1}em` }}
      onKeyDown={keys}
    >
      <pre>{value}</pre>
    </div>
  );
}
