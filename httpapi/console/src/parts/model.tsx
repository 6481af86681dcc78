// The settings of the agent's language model: provider, key, address and model, with a test.
import { useEffect, useState } from "preact/hooks";

import { agentId, type API, ApiError, asError, mayEdit, path, post, put } from "../data";
import { Button, Icon, plural, SelectField, span, showToast, TextField, type FormIssues } from "../ui";
import { type PageForm, Unsaved, usePageForm } from "./pageform";

const settingsPath = <const M extends string[]>(...more: M) => path("agents", agentId.value, "settings", ...more);

type Provider = { name: string; key?: string; keyLabel: string; address?: string; hint: string };

const providers: Record<string, Provider> = {
  openai: {
    name: "OpenAI",
    key: "openai_api_key",
    keyLabel: "OpenAI API key",
    hint: "Empty for OpenAI's own address.",
  },
  anthropic: {
    name: "Anthropic",
    key: "anthropic_api_key",
    keyLabel: "Anthropic API key",
    hint: "Empty for Anthropic's own address.",
  },
  ollama: {
    name: "Ollama",
    key: "llm_api_key",
    keyLabel: "API key, if required",
    address: "http://localhost:11434/v1",
    hint: "Private addresses work only if the operator allows them with SATCHEL_OUTBOUND_ALLOW.",
  },
  "openai-compatible": {
    name: "Other (OpenAI-compatible)",
    key: "llm_api_key",
    keyLabel: "API key, if required",
    address: "https://…/v1",
    hint: "Ending in /v1.",
  },
};

/** The settings that a form shows, and what is called when they are saved. */
export type FormProps = { s: API.Settings; done: () => Promise<void> };

/** Returns the changed values of a form; null removes a number or a prefix. */
export function changedValues(values: object, settings: object, names: readonly string[]): Record<string, unknown> {
  const before = settings as Record<string, unknown>;
  const after = values as Record<string, unknown>;
  const changed = names.filter((name) => after[name] !== undefined && after[name] !== (before[name] ?? ""));
  const valueOf = (name: string) => {
    const canBeRemoved = typeof before[name] === "number" || name.endsWith("_prefix");
    return after[name] === "" && canBeRemoved ? null : after[name];
  };
  return Object.fromEntries(changed.map((name) => [name, valueOf(name)]));
}

/** Shows the issues of an error at the fields of a form; returns false if it has none. */
function showIssues(form: FormIssues, error: unknown): boolean {
  const hasIssues = error instanceof ApiError && Object.keys(error.issues).length > 0;
  if (hasIssues) form.setIssues(error.issues);
  return hasIssues;
}

/** Saves what a form changed, and shows the issues that the service finds at its fields. */
export async function saveSettings(form: PageForm, now: object, names: readonly string[], done: () => Promise<void>) {
  form.setIssues({});
  try {
    await put(settingsPath(), changedValues(form.values, now, names));
    showToast("Saved");
    await done();
    form.reset();
  } catch (error) {
    if (!showIssues(form, error)) showToast(error);
    throw error;
  }
}

type TestResult = Pick<API.Tested, "ok" | "error"> & Partial<API.Tested>;

type ModelValues = { llm_provider: string; llm_model: string; llm_base_url: string; key: string };
type Form = ReturnType<typeof usePageForm<ModelValues>>;

const modelsDelay = 600; // milliseconds after the last key

/** Returns the provider, address and key of the form as requests have them. */
const connectionOf = ({ llm_provider, llm_base_url, key }: ModelValues) => ({
  llm_provider,
  llm_base_url,
  ...(key && { api_key: key }),
});

/** What is stored about the key of the chosen provider. */
function keyState(provider: Provider | undefined, settings: API.Settings) {
  return {
    isSaved: Boolean(provider?.key && settings.configured_credentials?.includes(provider.key)),
    isLocked: Boolean(provider?.key && settings.locked_credentials?.includes(provider.key)),
  };
}

/** Reports whether the form has all that the provider needs to list its models. */
function isComplete(provider: Provider | undefined, values: ModelValues, settings: API.Settings): boolean {
  if (!provider || (!values.llm_base_url && values.llm_provider === "openai-compatible")) return false;
  const isSameAddress = values.llm_provider === settings.llm_provider && values.llm_base_url === settings.llm_base_url;
  const hasSavedKey = isSameAddress && keyState(provider, settings).isSaved;
  return provider.key === "llm_api_key" || values.key !== "" || hasSavedKey;
}

