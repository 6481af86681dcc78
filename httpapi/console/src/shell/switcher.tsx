import { useEffect, useRef, useState } from "preact/hooks";

import { agent, href, rememberedAgent, session } from "../data";
import { Icon, Name } from "../ui";

/** Which agent the rail is about, and the way to another. */
export function AgentSwitcher({ current }: { current: string }) {
  const [open, setOpen] = useState(false);
  const ref = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!open) return;
    const away = (e: Event) => {
      if (!ref.current?.contains(e.target as Node)) setOpen(false);
    };
    addEventListener("pointerdown", away);
    return () => removeEventListener("pointerdown", away);
  }, [open]);
  const all = session.value?.agents ?? [];
  const shown = agent.value ?? all.find((a) => a.id === (current || rememberedAgent()));
  return (
    <div
      class="switcher"
      ref={ref}
      onKeyDown={(e) => {
        if (e.key === "Escape") setOpen(false);
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
      {open && (
        <div class="menu-list switcher-list">
          {all.slice(0, 12).map((a) => (
            <a
              key={a.id}
              href={href(a.id)}
              aria-current={a.id === shown?.id ? "true" : undefined}
              onClick={() => setOpen(false)}
            >
              <span class={`dot ${a.status}`} />
              <span class="grow">
                <Name>{a.name}</Name>
              </span>
              {a.waiting > 0 && (
                <b class="count" title="Waiting for a person">
                  {a.waiting}
                </b>
              )}
            </a>
          ))}
          <hr />
          <a href="#/agents" onClick={() => setOpen(false)}>
            <Icon name="Layers" size={16} />
            <span>All agents</span>
          </a>
          <a href="#/agents?new=1" onClick={() => setOpen(false)}>
            <Icon name="Plus" size={16} />
            <span>New agent</span>
          </a>
          <a href="#/keys" onClick={() => setOpen(false)}>
            <Icon name="KeyRound" size={16} />
            <span>API keys</span>
          </a>
          {session.value?.cluster && (
            <a href="#/cluster" onClick={() => setOpen(false)}>
              <Icon name="Database" size={16} />
              <span>Servers</span>
            </a>
          )}
        </div>
      )}
    </div>
  );
}
