// CodeMirror in a shadow root: there its styles are constructed sheets, which
// the policy of the page allows, and the styles of the page do not reach it.
import type { Completion, CompletionContext, CompletionSource } from "@codemirror/autocomplete";
import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { javascript } from "@codemirror/lang-javascript";
import { json } from "@codemirror/lang-json";
import { SQLite, sql } from "@codemirror/lang-sql";
import { HighlightStyle, bracketMatching, indentOnInput, syntaxHighlighting } from "@codemirror/language";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { Compartment, EditorState, type Extension } from "@codemirror/state";
import {
  EditorView,
  drawSelection,
  highlightActiveLine,
  keymap,
  lineNumbers,
  placeholder as placeholderText,
} from "@codemirror/view";
import { tags } from "@lezer/highlight";

import type { CodeLanguage, CodeTable, CodeTemplates, OpenEditor } from "../ui/codetypes";

type Options = {
  text: string;
  label: string;
  rows: number;
  placeholder?: string;
  templates?: CodeTemplates;
  changed: (text: string) => void;
};

/** Opens an editor in an element that has none yet. */
export function openEditor(host: HTMLElement, options: Options): OpenEditor {
  const root = host.shadowRoot ?? host.attachShadow({ mode: "open", delegatesFocus: true });
  const language = new Compartment();
  let own = false; // the change comes from setText
  const view = new EditorView({
    root,
    parent: root,
    state: EditorState.create({
      doc: options.text,
      extensions: [
        ...base(options),
        language.of([]),
        EditorView.updateListener.of((u) => {
          if (u.docChanged && !own) options.changed(u.state.doc.toString());
        }),
      ],
    }),
  });
  return {
    setText: (text) => {
      if (text === view.state.doc.toString()) return;
      own = true;
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } });
      own = false;
    },
    configure: (name, readonly, tables) =>
      view.dispatch({
        effects: language.reconfigure([languageOf(name, tables ?? []), EditorState.readOnly.of(readonly)]),
      }),
    insert: (text) => {
      view.dispatch(view.state.replaceSelection(text), { scrollIntoView: true });
      view.focus();
    },
    focus: () => view.focus(),
    close: () => view.destroy(),
  };
}

/** What all editors have. Escape, then Tab, leaves an editor by the keyboard. */
function base({ label, rows, placeholder, templates }: Options): Extension[] {
  const keys = defaultKeymap.filter((k) => k.key !== "Mod-Enter");
  return [
    lineNumbers(),
    history(),
    typeOver,
    drawSelection(),
    indentOnInput(),
    bracketMatching(),
    closeBrackets(),
    highlightActiveLine(),
    highlightSelectionMatches(),
    autocompletion({ icons: false, override: templates && withTemplates(templates) }),
    search({ top: true }),
    EditorView.lineWrapping,
    syntaxHighlighting(colours),
    look(rows),
    keymap.of([...closeBracketsKeymap, ...keys, ...searchKeymap, ...historyKeymap, ...completionKeymap, indentWithTab]),
    EditorView.contentAttributes.of({ "aria-label": label, spellcheck: "false", autocapitalize: "off" }),
    placeholder ? placeholderText(placeholder) : [],
  ];
}

/**
 * The sources of completion where a text has templates: their values within {{ }}, and those of the language elsewhere.
 */
function withTemplates(templates: CodeTemplates) {
  const values = (c: CompletionContext) => templates(c.state.doc.toString(), c.pos);
  const ofLanguage = (n: number) => (c: CompletionContext) =>
    values(c) ? null : (c.state.languageDataAt<CompletionSource>("autocomplete", c.pos)[n]?.(c) ?? null);
  const own = (c: CompletionContext) => {
    const found = values(c);
    if (!found?.list.length) return null;
    return {
      from: found.from,
      filter: false,
      options: found.list.map((s, i): Completion => ({
        label: s.label,
        apply: s.insert,
        detail: s.note ?? written(s.value),
        boost: -i,
      })),
    };
  };
  return [own, ...[0, 1, 2].map(ofLanguage)];
}

const written = (v: unknown) =>
  v === undefined ? undefined : (typeof v === "string" ? v : JSON.stringify(v)).slice(0, 40);

/**
 * Replaces what is selected by what is typed. Chromium would keep its looks with inline styles, which the policy of the
 * page reports.
 */
const typeOver = EditorView.domEventHandlers({
  beforeinput: (e, view) => {
    const { from, to } = view.state.selection.main;
    if (e.inputType !== "insertText" || !e.data || view.composing || view.state.readOnly || from === to) return false;
    view.dispatch(view.state.replaceSelection(e.data), { userEvent: "input.type", scrollIntoView: true });
    e.preventDefault();
    return true;
  },
});

