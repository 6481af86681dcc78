// The page of a live view: a picture of the session, and the visitor's hands in
// it. Everything that comes from the session is shown as text or as a picture.
"use strict";

const $ = (id) => document.getElementById(id);
const session = decodeURIComponent(location.pathname.split("/")[2] || "");
const token = new URLSearchParams(location.search).get("token") || "";
const coarse = matchMedia("(pointer: coarse)").matches;

let me = null; // what the link allows
let socket = null;
let logs = null;
let shown = ""; // the tab in the picture
let viewport = { width: 1280, height: 720 };
let takeover = null;
let over = false; // nothing more comes
let tries = 0;

const address = (path, query) => {
  const q = new URLSearchParams({ token, ...query });
  return `/${path}?${q}`;
};
const socketAddress = (path, query) => {
  const u = new URL(address(path, query), location.href);
  u.protocol = u.protocol === "https:" ? "wss:" : "ws:";
  return u.href;
};

function note(text) {
  $("note").textContent = text;
  $("note").hidden = !text;
}

function end(text) {
  over = true;
  document.body.classList.remove("controls");
  $("takeover").hidden = true;
  $("state").textContent = "Ended";
  $("state").className = "";
  if (logs) logs.close();
  note(text);
}

async function begin() {
  let answer;
  try {
    answer = await fetch(address(`live/${encodeURIComponent(session)}/state`), { cache: "no-store" });
  } catch {
    return again();
  }
  const body = await answer.json().catch(() => ({}));
  if (answer.status === 429 || answer.status >= 500) return again();
  if (!answer.ok) {
    const why = { 404: "This session has ended.", 409: "This takeover is over. You can close this page." };
    return end(why[answer.status] || (body.error && body.error.message) || "This link does not work.");
  }
  me = body;
  viewport = me.viewport;
  connect();
}

function again() {
  note("The connection was lost. Trying again…");
  setTimeout(begin, Math.min(500 * 2 ** tries++, 10000));
}

function connect() {
  const width = $("stage").clientWidth * Math.min(devicePixelRatio, 2);
  const scale = Math.max(0.3, Math.min(1, Math.ceil((width / viewport.width) * 10) / 10));
  socket = new WebSocket(socketAddress(`v1/sessions/${encodeURIComponent(session)}/cast`, { status: "1", scale: String(scale) }));
  socket.onopen = () => {
    tries = 0;
    note("");
    document.body.classList.toggle("controls", me.control);
    $("address").readOnly = !me.control;
  };
  socket.onmessage = (e) => receive(JSON.parse(e.data));
  socket.onclose = (e) => {
    if (over) return;
    if (e.code === 1000 && e.reason === "the takeover is over") return end("This takeover is over; the agent goes on. You can close this page.");
    if (e.code === 1000) return end("This session has ended.");
    $("state").textContent = "Connecting…";
    $("state").className = "";
    again();
  };
}

function send(message) {
  if (socket && socket.readyState === WebSocket.OPEN && me && me.control) socket.send(JSON.stringify(message));
}

function receive(m) {
  switch (m.type) {
    case "tabList":
      return showTabs(m);
    case "tabClosed":
      return;
    case "status":
      return showStatus(m);
    case "selectedTextResponse":
      if (m.text && navigator.clipboard) navigator.clipboard.writeText(m.text).catch(() => {});
      return;
  }
  if (m.data) {
    shown = m.pageId;
    $("screen").src = "data:image/jpeg;base64," + m.data;
    document.title = m.title ? `${m.title} · live view` : "Live view";
    showAddress(m.url);
  }
}

function showAddress(url) {
  if (document.activeElement !== $("address")) $("address").value = url === "about:blank" ? "" : url;
}

function picture(url) {
  return typeof url === "string" && url.startsWith("data:image/");
}

