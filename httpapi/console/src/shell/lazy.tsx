// What of the frame is loaded when it is first used.
import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";

import { showToast } from "../ui";
import { sections } from "./sections";
import { nextTheme } from "./theme";

/** Whether the command palette is open. */
export const paletteOpen = signal(false);

/** The file of the palette and the list of keys. */
export const loadPalette = (): Promise<typeof import("../lazy/palette")> =>
  import(new URL("./palette.js", import.meta.url).href);

/** The file of the tray of running work. */
export const loadTray = (): Promise<typeof import("../lazy/tray")> =>
  import(new URL("./tray.js", import.meta.url).href);

/** Starts to keep the focus of people at the keyboard, once the page is shown. */
export function startFocus() {
  const file: Promise<typeof import("../lazy/focus")> = import(new URL("./focus.js", import.meta.url).href);
  file.then(
    (loaded) => loaded.startFocus(),
    () => {
      /* the page goes on without it */
    },
  );
}

/** The button of the tray, once its file is loaded. */
export function LazyTray() {
  const [file, setFile] = useState<Awaited<ReturnType<typeof loadTray>>>();
  useEffect(() => {
    loadTray().then(setFile, () => {
      /* the page goes on without it */
    });
  }, []);
  return file ? <file.Tray /> : null;
}

const close = () => {
  paletteOpen.value = false;
};

/** The palette, once its file is loaded. */
export function LazyPalette() {
  const [file, setFile] = useState<Awaited<ReturnType<typeof loadPalette>>>();
  useEffect(() => {
    loadPalette().then(setFile, (error) => {
      close();
      showToast(error);
    });
  }, []);
  return file ? <file.Palette sections={sections} nextTheme={nextTheme} close={close} /> : null;
}
