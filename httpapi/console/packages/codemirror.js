// The code editor: CodeMirror 6 with SQL, JSON and JavaScript.
export { Compartment, EditorState, Prec } from "@codemirror/state";
export { EditorView, drawSelection, highlightActiveLine, keymap, lineNumbers, placeholder, tooltips } from "@codemirror/view";
export { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
export { HighlightStyle, bracketMatching, indentOnInput, syntaxHighlighting } from "@codemirror/language";
export { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
export { highlightSelectionMatches, searchKeymap, search } from "@codemirror/search";
export { SQLite, sql } from "@codemirror/lang-sql";
export { json } from "@codemirror/lang-json";
export { javascript } from "@codemirror/lang-javascript";
export { tags } from "@lezer/highlight";
