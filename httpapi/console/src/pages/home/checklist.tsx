// The first steps of a new agent. Those that are short are done in place.
import { useEffect, useRef, useState } from "preact/hooks";

import { agent, agentId, href, mayEdit, path, put, useQuery, type API, type Result } from "../../data";
import { Icon, Name, showToast, type IconName } from "../../ui";
import { lazy } from "../../parts/lazy";
import { OwnZone } from "../../parts/ownzone";
import { uploadFiles } from "../../parts/upload";
import type { StepProps } from "./forms";

/** The file of the forms, which is loaded when one is first opened. */
export const loadForms = () => import("./forms");
const forms: Record<string, ReturnType<typeof lazy<StepProps>>> = {
  knowledge: lazy(() => loadForms().then((m) => m.KnowledgeStep)),
  model: lazy(() => loadForms().then((m) => m.ModelStep)),
};

/** The agent's name, once it has one of its own. */
export const AgentName = () =>
  agent.value && agent.value.name !== "default" ? <Name>{agent.value.name}</Name> : <>your agent</>;

const steps: Record<string, [title: string, section: string[], icon: IconName, why: string]> = {
  knowledge: ["Add knowledge", ["knowledge"], "BookOpen", "Files, sites, APIs and tables to answer from."],
  model: [
    "Choose a model",
    ["settings", "model"],
    "Sparkles",
    "OpenAI, Anthropic, Ollama and others. Until then you see matching passages.",
  ],
  ask: ["Ask a question", ["chat"], "MessageSquare", "Every answer cites its passages."],
  channel: ["Connect a channel", ["channels"], "Plug", "Telegram, WhatsApp, email or your own website."],
  workflow: ["Activate a workflow", ["workflows", "templates"], "Workflow", "Templates need only a few values."],
};

type Item = { id: string; done: boolean };

/** What is still to be set up, with the reason for the next step; gone when all is done. */
export function Checklist({ overview }: { overview: Result<API.Overview> }) {
  const [open, setOpen] = useState("");
  const ref = useRef<HTMLOListElement>(null);
  const list = ((overview.data.value?.checklist ?? []) as Item[]).filter((s) => steps[s.id]);
  const next = list.find((s) => !s.done);
  const completed = list.some((s) => s.id === open && s.done);
  useEffect(() => {
    if (!completed) return;
    setOpen("");
    if (document.activeElement?.matches("body, #main"))
      ref.current?.querySelector<HTMLElement>(".next :is(a, button)")?.focus(); // it was in the form
  }, [completed]);
  if (!next) return null;
  return (
    <section class="stack" aria-label="First steps">
      <div class="row">
        <h2 class="grow">
          Set up <AgentName />
        </h2>
        <span class="muted small">
          {list.filter((s) => s.done).length} of {list.length} done
        </span>
      </div>
      <ol ref={ref} class="checklist">
        {list.map((s) => (
          <li key={s.id} class={s.done ? "done" : s === next ? "next" : ""}>
            <Step
              item={s}
              next={s === next}
              open={open === s.id}
              toggle={() => setOpen(open === s.id ? "" : s.id)}
              done={overview.reload}
            />
          </li>
        ))}
      </ol>
      <TimeZoneSuggestion />
    </section>
  );
}

/** Offers the person's time zone to an agent that has the one it began with. */
function TimeZoneSuggestion() {
  const settings = useQuery(path("agents", agentId.value, "settings"));
  const zone = settings.data.value?.timezone;
  if (zone !== "UTC") return null;
  const use = (timezone: string) =>
    put(path("agents", agentId.value, "settings"), { timezone }).then(settings.reload, showToast);
  return (
    <div class="row">
      <OwnZone zone={zone} use={(own) => void use(own)} />
    </div>
  );
}

/** A step: with its form, a way to the field above, or a link to its page. */
function Step({
  item: { id, done: isDone },
  next,
  open,
  toggle,
  done,
}: {
  item: Item;
  next: boolean;
  open: boolean;
  toggle: () => void;
  done: () => Promise<void>;
}) {
  const [title, section, icon, why] = steps[id];
  const Form = forms[id];
  const text = (
    <>
      <Icon name={isDone ? "CircleCheck" : icon} />
      <span class="grow">
        <span>{title}</span>
        {isDone ? <span class="hidden"> (done)</span> : <small class="muted">{why}</small>}
      </span>
    </>
  );
  if (isDone || !mayEdit.value || (!Form && id !== "ask"))
    return (
      <a href={href(agentId.value, ...section)}>
        {text}
        {next && <Icon name="ArrowRight" size={16} />}
      </a>
    );
  if (!Form)
    return (
      <button type="button" onClick={() => document.querySelector<HTMLElement>(".ask textarea")?.focus()}>
        {text}
        {next && <Icon name="ArrowUp" size={16} />}
      </button>
    );
  return (
    <>
      <button type="button" aria-expanded={open} onClick={toggle}>
        {text}
        <Icon name={open ? "ChevronDown" : "ChevronRight"} size={16} />
      </button>
      {open && (
        <div class="step-form stack">
          <Form done={done} upload={uploadFiles} />
        </div>
      )}
    </>
  );
}
