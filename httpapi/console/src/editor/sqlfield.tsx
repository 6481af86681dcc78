// A statement of SQL with templates: the names of tables and columns are
// completed, and after {{ the values that the node sees.
import { useContext, useMemo, useRef } from "preact/hooks";

import { agentId, path, useQuery } from "../data";
import { Code, type CodeTable, type OpenEditor } from "../ui";
import { scopeOf } from "./samples";
import { fill, hasTemplate, labelsOf, suggest } from "./template";
import { FilledTemplate, NodeContext, takesPaths } from "./templatefield";

/** A field for SQL with templates. */
export function SqlField({
  value,
  onInput,
  label,
  invalid,
}: {
  value: string;
  onInput: (v: string) => void;
  label: string;
  invalid?: boolean;
}) {
  const { editor, node, readonly } = useContext(NodeContext);
  const schema = useQuery<{ tables: CodeTable[] }>(path("agents", agentId.value, "sql", "schema"));
  const opened = useRef<OpenEditor>(undefined);
  const now = useRef({ editor, node });
  now.current = { editor, node };
  const templates = useMemo(
    () => (text: string, cursor: number) =>
      suggest(text, cursor, scopeOf(now.current.editor, now.current.node), labelsOf(now.current.editor)),
    [],
  );
  return (
    <div class="template-field" onFocusIn={(e) => takesPaths(e.currentTarget, (text) => opened.current?.insert(text))}>
      <Code
        language="sql"
        label={label}
        rows={4}
        value={value}
        readonly={readonly}
        invalid={invalid}
        tables={schema.data.value?.tables}
        templates={templates}
        onOpen={(o) => {
          opened.current = o;
        }}
        onInput={onInput}
      />
      {hasTemplate(value) && <FilledTemplate filled={fill(value, scopeOf(editor, node))} />}
    </div>
  );
}
