// How the state and the address of a form are shown.
import type { API } from "../../data";
import { Badge, CopyButton } from "../../ui";

/** Whether a form is online, and for whom. */
export function FormState({ form: { status, auth } }: { form: API.FormItem }) {
  if (status !== "active") return <Badge>{status}</Badge>;
  if (!auth)
    return (
      <Badge tone="warn" title="Only people with the admin role see it.">
        for admins
      </Badge>
    );
  return <Badge tone="good">{auth === "none" ? "open" : "with a password"}</Badge>;
}

/** The address of a form's page. */
export function Address({ url }: { url: string }) {
  return (
    <span class="address">
      <a href={url} target="_blank" rel="noopener">
        {url}
      </a>
      <CopyButton text={url} />
    </span>
  );
}
