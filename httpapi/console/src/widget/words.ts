// The widget's own words, in the language of the visitor's browser.
export type Words = {
  back: (time: string) => string;
  away: string;
  person: string;
  atOnce: string;
  soon: string;
  email: string;
  emailIssue: string;
  close: string;
  messages: string;
  writing: string;
  asked: string;
  leave: string;
  answerTo: string;
  write: string;
  send: string;
  tooLong: (n: number) => string;
  askPerson: string;
  you: string;
  bot: string;
  aPerson: string;
  again: string;
  unreachable: string;
  gone: string;
  connecting: string;
  tooMuch: (seconds: number) => string;
  notSent: string;
  moment: string;
  alone: string;
  attach: string;
  remove: (name: string) => string;
  limits: (n: number, mb: number) => string;
  wrongType: (name: string) => string;
  cancel: string;
  notKept: string;
};

const english: Words = {
  back: (t) => `People are back ${t}`,
  away: "People are away",
  person: "A person answers you here",
  atOnce: "Answers at once",
  soon: "We answer as soon as we can",
  email: "Your email address",
  emailIssue: "Please enter an email address such as ada@example.com.",
  close: "Close",
  messages: "Messages",
  writing: "An answer is being written",
  asked: "We have asked a person. The answer appears here.",
  leave: "Leave my address",
  answerTo: "We answer here, or to",
  write: "Write a message",
  send: "Send",
  tooLong: (n) => `${n} characters too many`,
  askPerson: "A person, please",
  you: "You",
  bot: "Answer",
  aPerson: "A person",
  again: "Send again",
  unreachable: "The server cannot be reached.",
  gone: "This chat is not available.",
  connecting: "Connecting again…",
  tooMuch: (s) => `That was too much at once. Try again ${s ? `in ${s} s` : "later"}.`,
  notSent: "Not sent: the server cannot be reached.",
  moment: "One moment…",
  alone: "This chat belongs to a website, and opens there.",
  attach: "Attach files",
  remove: (f) => `Remove ${f}`,
  limits: (n, mb) => `Up to ${n} ${n === 1 ? "file" : "files"}, ${mb} MB each`,
  wrongType: (f) => `Files like ${f} cannot be sent here.`,
  cancel: "Cancel",
  notKept: "no longer available",
};

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
