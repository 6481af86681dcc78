// The list of problems of the graph; each opens the field that it is about.
import { Icon, Name } from "../ui";
import { typeOf } from "./catalog";
import type { Editor, Issue } from "./state";

/** Selects the node or edge of a problem and focuses the field. */
function showIssue(editor: Editor, issue: Issue) {
  if (issue.edge_id) {
    editor.select([]);
    editor.selectedEdge.value = issue.edge_id;
    return;
  }
  const index = /^nodes\[(\d+)\]/.exec(issue.field)?.[1];
  const id = issue.node_id ?? (index ? editor.doc.value.nodes[Number(index)]?.id : undefined);
  if (!id) return;
  editor.select([id]);
  editor.focus.value = { field: issue.field.replace(/^nodes\[\d+\]\.?/, ""), at: Date.now() };
}

/** All problems of the graph. */
export function Problems({ editor }: { editor: Editor }) {
  const issues = editor.issues.value;
  if (!issues.length) return <p class="muted pad">No problems.</p>;
  return (
    <ul class="problems" aria-label="Problems">
      {issues.map((issue, index) => (
        <Problem key={index} editor={editor} issue={issue} />
      ))}
    </ul>
  );
}

function Problem({ editor, issue }: { editor: Editor; issue: Issue }) {
  const node = issue.node_id ? editor.node(issue.node_id) : undefined;
  const field = issue.field.replace(/^(nodes|edges)\[\d+\]\.?/, "").replace(/^data(\.|$)/, "");
  const title = node && typeOf(node.type)?.data.properties?.[field]?.title;
  const isWarning = issue.severity === "warning";
  const withoutNode = issue.edge_id ? "Edge" : "Workflow";
  return (
    <li class={issue.severity}>
      <button type="button" onClick={() => showIssue(editor, issue)}>
        <Icon name={isWarning ? "TriangleAlert" : "CircleAlert"} size={16} label={isWarning ? "Warning" : "Error"} />
        <span>
          <strong>
            <Name>{node ? editor.nameOf(node) : withoutNode}</Name>
          </strong>
          {field && (
            <>
              : <bdi>{title ?? field}</bdi>
            </>
          )}{" "}
          <bdi>{issue.issue}</bdi>
        </span>
      </button>
    </li>
  );
}
