// The script that websites load: a button, and the frame with the conversation.
// It keeps nothing, and knows nothing of what is said.
(() => {
  type Options = { user?: string; userHash?: string };
  const script = document.currentScript as HTMLScriptElement | null;
  const name = script?.dataset.widget;
  const warn = (text: string) => console.warn(`Satchel widget: ${text}`);
  if (!script || !name) return warn("the script needs data-widget.");
  const at = new URL(`widget/${name}`, script.src);
  const options: Options = { user: script.dataset.user, userHash: script.dataset.userHash };
  let frame: HTMLIFrameElement | undefined;
  let shown = false; // as the page or the visitor last asked, even before it is drawn
  let drawn = false;
  let frameLoaded = false;

  const style = `
    :host { all: initial; }
    button { position: fixed; right: max(20px, env(safe-area-inset-right)); bottom: max(20px, env(safe-area-inset-bottom)); width: 56px; height: 56px; padding: 0; border: 0; border-radius: 50%;
      color: var(--ink); background: var(--color); box-shadow: 0 4px 16px rgb(0 0 0 / .28); cursor: pointer; z-index: 2147483000; }
    button:focus-visible { outline: 3px solid var(--color); outline-offset: 3px; }
    svg { width: 26px; height: 26px; vertical-align: middle; fill: none; stroke: currentColor; stroke-width: 1.9; stroke-linecap: round; stroke-linejoin: round; }
    b { position: absolute; top: -2px; right: -2px; min-width: 20px; padding: 0 5px; box-sizing: border-box; border: 2px solid #fff; border-radius: 12px; background: #b3261e; color: #fff; font: 600 12px/18px system-ui, sans-serif; }
    iframe { position: fixed; right: max(20px, env(safe-area-inset-right)); bottom: 92px; width: min(390px, calc(100vw - 40px)); height: min(620px, calc(100dvh - 112px)); border: 0; border-radius: 14px;
      box-shadow: 0 10px 40px rgb(0 0 0 / .3); background: #fff; z-index: 2147483001; color-scheme: normal; }
    [hidden] { display: none; }
    @media (max-width: 480px) { iframe { inset: 0; width: 100%; height: 100dvh; border-radius: 0; } .open { display: none; } }
    @media print { button, iframe { display: none; } }`;

  const host = document.createElement("satchel-widget");
  const button = document.createElement("button");
  const badge = document.createElement("b");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  const bubble = "M21 11.5a8.4 8.4 0 0 1-12 7.6L3 21l1.9-6a8.5 8.5 0 1 1 16.1-3.5Z";

  /** Black or white, whichever is easier to read on a color. */
  function textColorOn(color: string) {
    const [r, g, b] = [1, 3, 5].map((i) => {
      const c = parseInt(color.slice(i, i + 2), 16) / 255;
      return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000" : "#fff";
  }

  function draw(title: string, color: string) {
    const shadow = host.attachShadow({ mode: "open" });
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(style);
    shadow.adoptedStyleSheets = [sheet];
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("viewBox", "0 0 24 24");
    svg.setAttribute("aria-hidden", "true");
    path.setAttribute("d", bubble);
    svg.append(path);
    host.role = "complementary";
    host.ariaLabel = title;
    button.type = "button";
    button.ariaLabel = title;
    button.ariaExpanded = "false";
    badge.hidden = true;
    button.append(svg, badge);
    button.onclick = () => show(!shown);
    host.style.setProperty("--color", color);
    host.style.setProperty("--ink", textColorOn(color));
    shadow.append(button);
    document.body.append(host);
    drawn = true;
    if (shown) show(true);
  }

  /** Sends the frame a message, which no other page receives. */
  const postToFrame = (message: object) => {
    if (frameLoaded) frame?.contentWindow?.postMessage({ satchel: true, ...message }, at.origin);
  };

  function show(on: boolean) {
    shown = on;
    if (!drawn) return;
    if (on && !frame) {
      frame = document.createElement("iframe");
      frame.title = button.ariaLabel ?? "";
      frame.onload = () => {
        frameLoaded = true;
        postToFrame({ kind: "begin", ...options });
        postToFrame({ kind: shown ? "shown" : "hidden" });
      };
      frame.src = at.href;
      host.shadowRoot!.append(frame);
    }
    if (!frame) return;
    frame.hidden = !on;
    button.ariaExpanded = String(on);
    button.className = on ? "open" : "";
    path.setAttribute("d", on ? "m6 9 6 6 6-6" : bubble);
    postToFrame({ kind: on ? "shown" : "hidden" });
    (on ? frame : button).focus();
  }

  /** Asks for what lets the frame begin a conversation. Browsers say by themselves of which page they are. */
  async function sendTicket() {
    try {
      const answer = await fetch(`${at.href}/ticket`, { method: "POST", credentials: "omit" });
      postToFrame({ kind: "ticket", ...(answer.ok ? await answer.json() : { failed: answer.status }) });
    } catch {
      postToFrame({ kind: "ticket", failed: 0 });
    }
  }

  addEventListener("message", (e) => {
    if (!frame || e.source !== frame.contentWindow || e.origin !== at.origin || e.data?.satchel !== true) return;
    if (e.data.kind === "ticket?") void sendTicket();
    if (e.data.kind === "close") show(false);
    if (e.data.kind === "unread") {
      badge.hidden = !(e.data.count > 0);
      badge.textContent = e.data.count > 9 ? "9+" : String(Number(e.data.count));
    }
  });

  const api = {
    open: () => show(true),
    close: () => show(false),
    toggle: () => show(!shown),
    /** Names the user whom the website vouches for, or without arguments no user. */
    identify: (user?: string, userHash?: string) => {
      options.user = user;
      options.userHash = userHash;
      postToFrame({ kind: "user", ...options });
    },
  };
  type Call = [name: string, ...args: string[]];
  /** Makes calls that a page queues, such as ["open"]. */
  const push = (...calls: (string | Call)[]) => {
    for (const call of calls) {
      const [name, ...args] = typeof call === "string" ? [call] : call;
      const known = Object.entries(api).find(([key]) => key === name);
      if (known) (known[1] as (...args: string[]) => void)(...args);
      else warn(`it has no ${name}.`);
    }
  };
  // A page that calls before this script is loaded has an array in its place.
  const page = window as { Satchel?: unknown };
  const queued = Array.isArray(page.Satchel) ? (page.Satchel as Call[]) : [];
  page.Satchel = { ...api, push };
  push(...queued);

  const begin = () =>
    fetch(`${at.href}/settings`, { credentials: "omit" })
      .then(async (answer) => {
        if (!answer.ok) throw new Error();
        const { title, color } = await answer.json();
        draw(title, color);
      })
      .catch(() =>
        warn(
          `it is not shown: ${location.origin} is not among the origins of this widget, or the widget is not active.`,
        ),
      );
  if (document.body) void begin();
  else addEventListener("DOMContentLoaded", begin);
})();
