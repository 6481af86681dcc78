// The gallery of services, and the form of one.
import { useState } from "preact/hooks";

import { type API, ApiError, post, useQuery, asError } from "../../data";
import {
  Badge,
  Button,
  CopyField,
  Empty,
  ErrorCard,
  Icon,
  LinkButton,
  Load,
  SecretField,
  TextArea,
  TextField,
  useForm,
} from "../../ui";
import { credentialsAt, typeTitle } from "../credentials";

type Preset = API.Preset;

export function Gallery({ href }: { href: (id: string) => string }) {
  const found = useQuery<{ presets: Preset[] }>("credential-presets");
  const [typed, setTyped] = useState("");
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  return (
    <>
      <div class="page-head">
        <h1 class="grow" tabIndex={-1}>
          Add credential
        </h1>
      </div>
      <p class="muted">Choose the service the key is for. Its hosts and addresses are filled in for you.</p>
      <input
        type="search"
        class="search"
        data-search
        aria-label="Search services"
        placeholder="Search services"
        value={typed}
        onInput={(e) => setTyped(e.currentTarget.value)}
      />
      <Load of={found}>
        {({ presets }) => {
          const shown = presets.filter((p) =>
            words.every((w) => `${p.title} ${p.id} ${p.category}`.toLowerCase().includes(w)),
          );
          const groups = [...new Set(shown.map((p) => p.category))].sort((a, b) =>
            a === "General" ? -1 : b === "General" ? 1 : a.localeCompare(b),
          );
          return (
            <>
              {groups.map((g) => (
                <section key={g} class="stack tight" aria-label={g}>
                  <h2>{g}</h2>
                  <ul class="service-cards">
                    {g === "General" && (
                      <li>
                        <a class="card" href={href("custom")}>
                          <Icon name="Settings" size={18} />
                          <span class="grow">
                            <strong>Another service</strong>
                            <span class="muted small">Set up manually</span>
                          </span>
                        </a>
                      </li>
                    )}
                    {shown
                      .filter((p) => p.category === g)
                      .map((p) => (
                        <li key={p.id}>
                          <a class="card" href={href(p.id)}>
                            <Icon name={p.type === "oauth2" ? "LogIn" : "KeyRound"} size={18} />
                            <span class="grow">
                              <strong>{p.title}</strong>
                              <span class="muted small">{p.type === "oauth2" ? typeTitle(p) : "Key"}</span>
                            </span>
                          </a>
                        </li>
                      ))}
                  </ul>
                </section>
              ))}
              {!shown.length && (
                <Empty
                  icon="Search"
                  title="No services match"
                  action={
                    <a class="button" href={href("custom")}>
                      Set it up manually
                    </a>
                  }
                >
                  Any service with an HTTP API works.
                </Empty>
              )}
            </>
          );
        }}
      </Load>
    </>
  );
}

export function PresetForm({ id, saved, cancel }: { id: string; saved: (c: API.Credential) => void; cancel: string }) {
  const found = useQuery<{ presets: Preset[] }>("credential-presets", { search: id });
  const list = useQuery(credentialsAt(), { limit: 1 });
  return (
    <Load of={found} title="Add credential">
      {({ presets }) => {
        const p = presets.find((x) => x.id === id);
        return p ? (
          <Form p={p} redirect={list.data.value?.redirect_url} saved={saved} cancel={cancel} />
        ) : (
          <Empty
            icon="CircleHelp"
            title="Service not found"
            action={
              <a class="button" href={cancel}>
                All services
              </a>
            }
          />
        );
      }}
    </Load>
  );
}

function Form({
  p,
  redirect,
  saved,
  cancel,
}: {
  p: Preset;
  redirect?: string;
  saved: (c: API.Credential) => void;
  cancel: string;
}) {
  const form = useForm<Record<string, string>>({
    name: p.title,
    ...Object.fromEntries(p.fields.map((f) => [`values.${f.name}`, f.default])),
  });
  const [failed, setFailed] = useState<Error>();
  const [busy, setBusy] = useState(false);
  const submit = async () => {
    setBusy(true);
    setFailed(undefined);
    form.setIssues({});
    try {
      const values = Object.fromEntries(
        p.fields.map((f) => [f.name, form.values[`values.${f.name}`] ?? ""]).filter(([, v]) => v),
      );
      saved(await post(credentialsAt(), { name: form.values.name, preset: p.id, values }));
    } catch (error) {
      const issues = error instanceof ApiError ? error.issues : {};
      form.setIssues(issues);
      const shown = Object.keys(issues).some((f) => f === "name" || f in form.values);
      if (!shown) setFailed(asError(error));
      setBusy(false);
    }
  };
  const person = p.config.grant === "authorization_code";
  return (
    <>
      <div class="page-head">
        <h1 class="grow" tabIndex={-1}>
          {p.title}
        </h1>
      </div>
      <form
        class="card stack narrow-card"
        noValidate
        onSubmit={(e) => {
          e.preventDefault();
          if (!busy) void submit();
        }}
      >
        {p.note && <p class="muted">{p.note}</p>}
        {(p.keys_url || p.docs_url) && (
          <p class="row">
            {p.keys_url && (
              <a href={p.keys_url} target="_blank" rel="noreferrer">
                {person ? "Create the OAuth client" : "Create key"}
              </a>
            )}
            {p.docs_url && (
              <a href={p.docs_url} target="_blank" rel="noreferrer">
                Documentation
              </a>
            )}
          </p>
        )}
        {person && redirect && <CopyField label="Redirect address to register with the OAuth client" text={redirect} />}
        <TextField label="Name" required {...form.text("name")} />
        {p.fields.map((f) => {
          const field = { label: f.label, hint: f.hint, ...form.text(`values.${f.name}`) };
          if (f.name === "service_account") return <TextArea key={f.name} code rows={6} {...field} />;
          return f.secret ? <SecretField key={f.name} {...field} /> : <TextField key={f.name} {...field} />;
        })}
        <p class="muted small">
          Sent to <bdi>{p.hosts.join(", ")}</bdi> only.
          {!p.checked && (
            <>
              {" "}
              <Badge tone="warn" title="Compare hosts and addresses with the provider's documentation.">
                not checked
              </Badge>
            </>
          )}
        </p>
        {failed && <ErrorCard error={failed} />}
        <div class="row end">
          <LinkButton href={cancel}>Cancel</LinkButton>
          <Button kind="primary" submit disabled={busy}>
            {person ? "Save and connect" : "Save"}
          </Button>
        </div>
      </form>
    </>
  );
}
