// The page that links to a live view lead to. The link is its access: it knows
// nothing of the console or of API keys.
import { effect } from "@preact/signals";
import { render } from "preact";
import { useState } from "preact/hooks";

import { openLive, LiveViewEnded, type Grant } from "./parts/live/connection";
import { LiveView, TimeLeft } from "./parts/live/view";
import "./css/live-page.css";

const session = decodeURIComponent(location.pathname.split("/")[2] ?? "");
const token = new URLSearchParams(location.search).get("token") ?? "";
const address = (path: string) => `/live/${encodeURIComponent(session)}/${path}?${new URLSearchParams({ token })}`;

async function grant(): Promise<Grant> {
  const answer = await fetch(address("state"), { cache: "no-store" });
  const body = await answer.json().catch(() => ({}));
  if (answer.ok) return { ...body, token };
  if (answer.status === 429 || answer.status >= 500) throw new Error();
  const why: Record<number, string> = {
    404: "This session has ended.",
    409: "This takeover has ended. You can close this page.",
  };
  throw new LiveViewEnded(why[answer.status] ?? body.error?.message ?? "This link isn't valid.");
}

const live = openLive({ root: new URL("/", location.href), session, grant });
effect(() => {
  document.title = live.title.value ? `${live.title.value} · live view` : "Live view";
});

/** What the person may do, in a few words, and the class of that. */
function stateOf(inTakeover: boolean): [string, string] {
  if (live.state.value === "over") return ["Ended", ""];
  if (live.state.value !== "open" || !live.status.value) return ["Connecting…", ""];
  const control = live.may.value?.control;
  if (control && (inTakeover || live.status.value !== "takeover")) return ["You are in control", "good"];
  if (live.status.value === "takeover")
    return [control ? "Another person is in control too" : "A person is in control", "warn"];
  return ["You are watching", "busy"];
}

/** What the agent asks for, and the way back to it. */
function TakeoverRequest() {
  const [note, setNote] = useState("");
  const [busy, setBusy] = useState(false);
  const t = live.takeover.value!;
  const done = async () => {
    setBusy(true);
    const answer = await fetch(address("complete"), {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ note }),
    }).catch(() => null);
    setBusy(false);
    if (answer && (answer.ok || answer.status === 409))
      live.end("Thank you. The agent continues; you can close this page.");
    else live.note.value = "That did not work. Please try again.";
  };
  return (
    <div id="takeover">
      <p>
        <strong id="reason">{t.reason || "The agent asks for your help."}</strong> <TimeLeft until={t.expires_at} />
      </p>
      <div class="live-done">
        <input
          id="said"
          aria-label="A note for the agent"
          placeholder="Optional"
          maxLength={2000}
          value={note}
          onInput={(e) => setNote(e.currentTarget.value)}
        />
        <button id="done" type="button" class="button primary" disabled={busy} onClick={done}>
          Done, give control back
        </button>
      </div>
    </div>
  );
}

function Page() {
  const inTakeover = Boolean(live.takeover.value && live.may.value?.takeover_id === live.takeover.value.takeover_id);
  const [text, tone] = stateOf(inTakeover);
  return (
    <>
      {inTakeover && <TakeoverRequest />}
      <LiveView live={live} lines>
        <span id="state" class={`badge ${tone}`} role="status">
          {text}
        </span>
      </LiveView>
    </>
  );
}

render(<Page />, document.getElementById("live")!);
