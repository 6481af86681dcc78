// The editor of one workflow.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";

import { agentId, type API, asError, get, href, mayEdit, path, route, setQuery } from "../data";
import { ErrorCard, openDialog, Skeleton, showToast } from "../ui";
import { editorActions, type EditorActions } from "./actions";
import type { AIDraft } from "./ai";
import { BottomPanel, type BottomTab } from "./bottompanel";
import { loadCatalog } from "./catalog";
import { type Draft, dropDraft, openDraft, type OpenDraft, readDraft } from "./drafts";
import { useDraft, usePreload, useSamples, useTests, useValidation } from "./effects";
import { fingerprint } from "./graph";
import { GraphView } from "./graphview";
import { editorKeys } from "./keys";
import { withPositions } from "./layout";
import { openEditorDialog, startTests } from "./lazy";
import { AIDraftBanner, DraftOffer, NodePanel, NodeShelf } from "./panels";
import { workflowPath } from "./run";
import { useSelectionInAddress } from "./selection";
import type { TestMode } from "./starttest";
import type { Flow } from "./shapes";
import { Editor } from "./state";
import { readDoc, type StoredWorkflow, useStoredWorkflow } from "./storedworkflow";
import { Toolbar } from "./toolbar";
import { zone } from "./zone";

// Used by other files of the console and by tests.
export { copyText, readCopy, readGraph, removeFrom, writeGraph } from "./graph";
export { tidy } from "./layout";
export { namesOf } from "./names";

type Loaded = { workflow: API.Workflow; editor: Editor; draft?: Draft };

/** Sets the time zone by which templates write dates. */
const loadZone = () =>
  get(path("agents", agentId.value, "settings")).then(
    (settings) => {
      zone.value = settings.timezone || "UTC";
    },
    () => {
      /* dates are written in UTC */
    },
  );

/** Loads all that the editor of a workflow shows at first, and the draft of unsaved changes. */
async function loadEditor(id: string): Promise<Loaded> {
  const [workflow, draft] = await Promise.all([
    get(workflowPath(id)),
    readDraft(agentId.value, id),
    loadCatalog(),
    loadZone(),
  ]);
  const editor = new Editor();
  editor.load(await readDoc(workflow));
  editor.readonly.value = !mayEdit.value;
  const selected = route.value.query.get("node");
  if (selected && editor.node(selected)) editor.select([selected]);
  const differs = draft && fingerprint(draft.doc) !== editor.saved.value;
  return { workflow, editor, draft: differs ? draft : undefined };
}

/** Loads a workflow and its draft, and shows the editor. */
export function EditorPage({ id }: { id: string }) {
  const [loaded, setLoaded] = useState<Loaded>();
  const [error, setError] = useState<Error>();
  const load = async () => {
    try {
      setError(undefined);
      setLoaded(await loadEditor(id));
    } catch (thrown) {
      setError(asError(thrown));
    }
  };
  useEffect(() => {
    void load();
  }, [id]);
  if (error)
    return (
      <div class="page">
        <p class="crumb">
          <a href={href(agentId.value, "workflows")}>Workflows</a>
        </p>
        <h1 tabIndex={-1}>Workflow</h1>
        <ErrorCard error={error} retry={load} />
      </div>
    );
  if (!loaded)
    return (
      <div class="page">
        <Skeleton lines={6} title="Workflow" />
      </div>
    );
  return <WorkflowEditor key={id} {...loaded} />;
}

const isPhone = () => matchMedia("(max-width: 48rem)").matches;

