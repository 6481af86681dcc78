// Where one writes, drops files, and chooses the model.
import { useEffect, useRef } from "preact/hooks";

import { agentId, mayEdit, path, put, useDraft, useQuery } from "../../data";
import { Button, Icon, Menu, type MenuItem } from "../../ui";
import { uploadFiles } from "../../parts/upload";

/** The options of the next answer. */
export type Choice = { model: string; sources: boolean };

type Props = {
  /** The name under which what is typed is kept. */
  draft: string;
  busy: boolean;
  /** Files are over the page, to be dropped. */
  over: boolean;
  choice: Choice;
  setChoice: (c: Choice) => void;
  send: (text: string) => void;
  stop: () => void;
  /** The last question, which Up brings back into an empty field. */
  last?: string;
  /** A text to write into the field, such as one that is edited. */
  preset?: { text: string; at: number };
};

/** The field for a question. */
export function Composer({ draft: name, busy, over, choice, setChoice, send, stop, last, preset }: Props) {
  const draft = useDraft(name);
  const field = useRef<HTMLTextAreaElement>(null);
  const files = useRef<HTMLInputElement>(null);
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
  const keys = (e: KeyboardEvent) => {
    if (e.key === "Enter" && !e.shiftKey && !e.isComposing) {
      e.preventDefault();
      submit();
    } else if (e.key === "Escape" && busy) {
      e.preventDefault();
      stop();
    } else if (e.key === "Escape") {
      field.current?.blur(); // the keys of the page count again
    } else if (e.key === "ArrowUp" && !draft.value && last) {
      e.preventDefault();
      draft.value = last;
    }
  };
  const take = (list: FileList | null | undefined) => {
    if (list?.length) void uploadFiles([...list]);
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
        disabled={!mayEdit.value}
        placeholder={
          mayEdit.value ? "Ask, or drop files…" : "Viewers can read conversations; asking needs the admin role."
        }
        onInput={(e) => {
          draft.value = e.currentTarget.value;
        }}
        onKeyDown={keys}
        onPaste={(e) => {
          if (e.clipboardData?.files.length) {
            e.preventDefault();
            take(e.clipboardData.files);
          }
        }}
      />
      <div class="row nowrap">
        {mayEdit.value && (
          <>
            <input
              ref={files}
              type="file"
              multiple
              hidden
              aria-label="Files"
              onChange={(e) => {
                take(e.currentTarget.files);
                e.currentTarget.value = "";
              }}
            />
            <Button
              kind="quiet"
              icon="Paperclip"
              label="Add files to the knowledge"
              onClick={() => files.current?.click()}
            />
          </>
        )}
        {mayEdit.value && <Models choice={choice} setChoice={setChoice} />}
        {mayEdit.value && (
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
        )}
        <span class="grow" />
        {busy ? (
          <Button icon="Square" onClick={stop}>
            Stop
          </Button>
        ) : (
          mayEdit.value && <Button kind="primary" icon="ArrowUp" label="Send" submit disabled={!draft.value.trim()} />
        )}
      </div>
    </form>
  );
}

/** The model of the next turns; the agent's own unless another is chosen. */
function Models({ choice, setChoice }: { choice: Choice; setChoice: (c: Choice) => void }) {
  const settings = useQuery(path("agents", agentId.value, "settings"));
  const models = useQuery(settings.data.value?.llm_provider ? path("agents", agentId.value, "models") : null);
  const own = settings.data.value?.llm_model ?? "";
  if (!settings.data.value?.llm_provider) return null;
  const names: string[] = (models.data.value?.models ?? []).slice(0, 40);
  const items: MenuItem[] = [
    {
      label: `${own || "Default"} (the agent's)`,
      icon: choice.model ? undefined : "Check",
      run: () => setChoice({ ...choice, model: "" }),
    },
    ...names
      .filter((n) => n !== own)
      .map((n) => ({
        label: n,
        icon: choice.model === n ? ("Check" as const) : undefined,
        run: () => setChoice({ ...choice, model: n }),
      })),
  ];
  const chosen = choice.model;
  if (chosen && chosen !== own) {
    items.push("-", {
      label: `Make ${chosen} the agent's model`,
      icon: "Pin",
      run: async () => {
        await put(path("agents", agentId.value, "settings"), { llm_model: chosen });
        await settings.reload();
        setChoice({ ...choice, model: "" });
      },
    });
  }
  return (
    <Menu label="Model" items={items}>
      <Icon name="Sparkles" size={16} />
      <span class="clip">{choice.model || own || "Model"}</span>
    </Menu>
  );
}
