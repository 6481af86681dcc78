// The tabs of a node's panel that show values: its input, its output, and the node as JSON.
import { useEffect, useState } from "preact/hooks";

import { asError } from "../data";
import { Badge, Button, JsonTree, Name, span, showToast } from "../ui";
import { type GraphNode, setMetadata } from "./graph";
import { JsonField } from "./jsonfield";
import { loadPasting } from "./lazy";
import { PathTree } from "./pathtree";
import { sampleOf, scopeOf } from "./samples";
import type { Editor } from "./state";

type NodeProps = { editor: Editor; node: GraphNode };

/** The values that templates of the node can use. */
export function NodeInput({ editor, node }: NodeProps) {
  const { nodes, input, trigger: _, execution, workflow, agent, now, ...payload } = scopeOf(editor, node);
  return (
    <div class="stack">
      <p class="muted small">Values you can use here. Choose one to insert it at the cursor.</p>
      <ValueTree title="Input" value={input} path={["input"]} />
      {Object.keys(payload).length > 0 && <ValueTree title="Payload and variables" value={payload} path={[]} />}
      {Object.entries(nodes as object).map(([id, value]) => (
        <ValueTree key={id} title={editor.nameOf(id)} value={value} path={["nodes", id]} />
      ))}
      <ValueTree title="Always available" value={{ now, execution, workflow, agent }} path={[]} />
    </div>
  );
}

const ValueTree = ({ title, value, path }: { title: string; value: unknown; path: (string | number)[] }) => (
  <section>
    <h3>
      <Name>{title}</Name>
    </h3>
    <PathTree value={value} path={path} />
  </section>
);

/** The outcome of the node in the last test, and its output, which can be pinned. */
export function NodeOutput({ editor, node, pin }: NodeProps & { pin: () => void }) {
  const mark = editor.marks.value.get(node.id);
  return (
    <div class="stack">
      {mark && (
        <p class="row">
          <Badge>{mark.status}</Badge>
          {mark.ms !== undefined && <span class="muted small">{span(mark.ms)}</span>}
          {mark.error && <span class="issue">{mark.error}</span>}
        </p>
      )}
      <OutputValue editor={editor} node={node} />
      {!editor.readonly.value && (
        <div class="row">
          <Button icon="Pin" onClick={pin}>
            {node.metadata?.pin === undefined ? "Pin this output" : "Remove the pin"}
          </Button>
        </div>
      )}
    </div>
  );
}

/** The pinned output, which can be edited; else the last one, or an example. */
function OutputValue({ editor, node }: NodeProps) {
  const pinned = node.metadata?.pin;
  if (pinned !== undefined) {
    const setPin = (value: unknown) =>
      editor.changeNode(node.id, (current) => setMetadata(current, { pin: value ?? {} }), "pin");
    return (
      <>
        <p class="card warn">Tests use this output instead of running the node. Live executions ignore it.</p>
        <JsonField label="Pinned output" rows={12} value={pinned} onChange={setPin} />
      </>
    );
  }
  if (Object.hasOwn(editor.samples.value, node.id)) return <JsonTree value={editor.samples.value[node.id]} />;
  return (
    <>
      <p class="muted">Not run yet. Its output looks like this:</p>
      <JsonTree value={sampleOf(editor, node)} />
    </>
  );
}

/** Parses the JSON of a node; throws an error that says what is wrong with it. */
function parseNode(text: string, editor: Editor, id: string): GraphNode {
  const node = JSON.parse(text);
  const isText = (value: unknown) => typeof value === "string";
  if (!node || typeof node !== "object" || !node.id || !isText(node.id) || !isText(node.type))
    throw new Error("A node is an object with an id and a type.");
  if (node.id !== id && editor.node(node.id)) throw new Error("Another node already has this ID.");
  return node;
}

/** The node as JSON, which can be edited. */
export function NodeJson({ editor, node }: NodeProps) {
  const [typed, setTyped] = useState(() => JSON.stringify(node, null, 2));
  const [error, setError] = useState("");
  useEffect(() => {
    setTyped((current) => {
      try {
        if (JSON.stringify(JSON.parse(current)) === JSON.stringify(node)) return current;
      } catch {
        /* it is replaced */
      }
      return JSON.stringify(node, null, 2);
    });
  }, [node]);
  const apply = async () => {
    try {
      const changed = parseNode(typed, editor, node.id);
      const { renameNode } = await loadPasting();
      const doc = editor.doc.value;
      const renamed = changed.id === node.id ? doc : renameNode(doc, node.id, changed.id);
      editor.change({
        ...renamed,
        nodes: renamed.nodes.map((other) => (other.id === changed.id ? changed : other)),
      });
      editor.select([changed.id]);
      setError("");
      showToast("Applied");
    } catch (thrown) {
      setError(asError(thrown).message);
    }
  };
  return (
    <div class="stack">
      <textarea
        class="code"
        aria-label="Node JSON"
        rows={18}
        spellcheck={false}
        value={typed}
        readOnly={editor.readonly.value}
        onInput={(e) => setTyped(e.currentTarget.value)}
      />
      {error && (
        <p class="issue" role="alert">
          {error}
        </p>
      )}
      {!editor.readonly.value && (
        <div class="row end">
          <Button kind="primary" onClick={apply}>
            Apply
          </Button>
        </div>
      )}
    </div>
  );
}
