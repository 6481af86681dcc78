// A message as if somebody had sent it over a channel.
import { go, href, path, post, useQuery } from "../data";
import { Dialog, FormDialog, Load, platformName, SelectField, Switch, TextArea, TextField } from "../ui";

/** Takes in a message as if somebody had sent it over a channel: the one that is named, or the first active one. */
export function Simulate({ id, close, gateway }: { id: string; close: () => void; gateway?: string }) {
  const found = useQuery(path("agents", id, "gateways"), { limit: 100 });
  const active = (found.data.value?.gateways ?? []).filter((g) => g.status === "active");
  if (!active.length)
    return (
      <Dialog title="Simulate a message" close={close}>
        <Load of={found}>
          {() => (
            <p>
              Messages need an active channel.{" "}
              <a href={href(id, "channels")} onClick={close}>
                Connect one
              </a>
              ; a webhook with a secret is active at once.
            </p>
          )}
        </Load>
      </Dialog>
    );
  const chosen = active.some((g) => g.id === gateway) ? gateway : active[0].id;
  const initial = { gateway: chosen!, from: "", name: "", text: "", send: false };
  const send = async (v: typeof initial) => {
    const m = await post(path("agents", id, "gateways", v.gateway, "simulate"), {
      from: v.from,
      name: v.name,
      text: v.text,
      send: v.send,
    });
    go(href(id, "inbox", m.conversation_id));
  };
  return (
    <FormDialog
      title="Simulate a message"
      close={close}
      action="Send"
      initial={initial}
      ready={(v) => Boolean(v.from.trim() && v.text.trim())}
      run={send}
    >
      {(f) => (
        <>
          <p class="muted">Treated like a real message, but replies are only shown in the conversation.</p>
          <SelectField
            label="Channel"
            options={active.map((g): [string, string] => [g.id, `${platformName(g.type)}: ${g.name}`])}
            {...f.choice("gateway")}
          />
          <TextField
            label="From"
            required
            hint="A number, an address or a user ID, as the platform identifies people"
            {...f.text("from")}
          />
          <TextField label="Name" {...f.text("name")} />
          <TextArea label="Message" {...f.text("text")} />
          <Switch label="Really send replies" checked={f.values.send} onChange={(on) => f.set("send", on)} />
        </>
      )}
    </FormDialog>
  );
}
