// The mouse, the wheel and the fingers of a person, as messages to a session.
import { type Live, mayControl, modifiersOf } from "./connection";

const buttons = ["left", "middle", "right", "back", "forward"];
const longTap = 600; // milliseconds: the right button
const minScroll = 10; // pixels that a finger moves before it scrolls
const lineHeight = 40; // pixels that a wheel scrolls for a line

/** A point of the page in the picture; scale is the size of the page's pixels on the screen. */
type Position = { x: number; y: number; inside: boolean; scale: number };

/** A finger on the picture: where it began, and where it was last, in the window. */
type Finger = { id: number; start: Position; x: number; y: number; scrolls: boolean; since: number };

/** Handles the pointer events of a picture. */
export type PointerInput = Record<"onDown" | "onMove" | "onUp" | "onCancel", (e: PointerEvent) => void>;

const buttonOf = (e: PointerEvent) => buttons[e.button] ?? "left";

function positionOf(live: Live, canvas: HTMLCanvasElement, e: MouseEvent): Position {
  const box = canvas.getBoundingClientRect();
  const { width, height } = live.viewport.value;
  const scale = box.width / width;
  const [x, y] = [(e.clientX - box.left) / scale, (e.clientY - box.top) / (box.height / height)];
  const inside = x >= 0 && y >= 0 && x <= width && y <= height;
  return { x: Math.round(x * 10) / 10, y: Math.round(y * 10) / 10, inside, scale };
}

function send(live: Live, event: string, { x, y }: Position, e: MouseEvent, more?: object) {
  live.send({ type: "mouseEvent", event, x, y, modifiers: modifiersOf(e), ...more });
}

/** Scrolls by the wheel until the returned function is called. */
export function listenToWheel(live: Live, canvas: HTMLCanvasElement, stage: HTMLElement): () => void {
  const onWheel = (e: WheelEvent) => {
    const position = positionOf(live, canvas, e);
    if (!mayControl(live) || !position.inside) return;
    e.preventDefault();
    const unit = [1, lineHeight, live.viewport.value.height][e.deltaMode];
    send(live, "mouseWheel", position, e, { deltaX: e.deltaX * unit, deltaY: e.deltaY * unit });
  };
  stage.addEventListener("wheel", onWheel, { passive: false });
  return () => stage.removeEventListener("wheel", onWheel);
}

/** Returns what sends the newest move of each frame, and what drops a move that was not sent yet. */
function mouseMoves(live: Live) {
  let unsent: [Position, MouseEvent] | null = null;
  const sendNewest = () => {
    if (unsent) send(live, "mouseMoved", ...unsent);
    unsent = null;
  };
  const push = (...move: [Position, MouseEvent]) => {
    if (!unsent) requestAnimationFrame(sendNewest);
    unsent = move;
  };
  const drop = () => {
    unsent = null;
  };
  return [push, drop] as const;
}

function scroll(live: Live, finger: Finger, scale: number, e: PointerEvent) {
  const [dx, dy] = [finger.x - e.clientX, finger.y - e.clientY];
  if (!finger.scrolls && Math.hypot(dx, dy) < minScroll) return;
  Object.assign(finger, { scrolls: true, x: e.clientX, y: e.clientY });
  send(live, "mouseWheel", finger.start, e, { deltaX: dx / scale, deltaY: dy / scale });
}

function tap(live: Live, { start, since }: Finger, e: PointerEvent) {
  const button = e.timeStamp - since > longTap ? "right" : "left";
  send(live, "mouseMoved", start, e);
  send(live, "mousePressed", start, e, { button });
  send(live, "mouseReleased", start, e, { button });
}

/** Returns what handles the pointer events of a picture. */
export function pointerInput(live: Live, canvas: HTMLCanvasElement, stage: HTMLElement): PointerInput {
  const [pushMove, dropMove] = mouseMoves(live);
  let finger: Finger | null = null;
  const onDown = (e: PointerEvent) => {
    const position = positionOf(live, canvas, e);
    if (!mayControl(live) || !position.inside) return;
    live.field.value = null;
    stage.setPointerCapture(e.pointerId);
    if (e.pointerType === "touch") {
      const { pointerId: id, clientX: x, clientY: y, timeStamp: since } = e;
      finger = finger ? null : { id, start: position, x, y, scrolls: false, since };
      return;
    }
    e.preventDefault();
    stage.focus();
    dropMove();
    send(live, "mousePressed", position, e, { button: buttonOf(e) });
  };
  const onMove = (e: PointerEvent) => {
    const position = positionOf(live, canvas, e);
    if (e.pointerType !== "touch") {
      if (mayControl(live) && (position.inside || e.buttons)) pushMove(position, e);
    } else if (finger?.id === e.pointerId) scroll(live, finger, position.scale, e);
  };
  const onUp = (e: PointerEvent) => {
    if (e.pointerType !== "touch")
      return send(live, "mouseReleased", positionOf(live, canvas, e), e, { button: buttonOf(e) });
    if (finger?.id === e.pointerId && !finger.scrolls) tap(live, finger, e);
    finger = null;
  };
  const onCancel = () => {
    finger = null;
  };
  return { onDown, onMove, onUp, onCancel };
}
