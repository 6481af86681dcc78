// The forms by which knowledge is added.
import { agentId, invalidate, path, post } from "../../data";
import { FormDialog, type InputType, Segments, SelectField, Switch, TextArea, TextField, type Values } from "../../ui";
import { CredentialSelect } from "../../parts/credentials";

const lines = (text: string) =>
  text
    .split(/\n/)
    .map((l) => l.trim())
    .filter(Boolean);
const sourcesAt = () => path("agents", agentId.value, "sources");
const added = () => invalidate(sourcesAt());

/** The address that was meant: a host of this network seldom has a certificate. */
const withScheme = (url: string) =>
  /^[a-z]+:\/\//i.test(url)
    ? url
    : /^(localhost|[\d.]+|\[[\da-f:]+\])(:|\/|$)/i.test(url)
      ? `http://${url}`
      : `https://${url}`;

/** The name of a site, from its address. */
const hostOf = (url: string) => {
  try {
    return new URL(url).host;
  } catch {
    return url;
  }
};

const newSite = {
  url: "",
  name: "",
  scope: "site",
  maxPages: "50",
  maxDepth: "3",
  includePatterns: "",
  excludePatterns: "",
  render: false,
};

/** Starts to read a site, with the usual limits where none are given. */
export async function addSite(given: Partial<typeof newSite>) {
  const v = { ...newSite, ...given };
  const address = withScheme(v.url.trim());
  await post(`${sourcesAt()}/crawl`, {
    name: v.name || hostOf(address),
    url: address,
    maxPages: v.scope === "page" ? 1 : Number(v.maxPages) || 50,
    maxDepth: v.scope === "page" ? 0 : Number(v.maxDepth),
    includePatterns: lines(v.includePatterns),
    excludePatterns: lines(v.excludePatterns),
    render: v.render,
  });
  added();
}

export function AddSite({ close, url = "" }: { close: () => void; url?: string }) {
  return (
    <FormDialog title="Add site" close={close} action="Add" run={addSite} initial={{ ...newSite, url }}>
      {(f) => (
        <>
          <TextField label="Address" placeholder="https://docs.example.com" autoFocus required {...f.text("url")} />
          <Segments
            label="How much"
            value={f.values.scope}
            onChange={(v) => f.set("scope", v)}
            options={[
              ["site", "The site"],
              ["page", "This page only"],
            ]}
          />
          <TextField
            label="Name"
            placeholder={f.values.url ? hostOf(withScheme(f.values.url.trim())) : ""}
            {...f.text("name")}
          />
          {f.values.scope === "site" && (
            <details>
              <summary>Which pages</summary>
              <div class="stack">
                <div class="row">
                  <TextField label="Maximum pages" type="number" hint="1 to 50" {...f.text("maxPages")} />
                  <TextField label="Links deep" type="number" hint="0 to 5" {...f.text("maxDepth")} />
                </div>
                <TextArea
                  label="Only these"
                  hint="One glob per line, such as /docs/**"
                  {...f.text("includePatterns")}
                />
                <TextArea label="Exclude" hint="One glob per line" {...f.text("excludePatterns")} />
              </div>
            </details>
          )}
          <Switch
            label="Render pages in a browser"
            hint="For sites that build their text with JavaScript; slower."
            checked={f.values.render}
            onChange={(on) => f.set("render", on)}
          />
        </>
      )}
    </FormDialog>
  );
}

export function AddTable({ close }: { close: () => void }) {
  const run = async (v: Values) => {
    await post(sourcesAt(), {
      type: "database",
      name: v.name,
      config: { query: v.query, id_column: v.id_column || undefined, title_column: v.title_column || undefined },
    });
    added();
  };
  return (
    <FormDialog
      title="Add table"
      close={close}
      action="Add"
      run={run}
      initial={{ name: "", query: "SELECT id, name, notes FROM contacts", id_column: "id", title_column: "name" }}
    >
      {(f) => (
        <>
          <TextField label="Name" autoFocus required {...f.text("name")} />
          <TextArea
            label="Query"
            code
            hint="One SELECT over the agent's tables; each row becomes a document."
            {...f.text("query")}
          />
          <div class="row">
            <TextField label="ID column" {...f.text("id_column")} />
            <TextField label="Title column" {...f.text("title_column")} />
          </div>
        </>
      )}
    </FormDialog>
  );
}

const authFields: Record<string, ["token" | "username" | "password" | "header" | "value", string, InputType?][]> = {
  stored: [],
  none: [],
  bearer: [["token", "Token", "password"]],
  basic: [
    ["username", "User"],
    ["password", "Password", "password"],
  ],
  header: [
    ["header", "Header"],
    ["value", "Value", "password"],
  ],
};

export function AddApi({ close }: { close: () => void }) {
  const initial = {
    name: "",
    url: "",
    auth: "none",
    credential: "",
    token: "",
    username: "",
    password: "",
    header: "",
    value: "",
    items_path: "",
    id_path: "",
    content_template: "",
  };
  const run = async (v: typeof initial) => {
    const auth = {
      none: undefined,
      bearer: { type: "bearer", token: v.token },
      basic: { type: "basic", username: v.username, password: v.password },
      header: { type: "header", name: v.header, value: v.value },
    }[v.auth as "none"];
    await post(sourcesAt(), {
      type: "api",
      name: v.name || hostOf(v.url),
      config: {
        url: v.url,
        auth,
        credential: v.auth === "stored" ? v.credential : undefined,
        items_path: v.items_path || undefined,
        id_path: v.id_path || undefined,
        content_template: v.content_template || undefined,
      },
    });
    added();
  };
  return (
    <FormDialog title="Add an API" close={close} action="Add" run={run} initial={initial}>
      {(f) => (
        <>
          <TextField
            label="Address"
            placeholder="https://api.example.com/articles"
            autoFocus
            required
            {...f.text("url")}
          />
          <TextField label="Name" {...f.text("name")} />
          <SelectField
            label="Credentials"
            options={[
              ["none", "None"],
              ["stored", "Credential of this agent"],
              ["bearer", "Bearer token"],
              ["basic", "User and password"],
              ["header", "A header"],
            ]}
            {...f.choice("auth")}
          />
          {f.values.auth === "stored" && (
            <CredentialSelect
              value={f.values.credential}
              onChange={(id) => f.set("credential", id)}
              error={f.issue("credential")}
            />
          )}
          {authFields[f.values.auth].map(([name, label, type]) => (
            <TextField label={label} type={type ?? "text"} {...f.text(name)} />
          ))}
          <div class="row">
            <TextField label="Path to the items" placeholder="data.items" {...f.text("items_path")} />
            <TextField label="Path to an item's ID" placeholder="id" {...f.text("id_path")} />
          </div>
          <TextField
            label="Text of an item"
            placeholder="{{title}}: {{body}}"
            hint="Empty: all values of the item."
            {...f.text("content_template")}
          />
        </>
      )}
    </FormDialog>
  );
}
