/** Reports whether an address is that of Chromium's own page about a failed load. */
export const isErrorPage = (url: string) => url.startsWith("chrome-error:");
