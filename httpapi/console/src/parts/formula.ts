/** What spreadsheets execute, after any apostrophes: the same rule as the service's. */
const formula = /^'*[=+\-@\t\r\n＝＋－＠]/;

/** Puts an apostrophe before a text that spreadsheets would execute. Imports take it off again. */
export const guardFormula = (text: string) => (formula.test(text) ? `'${text}` : text);
