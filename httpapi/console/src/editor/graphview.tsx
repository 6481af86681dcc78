// The middle of the editor: the graph as a canvas or an outline, and its tools.
import { Button } from "../ui";
import type { EditorActions } from "./actions";
import { Canvas, Outline } from "./components";
import type { Flow } from "./shapes";
import type { Editor } from "./state";
import { ViewSegments } from "./viewsegments";

type GraphViewProps = {
  editor: Editor;
  actions: EditorActions;
  editable: boolean;
  outline: boolean;
  setOutline: (outline: boolean) => void;
  draftWithAI: () => Promise<void>;
  onKeyDown: (event: KeyboardEvent) => void;
  onMouseMove: (event: MouseEvent) => void;
  onReady: (flow: Flow) => void;
};

/** The graph, with its tools in a corner. */
export function GraphView(props: GraphViewProps) {
  const { editor, actions, editable, outline, onKeyDown, onMouseMove, onReady } = props;
  return (
    <div
      class="editor-view"
      tabIndex={0}
      role="application"
      aria-label="Workflow graph"
      aria-roledescription="graph"
      onKeyDown={onKeyDown}
      onMouseMove={onMouseMove}
    >
      {outline ? (
        <Outline
          editor={editor}
          open={actions.open}
          menu={actions.canvas.menu}
          add={editable ? actions.add : undefined}
        />
      ) : (
        <Canvas editor={editor} actions={actions.canvas} minimap onReady={onReady} />
      )}
      {!editor.doc.value.nodes.length && <EmptyGraph {...props} />}
      <GraphTools {...props} />
    </div>
  );
}

function EmptyGraph({ editable, actions, draftWithAI }: GraphViewProps) {
  return (
    <div class="canvas-empty">
      <p>Every workflow starts with a trigger.</p>
      {editable && (
        <Button kind="primary" icon="Plus" onClick={() => actions.palette()}>
          Add a node
        </Button>
      )}
      {editable && (
        <Button icon="Sparkles" onClick={draftWithAI}>
          Draft with AI
        </Button>
      )}
    </div>
  );
}

function GraphTools({ editor, actions, editable, outline, setOutline }: GraphViewProps) {
  return (
    <div class="canvas-tools">
      <ViewSegments outline={outline} setOutline={setOutline} />
      {!outline && (
        <>
          <Button icon="ZoomOut" label="Smaller" onClick={() => actions.zoom(0.8)} />
          <Button icon="Maximize" label="Fit the graph (1)" onClick={() => actions.fit()} />
          <Button icon="ZoomIn" label="Larger" onClick={() => actions.zoom(1.25)} />
        </>
      )}
      {editable && <Button icon="Plus" label="Add a node (Tab)" onClick={() => actions.palette()} />}
      {editable && !outline && (
        <Button
          icon="StickyNote"
          label="Add a note (n)"
          disabled={!editor.doc.value.nodes.length}
          onClick={() => actions.note()}
        />
      )}
    </div>
  );
}
