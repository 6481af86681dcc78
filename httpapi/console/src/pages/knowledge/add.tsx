// The forms by which knowledge is added.
import { invalidate, post } from "../../data";
import { FormDialog, type InputType, Segments, SelectField, Switch, TextArea, TextField, type Values } from "../../ui";
import { CredentialSelect } from "../../parts/credentials";
import { sourcesAt } from "./paths";

const linesOf = (text: string) =>
  text
    .split(/\n/)
    .map((line) => line.trim())
    .filter(Boolean);

const reloadSources = () => invalidate(sourcesAt());

/** An address with a scheme: HTTP for a host without a name in DNS, which seldom has a certificate, else HTTPS. */
function withScheme(url: string) {
  if (/^[a-z]+:\/\//i.test(url)) return url;
  const local = /^(localhost|[\d.]+|\[[\da-f:]+\])(:|\/|$)/i.test(url);
  return `${local ? "http" : "https"}://${url}`;
}

/** The host of an address, or the text if it is no address. */
function hostOf(url: string) {
  try {
    return new URL(url).host;
  } catch {
    return url;
  }
}

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

/** Starts to crawl a site; limits that are not given have their defaults. */
export async function addSite(given: Partial<typeof newSite>) {
  const site = { ...newSite, ...given };
  const url = withScheme(site.url.trim());
  const onePage = site.scope === "page";
  await post(sourcesAt("crawl"), {
    name: site.name || hostOf(url),
    url,
    maxPages: onePage ? 1 : Number(site.maxPages) || 50,
    maxDepth: onePage ? 0 : Number(site.maxDepth),
    includePatterns: linesOf(site.includePatterns),
    excludePatterns: linesOf(site.excludePatterns),
    render: site.render,
  });
  reloadSources();
}

/** The dialog that adds a site. */
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

/** The dialog that adds rows of the agent's tables. */
export function AddTable({ close }: { close: () => void }) {
  const run = async ({ name, query, id_column, title_column }: Values) => {
    const config = { query, id_column: id_column || undefined, title_column: title_column || undefined };
    await post(sourcesAt(), { type: "database", name, config });
    reloadSources();
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

const newApi = {
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

type ApiValues = typeof newApi;

const authTypes: [string, string][] = [
  ["none", "None"],
  ["stored", "Credential of this agent"],
  ["bearer", "Bearer token"],
  ["basic", "User and password"],
  ["header", "A header"],
];

/** The fields of each kind of authentication. */
const authFields: Record<string, [name: keyof ApiValues, label: string, type?: InputType][]> = {
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

/** The authentication of the form; undefined for none, and for a stored credential. */
function authOf({ auth, token, username, password, header, value }: ApiValues) {
  switch (auth) {
    case "bearer":
      return { type: "bearer", token };
    case "basic":
      return { type: "basic", username, password };
    case "header":
      return { type: "header", name: header, value };
  }
}

/** The name of an API that has none: its address, since a host often has several. */
const nameOfApi = (url: string) => url.replace(/^https?:\/\//, "").replace(/\/?([?#].*)?$/, "");

/** The dialog that adds an API, whose items become documents. */
export function AddApi({ close }: { close: () => void }) {
  const run = async (values: ApiValues) => {
    await post(sourcesAt(), {
      type: "api",
      name: values.name || nameOfApi(values.url),
      config: {
        url: values.url,
        auth: authOf(values),
        credential: values.auth === "stored" ? values.credential : undefined,
        items_path: values.items_path || undefined,
        id_path: values.id_path || undefined,
        content_template: values.content_template || undefined,
      },
    });
    reloadSources();
  };
  return (
    <FormDialog title="Add an API" close={close} action="Add" run={run} initial={newApi}>
      {(form) => (
        <>
          <TextField
            label="Address"
            placeholder="https://api.example.com/articles"
            autoFocus
            required
            {...form.text("url")}
          />
          <TextField label="Name" {...form.text("name")} />
          <SelectField label="Credentials" options={authTypes} {...form.choice("auth")} />
          {form.values.auth === "stored" && (
            <CredentialSelect
              value={form.values.credential}
              onChange={(id) => form.set("credential", id)}
              error={form.issue("credential")}
            />
          )}
          {authFields[form.values.auth].map(([name, label, type]) => (
            <TextField label={label} type={type ?? "text"} {...form.text(name)} />
          ))}
          <div class="row">
            <TextField label="Path to the items" placeholder="data.items" {...form.text("items_path")} />
            <TextField label="Path to an item's ID" placeholder="id" {...form.text("id_path")} />
          </div>
          <TextField
            label="Text of an item"
            placeholder="{{title}}: {{body}}"
            hint="Empty: all values of the item."
            {...form.text("content_template")}
          />
        </>
      )}
    </FormDialog>
  );
}
