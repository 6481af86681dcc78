// The fields of a tool that sends an HTTP request.
import { PairsField, SelectField, TextField } from "../../ui";
import { CredentialFields } from "../../parts/credentials";
import { CodeField } from "./codefield";
import type { ToolFieldsProps } from "./fields";

const methods = ["GET", "POST", "PUT", "PATCH", "DELETE"];

/** The request of a tool. */
export function HTTPFields(props: ToolFieldsProps) {
  const { form, text, issue, disabled } = props;
  return (
    <>
      <div class="row address">
        <SelectField
          label="Method"
          disabled={disabled}
          options={methods.map((method) => [method, method])}
          {...form.choice("method")}
          error={issue("method")}
        />
        <TextField
          label="Address"
          required
          placeholder="https://api.example.com/orders/{{id}}"
          hint="Write arguments as {{name}}, after the host."
          {...text("url")}
        />
      </div>
      <CredentialFields form={form} kinds={["none", "stored", "bearer", "basic", "header"]} disabled={disabled} />
      <Pairs label="Headers" name="headers" {...props} />
      {form.values.method !== "GET" && <BodyFields {...props} />}
      <MoreFields {...props} />
    </>
  );
}

/** A field of pairs of texts. */
function Pairs({
  label,
  name,
  form,
  issue,
  disabled,
}: ToolFieldsProps & { label: string; name: "headers" | "query" | "files" }) {
  return (
    <PairsField
      label={label}
      pairs={form.values[name]}
      onChange={(pairs) => form.set(name, pairs)}
      disabled={disabled}
      error={issue(name)}
    />
  );
}

function BodyFields(props: ToolFieldsProps) {
  const { form, issue, disabled } = props;
  const { body, body_type } = form.values;
  return (
    <>
      <CodeField
        language="json"
        label="Body"
        rows={4}
        value={body}
        onInput={(json) => form.set("body", json)}
        readonly={disabled}
        issue={issue("body")}
        hint="JSON, with arguments as {{name}}; nothing when empty."
      />
      <SelectField
        label="Sent as"
        disabled={disabled}
        options={[
          ["", "JSON"],
          ["form", "Form fields"],
          ["multipart", "Form fields and files"],
        ]}
        {...form.choice("body_type")}
        error={issue("body_type")}
      />
      {body_type === "multipart" && <Pairs label="Files" name="files" {...props} />}
    </>
  );
}

function MoreFields(props: ToolFieldsProps) {
  const { text, issue } = props;
  const { response_path, timeout_ms, query } = props.form.values;
  const used = response_path !== "" || timeout_ms !== "" || query.length > 0;
  return (
    <details open={used || ["response_path", "timeout_ms", "query"].some(issue)}>
      <summary>More</summary>
      <div class="stack">
        <Pairs label="Query" name="query" {...props} />
        <div class="row">
          <TextField
            label="Part of the response"
            placeholder="data.items"
            hint="Empty: all of it."
            {...text("response_path")}
          />
          <TextField label="Time limit in ms" type="number" placeholder="30000" {...text("timeout_ms")} />
        </div>
      </div>
    </details>
  );
}
