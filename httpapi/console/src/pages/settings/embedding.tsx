// The embedding of sources and queries, by which sources are searched by meaning.
import { mayEdit, useQuery, type API } from "../../data";
import { SelectField, TextField, type FormState } from "../../ui";
import { saveSettings, type FormProps } from "../../parts/model";
import { usePageForm } from "../../parts/pageform";
import { agentAt } from "./paths";
import { SaveRow } from "./saverow";

/** The provider of embeddings that is reached over the network. */
const remote = "openai-compatible";

const savedFields = [
  "embedding_provider",
  "embedding_model",
  "embedding_base_url",
  "embedding_query_prefix",
  "embedding_passage_prefix",
];

const valuesOf = (settings: API.Settings) => ({
  embedding_provider: settings.embedding_provider || "local",
  embedding_model: settings.embedding_model,
  embedding_base_url: settings.embedding_base_url,
  embedding_api_key: "",
  embedding_query_prefix: settings.embedding_query_prefix ?? "",
  embedding_passage_prefix: settings.embedding_passage_prefix ?? "",
});

type Values = ReturnType<typeof valuesOf>;

/**
 * Loads the embedding models that are installed on the server, as options of a select; undefined until they are known.
 */
function useInstalledModels(): [string, string][] | undefined {
  const found = useQuery<{ models: { name: string; kind: string; dimensions: number }[] }>(
    mayEdit.value ? agentAt("embedding-models") : null,
  );
  return found.data.value?.models
    .filter(({ kind }) => kind === "embedder")
    .map(({ name, dimensions }) => [name, `${name} (${dimensions} dimensions)`]);
}

function providerOptions(offersFile: boolean): [string, string][] {
  const options: [string, string][] = [
    ["local", "Built-in: English, no key, no network"],
    [remote, "A provider (OpenAI-compatible)"],
  ];
  if (offersFile) options.splice(1, 0, ["file", "A model installed on this server"]);
  return options;
}

/** The installed models, and the one in use if it is no longer installed. */
function modelOptions(installed: [string, string][] | undefined, settings: API.Settings): [string, string][] {
  const { embedding_provider: provider, embedding_model: model } = settings;
  if (!installed) return [];
  if (provider !== "file" || !model || installed.some(([name]) => name === model)) return installed;
  return [[model, `${model} (no longer installed)`], ...installed];
}

/** The form of the embedding. */
export function EmbeddingForm({ s: settings, done }: FormProps) {
  const form = usePageForm(valuesOf(settings), "embedding", ["embedding_api_key"]);
  const installed = useInstalledModels();
  const { embedding_provider: provider, embedding_model: model, embedding_api_key: key } = form.values;
  const disabled = !mayEdit.value;
  const models = provider === "file" ? modelOptions(installed, settings) : (installed ?? []);
  const choose = (next: string) => {
    form.set("embedding_provider", next as API.Settings["embedding_provider"]);
    if (next === "file" && !installed?.some(([name]) => name === model))
      form.set("embedding_model", installed?.[0]?.[0] ?? "");
    if (next === remote && provider === "file") form.set("embedding_model", "");
  };
  return (
    <form
      class="card stack settings-form"
      onSubmit={(e) => {
        e.preventDefault();
        const fields = key ? [...savedFields, "embedding_api_key"] : savedFields;
        saveSettings(form, settings, fields, done).catch(() => {});
      }}
    >
      <h2>Search by meaning</h2>
      <SelectField
        label="Embedding"
        disabled={disabled}
        options={providerOptions(Boolean(installed?.length) || provider === "file")}
        {...form.choice("embedding_provider")}
        onChange={choose}
      />
      {provider === "file" && (
        <SelectField label="Model" disabled={disabled} options={models} {...form.choice("embedding_model")} />
      )}
      {provider === remote && (
        <RemoteFields
          form={form}
          keyIsSaved={Boolean(settings.configured_credentials?.includes("embedding_api_key"))}
        />
      )}
      <p class="muted small">
        <ChangeHint provider={provider} hasModels={models.length > 0} />
      </p>
      <SaveRow form={form} />
    </form>
  );
}

function RemoteFields({ form, keyIsSaved }: { form: FormState<Values>; keyIsSaved: boolean }) {
  return (
    <>
      <TextField
        label="API key"
        type="password"
        placeholder={keyIsSaved ? "Saved; enter a new one to replace it" : ""}
        {...form.text("embedding_api_key")}
      />
      <TextField label="Address" placeholder="https://…/v1" {...form.text("embedding_base_url")} />
      <TextField label="Model" {...form.text("embedding_model")} />
      <details>
        <summary>Prefixes</summary>
        <div class="stack">
          <TextField
            label="Before each query"
            placeholder="query: "
            hint="Some models expect prefixes. Empty: chosen by the model's name."
            {...form.text("embedding_query_prefix")}
          />
          <TextField label="Before each passage" placeholder="passage: " {...form.text("embedding_passage_prefix")} />
        </div>
      </details>
    </>
  );
}

/** What a change of the model means for sources, and how to install models. */
function ChangeHint({ provider, hasModels }: { provider: string; hasModels: boolean }) {
  if (provider === remote) return <>Changing the model marks sources as stale until they are embedded again.</>;
  return (
    <>
      After a change, sources are embedded again in the background and stay searchable.
      {!hasModels && (
        <>
          {" "}
          <code>satchel model install multilingual-e5-small</code> on the server adds a model for a hundred languages.
        </>
      )}
    </>
  );
}
