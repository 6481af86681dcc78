// The agent's language model: provider, key, address and model, with a test.
import { useEffect, useState } from "preact/hooks";

import { agentId, type API, ApiError, asError, mayEdit, path, post, put } from "../data";
import { Button, Icon, plural, SelectField, span, tell, TextField, useForm } from "../ui";

const at = <const M extends string[]>(...more: M) => path("agents", agentId.value, "settings", ...more);

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

export type FormProps = { s: API.Settings; done: () => Promise<void> };

/** Saves what a form changed and shows what the service finds wrong at its field. */
export async function saveSettings(
  form: Pick<ReturnType<typeof useForm>, "setIssues"> & { values: object },
  now: API.Settings,
  names: readonly string[],
  done: () => Promise<void>,
) {
  const s: Record<string, unknown> = now,
    values = form.values as Record<string, unknown>;
  const change: Record<string, unknown> = {};
  for (const name of names)
    if (values[name] !== undefined && values[name] !== (s[name] ?? ""))
      change[name] =
        values[name] === "" && (typeof s[name] === "number" || name.endsWith("_prefix")) ? null : values[name];
  form.setIssues({});
  try {
    await put(at(), change);
    tell("Saved");
    await done();
  } catch (error) {
    if (error instanceof ApiError && Object.keys(error.issues).length) form.setIssues(error.issues);
    else tell(error);
    throw error;
  }
}

type Tested = Pick<API.Tested, "ok" | "error"> & Partial<API.Tested>;

/** Provider, key, address and model in one form, with a test before or after saving. */
export function ModelForm({ s, done, plain }: FormProps & { /** Without a frame and a title. */ plain?: boolean }) {
  const form = useForm({ llm_provider: s.llm_provider, llm_model: s.llm_model, llm_base_url: s.llm_base_url, key: "" });
  const [models, setModels] = useState<string[]>([]);
  const [unlisted, setUnlisted] = useState<Error>();
  const [tested, setTested] = useState<Tested>();
  const chosen = providers[form.values.llm_provider];
  const isSet = chosen?.key && s.configured_credentials?.includes(chosen.key);
  const locked = chosen?.key && s.locked_credentials?.includes(chosen.key);
  const stored = form.values.llm_provider === s.llm_provider && form.values.llm_base_url === s.llm_base_url;
  const given = () => ({
    llm_provider: form.values.llm_provider,
    llm_base_url: form.values.llm_base_url,
    ...(form.values.key ? { api_key: form.values.key } : {}),
  });
  const complete =
    chosen &&
    (form.values.llm_base_url || form.values.llm_provider !== "openai-compatible") &&
    (chosen.key === "llm_api_key" || form.values.key || (isSet && stored));
  useEffect(() => {
    // a moment after the last key, the provider is asked which models it has
    setModels([]);
    setUnlisted(undefined);
    if (!complete || !mayEdit.value) return;
    const abort = new AbortController();
    const timer = setTimeout(
      () =>
        post(at("models"), given(), abort.signal).then(
          (found) => setModels(found.models),
          (error) => {
            if (error.name !== "AbortError") setUnlisted(error);
          },
        ),
      600,
    );
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [form.values.llm_provider, form.values.llm_base_url, form.values.key]);
  const misfit = unlisted instanceof ApiError ? unlisted.issues : {};
  const refused =
    unlisted instanceof ApiError && [401, 403].includes(unlisted.details.status ?? 0)
      ? "The provider rejects this key."
      : undefined;
  const lacksModel = () => {
    if (chosen && !form.values.llm_model) form.setIssues({ llm_model: "Choose a model first." });
    return Boolean(chosen && !form.values.llm_model);
  };
  const test = async () => {
    setTested(undefined);
    if (lacksModel()) return;
    try {
      setTested(await post(at("test"), { ...given(), llm_model: form.values.llm_model }));
    } catch (error) {
      if (error instanceof ApiError && Object.keys(error.issues).length) form.setIssues(error.issues);
      else setTested({ ok: false, error: asError(error).message });
    }
  };
  const submit = async () => {
    if (lacksModel()) return;
    const key = form.values.key && chosen?.key ? { [chosen.key]: form.values.key } : {};
    await saveSettings(
      { setIssues: form.setIssues, values: { ...form.values, ...key } },
      s,
      ["llm_provider", "llm_model", "llm_base_url", ...Object.keys(key)],
      done,
    ).catch(() => {});
  };
  return (
    <form
      class={plain ? "stack" : "card stack settings-form"}
      onSubmit={(e) => {
        e.preventDefault();
        void submit();
      }}
    >
      {!plain && <h2>Language model</h2>}
      <SelectField
        label="Provider"
        disabled={!mayEdit.value}
        options={[
          ["", "None (chat shows passages)"],
          ...Object.entries(providers).map(([id, p]) => [id, p.name] as [string, string]),
        ]}
        {...form.choice("llm_provider")}
      />
      {chosen && (
        <>
          <TextField
            label={chosen.keyLabel}
            type="password"
            disabled={!mayEdit.value}
            placeholder={isSet ? "Saved; enter a new one to replace it" : ""}
            hint={
              locked
                ? "Encrypted with another master key: enter it again."
                : "Encrypted in the agent's file, sent only to this provider, and never shown again."
            }
            value={form.values.key}
            onInput={(v) => form.set("key", v)}
            error={form.issues[chosen.key ?? ""] ?? form.issues.api_key ?? misfit.api_key ?? refused}
          />
          <TextField
            label="Address"
            disabled={!mayEdit.value}
            placeholder={chosen.address ?? ""}
            hint={chosen.hint}
            {...form.text("llm_base_url")}
            error={form.issue("llm_base_url") ?? misfit.llm_base_url}
          />
          <TextField
            label="Model"
            disabled={!mayEdit.value}
            list={models}
            placeholder={models[0] ?? "gpt-5-mini"}
            hint={
              models.length
                ? `${plural(models.length, "model")} to choose from`
                : unlisted &&
                  !refused &&
                  !Object.keys(misfit).length &&
                  `The models cannot be listed: ${unlisted.message}`
            }
            {...form.text("llm_model")}
          />
        </>
      )}
      {tested && (
        <p class={tested.ok ? "row test-good" : "row issue"} role="status">
          <Icon name={tested.ok ? "CircleCheck" : "CircleAlert"} />{" "}
          {tested.ok ? (
            <>
              Answered in {span(tested.ms ?? 0)}: <bdi>{tested.reply}</bdi>
            </>
          ) : (
            <bdi>{tested.error}</bdi>
          )}
        </p>
      )}
      {mayEdit.value && (
        <div class="row end">
          {isSet && (
            <Button
              onClick={async () => {
                await put(at(), { [chosen!.key!]: null });
                tell("Removed");
                await done();
              }}
            >
              Remove key
            </Button>
          )}
          {chosen && (
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
