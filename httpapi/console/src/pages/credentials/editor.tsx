// The whole form of a credential.
import { useState } from "preact/hooks";

import { ApiError, post, put, type API, asError } from "../../data";
import {
  Button,
  ErrorCard,
  LinkButton,
  SecretField,
  SelectField,
  tell,
  TextArea,
  TextField,
  useForm,
  type FormState,
  type TextOf,
} from "../../ui";
import { credentialsAt } from "../credentials";

const types: [string, string][] = [
  ["header", "Headers"],
  ["query", "Query parameters"],
  ["basic", "User and password"],
  ["oauth2", "OAuth 2"],
  ["aws", "AWS signature"],
  ["env", "Program environment"],
];
const grants: [string, string][] = [
  ["authorization_code", "A person signs in"],
  ["device_code", "A person signs in on another device"],
  ["client_credentials", "Client credentials"],
  ["jwt_bearer", "Service account (JSON key)"],
];
const named = ["header", "query", "env"];

type Row = { name: string; value: string };

const configFields = [
  "grant",
  "auth_url",
  "token_url",
  "device_url",
  "issuer",
  "client_id",
  "scope",
  "token_auth",
  "subject",
  "region",
  "service",
] as const;
type CredentialValues = Record<(typeof configFields)[number], string> & {
  name: string;
  type: API.Credential["type"];
  hosts: string;
  rows: Row[];
  test: string;
} & { [secret: `secret.${string}`]: string };

/** The config of the form, over what it does not show. */
function configOf(now: API.Credential | undefined, v: CredentialValues) {
  const config: Record<string, unknown> = { ...now?.config };
  const set = (name: string, value: string) => {
    if (value) config[name] = value;
    else delete config[name];
  };
  if (v.type === "oauth2") for (const name of configFields.slice(0, 9)) set(name, v[name].trim());
  if (v.type === "aws") for (const name of configFields.slice(9)) set(name, v[name].trim());
  if (v.test) config.test = { ...now?.config.test, url: v.test.trim() };
  else delete config.test;
  return config;
}

/** The secret of the form; undefined when none was typed. */
function secretOf(v: CredentialValues): Record<string, string> | undefined {
  const given = named.includes(v.type)
    ? Object.fromEntries(v.rows.filter((r) => r.name.trim()).map((r) => [r.name.trim(), r.value]))
    : Object.fromEntries(fieldsOf(v).map(([name]) => [name, v[`secret.${name}`] ?? ""]));
  return Object.values(given).some(Boolean)
    ? Object.fromEntries(Object.entries(given).filter(([, value]) => value))
    : undefined;
}

/** The names of a stored secret, to be given new values; of a new one, the usual header. */
function rowsOf(now?: API.Credential): Row[] {
  const names = now && named.includes(now.type) ? now.configured_fields : [];
  return (names.length ? names : [now ? "" : "Authorization"]).map((name) => ({ name, value: "" }));
}

/** What is missing in rows of which some were filled. */
function gapIn(rows: Row[]) {
  if (!rows.some((r) => r.value)) return "";
  if (rows.some((r) => r.value && !r.name.trim())) return "Each value needs a name.";
  const bare = rows.find((r) => r.name.trim() && !r.value);
  return bare ? `Enter the value of ${bare.name.trim()} as well, or remove its row.` : "";
}

function fieldsOf(v: CredentialValues): [name: string, label: string, plain?: boolean][] {
  if (v.type === "basic")
    return [
      ["username", "User name", true],
      ["password", "Password"],
    ];
  if (v.type === "aws")
    return [
      ["access_key_id", "Access key ID", true],
      ["secret_access_key", "Secret access key"],
      ["session_token", "Session token"],
    ];
  if (v.type === "oauth2")
    return v.grant === "jwt_bearer" ? [["service_account", "JSON key"]] : [["client_secret", "Client secret"]];
  return [];
}

