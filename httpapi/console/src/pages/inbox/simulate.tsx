import { useState } from "preact/hooks";

import { go, href, path, post, useQuery } from "../../data";
import { Button, Dialog, Load, platformName, SelectField, TextArea, TextField } from "../../ui";

/** Takes in a message as if somebody had sent it over a channel. */
export function Simulate({ id, close }: { id: string; close: () => void }) {
  const found = useQuery(path("agents", id, "gateways"), { limit: 100 });
  const [form, setForm] = useState({ gateway: "", from: "", name: "", text: "" });
  const set = (name: string) => (value: string) => setForm((f) => ({ ...f, [name]: value }));
  return (
    <Dialog title="Simulate a message" close={close}>
      <Load of={found}>{({ gateways }) => {
        const active = gateways.filter((g: any) => g.status === "active");
        const gateway = form.gateway || active[0]?.id;
        if (!gateway) return <p>A message needs a channel that is active. <a href={href(id, "channels")} onClick={close}>Connect one</a>; a webhook with a secret is active at once.</p>;
        const send = async () => {
          const m = await post(path("agents", id, "gateways", gateway, "simulate"), { from: form.from, name: form.name, text: form.text });
          close();
          go(href(id, "inbox", m.conversation_id));
        };
        return (
          <div class="stack">
            <p class="muted">The message is treated like a real one: workflows start, and what answers it is really sent to this person.</p>
            <SelectField label="Channel" value={gateway} onChange={set("gateway")} options={active.map((g: any) => [g.id, `${platformName(g.type)}: ${g.name}`])} />
            <TextField label="From" hint="A number, an address or a user's id, as the platform names people" value={form.from} onInput={set("from")} />
            <TextField label="Name" value={form.name} onInput={set("name")} />
            <TextArea label="Message" value={form.text} onInput={set("text")} />
            <div class="row"><Button kind="primary" disabled={!form.from || !form.text} reason="From and Message are required" onClick={send}>Simulate</Button></div>
          </div>
        );
      }}</Load>
    </Dialog>
  );
}
