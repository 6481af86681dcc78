// What is wrong with the graph, each with a way to its field.
import { ApiError } from "../data";
import { Icon, Name } from "../ui";
import { type Editor, type Issue, typeOf } from "./base";

/** What the service found wrong with a graph. */
export function issuesOf(error: unknown): Issue[] {
  if (!(error instanceof ApiError)) return [];
  const { errors, field, issue = error.message, node_id, edge_id } = error.details;
  return errors ?? (field ? [{ node_id, edge_id, field, issue, severity: "error" }] : []);
}

/** Shows the node of a problem and focuses the field. */
export function showIssue(editor: Editor, issue: Issue) {
  if (issue.edge_id) {
    editor.select([]);
    editor.selectedEdge.value = issue.edge_id;
    return;
  }
  const at = /^nodes\[(\d+)\]/.exec(issue.field);
  const id = issue.node_id ?? (at ? editor.doc.value.nodes[Number(at[1])]?.id : undefined);
  if (!id) return;
  editor.select([id]);
  editor.focus.value = { field: issue.field.replace(/^nodes\[\d+\]\.?/, ""), at: Date.now() };
}

export function Problems({ editor }: { editor: Editor }) {
  const issues = editor.issues.value;
  if (!issues.length) return <p class="muted pad">No problems.</p>;
  return (
    <ul class="problems" aria-label="Problems">
      {issues.map((i, n) => {
        const node = i.node_id ? editor.node(i.node_id) : undefined;
        const field = i.field.replace(/^(nodes|edges)\[\d+\]\.?/, "").replace(/^data(\.|$)/, "");
        const title = node && typeOf(node.type)?.data.properties?.[field]?.title;
        return (
          <li key={n} class={i.severity}>
            <button type="button" onClick={() => showIssue(editor, i)}>
              <Icon
                name={i.severity === "warning" ? "TriangleAlert" : "CircleAlert"}
                size={16}
                label={i.severity === "warning" ? "Warning" : "Error"}
              />
              <span>
                <strong>
                  <Name>{node ? editor.nameOf(node) : i.edge_id ? "Edge" : "Workflow"}</Name>
                </strong>
                {field && (
                  <>
                    : <bdi>{title ?? field}</bdi>
                  </>
                )}{" "}
                <bdi>{i.issue}</bdi>
              </span>
            </button>
          </li>
        );
      })}
    </ul>
  );
}