/** Lists the models of the provider shortly after the form changes. */
function useModels(values: ModelValues, complete: boolean): { models: string[]; error?: Error } {
  const [models, setModels] = useState<string[]>([]);
  const [error, setError] = useState<Error>();
  useEffect(() => {
    setModels([]);
    setError(undefined);
    if (!complete || !mayEdit.value) return;
    const abort = new AbortController();
    const load = () =>
      post(settingsPath("models"), connectionOf(values), abort.signal).then(
        (list) => setModels(list.models),
        (thrown) => {
          if (thrown.name !== "AbortError") setError(thrown);
        },
      );
    const timer = setTimeout(load, modelsDelay);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [values.llm_provider, values.llm_base_url, values.key]);
  return { models, error };
}

type ModelFormProps = FormProps & {
  /** Leaves out the frame and the title. */
  plain?: boolean;
};

/** The provider, key, address and model, which can be tested before they are saved. */
export function ModelForm({ s: settings, done, plain }: ModelFormProps) {
  const { llm_provider, llm_model, llm_base_url } = settings;
  const form = usePageForm<ModelValues>({ llm_provider, llm_model, llm_base_url, key: "" }, "model", ["key"]);
  const [tested, setTested] = useState<TestResult>();
  const { values } = form;
  const provider: Provider | undefined = providers[values.llm_provider];
  const hasModel = () => {
    if (!provider || values.llm_model) return true;
    form.setIssues({ llm_model: "Choose a model first." });
    return false;
  };
  const test = async () => {
    setTested(undefined);
    if (!hasModel()) return;
    try {
      setTested(await post(settingsPath("test"), { ...connectionOf(values), llm_model: values.llm_model }));
    } catch (error) {
      if (!showIssues(form, error)) setTested({ ok: false, error: asError(error).message });
    }
  };
  const save = async () => {
    if (!hasModel()) return;
    const key = values.key && provider?.key ? { [provider.key]: values.key } : {};
    const names = ["llm_provider", "llm_model", "llm_base_url", ...Object.keys(key)];
    const changed = { ...form, values: { ...values, ...key } };
    await saveSettings(changed, settings, names, done).catch(() => {
      /* the issues are shown */
    });
  };
  const removeKey = async () => {
    await put(settingsPath(), { [provider!.key!]: null });
    showToast("Removed");
    await done();
  };
  return (
    <form
      class={plain ? "stack" : "card stack settings-form"}
      onSubmit={(event) => {
        event.preventDefault();
        void save();
      }}
    >
      {!plain && <h2>Language model</h2>}
      <SelectField
        label="Provider"
        disabled={!mayEdit.value}
        options={[
          ["", "None (chat shows passages)"],
          ...Object.entries(providers).map(([id, { name }]): [string, string] => [id, name]),
        ]}
        {...form.choice("llm_provider")}
      />
      <ProviderFields form={form} provider={provider} settings={settings} />
      {tested && <TestOutcome result={tested} />}
      {mayEdit.value && (
        <div class="row end">
          <Unsaved form={form} audit="settings updated" />
          {keyState(provider, settings).isSaved && <Button onClick={removeKey}>Remove key</Button>}
          {provider && (
            <Button icon="Zap" onClick={test}>
              Test
            </Button>
          )}
          <Button kind="primary" submit>
            Save
          </Button>
        </div>
      )}
    </form>
  );
}

type ProviderFieldsProps = { form: Form; provider?: Provider; settings: API.Settings };

/** The key, address and model of the chosen provider. */
function ProviderFields({ form, provider, settings }: ProviderFieldsProps) {
  const { values } = form;
  const { isSaved, isLocked } = keyState(provider, settings);
  const { models, error } = useModels(values, isComplete(provider, values, settings));
  const issues = error instanceof ApiError ? error.issues : {};
  const isKeyRejected = error instanceof ApiError && [401, 403].includes(error.details.status ?? 0);
  const isUnexplained = error && !isKeyRejected && !Object.keys(issues).length;
  const listError = isUnexplained ? `The models cannot be listed: ${error.message}` : undefined;
  if (!provider) return null;
  return (
    <>
      <TextField
        label={provider.keyLabel}
        type="password"
        disabled={!mayEdit.value}
        placeholder={isSaved ? "Saved; enter a new one to replace it" : ""}
        hint={
          isLocked
            ? "Encrypted with another master key: enter it again."
            : "Encrypted in the agent's file, sent only to this provider, and never shown again."
        }
        value={values.key}
        onInput={(key) => form.set("key", key)}
        error={
          form.issues[provider.key ?? ""] ??
          form.issues.api_key ??
          issues.api_key ??
          (isKeyRejected ? "The provider rejects this key." : undefined)
        }
      />
      <TextField
        label="Address"
        disabled={!mayEdit.value}
        placeholder={provider.address ?? ""}
        hint={provider.hint}
        {...form.text("llm_base_url")}
        error={form.issue("llm_base_url") ?? issues.llm_base_url}
      />
      <TextField
        label="Model"
        disabled={!mayEdit.value}
        list={models}
        placeholder={models[0] ?? "gpt-5-mini"}
        hint={models.length ? `${plural(models.length, "model")} to choose from` : listError}
        {...form.text("llm_model")}
      />
    </>
  );
}

function TestOutcome({ result: { ok, ms, reply, error } }: { result: TestResult }) {
  return (
    <p class={ok ? "row test-good" : "row issue"} role="status">
      <Icon name={ok ? "CircleCheck" : "CircleAlert"} />{" "}
      {ok ? (
        <>
          Answered in {span(ms ?? 0)}: <bdi>{reply}</bdi>
        </>
      ) : (
        <bdi>{error}</bdi>
      )}
    </p>
  );
}
