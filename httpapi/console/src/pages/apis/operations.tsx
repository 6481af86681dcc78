// The operations of an API, and one of them to try.
import { useState } from "preact/hooks";

import { agentId, href, invalidate, mayEdit, path, post, route, setQuery, useQuery, type API } from "../../data";
import {
  Badge,
  Button,
  Empty,
  FormDialog,
  Load,
  Name,
  openDialog,
  Pager,
  plural,
  SearchField,
  showToast,
  TextField,
} from "../../ui";
import type { Schema } from "../../parts/arguments";
import { TryTool } from "../../parts/trytool";
import { apisAt } from "./paths";

export function Operations({ api }: { api: API.API }) {
  const { query } = route.value;
  const [search, tag, offset] = [query.get("q") ?? "", query.get("tag") ?? "", Number(query.get("offset")) || 0];
  const found = useQuery<API.OperationList>(apisAt(api.id, "operations"), { search, tag, limit: 50, offset });
  const [chosen, setChosen] = useState<string[]>([]);
  return (
    <section class="stack" aria-label="Operations">
      <div class="row operations-head">
        <h2 class="grow">Operations</h2>
        {mayEdit.value && found.data.value && (
          <Button
            icon="ListChecks"
            disabled={!found.data.value.operations.length}
            onClick={() => {
              const here = found.data.value!.operations.map((o) => o.id);
              setChosen(
                here.every((o) => chosen.includes(o))
                  ? chosen.filter((c) => !here.includes(c))
                  : [...new Set([...chosen, ...here])],
              );
            }}
          >
            {found.data.value.operations.every((o) => chosen.includes(o.id)) ? "Clear" : "Select all"}
          </Button>
        )}
        {tag && <Button icon="X" onClick={() => setQuery({ tag: null, offset: null })}>{`Tag ${tag}`}</Button>}
        <SearchField label="Search operations" value={search} onInput={(q) => setQuery({ q, offset: null })} />
        {mayEdit.value && (
          <Button
            kind="primary"
            icon="Wrench"
            disabled={!chosen.length}
            reason={chosen.length ? undefined : "Select operations first."}
            onClick={() =>
              openDialog((close) => (
                <MakeTools api={api} operations={chosen} close={close} done={() => setChosen([])} />
              ))
            }
          >
            {chosen.length ? `Create ${plural(chosen.length, "tool")}` : "Make tools"}
          </Button>
        )}
      </div>
      <Load of={found}>
        {({ operations, meta }) =>
          operations.length ? (
            <>
              <ul class="sources">
                {operations.map((o) => (
                  <li key={o.id} class="source-row">
                    {mayEdit.value && (
                      <input
                        type="checkbox"
                        aria-label={`Choose ${o.id}`}
                        checked={chosen.includes(o.id)}
                        onChange={(e) =>
                          setChosen(e.currentTarget.checked ? [...chosen, o.id] : chosen.filter((c) => c !== o.id))
                        }
                      />
                    )}
                    <code class={`method ${o.method.toLowerCase()}`}>{o.method}</code>
                    <div class="grow">
                      <a class="clip" href={href(agentId.value, "apis", api.id, o.id)}>
                        <Name>{o.summary || o.path}</Name>
                      </a>
                      <p class="muted small clip">
                        <bdi>{o.path}</bdi>
                      </p>
                    </div>
                    {o.deprecated && <Badge tone="warn">deprecated</Badge>}
                    {o.tags.slice(0, 1).map((t) => (
                      <button
                        key={t}
                        type="button"
                        class="badge plain"
                        title={`Only ${t}`}
                        onClick={() => setQuery({ tag: t, offset: null })}
                      >
                        <bdi>{t}</bdi>
                      </button>
                    ))}
                  </li>
                ))}
              </ul>
              <Pager meta={meta} go={(o) => setQuery({ offset: o || null })} />
            </>
          ) : (
            <Empty icon="Search" title="No operations match">
              Try different words.
            </Empty>
          )
        }
      </Load>
    </section>
  );
}

/** Makes tools of operations: one each, or one set for the whole API. */
function MakeTools({
  api,
  operations,
  close,
  done,
}: {
  api: API.API;
  operations: string[];
  close: () => void;
  done: () => void;
}) {
  const run = async (v: { prefix: string }) => {
    const { tools } = await post(apisAt(api.id, "tools"), { operations, prefix: v.prefix });
    invalidate(path("agents", agentId.value, "tools"));
    invalidate(apisAt());
    showToast(`${plural(tools.length, "tool")} made`);
    done();
  };
  return (
    <FormDialog
      title={`Create ${plural(operations.length, "tool")}`}
      close={close}
      action="Make"
      run={run}
      initial={{ prefix: "" }}
    >
      {(f) => (
        <>
          <p>The agent may call {operations.length === 1 ? "this operation" : "these operations"} from then on.</p>
          <TextField
            label="Name prefix"
            autoFocus
            placeholder="shop_"
            hint="Optional; letters, digits, _ and -."
            {...f.text("prefix")}
            error={f.issue("prefix") ?? f.issue("name") ?? f.issue("operations")}
          />
        </>
      )}
    </FormDialog>
  );
}

/** A schema whose required properties come first. */
const ordered = (s: Schema = {}): Schema => ({
  ...s,
  properties: Object.fromEntries(
    Object.entries(s.properties ?? {}).sort(
      ([a], [b]) => Number(s.required?.includes(b) ?? false) - Number(s.required?.includes(a) ?? false),
    ),
  ),
});

export function Operation({ api, id }: { api: string; id: string }) {
  const found = useQuery<API.Operation>(apisAt(api, "operations", id));
  const of = useQuery<API.API>(apisAt(api));
  return (
    <div class="page">
      <p class="crumb">
        <a href={href(agentId.value, "apis")}>APIs</a> /{" "}
        <a href={href(agentId.value, "apis", api)}>
          <Name>{of.data.value?.name ?? "API"}</Name>
        </a>
      </p>
      <Load of={found} lines={8} title="Operation">
        {(o) => (
          <>
            <div class="page-head">
              <h1 class="grow" tabIndex={-1}>
                <Name>{o.summary || o.id}</Name>
              </h1>
              {o.deprecated && <Badge tone="warn">deprecated</Badge>}
              {mayEdit.value && of.data.value && (
                <Button
                  icon="Wrench"
                  onClick={() =>
                    openDialog((close) => (
                      <MakeTools api={of.data.value!} operations={[o.id]} close={close} done={() => {}} />
                    ))
                  }
                >
                  Create tool
                </Button>
              )}
            </div>
            <p class="operation-line">
              <code class={`method ${o.method.toLowerCase()}`}>{o.method}</code> <code>{o.path}</code>{" "}
              <span class="muted small">
                called <code>{o.id}</code>
              </span>
            </p>
            {o.description && o.description !== o.summary && (
              <p class="muted operation-about">
                <bdi>{o.description}</bdi>
              </p>
            )}
            <section class="card stack narrow-card" aria-label="Try">
              <h2>Try it</h2>
              {mayEdit.value ? (
                <TryTool
                  schema={ordered(o.parameters)}
                  run={(args) => post(apisAt(api, "operations", id, "execute"), { arguments: args })}
                />
              ) : (
                <p class="muted">Read-only access: calling operations needs the admin role.</p>
              )}
            </section>
          </>
        )}
      </Load>
    </div>
  );
}
