// Connects a new channel: it is stored and verified in one step.
import { useRef } from "preact/hooks";

import { invalidate, post, put, type API } from "../../data";
import { Dialog, showOnce, showToast } from "../../ui";
import { channelsAt, verify } from "./api";
import { ChannelForm } from "./form";
import { platforms, type Platform } from "./platforms";

type ConnectFormProps = { platform: Platform; cancel: () => void; done: (id: string) => void };

/** The form of a new channel; done is called once it is verified. */
export function ConnectForm({ platform: p, cancel, done }: ConnectFormProps) {
  const made = useRef<API.SecretGatewayDetails>(undefined);
  const save = async (name: string, config: Record<string, unknown>) => {
    if (made.current) await put(channelsAt(made.current.id), { name, config });
    else made.current = await post(channelsAt(), { type: p.id, name, config });
    const g = made.current;
    invalidate(channelsAt());
    await verify(g.id);
    if (p.id === "webhook")
      await showOnce(
        "Webhook secret",
        "It signs what the agent posts and verifies what you post to the channel. It's shown only once.",
        String(config.secret ?? g.webhook_secret),
      );
    showToast(`${name} is connected`);
    done(g.id);
  };
  return <ChannelForm platform={p} name={p.title} stored={[]} action="Connect" cancel={cancel} save={save} />;
}

type ConnectDialogProps = { platform: string; close: () => void; done: (id: string) => void };

/** The form of a new channel of a platform, over the page. */
export function ConnectDialog({ platform, close, done }: ConnectDialogProps) {
  const found = platforms.find((p) => p.id === platform || p.type === platform)!;
  const finish = (id: string) => {
    close();
    done(id);
  };
  return (
    <Dialog title={`Connect ${found.title}`} close={close}>
      <p class="muted">{found.needs}</p>
      <ConnectForm platform={found} cancel={close} done={finish} />
    </Dialog>
  );
}
