// The dialog that registers an MCP server, or changes one.
import { useState } from "preact/hooks";

import { ApiError, invalidate, post, put, type API } from "../../data";
import { Button, FormDialog, SelectField, TextField, type FormState } from "../../ui";
import {
  authOf,
  credentialOf,
  CredentialFields,
  CredentialSelect,
  credentialTitle,
  type AuthValues,
} from "../../parts/credentials";
import { mcpAt } from "./paths";
import { showConnectionToast } from "./state";

type Values = { name: string; url: string; command: string } & AuthValues;

/** The values of the form for a stored server, or for a new one. */
function valuesOf(stored?: API.MCPServer): Values {
  const login = stored?.auth_type === "login";
  const usesCredential = stored?.credential && !login && !stored.command;
  return {
    name: stored?.name ?? "",
    url: stored?.url ?? "",
    command: stored?.command ?? "",
    "auth.type": usesCredential ? "stored" : (stored?.auth_type ?? "none"),
    "auth.credential": login ? "" : (stored?.credential ?? ""),
  };
}

/** The body of the request; without replacing, the stored credentials stay. */
function bodyOf(values: Values, replacing: boolean) {
  const { name, url, command } = values;
  if (command) return { name, url: "", command, auth: { type: "none" }, credential: values["auth.credential"] ?? "" };
  return { name, url, command: "", ...(replacing && { auth: authOf(values), credential: credentialOf(values) }) };
}

type Props = {
  /** The server to change; without one a new one is registered. */
  stored?: API.MCPServer;
  /** The programs that the operator allows. */
  commands: string[];
  close: () => void;
  done: (server: API.MCPServer) => unknown;
};

/** Registers a server, or changes one. Credentials are replaced as a whole. */
export function EditServer({ stored, commands, close, done }: Props) {
  const keepsSecret = stored && stored.auth_type !== "none" && (stored.auth_type === "login" || !stored.credential);
  const [replacing, setReplacing] = useState(!keepsSecret);
  const save = async (values: Values) => {
    const body = bodyOf(values, replacing);
    const server = await (stored ? put(mcpAt(stored.id), body) : post(mcpAt(), body)).catch((error) => {
      if (error instanceof ApiError && error.issues.auth) setReplacing(true);
      throw error;
    });
    showConnectionToast(server);
    invalidate(mcpAt());
    await done(server);
  };
  return (
    <FormDialog
      title={stored ? `Edit ${stored.name}` : "Add MCP server"}
      close={close}
      action={stored ? "Save" : "Add"}
      run={save}
      initial={valuesOf(stored)}
    >
      {(form) => (
        <>
          <TextField label="Name" autoFocus required placeholder="Tickets" {...form.text("name")} />
          <KindSelect form={form} commands={commands} stored={stored?.command} />
          {form.values.command ? (
            <ProgramFields form={form} />
          ) : (
            <>
              <TextField
                label="Address"
                type="url"
                required
                placeholder="https://mcp.example.com/mcp"
                {...form.text("url")}
              />
              {stored && !replacing ? (
                <div class="row">
                  <span class="grow">Credentials: {credentialTitle(stored.auth_type)}, set</span>
                  <Button onClick={() => setReplacing(true)}>Replace</Button>
                </div>
              ) : (
                <CredentialFields
                  form={form}
                  kinds={["none", "login", "stored", "bearer", "basic", "header", "oauth2"]}
                />
              )}
            </>
          )}
          {form.issue("auth") && (
            <p class="issue small" role="alert">
              Credentials {form.issue("auth")}.
            </p>
          )}
        </>
      )}
    </FormDialog>
  );
}

type FormProps = { form: FormState<Values> };

/** Whether the server has an address or is a program; stored is the program of a stored server. */
function KindSelect({ form, commands, stored }: FormProps & { commands: string[]; stored?: string }) {
  const programs = [...new Set(stored ? [...commands, stored] : commands)];
  if (!programs.length) return null;
  return (
    <SelectField
      label="Kind"
      options={[
        ["", "Server address"],
        ...programs.map((command): [string, string] => [command, `Program: ${command}`]),
      ]}
      {...form.choice("command")}
    />
  );
}

function ProgramFields({ form }: FormProps) {
  return (
    <>
      <CredentialSelect
        env
        label="Environment"
        value={form.values["auth.credential"] ?? ""}
        error={form.issue("credential")}
        onChange={(id) => form.set("auth.credential", id)}
      />
      <p class="muted small">Started as the operator's file says. It runs with Satchel's own privileges.</p>
    </>
  );
}