export function Editor({
  now,
  saved,
  cancel,
}: {
  now?: API.Credential;
  saved: (c: API.Credential) => unknown;
  cancel: string | (() => void);
}) {
  const f = now?.config ?? {};
  const form = useForm<CredentialValues>({
    name: now?.name ?? "",
    type: now?.type ?? "header",
    hosts: now?.hosts.join("\n") ?? "",
    rows: rowsOf(now),
    grant: f.grant ?? "authorization_code",
    auth_url: f.auth_url ?? "",
    token_url: f.token_url ?? "",
    device_url: f.device_url ?? "",
    issuer: f.issuer ?? "",
    client_id: f.client_id ?? "",
    scope: f.scope ?? "",
    token_auth: f.token_auth ?? "",
    subject: f.subject ?? "",
    region: f.region ?? "",
    service: f.service ?? "",
    test: f.test?.url ?? "",
  });
  const v = form.values;
  const [replace, setReplace] = useState(!now);
  const [failed, setFailed] = useState<Error>();
  const [busy, setBusy] = useState(false);
  const issue = (name: string) =>
    form.issues[name] ??
    form.issues[`config.${name}`] ??
    (name === "test" ? form.issues["config.test.url"] : undefined);
  const text: TextOf<CredentialValues> = (name) => ({ ...form.text(name), error: issue(name) });
  const submit = async () => {
    setFailed(undefined);
    const gap = replace && named.includes(v.type) ? gapIn(v.rows) : "";
    form.setIssues(gap ? { secret: gap } : {});
    if (gap) return;
    setBusy(true);
    try {
      const secret = replace ? (secretOf(v) ?? (now ? undefined : {})) : undefined;
      const hosts = v.type === "env" ? [] : v.hosts.split(/[\s,]+/).filter(Boolean);
      const body = { name: v.name, type: v.type, hosts, config: configOf(now, v), ...(secret && { secret }) };
      const made = await (now ? put(credentialsAt(now.id), body) : post(credentialsAt(), body));
      tell("Saved");
      await saved(made);
    } catch (error) {
      const issues = error instanceof ApiError ? error.issues : {};
      form.setIssues(issues);
      const fields = Object.keys(issues);
      if (fields.some((n) => n.startsWith("secret"))) setReplace(true);
      if (!fields.some((n) => n === "hosts" || n === "name" || n.startsWith("config.") || n.startsWith("secret")))
        setFailed(asError(error));
      setBusy(false);
    }
  };
  return (
    <form
      class="card stack narrow-card"
      noValidate
      onSubmit={(e) => {
        e.preventDefault();
        if (!busy) void submit();
      }}
    >
      <TextField label="Name" required {...text("name")} />
      <SelectField label="Type" options={types} {...form.choice("type")} />
      {v.type !== "env" && (
        <TextArea
          label="Sent to these hosts only"
          rows={2}
          code
          placeholder="api.example.com"
          hint="One per line: host, host:port or *.host. Plain http:// only for addresses the operator has allowed."
          {...text("hosts")}
        />
      )}
      {v.type === "oauth2" && <OAuth form={form} text={text} />}
      {v.type === "aws" && (
        <div class="row">
          <TextField label="Region" placeholder="from the host" {...text("region")} />
          <TextField label="Service" placeholder="from the host" {...text("service")} />
        </div>
      )}
      {replace || !now ? (
        <Secret form={form} now={now} />
      ) : (
        <div class="row">
          <span class="grow">
            Secret:{" "}
            {now.configured_fields.length ? (
              <>
                <bdi>{now.configured_fields.join(", ")}</bdi>, set
              </>
            ) : (
              "none"
            )}
          </span>
          <Button onClick={() => setReplace(true)}>Replace</Button>
        </div>
      )}
      {v.type !== "env" && (
        <TextField
          label="Test address"
          type="url"
          placeholder="https://api.example.com/me"
          hint="A GET request on one of the hosts; optional."
          {...text("test")}
        />
      )}
      {failed && <ErrorCard error={failed} />}
      <div class="row end">
        {typeof cancel === "string" ? (
          <LinkButton href={cancel}>Cancel</LinkButton>
        ) : (
          <Button onClick={cancel}>Cancel</Button>
        )}
        <Button kind="primary" submit disabled={busy}>
          Save
        </Button>
      </div>
    </form>
  );
}

