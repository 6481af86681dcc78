// Settings of models: for answers, and for search by meaning.
import { mayEdit, useQuery } from "../../data";
import { Load, Switch, TextArea, TextField } from "../../ui";
import { ModelForm, saveSettings, type FormProps } from "../../parts/model";
import { useFollow } from "../../parts/follow";
import { usePageForm } from "../../parts/pageform";
import { EmbeddingForm } from "./embedding";
import { agentAt } from "./paths";
import { SaveRow } from "./saverow";

/** The tab of models. */
export function ModelSettings() {
  const found = useQuery(agentAt("settings"));
  useFollow("setting", found.reload);
  return (
    <Load of={found} lines={8}>
      {(settings) => (
        <>
          <ModelForm s={settings} done={found.reload} />
          <AnswerForm s={settings} done={found.reload} />
          <EmbeddingForm s={settings} done={found.reload} />
        </>
      )}
    </Load>
  );
}

const answerFields = ["system_prompt", "llm_temperature", "llm_max_tokens", "auto_reply", "chat_browser"] as const;

function AnswerForm({ s: settings, done }: FormProps) {
  const shown = { ...settings, llm_temperature: settings.llm_temperature_set ? settings.llm_temperature : "" };
  const form = usePageForm(Object.fromEntries(answerFields.map((name) => [name, shown[name] ?? ""])), "answers");
  const disabled = !mayEdit.value;
  const number = (name: string) => ({
    ...form.text(name),
    disabled,
    onInput: (text: string) => form.set(name, text === "" ? "" : Number(text)),
  });
  const toggle = (name: string) => ({
    disabled,
    checked: Boolean(form.values[name]),
    onChange: (on: boolean) => form.set(name, on),
  });
  return (
    <form
      class="card stack settings-form"
      onSubmit={(e) => {
        e.preventDefault();
        saveSettings(form, shown, answerFields, done).catch(() => {});
      }}
    >
      <h2>Answers</h2>
      <TextArea
        label="System prompt"
        rows={4}
        disabled={disabled}
        hint="Who the agent is and how it should answer."
        {...form.text("system_prompt")}
      />
      <div class="row">
        <TextField
          label="Temperature"
          type="number"
          hint="Empty: the provider's default."
          {...number("llm_temperature")}
        />
        <TextField
          label="Maximum answer length, in tokens"
          type="number"
          hint="0: the provider's default."
          {...number("llm_max_tokens")}
        />
      </div>
      <Switch
        label="Answer messages on channels automatically"
        hint="When no workflow handles them."
        {...toggle("auto_reply")}
      />
      <Switch
        label="Use the browser while answering"
        hint={
          "The model may open pages, click and type, also in automatic replies, " +
          "so anyone who writes to the agent can make it browse. Uses time and tokens."
        }
        {...toggle("chat_browser")}
      />
      <SaveRow form={form} />
    </form>
  );
}
