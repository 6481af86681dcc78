// The form of a credential, with all its fields.
import { useState } from "preact/hooks";

import { ApiError, post, put, type API, asError } from "../../data";
import {
  AddRow,
  Button,
  ErrorCard,
  LinkButton,
  SecretField,
  SelectField,
  showToast,
  TextArea,
  TextField,
  useForm,
  type FormState,
  type TextOf,
} from "../../ui";
import { RedirectAddress } from "../../parts/credentials";
import { credentialsAt } from "./paths";

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
/** The types whose secret is values with names that the person chooses. */
const namedTypes = ["header", "query", "env"];
const maxRows = 8;

type Row = { name: string; value: string };

const oauthFields = [
  "grant",
  "auth_url",
  "token_url",
  "device_url",
  "issuer",
  "client_id",
  "scope",
  "token_auth",
  "subject",
] as const;
const awsFields = ["region", "service"] as const;

type CredentialValues = Record<(typeof oauthFields)[number] | (typeof awsFields)[number], string> & {
  name: string;
  type: API.Credential["type"];
  hosts: string;
  rows: Row[];
  test: string;
} & { [secret: `secret.${string}`]: string };

/** The values of the form for a stored credential, or for a new one. */
function valuesOf(stored?: API.Credential): CredentialValues {
  const config = stored?.config ?? {};
  return {
    name: stored?.name ?? "",
    type: stored?.type ?? "header",
    hosts: stored?.hosts.join("\n") ?? "",
    rows: rowsOf(stored),
    grant: config.grant ?? "authorization_code",
    auth_url: config.auth_url ?? "",
    token_url: config.token_url ?? "",
    device_url: config.device_url ?? "",
    issuer: config.issuer ?? "",
    client_id: config.client_id ?? "",
    scope: config.scope ?? "",
    token_auth: config.token_auth ?? "",
    subject: config.subject ?? "",
    region: config.region ?? "",
    service: config.service ?? "",
    test: config.test?.url ?? "",
  };
}

/**
 * The rows of a stored secret, whose values are entered again; those of a new one begin with the most common header.
 */
function rowsOf(stored?: API.Credential): Row[] {
  const names = stored && namedTypes.includes(stored.type) ? stored.configured_fields : [];
  const initial = stored ? "" : "Authorization";
  return (names.length ? names : [initial]).map((name) => ({ name, value: "" }));
}

/** The config for the values of the form; what the form does not show stays as stored. */
function configOf(stored: API.Credential | undefined, values: CredentialValues) {
  const config: Record<string, unknown> = { ...stored?.config };
  const set = (name: keyof CredentialValues & string) => {
    const value = String(values[name]).trim();
    if (value) config[name] = value;
    else delete config[name];
  };
  if (values.type === "oauth2") oauthFields.forEach(set);
  if (values.type === "aws") awsFields.forEach(set);
  if (values.test) config.test = { ...stored?.config.test, url: values.test.trim() };
  else delete config.test;
  return config;
}

/** The secret of the form; undefined if nothing was entered. */
function secretOf(values: CredentialValues): Record<string, string> | undefined {
  const entries = namedTypes.includes(values.type)
    ? values.rows.map(({ name, value }) => [name.trim(), value])
    : secretFields(values).map(({ name }) => [name, values[`secret.${name}`] ?? ""]);
  const entered = entries.filter(([name, value]) => name && value);
  return entered.length ? Object.fromEntries(entered) : undefined;
}

/** What is missing in rows of which some have a value; "" if nothing is. */
function missingIn(rows: Row[]) {
  if (!rows.some(({ value }) => value)) return "";
  if (rows.some(({ name, value }) => value && !name.trim())) return "Each value needs a name.";
  const incomplete = rows.find(({ name, value }) => name.trim() && !value);
  return incomplete ? `Enter the value of ${incomplete.name.trim()} as well, or remove its row.` : "";
}

type SecretFieldSpec = { name: string; label: string; kind: "secret" | "plain" | "file" };

