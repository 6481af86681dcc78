// Templates of workflows: the gallery, the form that sets one up, and its last
// steps until it is live.
import { useEffect, useState } from "preact/hooks";

import { agentId, type API, get, go, href, mayEdit, path, post, route, useQuery } from "../data";
import { ApiError } from "../data";
import { Badge, Button, Empty, Icon, Load, showToast, type IconName, type Values } from "../ui";
import { loadCatalog } from "../editor/catalog";
import { style } from "../parts/styles";
import { GraphPreview } from "../parts/graph-preview";
import { emptyValues, TemplateFields } from "../workflows/templatefields";
import { LastSteps, type CreatedRecords } from "../workflows/laststeps";
import "../css/nodes.css";
import "../css/templates.css";

export const styles = style("./templates.css");

export type Template = Omit<API.Template, "icon" | "nodes"> & {
  icon: IconName;
  nodes: (API.Node & { position: API.Position })[];
};

const platforms: Record<string, string> = {
  telegram: "Telegram",
  slack: "Slack",
  discord: "Discord",
  whatsapp: "WhatsApp",
  sms: "SMS",
  email: "Email",
};
const needLabel = (need: string) =>
  need === "model" ? "Model" : need === "browser" ? "Browser" : (platforms[need.replace("gateway:", "")] ?? need);

const templatesAt = (id = "") => href(agentId.value, "workflows", "templates", ...(id ? [id] : []));

export default function Templates({ template }: { template?: string }) {
  const found = useQuery<{ templates: Template[] }>("templates");
  useEffect(() => {
    void loadCatalog();
  }, []);
  const shown = found.data.value;
  if (!shown)
    return (
      <div class="page">
        <p class="crumb">
          <a href={href(agentId.value, "workflows")}>Workflows</a>
        </p>
        <Load of={found} lines={6} title="Templates">
          {() => null}
        </Load>
      </div>
    );
  return (
    <Load of={found}>
      {({ templates }) => {
        if (!template) return <Gallery templates={templates} />;
        const one = templates.find((t) => t.id === template);
        if (!one)
          return (
            <div class="page">
              <Empty
                icon="Search"
                title="Template not found"
                action={
                  <a class="button" href={templatesAt()}>
                    All templates
                  </a>
                }
              />
            </div>
          );
        return <Setup key={one.id} template={one} />;
      }}
    </Load>
  );
}

function Gallery({ templates }: { templates: Template[] }) {
  const [typed, setTyped] = useState("");
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = (t: Template) =>
    words.every((w) =>
      `${t.name} ${t.summary} ${t.group} ${t.needs.map(needLabel).join(" ")}`.toLowerCase().includes(w),
    );
  const shown = templates.filter(fits);
  return (
    <div class="page">
      <p class="crumb">
        <a href={href(agentId.value, "workflows")}>Workflows</a>
      </p>
      <div class="page-head">
        <h1 class="grow" tabIndex={-1}>
          Templates
        </h1>
      </div>
      <p class="muted">Ready-made workflows. Each asks for a few values and does nothing until it goes live.</p>
      <input
        type="search"
        class="search"
        data-search
        aria-label="Search templates"
        placeholder="Search templates"
        value={typed}
        onInput={(e) => setTyped(e.currentTarget.value)}
      />
      <ul class="template-cards">
        {shown.map((t) => (
          <li key={t.id}>
            <a class={`template-card group-${t.group.toLowerCase()}`} href={templatesAt(t.id)}>
              <span class="node-icon">
                <Icon name={t.icon} size={20} />
              </span>
              <span class="grow">
                <strong>{t.name}</strong>
                <span class="muted small">{t.summary}</span>
                <span class="row template-needs">
                  {t.needs.map((n) => (
                    <Badge key={n}>{needLabel(n)}</Badge>
                  ))}
                </span>
              </span>
            </a>
          </li>
        ))}
      </ul>
      {!shown.length && (
        <Empty icon="Search" title="No templates match">
          Try different words, or start with an empty workflow.
        </Empty>
      )}
    </div>
  );
}

