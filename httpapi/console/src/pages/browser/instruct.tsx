// Instructions in words for a session's page: to do something, to find what
// could be done, or to read something from it.
import { useState } from "preact/hooks";

import { agentId, type API, ApiError, asError, href, post } from "../../data";
import {
  Badge,
  Button,
  CopyButton,
  ErrorCard,
  Icon,
  JsonTree,
  LinkButton,
  objectOf,
  PairsField,
  plural,
  Segments,
  TextArea,
  useForm,
  type Pair,
} from "../../ui";
import { at, stepIcons } from "./data";

type Planned = API.PlannedAction;
type Outcome = { acted?: API.Acted; observed?: API.Observed; extracted?: API.Extracted; error?: Error };

const kinds: Record<string, { hint: string; placeholder: string; action: string }> = {
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

const blank = { instruction: "", variables: [] as Pair[], schema: "" };

/** What was asked last in each session, kept while other tabs are open. */
const last = new Map<string, { kind: string; outcome: Outcome; values: typeof blank }>();

export function Instruct({ id }: { id: string }) {
  const before = last.get(id);
  const form = useForm(before?.values ?? blank);
  const [kind, setKind] = useState(before?.kind ?? "act");
  const [outcome, setOutcome] = useState<Outcome>(before?.outcome ?? {});
  const [busy, setBusy] = useState(false);
  const { instruction, variables, schema } = form.values;
  const show = (o: Outcome) => {
    setOutcome(o);
    last.set(id, { kind, outcome: o, values: form.values });
  };
  const ask = async (): Promise<Outcome> => {
    if (kind === "act") return { acted: await post(at(id, "act"), { instruction, variables: objectOf(variables) }) };
    if (kind === "observe") return { observed: await post(at(id, "observe"), { instruction }) };
    return {
      extracted: await post(at(id, "extract"), { instruction, ...(schema.trim() && { schema: JSON.parse(schema) }) }),
    };
  };
  const run = async () => {
    form.setIssues({});
    if (kind === "extract" && schema.trim())
      try {
        JSON.parse(schema);
      } catch {
        return form.setIssues({ schema: "is not valid JSON" });
      }
    setBusy(true);
    setOutcome({});
    try {
      show(await ask());
    } catch (error) {
      const issues = error instanceof ApiError ? error.issues : {};
      if (Object.keys(issues).some((f) => ["instruction", "schema", "variables"].includes(f.split(".")[0])))
        form.setIssues(issues);
      else show({ error: asError(error) });
    }
    setBusy(false);
  };
  const { acted, observed, extracted, error } = outcome;
  const value = extracted?.value;
  const usage = (acted ?? observed ?? extracted)?.usage;
  return (
    <div class="session-instruct stack">
      <form
        class="stack tight"
        noValidate
        onSubmit={(e) => {
          e.preventDefault();
          if (!busy) void run();
        }}
        onKeyDown={(e) => {
          if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) {
            e.preventDefault();
            if (!busy) void run();
          }
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
            onChange={(k) => {
              setKind(k);
              setOutcome({});
            }}
          />
          <span class="muted small hint" role="status">
            {busy ? "The model reads the page…" : kinds[kind].hint}
          </span>
        </div>
        <div class="row nowrap instruction">
          <textarea
            class="grow"
            rows={2}
            aria-label="Instruction"
            placeholder={kinds[kind].placeholder}
            aria-invalid={Boolean(form.issue("instruction"))}
            value={instruction}
            onInput={(e) => form.set("instruction", e.currentTarget.value)}
          />
          <Button kind="primary" submit icon="Play" disabled={busy || !instruction.trim()}>
            {kinds[kind].action}
          </Button>
        </div>
        {form.issue("instruction") && (
          <p class="issue small" role="alert">
            Instruction {form.issue("instruction")}.
          </p>
        )}
        {kind === "act" && (
          <details>
            <summary>Variables{variables.length > 0 && ` (${variables.length})`}</summary>
            <PairsField
              label="Values the model doesn't see"
              pairs={variables}
              onChange={(v) => form.set("variables", v)}
              hint="It types them as %name%. They aren't stored."
              error={form.issue("variables")}
              placeholder={["password", "Value"]}
            />
          </details>
        )}
        {kind === "extract" && (
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
        )}
      </form>
      <div class="stack tight" aria-live="polite">
        {error &&
          (error instanceof ApiError && error.issues.llm_provider ? (
            <div class="card warn row" role="alert">
              <p class="grow">Instructions need a language model, and none is set.</p>
              <LinkButton href={href(agentId.value, "settings", "model")} icon="Sparkles">
                Choose a model
              </LinkButton>
            </div>
          ) : (
            <ErrorCard error={error} />
          ))}
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
        {observed &&
          (observed.actions.length ? (
            <Actions list={observed.actions} run={(a) => perform(id, a)} />
          ) : (
            <p class="muted">The page offers nothing for it.</p>
          ))}
        {extracted && (
          <section class="result" aria-label="Value">
            <div class="row">
              <h2 class="grow">Value</h2>
              <CopyButton text={typeof value === "string" ? value : JSON.stringify(value, null, 2)} />
            </div>
            {typeof value === "string" ? (
              <p class="pre">
                <bdi>{value}</bdi>
              </p>
            ) : (
              <JsonTree value={value} />
            )}
          </section>
        )}
        {usage && usage.input_tokens + usage.output_tokens > 0 && (
          <p class="muted small">{plural(usage.input_tokens + usage.output_tokens, "token")}</p>
        )}
      </div>
    </div>
  );
}

/** Does one of the actions that were found. */
async function perform(id: string, { description: _, ...action }: Planned) {
  await post(at(id, "execute"), action);
}

function Actions({ list, run }: { list: Planned[]; run?: (a: Planned) => Promise<void> }) {
  const [done, setDone] = useState<number[]>([]);
  return (
    <ol class="plain steps">
      {list.map((a, i) => (
        <li key={i} title={a.selector}>
          <Icon
            name={done.includes(i) || !run ? "Check" : (stepIcons[a.action] ?? "MousePointerClick")}
            size={14}
            label={a.action}
          />
          <span class="grow">
            <bdi>{a.description || a.action}</bdi>
            {a.text && (
              <>
                {" "}
                <bdi class="muted">{a.text}</bdi>
              </>
            )}
          </span>
          {run && (
            <Button
              label={`Do: ${a.description || a.action}`}
              onClick={async () => {
                await run(a);
                setDone((d) => [...d, i]);
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
