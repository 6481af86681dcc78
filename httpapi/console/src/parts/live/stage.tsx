// The picture of a session, and a person's hands in it.
import { useEffect, useRef } from "preact/hooks";

import type { Live } from "./connection";
import { FieldPicker } from "./picker";

const modifiers = (e: MouseEvent | KeyboardEvent) =>
  (e.altKey ? 1 : 0) | (e.ctrlKey ? 2 : 0) | (e.metaKey ? 4 : 0) | (e.shiftKey ? 8 : 0);
const buttons = ["left", "middle", "right", "back", "forward"];
const longTap = 600; // milliseconds: the right button

type Place = { x: number; y: number; in: boolean; scale: number };

/** Draws the newest picture only: what comes while one is decoded replaces what waited. */
function painter(canvas: HTMLCanvasElement) {
  let next = "";
  let busy = false;
  const draw = async () => {
    busy = true;
    while (next) {
      const data = next;
      next = "";
      try {
        const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
        const bitmap = await createImageBitmap(new Blob([bytes], { type: "image/jpeg" }));
        await new Promise((resolve) => (document.hidden ? resolve(0) : requestAnimationFrame(resolve)));
        if (canvas.width !== bitmap.width || canvas.height !== bitmap.height)
          Object.assign(canvas, { width: bitmap.width, height: bitmap.height });
        canvas.getContext("2d")!.drawImage(bitmap, 0, 0);
        canvas.dataset.frames = String(Number(canvas.dataset.frames ?? 0) + 1);
        bitmap.close();
      } catch {
        /* a broken picture: the next one comes */
      }
    }
    busy = false;
  };
  return (data: string) => {
    next = data;
    if (!busy) void draw();
  };
}

/** What a person does with the picture, as messages. */
function hands(live: Live, canvas: HTMLCanvasElement, stage: HTMLElement) {
  const control = () => Boolean(live.may.value?.control) && live.state.value === "open";
  const place = (e: MouseEvent): Place => {
    const box = canvas.getBoundingClientRect();
    const { width, height } = live.viewport.value;
    const scale = box.width / width;
    const [x, y] = [(e.clientX - box.left) / scale, (e.clientY - box.top) / (box.height / height)];
    return {
      x: Math.round(x * 10) / 10,
      y: Math.round(y * 10) / 10,
      in: x >= 0 && y >= 0 && x <= width && y <= height,
      scale,
    };
  };
  const mouse = (event: string, p: Place, e: MouseEvent, more?: object) =>
    live.send({ type: "mouseEvent", event, x: p.x, y: p.y, modifiers: modifiers(e), ...more });
  let moved: { p: Place; e: MouseEvent } | null = null; // the newest move that was not sent yet
  let finger: { id: number; p: Place; x: number; y: number; scrolls: boolean; at: number } | null = null;
  const move = (p: Place, e: MouseEvent) => {
    if (!moved)
      requestAnimationFrame(() => {
        if (moved) mouse("mouseMoved", moved.p, moved.e);
        moved = null;
      });
    moved = { p, e };
  };
  const insert = (text: string) => {
    for (const part of text.match(/[\s\S]{1,4000}/gu) ?? []) live.send({ type: "insertText", text: part });
  };
  const press = (name: string) => {
    for (const event of ["keyDown", "keyUp"]) live.send({ type: "keyEvent", event, key: name, code: name });
  };
  const key = (event: string, e: KeyboardEvent) => {
    if (!control() || e.isComposing || e.key === "Unidentified" || e.key === "Process") return;
    if (e.key === "Escape" && e.shiftKey) {
      // frees the keyboard
      if (event === "keyDown") (document.activeElement as HTMLElement | null)?.blur();
      return;
    }
    const command = e.ctrlKey || e.metaKey;
    if (command && e.key.toLowerCase() === "v") return; // a paste event follows
    if (command && e.key.toLowerCase() === "c" && event === "keyDown")
      live.send({ type: "getSelectedText", pageId: live.shown() });
    e.preventDefault();
    e.stopPropagation();
    live.send({ type: "keyEvent", event, key: e.key, code: e.code, modifiers: modifiers(e) });
  };
  const paste = (e: ClipboardEvent) => {
    const text = e.clipboardData?.getData("text");
    if (text && control()) insert(text);
    e.preventDefault();
  };
  const wheel = (e: WheelEvent) => {
    const p = place(e);
    if (!control() || !p.in) return;
    e.preventDefault();
    const unit = e.deltaMode === 1 ? 40 : e.deltaMode === 2 ? live.viewport.value.height : 1;
    mouse("mouseWheel", p, e, { deltaX: e.deltaX * unit, deltaY: e.deltaY * unit });
  };
  stage.addEventListener("wheel", wheel, { passive: false });
  return {
    key,
    paste,
    insert,
    press,
    end: () => stage.removeEventListener("wheel", wheel),
    down: (e: PointerEvent) => {
      const p = place(e);
      if (!control() || !p.in) return;
      live.field.value = null;
      stage.setPointerCapture(e.pointerId);
      if (e.pointerType === "touch") {
        finger = finger ? null : { id: e.pointerId, p, x: e.clientX, y: e.clientY, scrolls: false, at: e.timeStamp };
        return;
      }
      e.preventDefault();
      stage.focus();
      moved = null;
      mouse("mousePressed", p, e, { button: buttons[e.button] ?? "left" });
    },
    moved: (e: PointerEvent) => {
      const p = place(e);
      if (e.pointerType !== "touch") {
        if (control() && (p.in || e.buttons)) move(p, e);
        return;
      }
      if (finger?.id !== e.pointerId) return;
      const [dx, dy] = [finger.x - e.clientX, finger.y - e.clientY];
      if (!finger.scrolls && Math.hypot(dx, dy) < 10) return;
      Object.assign(finger, { scrolls: true, x: e.clientX, y: e.clientY });
      mouse("mouseWheel", finger.p, e, { deltaX: dx / p.scale, deltaY: dy / p.scale });
    },
    up: (e: PointerEvent) => {
      const p = place(e);
      if (e.pointerType !== "touch") return mouse("mouseReleased", p, e, { button: buttons[e.button] ?? "left" });
      if (finger?.id === e.pointerId && !finger.scrolls) {
        const button = e.timeStamp - finger.at > longTap ? "right" : "left";
        mouse("mouseMoved", finger.p, e);
        mouse("mousePressed", finger.p, e, { button });
        mouse("mouseReleased", finger.p, e, { button });
      }
      finger = null;
    },
    cancel: () => {
      finger = null;
    },
  };
}

