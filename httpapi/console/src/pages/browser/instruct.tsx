// Instructions in words for the page of a session: to act, to observe what could
// be done, or to extract a value.
import { useState } from "preact/hooks";

import { agentId, type API, ApiError, asError, href, post } from "../../data";
import {
  Badge,
  Button,
  CopyButton,
  ErrorCard,
  Icon,
  LinkButton,
  objectOf,
  PairsField,
  plural,
  Segments,
  TextArea,
  useForm,
  type FormState,
  type Pair,
} from "../../ui";
import { at, stepIcons } from "./data";
import { TextOrJson } from "./value";

type PlannedAction = API.PlannedAction;

/** What came of an instruction. */
type Outcome = { acted?: API.Acted; observed?: API.Observed; extracted?: API.Extracted; error?: Error };

type Kind = "act" | "observe" | "extract";

const kinds: Record<Kind, { hint: string; placeholder: string; action: string }> = {
  act: { hint: "Does it on the page, in at most 10 actions.", placeholder: "Sort the orders by date.", action: "Act" },
  observe: {
    hint: "Lists what could be done; nothing is done yet.",
    placeholder: "Ways to sign in.",
    action: "Observe",
  },
  extract: {
    hint: "Reads a value from the page.",
    placeholder: "The names and prices of all products.",
    action: "Extract",
  },
};

const noInstruction = { instruction: "", variables: [] as Pair[], schema: "" };
type Instruction = typeof noInstruction;

/** The last instruction of each session, kept while other tabs are open. */
const lastInstructions = new Map<string, { kind: Kind; outcome: Outcome; values: Instruction }>();

const isJSON = (text: string) => {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
};

async function send(id: string, kind: Kind, { instruction, variables, schema }: Instruction): Promise<Outcome> {
  switch (kind) {
    case "act":
      return { acted: await post(at(id, "act"), { instruction, variables: objectOf(variables) }) };
    case "observe":
      return { observed: await post(at(id, "observe"), { instruction }) };
    case "extract": {
      const body = { instruction, ...(schema.trim() && { schema: JSON.parse(schema) }) };
      return { extracted: await post(at(id, "extract"), body) };
    }
  }
}

/** Reports whether an error is about a field of the form. */
const isAboutForm = (error: unknown): error is ApiError =>
  error instanceof ApiError &&
  Object.keys(error.issues).some((field) => Object.hasOwn(noInstruction, field.split(".")[0]));

/** The form of an instruction and its outcome, which begin with those that the session had last. */
function useInstruction(id: string) {
  const last = lastInstructions.get(id);
  const form = useForm(last?.values ?? noInstruction);
  const [kind, setKind] = useState<Kind>(last?.kind ?? "act");
  const [outcome, setOutcome] = useState<Outcome>(last?.outcome ?? {});
  const [busy, setBusy] = useState(false);
  const show = (result: Outcome) => {
    setOutcome(result);
    lastInstructions.set(id, { kind, outcome: result, values: form.values });
  };
  const run = async () => {
    const { schema } = form.values;
    form.setIssues({});
    if (kind === "extract" && schema.trim() && !isJSON(schema)) return form.setIssues({ schema: "is not valid JSON" });
    setBusy(true);
    setOutcome({});
    try {
      show(await send(id, kind, form.values));
    } catch (error) {
      if (isAboutForm(error)) form.setIssues(error.issues);
      else show({ error: asError(error) });
    }
    setBusy(false);
  };
  const choose = (next: Kind) => {
    setKind(next);
    setOutcome({});
  };
  return { form, kind, choose, outcome, busy, run };
}

/** The tab that gives instructions to a session. */
export function Instruct({ id }: { id: string }) {
  const { form, kind, choose, outcome, busy, run } = useInstruction(id);
  const submit = (e: Event) => {
    e.preventDefault();
    if (!busy) void run();
  };
  return (
    <div class="session-instruct stack">
      <form
        class="stack tight"
        noValidate
        onSubmit={submit}
        onKeyDown={(e) => {
          if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) submit(e);
        }}
      >
        <div class="row">
          <Segments
            label="What to do"
            value={kind}
            options={[
              ["act", "Act"],
              ["observe", "Observe"],
              ["extract", "Extract"],
            ]}
            onChange={(chosen) => choose(chosen as Kind)}
          />
          <span class="muted small hint" role="status">
            {busy ? "The model reads the page…" : kinds[kind].hint}
          </span>
        </div>
        <InstructionField form={form} kind={kind} busy={busy} />
        {kind === "act" && <Variables form={form} />}
        {kind === "extract" && <SchemaField form={form} />}
      </form>
      <OutcomeView id={id} outcome={outcome} />
    </div>
  );
}

type FieldProps = { form: FormState<Instruction> };