function createdRecordsOf(query: URLSearchParams): CreatedRecords | undefined {
  const workflow = query.get("workflow");
  return workflow
    ? {
        workflow,
        gateways: query.getAll("gateway"),
        sources: query.getAll("source"),
        schedules: query.getAll("schedule"),
      }
    : undefined;
}

function Setup({ template }: { template: Template }) {
  const made = createdRecordsOf(route.value.query);
  return (
    <div class="page">
      <p class="crumb">
        <a href={href(agentId.value, "workflows")}>Workflows</a> / <a href={templatesAt()}>Templates</a>
      </p>
      <div class="page-head">
        <h1 class="grow" tabIndex={-1}>
          {template.name}
        </h1>
      </div>
      <p class="muted">{template.summary}</p>
      <div class="template-setup">
        {made ? (
          <LastSteps created={made} />
        ) : mayEdit.value ? (
          <SetupForm template={template} />
        ) : (
          <p class="card">Read-only access. Setting this up needs the admin role.</p>
        )}
        <section class="stack template-graph" aria-label="What it does">
          <h2>What it does</h2>
          <GraphPreview nodes={template.nodes} edges={template.edges} />
        </section>
      </div>
    </div>
  );
}

function SetupForm({ template }: { template: Template }) {
  const [values, setValues] = useState<Values>(() => emptyValues(template.values));
  const [issues, setIssues] = useState<Record<string, string>>({});
  const [refused, setRefused] = useState(0);
  const [busy, setBusy] = useState(false);
  const [model, setModel] = useState(true);
  const may = mayEdit.value;
  useEffect(() => {
    if (template.needs.includes("model"))
      get(path("agents", agentId.value, "settings")).then(
        (s) => setModel(Boolean(s.llm_provider)),
        () => {},
      );
  }, []);
  useEffect(() => {
    document.querySelector<HTMLElement>(".template-form [aria-invalid=true]")?.focus();
  }, [refused]);
  const change = (name: string, value: unknown) => {
    // what was said of it is no longer so
    setValues((v) => ({ ...v, [name]: value }));
    setIssues((all) =>
      Object.fromEntries(
        Object.entries(all).filter(([field]) => field !== `values.${name}` && !field.startsWith(`values.${name}.`)),
      ),
    );
  };
  const submit = async () => {
    setBusy(true);
    setIssues({});
    try {
      const made = await post(path("agents", agentId.value, "templates", template.id), { values });
      const query = new URLSearchParams({ workflow: made.workflow.id });
      for (const [name, list] of [
        ["gateway", made.gateways],
        ["source", made.sources],
        ["schedule", made.schedules],
      ] as const)
        for (const r of list) query.append(name, r.id);
      go(`${templatesAt(template.id)}?${query}`);
    } catch (error) {
      const found: Record<string, string> = error instanceof ApiError ? error.issues : {};
      setIssues(found);
      setRefused((n) => n + 1);
      if (!Object.keys(found).some((f) => f.startsWith("values."))) showToast(error);
    }
    setBusy(false);
  };
  return (
    <form
      class="stack template-form"
      noValidate
      onSubmit={(e) => {
        e.preventDefault();
        if (!busy && may) void submit();
      }}
    >
      {!model && (
        <p class="card warn">
          Needs a language model, and none is set. <a href={`${href(agentId.value, "settings")}`}>Choose a model</a>
        </p>
      )}
      <TemplateFields fields={template.values} values={values} issues={issues} set={change} />
      <p class="muted small">This creates a draft. It goes live in the next step.</p>
      <div class="row">
        <Button kind="primary" submit disabled={busy || !may} reason={may ? undefined : "You have read-only access."}>
          {busy ? "Setting up…" : "Set up"}
        </Button>
        <a class="button quiet" href={templatesAt()}>
          Cancel
        </a>
      </div>
    </form>
  );
}