/** The picture; typing is the hidden field that brings up the keyboard of a phone. */
export function Stage({ live }: { live: Live }) {
  const stage = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const typing = useRef<HTMLTextAreaElement>(null);
  const act = useRef<ReturnType<typeof hands>>(undefined);
  useEffect(() => {
    live.watch(painter(canvas.current!), stage.current!.clientWidth * Math.min(devicePixelRatio, 2));
    const made = hands(live, canvas.current!, stage.current!);
    act.current = made;
    return () => {
      made.end();
      live.watch(() => {}, 0);
    };
  }, [live]);
  const { width, height } = live.viewport.value;
  const control = Boolean(live.may.value?.control) && live.state.value !== "over";
  const typed = (e: InputEvent) => {
    e.preventDefault();
    if (e.inputType === "deleteContentBackward") act.current!.press("Backspace");
    else if (e.inputType === "insertLineBreak" || e.data === "\n") act.current!.press("Enter");
    else if (e.data) act.current!.insert(e.data);
  };
  return (
    <div class={`live-stage ${control ? "controls" : ""} ${live.state.value}`}>
      <div
        id="stage"
        ref={stage}
        tabIndex={0}
        role="application"
        aria-label="The session's page"
        onPointerDown={(e) => act.current!.down(e)}
        onPointerMove={(e) => act.current!.moved(e)}
        onPointerUp={(e) => {
          act.current!.up(e);
        }}
        onPointerCancel={() => act.current!.cancel()}
        onContextMenu={(e) => e.preventDefault()}
        onClick={() => {
          if (matchMedia("(pointer: coarse)").matches) typing.current!.blur();
        }}
        onKeyDown={(e) => act.current!.key("keyDown", e)}
        onKeyUp={(e) => act.current!.key("keyUp", e)}
        onPaste={(e) => act.current!.paste(e)}
      >
        <canvas
          id="screen"
          ref={canvas}
          width={width}
          height={height}
          style={{ width: `min(100cqw, calc(100cqh * ${width / height}))`, aspectRatio: `${width} / ${height}` }}
        />
        {live.note.value && (
          <div id="note" role="alert">
            {live.note.value}
          </div>
        )}
      </div>
      {live.field.value && control && <FieldPicker live={live} field={live.field.value} screen={canvas.current!} />}
      <textarea
        id="typing"
        ref={typing}
        aria-label="Type into the page"
        autocapitalize="off"
        autocomplete="off"
        spellcheck={false}
        tabIndex={-1}
        onBeforeInput={typed}
        onKeyDown={(e) => {
          if (e.key.length > 1) act.current!.key("keyDown", e);
        }}
        onPaste={(e) => act.current!.paste(e)}
      />
    </div>
  );
}