/** The editor of a workflow that is loaded. */
function WorkflowEditor({ workflow: initial, editor, draft: offered }: Loaded) {
  const id = initial.id;
  const editable = mayEdit.value;
  const [outline, setOutline] = useState(isPhone);
  const flow = useRef<Flow | null>(null);
  const root = useRef<HTMLDivElement>(null);
  const mouse = useRef({ x: 0, y: 0 });
  const tab = (route.value.query.get("tab") ?? "") as BottomTab;
  const node = editor.selectedNode.value;

  const draft = useMemo(() => openDraft(agentId.value, id), []);
  const stored = useStoredWorkflow(editor, initial, draft);
  const { workflow } = stored;
  useSelectionInAddress(editor);
  useValidation(editor, workflow);
  useDraft(editor, workflow, draft);
  useSamples(editor, id);
  usePreload();
  const tests = useTests(editor, id);
  const { aiDraft, setAIDraft, draftWithAI } = useAIDraft(editor, editable);

  const toggleTab = (next: BottomTab) => setQuery({ tab: next === tab ? null : next });
  const runTest = (mode: TestMode, nodeId?: string) => {
    setQuery({ tab: "test" });
    return tests.run(mode, editor.payload.value ?? {}, nodeId);
  };
  const actions = useMemo(
    () =>
      editorActions({
        editor,
        flow: () => flow.current,
        element: () => root.current?.querySelector<HTMLElement>(".editor-view"),
        mouse: () => mouse.current,
        editable,
        runTest,
      }),
    [editor, editable],
  );
  const showKeys = () => {
    void openEditorDialog(({ KeyHelp }, close) => <KeyHelp close={close} />);
  };
  const keys = useKeys({ editor, stored, actions, runTest: () => runTest("all"), showKeys });
  const shared = { editor, stored, actions, editable, draftWithAI };

  return (
    <div class="page full editor-page" ref={root}>
      <Toolbar {...shared} testShown={tab === "test"} showTest={() => toggleTab("test")} showKeys={showKeys} />
      <OfferedDraft editor={editor} version={workflow.version} offered={offered} draft={draft} />
      {aiDraft && editor.dirty.value && (
        <AIDraftBanner editor={editor} aiDraft={aiDraft} close={() => setAIDraft(undefined)} />
      )}
      <div class={`editor-body ${node ? "with-panel" : ""} ${outline ? "as-outline" : ""}`}>
        {editable && !outline && <NodeShelf pick={actions.pick} />}
        <div class="editor-center">
          <GraphView
            {...shared}
            outline={outline}
            setOutline={setOutline}
            onKeyDown={keys.canvas}
            onMouseMove={({ clientX, clientY }) => {
              mouse.current = { x: clientX, y: clientY };
            }}
            onReady={(instance) => {
              flow.current = instance;
            }}
          />
          <BottomPanel
            {...shared}
            tests={tests}
            tab={tab}
            toggleTab={toggleTab}
            close={() => setQuery({ tab: null })}
            compact={isPhone()}
          />
        </div>
        {node && (
          <NodePanel
            key={node.id}
            editor={editor}
            node={node}
            workflow={workflow}
            actions={{
              duplicate: actions.duplicate,
              remove: actions.remove,
              test: runTest,
              tests: (refresh) => startTests(editor, id, refresh),
              close: () => editor.select([]),
            }}
          />
        )}
      </div>
    </div>
  );
}

/** Returns what opens the dialog that drafts a workflow with AI, and the draft that it made last. */
function useAIDraft(editor: Editor, editable: boolean) {
  const [aiDraft, setAIDraft] = useState<AIDraft>();
  const draftWithAI = async () => {
    const { DraftDialog } = await import("./ai");
    openDialog((close) => (
      <DraftDialog editor={editor} done={(summary, before) => setAIDraft({ summary, before })} close={close} />
    ));
  };
  useEffect(() => {
    // The list of workflows opens the dialog by the address.
    if (route.value.query.get("draft") !== "ai") return;
    setQuery({ draft: null });
    if (editable) void draftWithAI().catch(showToast);
  }, []);
  return { aiDraft, setAIDraft, draftWithAI };
}

/** Registers the editor's keys and clipboard events, and warns before unsaved changes are left. */
function useKeys(options: {
  editor: Editor;
  stored: StoredWorkflow;
  actions: EditorActions;
  runTest: () => void;
  showKeys: () => void;
}) {
  const { editor, stored, actions, runTest, showKeys } = options;
  const save = () => {
    const status = stored.workflow.status === "active" ? "active" : undefined;
    if (editor.dirty.value) void stored.save({ status }).catch(showToast);
  };
  const keys = editorKeys({ editor, actions, save, test: runTest, help: showKeys });
  useLayoutEffect(() => {
    // before the next key, which may come within the same frame
    const clipboardEvents = ["copy", "cut", "paste"] as const;
    const onBeforeUnload = (event: BeforeUnloadEvent) => {
      if (editor.dirty.value) event.preventDefault();
    };
    addEventListener("keydown", keys.page);
    for (const name of clipboardEvents) document.addEventListener(name, keys.clipboard);
    addEventListener("beforeunload", onBeforeUnload);
    return () => {
      removeEventListener("keydown", keys.page);
      for (const name of clipboardEvents) document.removeEventListener(name, keys.clipboard);
      removeEventListener("beforeunload", onBeforeUnload);
    };
  });
  return keys;
}

/** Offers the changes that were not saved when the editor was last closed. */
function OfferedDraft(props: { editor: Editor; version: number; offered?: Draft; draft: OpenDraft }) {
  const { editor, version, draft } = props;
  const [offered, setOffered] = useState(props.offered);
  if (!offered) return null;
  const drop = () => dropDraft(offered.key).then(() => setOffered(undefined));
  const restore = async () => {
    const doc = { ...offered.doc, ...(await withPositions(offered.doc)) };
    editor.change(doc);
    await draft.keep(version, doc);
    await drop();
  };
  return <DraftOffer draft={offered} version={version} keep={restore} drop={drop} />;
}