function showTabs(list) {
  const tabs = list.tabs.map((t) => {
    const tab = document.createElement("div");
    tab.className = "tab" + (t.pageId === list.activeTabId ? " active" : "");
    if (picture(t.favicon)) {
      const icon = document.createElement("img");
      icon.src = t.favicon;
      icon.alt = "";
      tab.append(icon);
    }
    const name = document.createElement("button");
    name.type = "button";
    name.className = "name";
    name.role = "tab";
    name.ariaSelected = String(t.pageId === list.activeTabId);
    name.textContent = t.title || (t.url === "about:blank" ? "New tab" : t.url) || "New tab";
    name.title = t.url;
    name.onclick = () => send({ type: "selectTab", pageId: t.pageId });
    const shut = document.createElement("button");
    shut.type = "button";
    shut.className = "shut";
    shut.textContent = "×";
    shut.ariaLabel = "Close " + name.textContent;
    shut.onclick = () => send({ type: "closeTab", pageId: t.pageId });
    tab.append(name, shut);
    return tab;
  });
  $("tabs").replaceChildren(...tabs);
  const active = list.tabs.find((t) => t.pageId === list.activeTabId);
  if (active) showAddress(active.url);
}

function showStatus(m) {
  viewport = m.viewport;
  takeover = m.takeover;
  const mine = me.takeover_id && takeover && takeover.takeover_id === me.takeover_id;
  $("takeover").hidden = !mine;
  if (mine) $("reason").textContent = takeover.reason || "The agent asks for your help.";
  const state = $("state");
  if (me.control && (mine || m.status !== "takeover")) {
    state.textContent = "You are in control";
    state.className = "control";
  } else if (m.status === "takeover") {
    state.textContent = me.control ? "Another person is in control too" : "A person is in control";
    state.className = "other";
  } else {
    state.textContent = "You are watching";
    state.className = "watch";
  }
  count();
}

function count() {
  if (!takeover) return;
  const left = Math.max(0, Math.round((Date.parse(takeover.expires_at) - Date.now()) / 1000));
  $("left").textContent = `${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")} left`;
}
setInterval(count, 1000);

$("done").onclick = async () => {
  $("done").disabled = true;
  const answer = await fetch(address(`live/${encodeURIComponent(session)}/complete`), { method: "POST" }).catch(() => null);
  $("done").disabled = false;
  if (answer && (answer.ok || answer.status === 409)) end("Thank you. The agent goes on; you can close this page.");
  else note("That did not work. Please try again.");
};

// Navigation.
$("bar").onsubmit = (e) => {
  e.preventDefault();
  const url = $("address").value.trim();
  if (!url) return;
  send({ type: "navigation", action: "goto", url }); // the server adds the scheme
  $("stage").focus();
};
$("address").onfocus = () => $("address").select();
for (const action of ["back", "forward", "refresh"]) $(action).onclick = () => send({ type: "navigation", action });
$("new").onclick = () => send({ type: "newTab" });

// The mouse. The picture keeps its proportions, so it may have bars beside it.
function place(e) {
  const box = $("screen").getBoundingClientRect();
  const scale = Math.min(box.width / viewport.width, box.height / viewport.height);
  const x = (e.clientX - box.left - (box.width - viewport.width * scale) / 2) / scale;
  const y = (e.clientY - box.top - (box.height - viewport.height * scale) / 2) / scale;
  return { x: Math.round(x * 10) / 10, y: Math.round(y * 10) / 10, in: x >= 0 && y >= 0 && x <= viewport.width && y <= viewport.height, scale };
}
const modifiers = (e) => (e.altKey ? 1 : 0) | (e.ctrlKey ? 2 : 0) | (e.metaKey ? 4 : 0) | (e.shiftKey ? 8 : 0);
const buttons = ["left", "middle", "right", "back", "forward"];
function mouse(event, p, e, more) {
  send({ type: "mouseEvent", event, x: p.x, y: p.y, modifiers: modifiers(e), ...more });
}

let moved = null; // the newest move that was not sent yet
function move(p, e) {
  if (!moved) {
    requestAnimationFrame(() => {
      if (moved) mouse("mouseMoved", moved.p, moved.e);
      moved = null;
    });
  }
  moved = { p, e };
}

