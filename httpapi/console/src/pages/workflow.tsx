// A workflow in its editor, or one of its executions. The canvas and its
// styles are loaded with this page.
import { useEffect, useState } from "preact/hooks";

import { EditorPage } from "../editor/editor";
import { ExecutionPage } from "../execution/execution";
import { Skeleton } from "../ui";
import "../css/editor.css";

export { merge } from "../editor/conflict";
export { copyText, paste, readCopy, readGraph, removeFrom, writeGraph } from "../editor/graph";
export { tidy } from "../editor/layout";
export { fill, suggest } from "../editor/template";

function style(address: string): Promise<void> {
  const href = new URL(address, import.meta.url).href;
  if ([...document.styleSheets].some((s) => s.href === href)) return Promise.resolve();
  return new Promise((resolve) => {
    const link = Object.assign(document.createElement("link"), { rel: "stylesheet", href });
    link.onload = link.onerror = () => resolve();
    document.head.append(link);
  });
}

const styles = Promise.all([style("../lib/xyflow.css"), style("./workflow.css")]);

export default function Workflow({ workflow, execution }: { workflow?: string; execution?: string }) {
  const [ready, setReady] = useState(false);
  useEffect(() => { void styles.then(() => setReady(true)); }, []);
  if (!ready) return <div class="page"><Skeleton lines={6} /></div>;
  return execution ? <ExecutionPage key={execution} id={execution} /> : <EditorPage key={workflow} id={workflow!} />;
}
