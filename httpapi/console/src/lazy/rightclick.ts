// A right click on a row opens the row's menu; a long tap does what a right click does.

const held = 550; // ms
const slip = 10; // pixels

let timer: ReturnType<typeof setTimeout> | undefined;
let down: PointerEvent | undefined;
let swallow = false;

const release = () => clearTimeout(timer);
const touched = () => down?.pointerType === "touch";

addEventListener(
  "pointerdown",
  (e) => {
    release();
    down = e;
    swallow = false;
    if (touched() && e.isPrimary)
      timer = setTimeout(
        () =>
          e.target?.dispatchEvent(
            new MouseEvent("contextmenu", { bubbles: true, cancelable: true, clientX: e.clientX, clientY: e.clientY }),
          ),
        held,
      );
  },
  true,
);
addEventListener(
  "pointermove",
  (e) => {
    if (down && Math.hypot(e.clientX - down.clientX, e.clientY - down.clientY) > slip) release();
  },
  true,
);
for (const end of ["pointerup", "pointercancel", "scroll"]) addEventListener(end, release, true);

addEventListener("contextmenu", release, true); // some browsers send it by themselves
addEventListener("contextmenu", (e) => {
  const at = e.target as Element;
  if (
    !e.defaultPrevented &&
    !at.closest("input,textarea,select,[contenteditable],dialog,.menu") &&
    (touched() || !at.closest("a[href]"))
  ) {
    const menu = at.closest("tr,li")?.querySelector<HTMLElement>("[aria-haspopup=menu][aria-expanded=false]");
    if (menu) {
      e.preventDefault();
      menu.click();
    }
  }
  swallow = touched() && e.defaultPrevented;
});

// The end of a long tap is no click.
addEventListener(
  "click",
  (e) => {
    if (!swallow || !e.isTrusted) return;
    swallow = false;
    e.preventDefault();
    e.stopPropagation();
  },
  true,
);

export {};
