// The picture of a session, and the input of a person in it.
import { useEffect, useRef } from "preact/hooks";

import type { Live } from "./connection";
import { insertText, pasteText, pressKey, sendKey } from "./keyboard";
import { FieldPicker } from "./picker";
import { listenToWheel, type PointerInput, pointerInput } from "./pointer";

/** Draws the newest picture only: what comes while one is decoded replaces what waited. */
function frameRenderer(canvas: HTMLCanvasElement) {
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

/** The picture; typing is the hidden field that brings up the keyboard of a phone. */
export function Stage({ live }: { live: Live }) {
  const stage = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const typing = useRef<HTMLTextAreaElement>(null);
  const pointer = useRef<PointerInput>(undefined);
  useEffect(() => {
    live.watch(frameRenderer(canvas.current!), stage.current!.clientWidth * Math.min(devicePixelRatio, 2));
    pointer.current = pointerInput(live, canvas.current!, stage.current!);
    const stopListening = listenToWheel(live, canvas.current!, stage.current!);
    return () => {
      stopListening();
      live.watch(() => {}, 0);
    };
  }, [live]);
  const { width, height } = live.viewport.value;
  const control = Boolean(live.may.value?.control) && live.state.value !== "over";
  const typed = (e: InputEvent) => {
    e.preventDefault();
    if (e.inputType === "deleteContentBackward") pressKey(live, "Backspace");
    else if (e.inputType === "insertLineBreak" || e.data === "\n") pressKey(live, "Enter");
    else if (e.data) insertText(live, e.data);
  };
  return (
    <div class={`live-stage ${control ? "controls" : ""} ${live.state.value}`}>
      <div
        id="stage"
        ref={stage}
        tabIndex={0}
        role="application"
        aria-label="The session's page"
        onPointerDown={(e) => pointer.current!.onDown(e)}
        onPointerMove={(e) => pointer.current!.onMove(e)}
        onPointerUp={(e) => pointer.current!.onUp(e)}
        onPointerCancel={(e) => pointer.current!.onCancel(e)}
        onContextMenu={(e) => e.preventDefault()}
        onClick={() => {
          if (matchMedia("(pointer: coarse)").matches) typing.current!.blur();
        }}
        onKeyDown={(e) => sendKey(live, "keyDown", e)}
        onKeyUp={(e) => sendKey(live, "keyUp", e)}
        onPaste={(e) => pasteText(live, e)}
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
          if (e.key.length > 1) sendKey(live, "keyDown", e);
        }}
        onPaste={(e) => pasteText(live, e)}
      />
    </div>
  );
}
