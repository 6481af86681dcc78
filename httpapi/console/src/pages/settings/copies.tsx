// Backups and copies of the agent.
import type { ComponentChildren } from "preact";

import { agent, download, go, href, loadSession, mayEdit, post } from "../../data";
import { Button, FormDialog, Icon, openDialog, showToast, TextField } from "../../ui";
import { agentAt } from "./paths";

/** The tab of backups and copies. */
export function Copies() {
  const disabled = !mayEdit.value;
  const openCopyDialog = () => {
    openDialog((close) => <CopyDialog name={agent.value?.name} close={close} />);
  };
  return (
    <>
      <Section
        title="Backup"
        text={
          "A consistent copy of the agent's file, made while it runs. It contains everything; " +
          "credentials stay encrypted with the server's master key."
        }
      >
        <Button
          icon="Download"
          kind="primary"
          disabled={disabled}
          reason="Viewers can't download backups."
          onClick={() => download("POST", agentAt("backup"))}
        >
          Download backup
        </Button>
      </Section>
      <Section title="Copy" text="Another agent with the same content, paused so that nothing is sent twice.">
        <Button icon="Copy" disabled={disabled} reason="Viewers can't copy agents." onClick={openCopyDialog}>
          Copy agent
        </Button>
      </Section>
      <Section title="Restore a backup" text="It becomes a new, paused agent.">
        <a class="button" href="#/agents">
          <Icon name="Upload" size={16} />
          <span>Import on the agents page</span>
        </a>
      </Section>
    </>
  );
}

function Section({ title, text, children }: { title: string; text: string; children: ComponentChildren }) {
  return (
    <section class="card stack">
      <h2>{title}</h2>
      <p class="muted">{text}</p>
      <div class="row">{children}</div>
    </section>
  );
}

function CopyDialog({ name, close }: { name?: string; close: () => void }) {
  const run = async (values: { name: string }) => {
    const from = location.hash;
    const copy = await post(agentAt("fork"), values);
    showToast(`${copy.name} is ready, and paused.`);
    await loadSession();
    if (location.hash === from) go(href(copy.id));
  };
  return (
    <FormDialog title={`Copy ${name}`} close={close} action="Copy" initial={{ name: `${name}-copy` }} run={run}>
      {(form) => <TextField label="Name of the copy" required autoFocus {...form.text("name")} />}
    </FormDialog>
  );
}
