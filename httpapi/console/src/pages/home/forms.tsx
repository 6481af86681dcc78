// The forms of the first steps, and the dialog that adds a site.
import { useState } from "preact/hooks";

import { agentId, ApiError, href, path, useQuery } from "../../data";
import { Button, Load, openDialog, showToast, TextField, useForm } from "../../ui";
import { FileButton } from "../../parts/files";
import { ModelForm } from "../../parts/model";
import { AddSite, addSite } from "../knowledge/add";
import { exampleHandbook } from "../knowledge/example";

export { AddSite };

/** What a form calls: done when its step may be complete, and upload, which the page has loaded. */
export type StepProps = { done: () => Promise<void>; upload: (files: File[]) => Promise<void> };

/** Files, an example, or the address of a site. */
export function KnowledgeStep({ done, upload: send }: StepProps) {
  const form = useForm({ url: "" });
  const [busy, setBusy] = useState(false);
  const upload = (files: File[]) => send(files).then(done);
  const submit = async () => {
    if (!form.values.url.trim()) {
      form.setIssues({ url: "Enter the address of a site." });
      return;
    }
    setBusy(true);
    try {
      await addSite(form.values);
      showToast("The site is being read");
      await done();
    } catch (error) {
      if (error instanceof ApiError && error.issues.url) form.setIssues(error.issues);
      else showToast(error);
    }
    setBusy(false);
  };
  return (
    <>
      <div class="row">
        <FileButton field="Documents" icon="Upload" kind="primary" choose={(files) => void upload(files)}>
          Choose documents
        </FileButton>
        <Button icon="Sparkles" onClick={() => upload([exampleHandbook()])}>
          Use an example
        </Button>
        <span class="muted small">Or drop files and folders anywhere on this page.</span>
      </div>
      <form
        class="stack"
        noValidate
        onSubmit={(e) => {
          e.preventDefault();
          if (!busy) void submit();
        }}
      >
        <TextField
          label="Address of a site"
          placeholder="https://docs.example.com"
          hint="Up to 50 pages, three links deep."
          {...form.text("url")}
        />
        <div class="row end">
          <Button
            onClick={() => {
              openDialog((close) => <AddSite close={close} url={form.values.url} />);
            }}
          >
            More options
          </Button>
          <Button submit disabled={busy}>
            Add site
          </Button>
        </div>
      </form>
      <p class="muted small">
        <a href={href(agentId.value, "knowledge")}>APIs and tables</a> are added in Knowledge.
      </p>
    </>
  );
}

/** The language model, with a test. */
export function ModelStep({ done }: StepProps) {
  const found = useQuery(path("agents", agentId.value, "settings"));
  const saved = async () => {
    await found.reload();
    await done();
  };
  return (
    <Load of={found} lines={5}>
      {(s) => <ModelForm s={s} done={saved} plain />}
    </Load>
  );
}
