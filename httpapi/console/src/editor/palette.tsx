// Finds a type of node to add: by group, label and synonyms.
import { memo } from "preact/compat";
import { useEffect, useRef, useState } from "preact/hooks";

import { agent, agentId, get, path } from "../data";
import { Dialog, Icon } from "../ui";
import { catalog, groupClass, nodeDataType, type NodeType } from "./catalog";
import { needText } from "./needs";
import { searchTypes } from "./search";

type TypeGroup = { title: string; types: NodeType[] };

/** Returns the types in their groups; those that a search found are in one group without a title. */
function groupTypes(types: NodeType[], search: string): TypeGroup[] {
  if (search.trim()) return [{ title: "", types }];
  return catalog.value.groups
    .map((title) => ({ title, types: types.filter((type) => type.group === title) }))
    .filter((group) => group.types.length);
}

/** The platforms of gateways, by the types that the API calls them by. */
const platforms: Record<string, string> = {
  chatbot_a: "telegram",
  chatbot_b: "whatsapp",
  team_chat: "slack",
  community_chat: "discord",
};

/** Loads which gateways and model the agent has, and returns what describes the needs of a type that it lacks. */
function useMissingNeeds(): (type: NodeType) => string {
  const [available, setAvailable] = useState<Set<string>>();
  useEffect(() => {
    const load = async () => {
      const [{ gateways }, settings] = await Promise.all([
        get(path("agents", agentId.value, "gateways"), { limit: 200 }),
        get(path("agents", agentId.value, "settings")),
      ]);
      const types = (gateways ?? []).flatMap(({ type }) => [type, platforms[type] ?? type]);
      const model = settings.llm_provider ? ["model"] : [];
      setAvailable(new Set(["browser", ...model, ...types.map((type) => `gateway:${type}`)]));
    };
    load().catch(() => {
      /* no needs are shown */
    });
  }, [agent.value?.id]);
  return ({ needs }) => {
    const missing = available ? needs.filter((need) => !available.has(need)) : [];
    return missing.map(needText).join(", ");
  };
}

type NodePaletteProps = {
  title: string;
  pick: (type: NodeType) => void;
  close: () => void;
  triggers?: boolean;
};

/** A dialog that finds a type of node. */
export function NodePalette({ title, pick, close, triggers }: NodePaletteProps) {
  const [search, setSearch] = useState("");
  const [active, setActive] = useState(0);
  const list = useRef<HTMLDivElement>(null);
  const found = searchTypes(search).filter((type) => triggers || type.type !== "trigger");
  const groups = groupTypes(found, search);
  const types = groups.flatMap((group) => group.types);
  const activeType: NodeType | undefined = types[active];
  useEffect(() => {
    list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  }, [active, search]);
  const choose = (type: NodeType) => {
    pick(type);
    close();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const count = Math.max(1, types.length);
    if (event.key === "ArrowDown") setActive((active + 1) % count);
    else if (event.key === "ArrowUp") setActive((active + count - 1) % count);
    else if (event.key === "Enter" && activeType) choose(activeType);
    else if (event.key === "Escape") close();
    else return;
    event.preventDefault();
  };
  return (
    <Dialog title={title} close={close}>
      <input
        type="search"
        role="combobox"
        list={undefined}
        aria-expanded="true"
        aria-controls="node-types"
        aria-activedescendant={activeType && `type-${activeType.type}`}
        aria-label="Find a node"
        placeholder="Find a node"
        autoFocus
        value={search}
        onInput={(event) => {
          setSearch(event.currentTarget.value);
          setActive(0);
        }}
        onKeyDown={onKeyDown}
      />
      <div ref={list} id="node-types" role="listbox" aria-label="Nodes" class="node-list">
        <TypeOptions
          groups={groups}
          activeType={activeType}
          activate={(type) => setActive(types.indexOf(type))}
          choose={choose}
        />
        {!types.length && (
          <p class="muted">{catalog.value.types.length ? "No nodes match." : "The node types could not be loaded."}</p>
        )}
      </div>
    </Dialog>
  );
}

type TypeOptionsProps = {
  groups: TypeGroup[];
  activeType?: NodeType;
  activate: (type: NodeType) => void;
  choose: (type: NodeType) => void;
};

function TypeOptions({ groups, activeType, activate, choose }: TypeOptionsProps) {
  const missingNeeds = useMissingNeeds();
  return groups.map(({ title, types }) => (
    <div key={title} role="group" aria-label={title || "Found"}>
      {title && <h3 aria-hidden="true">{title}</h3>}
      {types.map((type) => {
        const missing = missingNeeds(type);
        return (
          <div
            key={type.type}
            id={`type-${type.type}`}
            role="option"
            class={`node-option ${groupClass(type)}`}
            aria-selected={type === activeType}
            onMouseMove={() => activate(type)}
            onClick={() => choose(type)}
          >
            <span class="node-icon">
              <Icon name={type.icon} size={18} />
            </span>
            <span class="grow">
              <strong>{type.label}</strong>
              <small class="muted">{type.summary}</small>
            </span>
            {missing && <small class="badge warn">{missing}</small>}
          </div>
        );
      })}
    </div>
  ));
}

/** The types of nodes beside the canvas, to be dragged onto it. */
export const NodeShelf = memo(function NodeShelf({ pick }: { pick: (type: NodeType) => void }) {
  const [search, setSearch] = useState("");
  const missingNeeds = useMissingNeeds();
  return (
    <aside class="node-shelf" aria-label="Nodes">
      <input
        type="search"
        class="search"
        data-search
        aria-label="Find a node"
        placeholder="Find a node"
        value={search}
        onInput={(event) => setSearch(event.currentTarget.value)}
      />
      {groupTypes(searchTypes(search), search).map(({ title, types }) => (
        <section key={title}>
          {title && <h2>{title}</h2>}
          {types.map((type) => (
            <ShelfType key={type.type} type={type} missing={missingNeeds(type)} pick={() => pick(type)} />
          ))}
        </section>
      ))}
    </aside>
  );
});

function ShelfType({ type, missing, pick }: { type: NodeType; missing: string; pick: () => void }) {
  return (
    <button
      type="button"
      class={`shelf-node ${groupClass(type)}`}
      draggable
      title={[type.summary, missing].filter(Boolean).join(" ")}
      onDragStart={(event) => event.dataTransfer!.setData(nodeDataType, type.type)}
      onClick={pick}
    >
      <span class="node-icon">
        <Icon name={type.icon} size={16} />
      </span>
      <span class="clip">{type.label}</span>
      {missing && <span class="dot paused" />}
    </button>
  );
}