function OAuth({ form, text }: { form: FormState<CredentialValues>; text: TextOf<CredentialValues> }) {
  const grant = form.values.grant;
  return (
    <>
      <SelectField label="Tokens come from" options={grants} {...form.choice("grant")} />
      {grant === "authorization_code" && (
        <TextField
          label="Authorization address"
          type="url"
          placeholder="https://example.com/oauth/authorize"
          {...text("auth_url")}
        />
      )}
      {grant === "device_code" && <TextField label="Device authorization address" type="url" {...text("device_url")} />}
      <TextField
        label="Token address"
        type="url"
        placeholder="https://example.com/oauth/token"
        {...text("token_url")}
      />
      <TextField label="Issuer" type="url" hint="Empty addresses are read from its metadata." {...text("issuer")} />
      {grant !== "jwt_bearer" && <TextField label="Client ID" {...text("client_id")} />}
      <TextField label="Scopes" hint="Separated by spaces." {...text("scope")} />
      {grant === "jwt_bearer" ? (
        <TextField label="Act for" hint="A user's email, with domain-wide delegation." {...text("subject")} />
      ) : (
        <SelectField
          label="Client secret is sent in"
          options={[
            ["", "the Authorization header"],
            ["body", "the body"],
          ]}
          {...form.choice("token_auth")}
        />
      )}
    </>
  );
}

function Secret({ form, now }: { form: FormState<CredentialValues>; now?: API.Credential }) {
  const v = form.values;
  const error = form.issue("secret");
  if (!named.includes(v.type))
    return (
      <>
        {fieldsOf(v).map(([name, label, plain]) => {
          const at = `secret.${name}` as const;
          const field = {
            label,
            value: v[at] ?? "",
            error: form.issue(at),
            onInput: (value: string) => form.set(at, value),
          };
          return name === "service_account" ? (
            <TextArea key={at} code rows={6} {...field} />
          ) : plain ? (
            <TextField key={at} {...field} />
          ) : (
            <SecretField
              key={at}
              {...field}
              hint={now && v.type === now.type ? "This replaces the whole secret." : undefined}
            />
          );
        })}
        {error && (
          <p class="issue small" role="alert">
            The secret {error}.
          </p>
        )}
      </>
    );
  const rows = v.rows;
  const set = (i: number, row: Row) =>
    form.set(
      "rows",
      rows.map((r, j) => (j === i ? row : r)),
    );
  const issues = rows.map((r) => form.issue(`secret.${r.name.trim()}`)).filter(Boolean);
  return (
    <fieldset class={error || issues.length ? "field wrong plain-fieldset" : "field plain-fieldset"}>
      <legend>Secret</legend>
      {rows.map((r, i) => (
        <div class="row nowrap" key={i}>
          <input
            class="grow"
            aria-label={`Name ${i + 1}`}
            placeholder={v.type === "header" ? "Authorization" : "Name"}
            value={r.name}
            onInput={(e) => set(i, { ...r, name: e.currentTarget.value })}
          />
          <input
            class="grow"
            type="password"
            autocomplete="off"
            aria-label={`Value ${i + 1}`}
            placeholder={v.type === "header" ? "Bearer …" : "Value"}
            value={r.value}
            onInput={(e) => set(i, { ...r, value: e.currentTarget.value })}
          />
          {rows.length > 1 && (
            <Button
              kind="quiet"
              icon="X"
              label="Remove"
              onClick={() =>
                form.set(
                  "rows",
                  rows.filter((_, j) => j !== i),
                )
              }
            />
          )}
        </div>
      ))}
      {rows.length < 8 && (
        <div>
          <Button icon="Plus" onClick={() => form.set("rows", [...rows, { name: "", value: "" }])}>
            Add
          </Button>
        </div>
      )}
      {error || issues.length ? (
        <small class="issue" role="alert">
          {error ?? issues[0]}
        </small>
      ) : (
        now && <small class="muted">This replaces the whole secret.</small>
      )}
    </fieldset>
  );
}
