// What the code editor and its library exchange.

/** A language of the code editor. */
export type CodeLanguage = "javascript" | "sql" | "json" | "text";
/** A table whose names the code editor completes. */
export type CodeTable = {
  name: string;
  description?: string;
  columns: { name: string; type?: string; description?: string }[];
};

/**
 * What may stand at the cursor of a template: the start of what is replaced, and what it may be replaced by; null
 * outside of a template.
 */
export type CodeTemplates = (
  text: string,
  cursor: number,
) => { from: number; list: { insert: string; label: string; note?: string; value?: unknown }[] } | null;

/** An editor that was put into an element. */
export type OpenEditor = {
  setText: (text: string) => void;
  configure: (language: CodeLanguage, readonly: boolean, tables?: CodeTable[]) => void;
  /** Writes a text where the cursor is. */
  insert: (text: string) => void;
  focus: () => void;
  close: () => void;
};
