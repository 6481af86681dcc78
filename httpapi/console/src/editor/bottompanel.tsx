// The panel below the graph: problems, the last test, versions, and the graph as JSON.
import type { ComponentChildren } from "preact";

import { Button } from "../ui";
import type { RunTest } from "./effects";
import { GraphJson, Problems, TestPanel, Versions } from "./panels";
import type { TestState } from "./starttest";
import type { Editor } from "./state";
import type { StoredWorkflow } from "./storedworkflow";

/** The tab of the bottom panel; empty while it is closed. */
export type BottomTab = "" | "problems" | "test" | "versions" | "json";

type BottomPanelProps = {
  editor: Editor;
  stored: StoredWorkflow;
  tests: { state: TestState; run: RunTest };
  tab: BottomTab;
  /** Shows a tab, or closes the panel if it is shown already. */
  toggleTab: (tab: BottomTab) => void;
  close: () => void;
  editable: boolean;
  compact: boolean;
};

/** The tabs below the graph, and the one that is open. */
export function BottomPanel({ editor, stored, tests, tab, toggleTab, close, editable, compact }: BottomPanelProps) {
  const { workflow, reload } = stored;
  const tabProps = { open: tab, toggle: toggleTab };
  const tested = tests.state.results.length > 0 || tests.state.running;
  return (
    <section class={`editor-bottom ${tab ? "open" : ""}`} aria-label="Details">
      <nav class="tabs">
        <Tab tab="problems" {...tabProps}>
          Problems <ProblemCount editor={editor} />
        </Tab>
        {editable && (
          <Tab tab="test" {...tabProps}>
            {tested ? "Last test" : "Test"}
          </Tab>
        )}
        <Tab tab="versions" {...tabProps}>
          Versions
        </Tab>
        <Tab tab="json" {...tabProps}>
          JSON
        </Tab>
        <span class="grow" />
        {tab && <Button kind="quiet" icon="ChevronDown" label="Close" onClick={close} />}
      </nav>
      {tab && (
        <div class="bottom-body">
          {tab === "problems" && <Problems editor={editor} />}
          {tab === "test" && editable && (
            <TestPanel editor={editor} workflow={workflow.id} state={tests.state} run={tests.run} compact={compact} />
          )}
          {tab === "versions" && (
            <Versions
              id={workflow.id}
              version={workflow.version}
              live={workflow.status === "active"}
              editor={editor}
              restored={() => reload(false)}
            />
          )}
          {tab === "json" && <GraphJson editor={editor} />}
        </div>
      )}
    </section>
  );
}

function Tab(props: {
  tab: BottomTab;
  open: BottomTab;
  toggle: (tab: BottomTab) => void;
  children: ComponentChildren;
}) {
  const { tab, open, toggle, children } = props;
  return (
    <button type="button" aria-current={tab === open ? "page" : undefined} onClick={() => toggle(tab)}>
      {children}
    </button>
  );
}

function ProblemCount({ editor }: { editor: Editor }) {
  const issues = editor.issues.value;
  const onlyWarnings = issues.every((issue) => issue.severity === "warning");
  const look = issues.length ? `tab-count ${onlyWarnings ? "warning" : ""}` : "muted";
  return <span class={look}>{issues.length}</span>;
}
