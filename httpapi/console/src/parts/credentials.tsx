// How a call shows who it is: credentials of tools and MCP servers.
import { agentId, href, path, useQuery } from "../data";
import { CopyField, SecretField, SelectField, TextField, type FormState } from "../ui";

type AuthField = { name: string; label: string; secret?: boolean; hint?: string };

const kinds: Record<string, { title: string; fields: AuthField[] }> = {
  none: { title: "None", fields: [] },
  stored: { title: "Credential of this agent", fields: [] },
  bearer: { title: "Bearer token", fields: [{ name: "token", label: "Token", secret: true }] },
  basic: {
    title: "User and password",
    fields: [
      { name: "username", label: "User name" },
      { name: "password", label: "Password", secret: true },
    ],
  },
  header: {
    title: "A header",
    fields: [
      { name: "name", label: "Header" },
      { name: "value", label: "Value", secret: true },
    ],
  },
  login: {
    title: "A person signs in",
    fields: [
      { name: "client_id", label: "Client ID" },
      { name: "client_secret", label: "Client secret", secret: true },
      { name: "scope", label: "Scopes", hint: "Empty: those the server asks for." },
    ],
  },
  oauth2: {
    title: "OAuth 2 (client credentials)",
    fields: [
      { name: "client_id", label: "Client ID" },
      { name: "client_secret", label: "Client secret", secret: true },
      { name: "token_url", label: "Token address", hint: "Empty: from the server's metadata." },
      { name: "scope", label: "Scopes" },
    ],
  },
};

/** The fields of credentials in a form: auth.type, auth.token and so on; auth.token.stored says that one is stored. */
export type AuthValues = { [field: `auth.${string}`]: string };

const masked = (v: unknown) => typeof v === "string" && /^\*+$/.test(v);

/** Returns the title of a kind of credential. */
export const credentialTitle = (kind: string) => kinds[kind]?.title ?? kind;

/** Chooses one of the agent's credentials, by id. */
export function CredentialSelect({
  label = "Credential",
  env = false,
  value,
  onChange,
  error,
  disabled,
}: {
  label?: string;
  /** Those for programs, and none is possible. */ env?: boolean;
  value: string;
  onChange: (id: string) => void;
  error?: string;
  disabled?: boolean;
}) {
  const found = useQuery(path("agents", agentId.value, "credentials"), { limit: 200 });
  const usable = (found.data.value?.credentials ?? []).filter((c) => (c.type === "env") === env);
  const known = usable.some((c) => c.id === value);
  const named = usable.find((c) => c.name.toLowerCase() === value.toLowerCase());
  const options: [string, string][] = [
    ["", env ? "None" : usable.length ? "Choose one" : "None yet"],
    ...(value && !known && !named ? [[value, value] as [string, string]] : []),
    ...usable.map(
      (c) => [c.id, c.status === "ready" ? c.name : `${c.name} (${c.status.replace("_", " ")})`] as [string, string],
    ),
  ];
  return (
    <SelectField
      label={label}
      options={options}
      value={named?.id ?? value}
      onChange={onChange}
      error={error}
      disabled={disabled}
      hint={
        <a href={href(agentId.value, "credentials")} target="_blank">
          Manage credentials
        </a>
      }
    />
  );
}

/** The address to which providers send a person back, which they want before they give a client ID. */
export function RedirectAddress() {
  const found = useQuery(path("agents", agentId.value, "credentials"), { limit: 1 });
  const address = found.data.value?.redirect_url;
  return address ? <CopyField label="Redirect address to register with the provider" text={address} /> : null;
}

/** The fields of credentials. */
export function CredentialFields({
  form: f,
  kinds: which,
  disabled,
}: {
  form: FormState<AuthValues>;
  kinds: string[];
  disabled?: boolean;
}) {
  const type = f.values["auth.type"] || "none";
  const fields = kinds[type].fields.map(({ name, label, secret, hint }) => {
    const at = `auth.${name}` as const;
    const common = {
      label,
      hint,
      disabled,
      value: f.values[at] ?? "",
      error: f.issue(at) ?? f.issue(`config.${at}`),
      onInput: (v: string) => f.set(at, v),
    };
    return secret ? (
      <SecretField key={at} {...common} stored={Boolean(f.values[`${at}.stored`])} />
    ) : (
      <TextField key={at} {...common} />
    );
  });
  return (
    <>
      <SelectField
        label="Credentials"
        disabled={disabled}
        options={which.map((k) => [k, kinds[k].title])}
        {...f.choice("auth.type")}
        value={type}
      />
      {type === "stored" && (
        <CredentialSelect
          disabled={disabled}
          value={f.values["auth.credential"] ?? ""}
          error={f.issue("credential") ?? f.issue("config.credential")}
          onChange={(id) => f.set("auth.credential", id)}
        />
      )}
      {type === "login" ? (
        <>
          <p class="muted small">
            You sign in with the provider after adding the server. Satchel registers itself with the provider.
          </p>
          <details class="more-fields" open={kinds.login.fields.some((field) => f.issue(`auth.${field.name}`))}>
            <summary>Did the provider give you a client ID?</summary>
            <div class="stack">
              <RedirectAddress />
              {fields}
            </div>
          </details>
        </>
      ) : (
        fields
      )}
    </>
  );
}

/** The credentials of a form, as the API takes them; secrets that were not typed stay masked when they are stored. */
export function authOf(values: AuthValues): Record<string, string> {
  const type = values["auth.type"] === "stored" ? "none" : values["auth.type"] || "none";
  const auth: Record<string, string> = { type };
  for (const { name, secret } of kinds[type].fields) {
    const value = values[`auth.${name}`] || (secret && values[`auth.${name}.stored`] ? "********" : "");
    if (value) auth[name] = value;
  }
  return auth;
}

/** The id of the stored credential that a form chooses, or "". */
export const credentialOf = (values: AuthValues): string =>
  values["auth.type"] === "stored" ? (values["auth.credential"] ?? "") : "";

/** The values of a form for credentials whose secrets are masked, or for a stored one. */
export function authValues(auth?: Record<string, string> | null, credential?: string): AuthValues {
  if (credential) return { "auth.type": "stored", "auth.credential": credential };
  const values: AuthValues = { "auth.type": auth?.type ?? "none" };
  for (const [name, value] of Object.entries(auth ?? {})) {
    if (name === "type") continue;
    values[`auth.${name}`] = masked(value) ? "" : value;
    if (masked(value)) values[`auth.${name}.stored`] = "yes";
  }
  return values;
}
