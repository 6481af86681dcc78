// The gallery of services, and the form of one.
import { useState } from "preact/hooks";

import { type API, ApiError, post, useQuery, asError } from "../../data";
import {
  Badge,
  Button,
  Empty,
  ErrorCard,
  Icon,
  LinkButton,
  Load,
  SecretField,
  TextArea,
  TextField,
  useForm,
  type IconName,
} from "../../ui";
import { RedirectAddress } from "../../parts/credentials";
import { credentialsAt } from "./paths";
import { typeTitle } from "./state";

type Preset = API.Preset;

const generalCategory = "General";

/** Reports whether the title, the id or the category of a service contain all words. */
const matches = ({ title, id, category }: Preset, words: string[]) =>
  words.every((word) => `${title} ${id} ${category}`.toLowerCase().includes(word));

/** The categories of services in order; the general one is first. */
function categoriesOf(presets: Preset[]) {
  const names = new Set(presets.map(({ category }) => category));
  const hasGeneral = names.delete(generalCategory);
  const others = [...names].sort((a, b) => a.localeCompare(b));
  return hasGeneral ? [generalCategory, ...others] : others;
}

type GalleryProps = {
  /** The address of the form of a service. */
  href: (id: string) => string;
};

/** The services by category, with a search. */
export function Gallery({ href }: GalleryProps) {
  const found = useQuery<{ presets: Preset[] }>("credential-presets");
  const [search, setSearch] = useState("");
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
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
        value={search}
        onInput={(e) => setSearch(e.currentTarget.value)}
      />
      <Load of={found}>
        {({ presets }) => {
          const shown = presets.filter((preset) => matches(preset, words));
          if (!shown.length) return <NoServices href={href} />;
          return categoriesOf(shown).map((category) => (
            <section key={category} class="stack tight" aria-label={category}>
              <h2>{category}</h2>
              <ul class="service-cards">
                {category === generalCategory && (
                  <ServiceCard href={href("custom")} icon="Settings" title="Another service" about="Set up manually" />
                )}
                {shown
                  .filter((preset) => preset.category === category)
                  .map((preset) => (
                    <ServiceCard
                      key={preset.id}
                      href={href(preset.id)}
                      icon={preset.type === "oauth2" ? "LogIn" : "KeyRound"}
                      title={preset.title}
                      about={preset.type === "oauth2" ? typeTitle(preset) : "Key"}
                    />
                  ))}
              </ul>
            </section>
          ));
        }}
      </Load>
    </>
  );
}

function NoServices({ href }: GalleryProps) {
  const action = (
    <a class="button" href={href("custom")}>
      Set it up manually
    </a>
  );
  return (
    <Empty icon="Search" title="No services match" action={action}>
      Any service with an HTTP API works.
    </Empty>
  );
}

type ServiceCardProps = { href: string; icon: IconName; title: string; about: string };

function ServiceCard({ href, icon, title, about }: ServiceCardProps) {
  return (
    <li>
      <a class="card" href={href}>
        <Icon name={icon} size={18} />
        <span class="grow">
          <strong>{title}</strong>
          <span class="muted small">{about}</span>
        </span>
      </a>
    </li>
  );
}

type PresetFormProps = { id: string; saved: (credential: API.Credential) => void; cancel: string };

/** The form of a service; cancel is the address of the gallery. */
export function PresetForm({ id, saved, cancel }: PresetFormProps) {
  const found = useQuery<{ presets: Preset[] }>("credential-presets", { search: id });
  return (
    <Load of={found} title="Add credential">
      {({ presets }) => {
        const preset = presets.find((other) => other.id === id);
        if (preset) return <Form preset={preset} saved={saved} cancel={cancel} />;
        const action = (
          <a class="button" href={cancel}>
            All services
          </a>
        );
        return <Empty icon="CircleHelp" title="Service not found" action={action} />;
      }}
    </Load>
  );
}

type FormProps = {
  preset: Preset;
  saved: (credential: API.Credential) => void;
  cancel: string;
};

const fieldName = ({ name }: API.PresetField) => `values.${name}`;

/** Keeps the values of a service's form, and creates the credential. */
function usePresetForm({ id, title, fields }: Preset, saved: FormProps["saved"]) {
  const defaults = Object.fromEntries(fields.map((field) => [fieldName(field), field.default]));
  const form = useForm<Record<string, string>>({ name: title, ...defaults });
  const [failure, setFailure] = useState<Error>();
  const [busy, setBusy] = useState(false);
  const save = async () => {
    setBusy(true);
    setFailure(undefined);
    form.setIssues({});
    try {
      const entered = fields.map((field) => [field.name, form.values[fieldName(field)]]).filter(([, value]) => value);
      const body = { name: form.values.name, preset: id, values: Object.fromEntries(entered) };
      saved(await post(credentialsAt(), body));
    } catch (error) {
      const issues = error instanceof ApiError ? error.issues : {};
      form.setIssues(issues);
      if (!Object.keys(issues).some((field) => field in form.values)) setFailure(asError(error));
      setBusy(false);
    }
  };
  return { form, failure, busy, save };
}

function Form({ preset, saved, cancel }: FormProps) {
  const { form, failure, busy, save } = usePresetForm(preset, saved);
  const hasLogin = preset.config.grant === "authorization_code";
  return (
    <>
      <div class="page-head">
        <h1 class="grow" tabIndex={-1}>
          {preset.title}
        </h1>
      </div>
      <form
        class="card stack narrow-card"
        noValidate
        onSubmit={(e) => {
          e.preventDefault();
          if (!busy) void save();
        }}
      >
        <About preset={preset} hasLogin={hasLogin} />
        {hasLogin && <RedirectAddress />}
        <TextField label="Name" required {...form.text("name")} />
        {preset.fields.map((field) => {
          const props = { label: field.label, hint: field.hint, ...form.text(fieldName(field)) };
          if (field.name === "service_account") return <TextArea key={field.name} code rows={6} {...props} />;
          return field.secret ? <SecretField key={field.name} {...props} /> : <TextField key={field.name} {...props} />;
        })}
        <Hosts preset={preset} />
        {failure && <ErrorCard error={failure} />}
        <div class="row end">
          <LinkButton href={cancel}>Cancel</LinkButton>
          <Button kind="primary" submit disabled={busy}>
            {hasLogin ? "Save and connect" : "Save"}
          </Button>
        </div>
      </form>
    </>
  );
}

/** What to know of a service, and where its key or client is created. */
function About({ preset: { note, keys_url, docs_url }, hasLogin }: { preset: Preset; hasLogin: boolean }) {
  return (
    <>
      {note && <p class="muted">{note}</p>}
      {(keys_url || docs_url) && (
        <p class="row">
          {keys_url && (
            <a href={keys_url} target="_blank" rel="noreferrer">
              {hasLogin ? "Create the OAuth client" : "Create key"}
            </a>
          )}
          {docs_url && (
            <a href={docs_url} target="_blank" rel="noreferrer">
              Documentation
            </a>
          )}
        </p>
      )}
    </>
  );
}

function Hosts({ preset: { hosts, checked } }: { preset: Preset }) {
  return (
    <p class="muted small">
      Sent to <bdi>{hosts.join(", ")}</bdi> only.
      {!checked && (
        <>
          {" "}
          <Badge tone="warn" title="Compare hosts and addresses with the provider's documentation.">
            not checked
          </Badge>
        </>
      )}
    </p>
  );
}
