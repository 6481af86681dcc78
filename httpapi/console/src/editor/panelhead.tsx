// The head of the panel of a node, in the editor and in executions.
import type { ComponentChildren } from "preact";

import { Button, Icon, Name } from "../ui";
import { groupClass, typeOf } from "./catalog";
import type { GraphNode } from "./graph";
import { typeName } from "./names";

type PanelHeadProps = {
  node: GraphNode;
  name: string;
  close: () => void;
  /** Buttons before the one that closes the panel. */
  children?: ComponentChildren;
};

/** The name and the type of a node, and the buttons of its panel. */
export function PanelHead({ node, name, close, children }: PanelHeadProps) {
  const type = typeOf(node.type);
  return (
    <header class="panel-head">
      <span class={`node-icon ${groupClass(type)}`}>
        <Icon name={type?.icon ?? "CircleHelp"} size={18} />
      </span>
      <div class="grow">
        <h2 class="clip">
          <Name>{name}</Name>
        </h2>
        <p class="muted small clip">
          {node.data?.label && (
            <>
              <Name>{typeName(node.type)}</Name> ·{" "}
            </>
          )}
          <code>{node.id}</code>
        </p>
      </div>
      {children}
      <Button kind="quiet" icon="X" label="Close" onClick={close} />
    </header>
  );
}