function InstructionField({ form, kind, busy }: FieldProps & { kind: Kind; busy: boolean }) {
  const { value, error, onInput } = form.text("instruction");
  return (
    <>
      <div class="row nowrap instruction">
        <textarea
          class="grow"
          rows={2}
          aria-label="Instruction"
          placeholder={kinds[kind].placeholder}
          aria-invalid={Boolean(error)}
          value={value}
          onInput={(e) => onInput(e.currentTarget.value)}
          onKeyDown={(e) => {
            if (e.key !== "Enter" || e.shiftKey || e.ctrlKey || e.metaKey || e.isComposing) return;
            e.preventDefault();
            if (value.trim()) e.currentTarget.form!.requestSubmit();
          }}
        />
        <Button kind="primary" submit icon="Play" disabled={busy || !value.trim()}>
          {kinds[kind].action}
        </Button>
      </div>
      {error && (
        <p class="issue small" role="alert">
          Instruction {error}.
        </p>
      )}
    </>
  );
}

function Variables({ form }: FieldProps) {
  const { variables } = form.values;
  return (
    <details>
      <summary>Variables{variables.length > 0 && ` (${variables.length})`}</summary>
      <PairsField
        label="Values the model doesn't see"
        pairs={variables}
        onChange={(pairs) => form.set("variables", pairs)}
        hint="It types them as %name%. They aren't stored."
        error={form.issue("variables")}
        placeholder={["password", "Value"]}
      />
    </details>
  );
}

function SchemaField({ form }: FieldProps) {
  return (
    <details open={Boolean(form.issue("schema"))}>
      <summary>JSON Schema of the value</summary>
      <TextArea
        label="Schema"
        code
        rows={4}
        placeholder={'{"type": "array", "items": {"type": "string"}}'}
        hint="Empty: the value is a text."
        {...form.text("schema")}
      />
    </details>
  );
}

function OutcomeView({ id, outcome }: { id: string; outcome: Outcome }) {
  const { acted, observed, extracted, error } = outcome;
  const usage = (acted ?? observed ?? extracted)?.usage;
  const tokens = usage ? usage.input_tokens + usage.output_tokens : 0;
  return (
    <div class="stack tight" aria-live="polite">
      {error && <Failure error={error} />}
      {acted && (
        <>
          <p class="row small">
            <Badge tone="good">done</Badge>
            <span class="muted grow">{plural(acted.actions.length, "action")}</span>
            {acted.cached && <Badge title="Repeated from last time, without the model">repeated</Badge>}
          </p>
          <Actions list={acted.actions} />
        </>
      )}
      {observed && observed.actions.length > 0 && (
        <Actions list={observed.actions} run={(action) => perform(id, action)} />
      )}
      {observed?.actions.length === 0 && <p class="muted">Nothing on the page matches.</p>}
      {extracted && <Value value={extracted.value} />}
      {tokens > 0 && <p class="muted small">{plural(tokens, "token")}</p>}
    </div>
  );
}

function Failure({ error }: { error: Error }) {
  const isModelMissing = error instanceof ApiError && error.issues.llm_provider;
  if (!isModelMissing) return <ErrorCard error={error} />;
  return (
    <div class="card warn row" role="alert">
      <p class="grow">Instructions need a language model, and none is set.</p>
      <LinkButton href={href(agentId.value, "settings", "model")} icon="Sparkles">
        Choose a model
      </LinkButton>
    </div>
  );
}

function Value({ value }: { value: unknown }) {
  return (
    <section class="result" aria-label="Value">
      <div class="row">
        <h2 class="grow">Value</h2>
        <CopyButton text={typeof value === "string" ? value : JSON.stringify(value, null, 2)} />
      </div>
      <TextOrJson value={value} />
    </section>
  );
}

/** Performs one of the observed actions. */
async function perform(id: string, { description: _, ...action }: PlannedAction) {
  await post(at(id, "execute"), action);
}

type ActionsProps = { list: PlannedAction[]; run?: (action: PlannedAction) => Promise<void> };

/** Actions that were done or, with run, that can be. */
function Actions({ list, run }: ActionsProps) {
  const [done, setDone] = useState<number[]>([]);
  const iconOf = (action: PlannedAction, index: number) =>
    done.includes(index) || !run ? "Check" : (stepIcons[action.action] ?? "MousePointerClick");
  return (
    <ol class="plain steps">
      {list.map((action, index) => (
        <li key={index} title={action.selector}>
          <Icon name={iconOf(action, index)} size={14} label={action.action} />
          <span class="grow">
            <bdi>{action.description || action.action}</bdi>
            {action.text && (
              <>
                {" "}
                <bdi class="muted">{action.text}</bdi>
              </>
            )}
          </span>
          {run && (
            <Button
              label={`Do: ${action.description || action.action}`}
              onClick={async () => {
                await run(action);
                setDone((indexes) => [...indexes, index]);
              }}
            >
              Do it
            </Button>
          )}
        </li>
      ))}
    </ol>
  );
}
