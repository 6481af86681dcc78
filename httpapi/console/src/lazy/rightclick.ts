// Opens the menu of a row by a right click, or by a long tap, which stands for a right click.

const longTap = 550; // milliseconds
const maxMovement = 10; // pixels that a finger may move during a long tap
const otherTargets = "input,textarea,select,[contenteditable],dialog,.menu";

let timer: ReturnType<typeof setTimeout> | undefined;
let pressed: PointerEvent | undefined;
let ignoreClick = false; // which follows a long tap

const cancel = () => clearTimeout(timer);
const isTouch = () => pressed?.pointerType === "touch";

addEventListener(
  "pointerdown",
  (event) => {
    cancel();
    pressed = event;
    ignoreClick = false;
    if (!isTouch() || !event.isPrimary) return;
    const { target, clientX, clientY } = event;
    const openMenu = () =>
      target?.dispatchEvent(new MouseEvent("contextmenu", { bubbles: true, cancelable: true, clientX, clientY }));
    timer = setTimeout(openMenu, longTap);
  },
  true,
);
addEventListener(
  "pointermove",
  (event) => {
    if (!pressed) return;
    const movement = Math.hypot(event.clientX - pressed.clientX, event.clientY - pressed.clientY);
    if (movement > maxMovement) cancel();
  },
  true,
);
for (const name of ["pointerup", "pointercancel", "scroll"]) addEventListener(name, cancel, true);

addEventListener("contextmenu", cancel, true); // some browsers send it for a long tap themselves
addEventListener("contextmenu", (event) => {
  const menu = menuButton(event);
  if (menu) {
    event.preventDefault();
    menu.click();
  }
  ignoreClick = isTouch() && event.defaultPrevented;
});

/** Returns the button of the row's menu, unless the event has another meaning at its target. */
function menuButton(event: MouseEvent): HTMLElement | null | undefined {
  const target = event.target as Element;
  if (event.defaultPrevented || target.closest(otherTargets)) return null;
  if (!isTouch() && target.closest("a[href]")) return null;
  return target.closest("tr,li")?.querySelector<HTMLElement>("[aria-haspopup=menu][aria-expanded=false]");
}

addEventListener(
  "click",
  (event) => {
    if (!ignoreClick || !event.isTrusted) return;
    ignoreClick = false;
    event.preventDefault();
    event.stopPropagation();
  },
  true,
);

export {};
