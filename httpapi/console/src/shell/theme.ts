// Light, dark, or as the system says.
import { effect, signal } from "@preact/signals";

const stored = "satchel.theme";
const read = () => {
  try {
    return localStorage.getItem(stored) ?? "system";
  } catch {
    return "system";
  }
};

/** The theme: light, dark, or that of the system. */
export const theme = signal(read());

effect(() => {
  document.documentElement.style.colorScheme = theme.value === "system" ? "light dark" : theme.value;
  try {
    localStorage.setItem(stored, theme.value);
  } catch {
    /* it lasts as long as the page */
  }
});

const order = ["system", "light", "dark"];
/** Switches to the next theme. */
export const nextTheme = () => {
  theme.value = order[(order.indexOf(theme.value) + 1) % order.length];
};
