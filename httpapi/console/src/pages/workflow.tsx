// A workflow in its editor, or one of its executions.
import { Canvas } from "../editor/components";
import { lazy } from "../parts/lazy";
import { style } from "../parts/styles";
import { Skeleton } from "../ui";
import "../css/editor.css";
import "../css/nodes.css";

const Loading = () => (
  <div class="page">
    <Skeleton lines={6} title="Workflow" />
  </div>
);
const EditorPage = lazy(() => import("../editor/editor").then((m) => m.EditorPage), Loading);
const ExecutionPage = lazy(() => import("../execution/execution").then((m) => m.ExecutionPage), Loading);
export const styles = style("./workflow.css");

export default function Workflow({ workflow, execution }: { workflow?: string; execution?: string }) {
  void (execution ? ExecutionPage : EditorPage).preload().catch(() => {
    /* it is loaded again when it is shown */
  });
  if (!matchMedia("(max-width: 48rem)").matches)
    void Canvas.preload().catch(() => {
      /* the same */
    });
  return execution ? <ExecutionPage key={execution} id={execution} /> : <EditorPage key={workflow} id={workflow!} />;
}
