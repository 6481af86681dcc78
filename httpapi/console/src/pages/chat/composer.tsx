// The field for a question, with files to add and the model to choose.
import { useEffect, useRef } from "preact/hooks";

import { agentId, mayEdit, path, put, useDraft, useQuery } from "../../data";
import { Button, Icon, Menu, type MenuItem } from "../../ui";
import { FileButton } from "../../parts/files";
import { uploadFiles } from "../../parts/upload";

/** The options of the next answer. */
export type Choice = { model: string; sources: boolean };

type Props = {
  /** The name under which the text is kept as a draft. */
  draft: string;
  busy: boolean;
  /** Files are being dragged over the page. */
  over: boolean;
  choice: Choice;
  setChoice: (choice: Choice) => void;
  send: (text: string) => void;
  stop: () => void;
  /** The last question, which Up brings back into an empty field. */
  last?: string;
  /** A text to write into the field, such as one that is edited. */
  preset?: { text: string; at: number };
};

/** The field for a question. */
export function Composer(props: Props) {
  const { draft: name, busy, over, send, stop, last, preset } = props;
  const draft = useDraft(name);
  const field = useRef<HTMLTextAreaElement>(null);
  const may = mayEdit.value;
  useEffect(() => {
    field.current?.focus({ preventScroll: true });
  }, [name]);
  useEffect(() => {
    if (!preset) return;
    draft.value = preset.text;
    field.current?.focus();
  }, [preset?.at]);
  const submit = () => {
    const text = draft.value.trim();
    if (!text || busy) return;
    draft.value = "";
    send(text);
  };
  const handleKey = (e: KeyboardEvent) => {
    if (e.key === "Enter" && !e.shiftKey && !e.isComposing) {
      e.preventDefault();
      submit();
    } else if (e.key === "Escape" && busy) {
      e.preventDefault();
      stop();
    } else if (e.key === "Escape") {
      field.current?.blur(); // so that the keys of the page work again
    } else if (e.key === "ArrowUp" && !draft.value && last) {
      e.preventDefault();
      draft.value = last;
    }
  };
  return (
    <form
      class={over ? "composer over" : "composer"}
      onSubmit={(e) => {
        e.preventDefault();
        submit();
      }}
    >
      <textarea
        ref={field}
        rows={1}
        value={draft.value}
        aria-label="Message"
        disabled={!may}
        placeholder={may ? "Ask, or drop files…" : "Viewers can read conversations; asking needs the admin role."}
        onInput={(e) => {
          draft.value = e.currentTarget.value;
        }}
        onKeyDown={handleKey}
        onPaste={(e) => {
          if (!e.clipboardData?.files.length) return;
          e.preventDefault();
          void uploadFiles([...e.clipboardData.files]);
        }}
      />
      <Actions {...props} empty={!draft.value.trim()} />
    </form>
  );
}

/** The row below the field: files, the options of the next answer, and what sends the question or stops the answer. */
function Actions({ busy, choice, setChoice, stop, empty }: Props & { empty: boolean }) {
  const may = mayEdit.value;
  return (
    <div class="row nowrap">
      {may && (
        <>
          <FileButton
            field="Files"
            icon="Paperclip"
            kind="quiet"
            label="Add files to the knowledge"
            choose={(files) => void uploadFiles(files)}
          />
          <Models choice={choice} setChoice={setChoice} />
          <button
            type="button"
            class="button quiet"
            aria-pressed={choice.sources}
            aria-label="Sources"
            title="Search the knowledge"
            onClick={() => setChoice({ ...choice, sources: !choice.sources })}
          >
            <Icon name="BookOpen" size={16} />
            <span>Sources</span>
          </button>
        </>
      )}
      <span class="grow" />
      {busy && (
        <Button icon="Square" onClick={stop}>
          Stop
        </Button>
      )}
      {!busy && may && <Button kind="primary" icon="ArrowUp" label="Send" submit disabled={empty} />}
    </div>
  );
}

/** How many models the menu offers. */
const maxModels = 40;

/** The model of the next turns; the agent's own unless another is chosen. */
function Models({ choice, setChoice }: { choice: Choice; setChoice: (choice: Choice) => void }) {
  const settings = useQuery(path("agents", agentId.value, "settings"));
  const { llm_provider: provider, llm_model: agentModel = "" } = settings.data.value ?? {};
  const models = useQuery(provider ? path("agents", agentId.value, "models") : null);
  if (!provider) return null;
  const choose = (model: string) => setChoice({ ...choice, model });
  const names: string[] = (models.data.value?.models ?? []).slice(0, maxModels);
  const items: MenuItem[] = [
    {
      label: `${agentModel || "Default"} (the agent's)`,
      icon: choice.model ? undefined : "Check",
      run: () => choose(""),
    },
  ];
  for (const name of names)
    if (name !== agentModel)
      items.push({ label: name, icon: choice.model === name ? "Check" : undefined, run: () => choose(name) });
  if (choice.model && choice.model !== agentModel)
    items.push("-", {
      label: `Make ${choice.model} the agent's model`,
      icon: "Pin",
      run: async () => {
        await put(path("agents", agentId.value, "settings"), { llm_model: choice.model });
        await settings.reload();
        choose("");
      },
    });
  return (
    <Menu label="Model" items={items}>
      <Icon name="Sparkles" size={16} />
      <span class="clip">{choice.model || agentModel || "Model"}</span>
    </Menu>
  );
}
