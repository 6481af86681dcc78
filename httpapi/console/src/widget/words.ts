// The widget's own words, in the language of the visitor's browser.
import { words as english, type Words } from "./words/en";

/** The words in other languages, of which a browser loads its own. */
const translations: Record<string, () => Promise<{ words: Words }>> = {
  de: () => import("./words/de"),
  fr: () => import("./words/fr"),
  es: () => import("./words/es"),
  it: () => import("./words/it"),
  pt: () => import("./words/pt"),
  nl: () => import("./words/nl"),
};

/** The language of the words. */
export const language =
  navigator.languages.map((l) => l.slice(0, 2)).find((l) => l === "en" || Object.hasOwn(translations, l)) ?? "en";

/** The words: English, until loadWords has loaded others. */
export let words: Words = english;

/** Loads the words in the language of the browser; if that fails, they stay English. */
export async function loadWords() {
  try {
    words = (await translations[language]?.())?.words ?? english;
  } catch {
    /* the server cannot be reached */
  }
}