function languageOf(name: CodeLanguage, tables: CodeTable[]): Extension {
  if (name === "javascript") return javascript();
  if (name === "json") return json();
  if (name !== "sql") return [];
  const schema = Object.fromEntries(
    tables.map((t) => [
      t.name,
      {
        self: { label: t.name, type: "table", detail: "table", info: t.description || undefined, boost: 20 },
        children: t.columns.map((c) => columnOf(c)),
      },
    ]),
  );
  const support = sql({
    dialect: SQLite,
    schema,
    upperCaseKeywords: true,
    keywordCompletion: (label, type) => ({ label, type, boost: usual.has(label) ? -10 : -50 }),
  });
  return [support, SQLite.language.data.of({ autocomplete: columnsOf(tables) })];
}

/** The keywords that are offered before the others. */
const usual = new Set(
  (
    "SELECT FROM WHERE AND OR NOT IN IS NULL LIKE BETWEEN JOIN LEFT ON AS ORDER GROUP BY HAVING LIMIT OFFSET " +
    "DISTINCT ASC DESC UNION ALL CASE WHEN THEN ELSE END INSERT INTO VALUES UPDATE SET DELETE WITH EXISTS"
  ).split(" "),
);

const columnOf = (c: CodeTable["columns"][number]): Completion => ({
  label: c.name,
  type: "property",
  detail: c.type,
  info: c.description || undefined,
  boost: 30,
});

/** Offers the columns of those tables that the statement names. */
function columnsOf(tables: CodeTable[]) {
  return (context: CompletionContext) => {
    const word = context.matchBefore(/\w+/);
    if (!word || context.state.sliceDoc(word.from - 1, word.from) === ".") return null;
    const named = new Set(context.state.doc.toString().toLowerCase().match(/\w+/g));
    const found = new Map(
      tables.filter((t) => named.has(t.name.toLowerCase())).flatMap((t) => t.columns.map((c) => [c.name, columnOf(c)])),
    );
    return { from: word.from, options: [...found.values()], validFor: /^\w*$/ };
  };
}

const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword, tags.modifier], color: "var(--act)", fontWeight: "600" },
  { tag: [tags.string, tags.special(tags.string), tags.regexp], color: "var(--good)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--busy)" },
  { tag: [tags.propertyName, tags.typeName], color: "var(--warn)" },
  { tag: tags.comment, color: "var(--faint)", fontStyle: "italic" },
  { tag: tags.invalid, color: "var(--bad)" },
]);

/** The colours of the page, which are light or dark by themselves. */
const look = (rows: number) =>
  EditorView.theme({
    "&": {
      color: "var(--ink)",
      background: "var(--paper)",
      border: "1px solid var(--strong-line)",
      borderRadius: "var(--radius)",
      fontSize: ".87em",
      overflow: "hidden",
    },
    ":host(.wrong) &": { borderColor: "var(--bad)" },
    "&.cm-focused": { outline: "2px solid var(--act)", outlineOffset: "1px" },
    ".cm-scroller": {
      fontFamily: "var(--mono)",
      lineHeight: "1.5",
      minHeight: `${rows * 1.5 + 0.6}em`,
      maxHeight: "60dvh",
    },
    ".cm-content": { caretColor: "var(--ink)", padding: ".3rem 0" },
    ".cm-cursor": { borderLeftColor: "var(--ink)" },
    ".cm-gutters": { background: "var(--paper)", color: "var(--faint)", border: "0" },
    ".cm-activeLine, .cm-activeLineGutter": { background: "color-mix(in srgb, var(--tint) 60%, transparent)" },
    "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
      background: "var(--mark)",
    },
    ".cm-selectionMatch": { background: "color-mix(in srgb, var(--mark) 60%, transparent)" },
    "&.cm-focused .cm-matchingBracket": { background: "var(--act-tint)", outline: "1px solid var(--strong-line)" },
    ".cm-placeholder": { color: "var(--faint)" },
    ".cm-tooltip": {
      background: "var(--raised)",
      color: "var(--ink)",
      border: "1px solid var(--line)",
      borderRadius: "6px",
      boxShadow: "var(--shadow)",
      zIndex: "30",
    },
    ".cm-tooltip.cm-tooltip-autocomplete > ul": { fontFamily: "var(--mono)", maxWidth: "min(28rem, 80vw)" },
    ".cm-tooltip-autocomplete ul li": { padding: ".15rem .5rem" },
    ".cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]": {
      background: "var(--act-tint)",
      color: "var(--ink)",
    },
    ".cm-completionDetail": { color: "var(--faint)", fontStyle: "normal" },
    ".cm-completionMatchedText": { textDecoration: "none", fontWeight: "700" },
    ".cm-completionInfo": { padding: ".4rem .6rem", maxWidth: "20rem", fontFamily: "system-ui, sans-serif" },
    ".cm-panels": { background: "var(--tint)", color: "var(--ink)", borderBottom: "1px solid var(--line)" },
    ".cm-textfield, .cm-button": {
      font: "inherit",
      color: "inherit",
      background: "var(--paper)",
      backgroundImage: "none",
      border: "1px solid var(--strong-line)",
      borderRadius: "6px",
    },
  });