/** The fields of the secret of types that have fixed ones. */
function secretFields({ type, grant }: CredentialValues): SecretFieldSpec[] {
  if (type === "basic")
    return [
      { name: "username", label: "User name", kind: "plain" },
      { name: "password", label: "Password", kind: "secret" },
    ];
  if (type === "aws")
    return [
      { name: "access_key_id", label: "Access key ID", kind: "plain" },
      { name: "secret_access_key", label: "Secret access key", kind: "secret" },
      { name: "session_token", label: "Session token", kind: "secret" },
    ];
  if (type !== "oauth2") return [];
  if (grant === "jwt_bearer") return [{ name: "service_account", label: "JSON key", kind: "file" }];
  return [{ name: "client_secret", label: "Client secret", kind: "secret" }];
}

type EditorProps = {
  /** The credential to change; without one a new one is created. */
  stored?: API.Credential;
  saved: (credential: API.Credential) => unknown;
  /** Where Cancel leads, or what it does. */
  cancel: string | (() => void);
};

/** Reports whether an issue of a field is shown in the form. */
const isShown = (field: string) =>
  field === "hosts" || field === "name" || field.startsWith("config.") || field.startsWith("secret");

/** Keeps the values of a credential's form, and creates or changes the credential. */
function useCredentialForm({ stored, saved }: EditorProps) {
  const form = useForm(valuesOf(stored));
  const [replacing, setReplacing] = useState(!stored);
  const [failure, setFailure] = useState<Error>();
  const [busy, setBusy] = useState(false);
  const bodyOf = (values: CredentialValues) => {
    const { name, type } = values;
    const entered = replacing ? secretOf(values) : undefined;
    const secret = entered ?? (stored ? undefined : {});
    const hosts = type === "env" ? [] : values.hosts.split(/[\s,]+/).filter(Boolean);
    return { name, type, hosts, config: configOf(stored, values), ...(secret && { secret }) };
  };
  const save = async () => {
    const { type, rows } = form.values;
    const missing = replacing && namedTypes.includes(type) ? missingIn(rows) : "";
    setFailure(undefined);
    form.setIssues(missing ? { secret: missing } : {});
    if (missing) return;
    setBusy(true);
    try {
      const body = bodyOf(form.values);
      const credential = await (stored ? put(credentialsAt(stored.id), body) : post(credentialsAt(), body));
      showToast("Saved");
      await saved(credential);
    } catch (error) {
      const issues = error instanceof ApiError ? error.issues : {};
      const fields = Object.keys(issues);
      form.setIssues(issues);
      if (fields.some((field) => field.startsWith("secret"))) setReplacing(true);
      if (!fields.some(isShown)) setFailure(asError(error));
      setBusy(false);
    }
  };
  return { form, replacing, replace: () => setReplacing(true), failure, busy, save };
}