const stage = $("stage");
let finger = null;
stage.onpointerdown = (e) => {
  const p = place(e);
  if (!me || !me.control || !p.in) return;
  stage.setPointerCapture(e.pointerId);
  if (e.pointerType === "touch") {
    finger = finger ? null : { id: e.pointerId, p, x: e.clientX, y: e.clientY, scrolls: false, at: e.timeStamp };
    return;
  }
  e.preventDefault();
  stage.focus();
  moved = null;
  mouse("mousePressed", p, e, { button: buttons[e.button] || "left" });
};
stage.onpointermove = (e) => {
  const p = place(e);
  if (e.pointerType !== "touch") return p.in || e.buttons ? move(p, e) : undefined;
  if (!finger || finger.id !== e.pointerId) return;
  const dx = finger.x - e.clientX, dy = finger.y - e.clientY;
  if (!finger.scrolls && Math.hypot(dx, dy) < 10) return;
  finger.scrolls = true;
  finger.x = e.clientX;
  finger.y = e.clientY;
  mouse("mouseWheel", finger.p, e, { deltaX: dx / p.scale, deltaY: dy / p.scale });
};
stage.onpointerup = (e) => {
  const p = place(e);
  if (e.pointerType !== "touch") return mouse("mouseReleased", p, e, { button: buttons[e.button] || "left" });
  const tap = finger && finger.id === e.pointerId && !finger.scrolls;
  if (tap) {
    const button = e.timeStamp - finger.at > 600 ? "right" : "left";
    mouse("mouseMoved", finger.p, e);
    mouse("mousePressed", finger.p, e, { button });
    mouse("mouseReleased", finger.p, e, { button });
  }
  finger = null;
};
stage.onpointercancel = () => { finger = null; };
stage.oncontextmenu = (e) => e.preventDefault();
stage.addEventListener("wheel", (e) => {
  const p = place(e);
  if (!me || !me.control || !p.in) return;
  e.preventDefault();
  const unit = e.deltaMode === 1 ? 40 : e.deltaMode === 2 ? viewport.height : 1;
  mouse("mouseWheel", p, e, { deltaX: e.deltaX * unit, deltaY: e.deltaY * unit });
}, { passive: false });

// The keyboard. Text that comes whole, by paste or from a phone, is inserted.
function key(event, e) {
  if (!me || !me.control || e.isComposing || e.key === "Unidentified" || e.key === "Process") return;
  const command = e.ctrlKey || e.metaKey;
  if (command && e.key.toLowerCase() === "v") return; // a paste event follows
  if (command && e.key.toLowerCase() === "c" && event === "keyDown") send({ type: "getSelectedText", pageId: shown });
  e.preventDefault();
  send({ type: "keyEvent", event, key: e.key, code: e.code, modifiers: modifiers(e) });
}
stage.onkeydown = (e) => key("keyDown", e);
stage.onkeyup = (e) => key("keyUp", e);
stage.addEventListener("paste", paste);
function paste(e) {
  const text = e.clipboardData.getData("text");
  if (text) insert(text);
  e.preventDefault();
}
function insert(text) {
  for (const part of text.match(/[\s\S]{1,4000}/gu) || []) send({ type: "insertText", text: part });
}
function press(name) {
  send({ type: "keyEvent", event: "keyDown", key: name, code: name });
  send({ type: "keyEvent", event: "keyUp", key: name, code: name });
}

const typing = $("typing");
$("keys").onclick = () => (document.activeElement === typing ? typing.blur() : typing.focus());
typing.addEventListener("beforeinput", (e) => {
  e.preventDefault();
  if (e.inputType === "deleteContentBackward") press("Backspace");
  else if (e.inputType === "insertLineBreak" || e.data === "\n") press("Enter");
  else if (e.data) insert(e.data);
});
typing.onkeydown = (e) => {
  if (e.key.length > 1 && e.key !== "Unidentified" && e.key !== "Process") key("keyDown", e);
};
typing.addEventListener("paste", paste);
if (coarse) stage.addEventListener("click", () => typing.blur());

// The console.
const levels = ["log", "debug", "info", "warn", "error"];
$("console").onclick = () => {
  const open = $("logs").hidden;
  $("logs").hidden = !open;
  $("console").ariaExpanded = String(open);
  if (logs) logs.close();
  logs = null;
  $("lines").replaceChildren();
  if (!open || over) return;
  logs = new WebSocket(socketAddress(`v1/sessions/${encodeURIComponent(session)}/logs`));
  logs.onmessage = (e) => {
    const list = $("lines"), panel = $("logs");
    const follow = panel.scrollHeight - panel.scrollTop - panel.clientHeight < 40;
    for (const entry of JSON.parse(e.data)) {
      const line = document.createElement("li");
      if (levels.includes(entry.level)) line.className = entry.level;
      line.textContent = entry.text;
      line.title = new Date(entry.timestamp).toLocaleTimeString();
      list.append(line);
    }
    while (list.childElementCount > 500) list.firstElementChild.remove();
    if (follow) panel.scrollTop = panel.scrollHeight;
  };
};

begin();
