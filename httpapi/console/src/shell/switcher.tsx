// The agent that the navigation belongs to, and a menu of the others.
import { useEffect, useRef, useState } from "preact/hooks";

import { agent, type AgentEntry, href, rememberedAgent, session } from "../data";
import { Icon, type IconName, Name } from "../ui";

const maxAgents = 12;

/** The agent that is shown, and a menu of the others and of the pages about all agents. */
export function AgentSwitcher({ current }: { current: string }) {
  const [open, setOpen] = useState(false);
  const switcher = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!open) return;
    const onPointerDown = (event: Event) => {
      if (!switcher.current?.contains(event.target as Node)) setOpen(false);
    };
    addEventListener("pointerdown", onPointerDown);
    return () => removeEventListener("pointerdown", onPointerDown);
  }, [open]);
  const agents = session.value?.agents ?? [];
  const shown = agent.value ?? agents.find(({ id }) => id === (current || rememberedAgent()));
  return (
    <div
      class="switcher"
      ref={switcher}
      onKeyDown={(event) => {
        if (event.key === "Escape") setOpen(false);
      }}
    >
      <button type="button" aria-haspopup="listbox" aria-expanded={open} onClick={() => setOpen(!open)}>
        <img src="console/app/icon.svg" alt="" width="22" height="22" />
        <span class="grow">
          <Name>{shown?.name ?? "Satchel"}</Name>
        </span>
        {shown && shown.status !== "active" && <span class={`dot ${shown.status}`} title={shown.status} />}
        <Icon name="ChevronDown" size={16} />
      </button>
      {open && <AgentMenu agents={agents.slice(0, maxAgents)} shown={shown?.id} close={() => setOpen(false)} />}
    </div>
  );
}

type AgentMenuProps = { agents: AgentEntry[]; shown?: string; close: () => void };

function AgentMenu({ agents, shown, close }: AgentMenuProps) {
  return (
    <div class="menu-list switcher-list">
      {agents.map(({ id, name, status, waiting }) => (
        <a key={id} href={href(id)} aria-current={id === shown ? "true" : undefined} onClick={close}>
          <span class={`dot ${status}`} />
          <span class="grow">
            <Name>{name}</Name>
          </span>
          {waiting > 0 && (
            <b class="count" title="Waiting for a person">
              {waiting}
            </b>
          )}
        </a>
      ))}
      <hr />
      <MenuLink href="#/agents" icon="Layers" title="All agents" close={close} />
      <MenuLink href="#/agents?new=1" icon="Plus" title="New agent" close={close} />
      <MenuLink href="#/keys" icon="KeyRound" title="API keys" close={close} />
      {session.value?.cluster && <MenuLink href="#/cluster" icon="Database" title="Servers" close={close} />}
    </div>
  );
}

type MenuLinkProps = { href: string; icon: IconName; title: string; close: () => void };

function MenuLink({ href: address, icon, title, close }: MenuLinkProps) {
  return (
    <a href={address} onClick={close}>
      <Icon name={icon} size={16} />
      <span>{title}</span>
    </a>
  );
}