/** Creates or changes a credential. */
export function Editor(props: EditorProps) {
  const { stored, cancel } = props;
  const { form, replacing, replace, failure, busy, save } = useCredentialForm(props);
  const { type } = form.values;
  const issue = (name: string) => {
    const { issues } = form;
    return issues[name] ?? issues[`config.${name}`] ?? (name === "test" ? issues["config.test.url"] : undefined);
  };
  const text: TextOf<CredentialValues> = (name) => ({ ...form.text(name), error: issue(name) });
  return (
    <form
      class="card stack narrow-card"
      noValidate
      onSubmit={(e) => {
        e.preventDefault();
        if (!busy) void save();
      }}
    >
      <TextField label="Name" required {...text("name")} />
      <SelectField label="Type" options={types} {...form.choice("type")} />
      {type !== "env" && (
        <TextArea
          label="Sent to these hosts only"
          rows={2}
          code
          placeholder="api.example.com"
          hint="One per line: host, host:port or *.host. Plain http:// only for addresses the operator has allowed."
          {...text("hosts")}
        />
      )}
      {type === "oauth2" && <OAuthFields form={form} text={text} />}
      {type === "aws" && (
        <div class="row">
          <TextField label="Region" placeholder="from the host" {...text("region")} />
          <TextField label="Service" placeholder="from the host" {...text("service")} />
        </div>
      )}
      {stored && !replacing ? (
        <StoredSecret fields={stored.configured_fields} replace={replace} />
      ) : (
        <SecretInput form={form} stored={stored} />
      )}
      {type !== "env" && (
        <TextField
          label="Test address"
          type="url"
          placeholder="https://api.example.com/me"
          hint="A GET request on one of the hosts; optional."
          {...text("test")}
        />
      )}
      {failure && <ErrorCard error={failure} />}
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

function StoredSecret({ fields, replace }: { fields: string[]; replace: () => void }) {
  return (
    <div class="row">
      <span class="grow">
        Secret:{" "}
        {fields.length ? (
          <>
            <bdi>{fields.join(", ")}</bdi>, set
          </>
        ) : (
          "none"
        )}
      </span>
      <Button onClick={replace}>Replace</Button>
    </div>
  );
}

function OAuthFields({ form, text }: { form: FormState<CredentialValues>; text: TextOf<CredentialValues> }) {
  const { grant } = form.values;
  return (
    <>
      <SelectField label="Tokens come from" options={grants} {...form.choice("grant")} />
      {grant === "authorization_code" && (
        <>
          <RedirectAddress />
          <TextField
            label="Authorization address"
            type="url"
            placeholder="https://example.com/oauth/authorize"
            {...text("auth_url")}
          />
        </>
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

type SecretInputProps = { form: FormState<CredentialValues>; stored?: API.Credential };

function SecretInput(props: SecretInputProps) {
  return namedTypes.includes(props.form.values.type) ? <NamedSecret {...props} /> : <FixedSecret {...props} />;
}

/** The secret of a type with fixed fields. */
function FixedSecret({ form, stored }: SecretInputProps) {
  const error = form.issue("secret");
  const replaces = stored && form.values.type === stored.type;
  return (
    <>
      {secretFields(form.values).map(({ name, label, kind }) => {
        const key = `secret.${name}` as const;
        const field = { label, ...form.text(key) };
        if (kind === "file") return <TextArea key={key} code rows={6} {...field} />;
        if (kind === "plain") return <TextField key={key} {...field} />;
        return <SecretField key={key} {...field} hint={replaces ? "This replaces the whole secret." : undefined} />;
      })}
      {error && (
        <p class="issue small" role="alert">
          The secret {error}.
        </p>
      )}
    </>
  );
}

/** The secret of a type whose values have names that the person chooses. */
function NamedSecret({ form, stored }: SecretInputProps) {
  const { rows, type } = form.values;
  const setRows = (next: Row[]) => form.set("rows", next);
  const issues = rows.map(({ name }) => form.issue(`secret.${name.trim()}`)).filter(Boolean);
  const error = form.issue("secret") ?? issues[0];
  return (
    <fieldset class={error ? "field wrong plain-fieldset" : "field plain-fieldset"}>
      <legend>Secret</legend>
      {rows.map((row, index) => (
        <SecretRow
          key={index}
          row={row}
          number={index + 1}
          isHeader={type === "header"}
          set={(change) => setRows(rows.with(index, { ...row, ...change }))}
          remove={rows.length > 1 ? () => setRows(rows.toSpliced(index, 1)) : undefined}
        />
      ))}
      {rows.length < maxRows && <AddRow title="Add" add={() => setRows([...rows, { name: "", value: "" }])} />}
      {error && (
        <small class="issue" role="alert">
          {error}
        </small>
      )}
      {!error && stored && <small class="muted">This replaces the whole secret.</small>}
    </fieldset>
  );
}

type SecretRowProps = {
  row: Row;
  number: number;
  isHeader: boolean;
  set: (change: Partial<Row>) => void;
  remove?: () => void;
};

function SecretRow({ row, number, isHeader, set, remove }: SecretRowProps) {
  return (
    <div class="row nowrap">
      <input
        class="grow"
        aria-label={`Name ${number}`}
        placeholder={isHeader ? "Authorization" : "Name"}
        value={row.name}
        onInput={(e) => set({ name: e.currentTarget.value })}
      />
      <input
        class="grow"
        type="password"
        autocomplete="off"
        aria-label={`Value ${number}`}
        placeholder={isHeader ? "Bearer …" : "Value"}
        value={row.value}
        onInput={(e) => set({ value: e.currentTarget.value })}
      />
      {remove && <Button kind="quiet" icon="X" label={`Remove ${row.name || number}`} onClick={remove} />}
    </div>
  );
}
