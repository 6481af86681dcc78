// Finds a type of node to add: by group, label and synonyms.
import { memo } from "preact/compat";
import { useEffect, useRef, useState } from "preact/hooks";

import { agent, agentId, get, path } from "../data";
import { Dialog, Icon } from "../ui";
import { catalog, needText, type NodeType, searchTypes } from "./index";

/** The types by group, as a list or as the hits of a search. */
function groups(found: NodeType[], typed: string): [string, NodeType[]][] {
  if (typed.trim()) return [["", found]];
  return catalog.value.groups
    .map((g) => [g, found.filter((t) => t.group === g)] as [string, NodeType[]])
    .filter(([, list]) => list.length);
}

/** What a type of gateway is called where nodes say what they need. */
const kinds: Record<string, string> = {
  chatbot_a: "telegram",
  chatbot_b: "whatsapp",
  team_chat: "slack",
  community_chat: "discord",
};

/** The gateways and the model that the agent has, so that a type whose need is missing says so. */
function useMissing(): (t: NodeType) => string {
  const [have, setHave] = useState<Set<string> | null>(null);
  useEffect(() => {
    Promise.all([
      get(path("agents", agentId.value, "gateways"), { limit: 200 }),
      get(path("agents", agentId.value, "settings")),
    ]).then(
      ([g, s]) => {
        setHave(
          new Set([
            ...(g.gateways ?? []).flatMap((x) => [`gateway:${x.type}`, `gateway:${kinds[x.type] ?? x.type}`]),
            ...(s.llm_provider ? ["model"] : []),
            "browser",
          ]),
        );
      },
      () => {},
    );
  }, [agent.value?.id]);
  return (t) =>
    have
      ? t.needs
          .filter((n) => !have.has(n))
          .map(needText)
          .join(", ")
      : "";
}

/** A dialog that finds a type of node by what is typed. */
export function NodePalette({
  title,
  pick,
  close,
  triggers,
}: {
  title: string;
  pick: (t: NodeType) => void;
  close: () => void;
  triggers?: boolean;
}) {
  const [typed, setTyped] = useState("");
  const [at, setAt] = useState(0);
  const missing = useMissing();
  const list = useRef<HTMLDivElement>(null);
  const found = searchTypes(typed).filter((t) => triggers || t.type !== "trigger");
  const shown = groups(found, typed);
  const flat = shown.flatMap(([, l]) => l);
  useEffect(() => {
    list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  }, [at, typed]);
  const keys = (e: KeyboardEvent) => {
    if (e.key === "ArrowDown" || e.key === "ArrowUp")
      setAt((at + (e.key === "ArrowDown" ? 1 : flat.length - 1)) % Math.max(1, flat.length));
    else if (e.key === "Enter" && flat[at]) {
      pick(flat[at]);
      close();
    } else if (e.key === "Escape") close();
    else return;
    e.preventDefault();
  };
  return (
    <Dialog title={title} close={close}>
      <input
        type="search"
        role="combobox"
        list={undefined}
        aria-expanded="true"
        aria-controls="node-types"
        aria-activedescendant={flat[at] ? `type-${flat[at].type}` : undefined}
        aria-label="Find a node"
        placeholder="Find a node"
        autoFocus
        value={typed}
        onInput={(e) => {
          setTyped(e.currentTarget.value);
          setAt(0);
        }}
        onKeyDown={keys}
      />
      <div ref={list} id="node-types" role="listbox" aria-label="Nodes" class="node-list">
        {shown.map(([group, types]) => (
          <div key={group} role="group" aria-label={group || "Found"}>
            {group && <h3 aria-hidden="true">{group}</h3>}
            {types.map((t) => {
              const need = missing(t);
              return (
                <div
                  key={t.type}
                  id={`type-${t.type}`}
                  role="option"
                  class={`node-option group-${t.group.toLowerCase()}`}
                  aria-selected={flat[at] === t}
                  onMouseMove={() => setAt(flat.indexOf(t))}
                  onClick={() => {
                    pick(t);
                    close();
                  }}
                >
                  <span class="node-icon">
                    <Icon name={t.icon} size={18} />
                  </span>
                  <span class="grow">
                    <strong>{t.label}</strong>
                    <small class="muted">{t.summary}</small>
                  </span>
                  {need && <small class="badge warn">{need}</small>}
                </div>
              );
            })}
          </div>
        ))}
        {!flat.length && (
          <p class="muted">{catalog.value.types.length ? "No nodes match." : "The node types could not be loaded."}</p>
        )}
      </div>
    </Dialog>
  );
}

/** The types beside the canvas, to be dragged onto it. */
export const NodeShelf = memo(function NodeShelf({ pick }: { pick: (t: NodeType) => void }) {
  const [typed, setTyped] = useState("");
  const missing = useMissing();
  const shown = groups(searchTypes(typed), typed);
  return (
    <aside class="node-shelf" aria-label="Nodes">
      <input
        type="search"
        class="search"
        data-search
        aria-label="Find a node"
        placeholder="Find a node"
        value={typed}
        onInput={(e) => setTyped(e.currentTarget.value)}
      />
      {shown.map(([group, types]) => (
        <section key={group}>
          {group && <h2>{group}</h2>}
          {types.map((t) => (
            <button
              type="button"
              key={t.type}
              class={`shelf-node group-${t.group.toLowerCase()}`}
              draggable
              title={[t.summary, missing(t)].filter(Boolean).join(" ")}
              onDragStart={(e) => e.dataTransfer!.setData("application/x-satchel-node", t.type)}
              onClick={() => pick(t)}
            >
              <span class="node-icon">
                <Icon name={t.icon} size={16} />
              </span>
              <span class="clip">{t.label}</span>
              {missing(t) && <span class="dot paused" />}
            </button>
          ))}
        </section>
      ))}
    </aside>
  );
});
