// The header of the editor: the workflow's name and status, its buttons, and the menu of everything else.
import type { ComponentChildren } from "preact";

import { agentId, go, href } from "../data";
import { OtherViewers } from "../parts/presence";
import { Badge, Button, Icon, Menu, type MenuItem, Name, openDialog, When } from "../ui";
import type { EditorActions } from "./actions";
import { loadDialogs, loadExecute, openEditorDialog } from "./lazy";
import type { Editor } from "./state";
import type { StoredWorkflow } from "./storedworkflow";

const readOnlyReason = "You have read-only access.";

type ToolbarProps = {
  editor: Editor;
  stored: StoredWorkflow;
  editable: boolean;
  actions: EditorActions;
  testShown: boolean;
  showTest: () => void;
  draftWithAI: () => Promise<void>;
  showKeys: () => void;
};

/** The header of the editor. */
export function Toolbar(props: ToolbarProps) {
  const { editor, stored, editable, testShown, showTest } = props;
  const { workflow, save } = stored;
  const dirty = editor.dirty.value;
  const live = workflow.status === "active";
  return (
    <header class="editor-bar">
      <a
        class="button quiet only"
        href={href(agentId.value, "workflows")}
        aria-label="All workflows"
        title="All workflows"
      >
        <Icon name="ArrowLeft" size={16} />
      </a>
      <h1 class="clip" tabIndex={-1}>
        <Name>{editor.doc.value.name}</Name>
      </h1>
      <Badge>{workflow.status}</Badge>
      <span class="muted small desk">v{workflow.version}</span>
      <SavedState dirty={dirty} savedAt={workflow.updated_at} />
      <OtherViewers at={workflow.id} editing={dirty} doing={{ one: "is editing", several: "are editing" }} />
      <span class="grow" />
      {editable && <UndoButtons editor={editor} />}
      {editable && (
        <Button icon="Play" pressed={testShown} onClick={showTest}>
          Test
        </Button>
      )}
      {editable && live && (
        <Button icon="Pause" onClick={() => save({ status: "paused" })}>
          <span class="desk-text">Pause</span>
        </Button>
      )}
      {editable && !live && workflow.status !== "archived" && (
        <Button onClick={() => save({ status: "active" })}>{dirty ? "Save and go live" : "Go live"}</Button>
      )}
      {editable && live && (
        <Button kind="primary" disabled={!dirty} onClick={() => save({ status: "active" })}>
          Save and go live
        </Button>
      )}
      {editable && !live && (
        <Button kind="primary" icon="Save" disabled={!dirty} onClick={() => save()}>
          Save
        </Button>
      )}
      <Menu label="More" items={menuItems(props)} />
    </header>
  );
}

function SavedState({ dirty, savedAt }: { dirty: boolean; savedAt: string }) {
  const saved: ComponentChildren = (
    <>
      Saved{" "}
      <span class="desk">
        <When time={savedAt} />
      </span>
    </>
  );
  return (
    <span class={`saved-state small ${dirty ? "dirty" : "muted"}`} role="status">
      {dirty ? "Unsaved" : saved}
    </span>
  );
}

function UndoButtons({ editor }: { editor: Editor }) {
  return (
    <span class="row nowrap desk">
      <Button kind="quiet" icon="Undo2" label="Undo" disabled={!editor.canUndo.value} onClick={() => editor.undo()} />
      <Button kind="quiet" icon="Redo2" label="Redo" disabled={!editor.canRedo.value} onClick={() => editor.redo()} />
    </span>
  );
}

function menuItems({ editor, stored, editable, actions, draftWithAI, showKeys }: ToolbarProps): MenuItem[] {
  const { workflow } = stored;
  return [
    ...saveItems(editor, stored, editable),
    {
      label: "Name and settings",
      icon: "Settings",
      run: () => openEditorDialog(({ SettingsDialog }, close) => <SettingsDialog editor={editor} close={close} />),
    },
    {
      label: "Webhook address",
      icon: "Webhook",
      run: () =>
        openEditorDialog(({ IncomingWebhookDialog: WebhookDialog }, close) => (
          <WebhookDialog workflow={{ ...workflow, nodes: editor.doc.value.nodes }} close={close} />
        )),
    },
    {
      label: "Executions",
      icon: "Activity",
      run: () => go(`${href(agentId.value, "workflows")}?tab=executions&workflow=${encodeURIComponent(workflow.id)}`),
    },
    "-",
    {
      label: "Draft with AI",
      icon: "Sparkles",
      disabled: !editable,
      reason: editable ? undefined : readOnlyReason,
      run: draftWithAI,
    },
    { label: "Tidy the graph", icon: "AlignLeft", disabled: !editable, run: actions.tidy },
    { label: "Export", icon: "Download", run: async () => (await loadDialogs()).exportFile(editor) },
    { label: "Keys", icon: "Keyboard", run: showKeys },
    ...(editable ? statusItems(stored) : []),
  ];
}

function saveItems(editor: Editor, { workflow, save }: StoredWorkflow, editable: boolean): MenuItem[] {
  const status = workflow.status === "active" ? "active" : undefined;
  return [
    {
      label: "Execute",
      icon: "Zap",
      disabled: !editable || !["draft", "active"].includes(workflow.status),
      reason: editable ? "It is paused." : readOnlyReason,
      run: async () => {
        const { Execute } = await loadExecute();
        openDialog((close) => (
          <Execute workflow={workflow} unsaved={editor.dirty.value} input={editor.payload.value} close={close} />
        ));
      },
    },
    {
      label: "Save with a note",
      icon: "StickyNote",
      disabled: !editable || !editor.dirty.value,
      reason: editable ? "No changes." : readOnlyReason,
      run: () =>
        openEditorDialog(({ NoteDialog }, close) => (
          <NoteDialog close={close} save={(note) => save({ status, note })} />
        )),
    },
  ];
}

function statusItems({ workflow, save }: StoredWorkflow): MenuItem[] {
  const items: MenuItem[] = [];
  if (workflow.status !== "draft")
    items.push("-", { label: "Back to draft", icon: "Pencil", run: () => save({ status: "draft" }) });
  if (["draft", "paused"].includes(workflow.status))
    items.push({ label: "Archive", icon: "Inbox", run: () => save({ status: "archived" }) });
  return items;
}
