// A workflow in its editor, or one of its executions. The canvas and its
// styles are loaded with this page.
import { EditorPage } from "../editor/editor";
import { ExecutionPage } from "../execution/execution";
import { style, useStyles } from "../parts/styles";
import { Skeleton } from "../ui";
import "../css/editor.css";

export { merge } from "../editor/conflict";
export { copyText, paste, readCopy, readGraph, removeFrom, writeGraph } from "../editor/graph";
export { tidy } from "../editor/layout";
export { fill, suggest } from "../editor/template";

const styles = Promise.all([style("../lib/xyflow.css"), style("./workflow.css")]);

export default function Workflow({ workflow, execution }: { workflow?: string; execution?: string }) {
  if (!useStyles(styles)) return <div class="page"><Skeleton lines={6} /></div>;
  return execution ? <ExecutionPage key={execution} id={execution} /> : <EditorPage key={workflow} id={workflow!} />;
}
