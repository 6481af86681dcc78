// Keeps the place of people at the keyboard: when the element that has the focus is disabled, as buttons are while
// they work, or removed, as forms are when what they show is read again, the browser forgets where the focus was.
// A form that was sent and refused has the focus in the first field with a problem.

/** Where the focus was: the element, what it is in, and how the same element is found when it is drawn again. */
type Place = { element: HTMLElement; within: HTMLElement[]; label: string; nth: number };

let place: Place | undefined;
let sent: HTMLFormElement | undefined; // until it is changed, or a field of it has a problem

const labelOf = (element: HTMLElement) =>
  element.ariaLabel ?? (element as HTMLInputElement).labels?.[0]?.textContent ?? element.textContent ?? "";

/** The elements of a region of the page that are called the same and of the same kind. */
const alike = (region: HTMLElement, tag: string, label: string) =>
  [...region.querySelectorAll<HTMLElement>(tag)].filter((element) => labelOf(element) === label);

function placeOf(element: HTMLElement): Place {
  const within: HTMLElement[] = [];
  for (let at = element.parentElement; at && at !== document.body; at = at.parentElement) within.push(at);
  const label = labelOf(element);
  const region = within.find((at) => at.matches("dialog, main"));
  return { element, within, label, nth: region ? alike(region, element.tagName, label).indexOf(element) : -1 };
}

const isUsable = (element: HTMLElement) => element.isConnected && !element.matches(":disabled");

/** Returns the element to which the focus goes back; undefined while it is only disabled. */
function nextTo({ element, within, label, nth }: Place): HTMLElement | undefined {
  if (element.isConnected) return isUsable(element) ? element : undefined;
  const region = within.find((at) => at.isConnected && at.matches("dialog, main"));
  const again = region && alike(region, element.tagName, label)[nth];
  if (again && isUsable(again)) return again;
  return (
    within.find((at) => at.isConnected && at.matches("[tabindex], dialog")) ??
    document.getElementById("main") ??
    undefined
  );
}

function restore() {
  const wrong = sent?.querySelector<HTMLElement>('[aria-invalid="true"]');
  if (wrong) {
    sent = undefined;
    wrong.focus();
  }
  if (!place || document.activeElement !== document.body) return;
  const next = nextTo(place);
  if (!next) return;
  if (next.matches("dialog")) next.tabIndex = -1;
  next.focus({ preventScroll: true });
}

/** Starts to keep the focus. */
export function startFocus() {
  addEventListener("focusin", (e) => {
    if (e.target instanceof HTMLElement) place = placeOf(e.target);
  });
  // A person who clicks beside all fields leaves the place.
  addEventListener("pointerdown", () => {
    place = undefined;
  });
  addEventListener("submit", (e) => {
    sent = e.target as HTMLFormElement;
  });
  addEventListener("input", () => {
    sent = undefined;
  });
  let due = false;
  const later = () => {
    if (due || !(place || sent)) return;
    due = true;
    // Once what draws the page has set the focus itself.
    requestAnimationFrame(() =>
      setTimeout(() => {
        due = false;
        restore();
      }),
    );
  };
  new MutationObserver(later).observe(document.body, {
    subtree: true,
    childList: true,
    attributeFilter: ["disabled", "aria-invalid"],
  });
}
