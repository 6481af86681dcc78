// Package cdp lets a client of the Chrome DevTools Protocol, such as Playwright
// or Puppeteer, use a Chromium that Playwright's driver controls already.
//
// Mux runs in the process that is started instead of Chromium. It shares
// Chromium's pipe between the driver and one client at a time, which connects
// by a Unix socket. Filter runs in the server, between that socket and the
// client: it decides which commands pass, and shows the client the targets of
// its own session only.
//
// A frame is one message of the protocol, a JSON object; on pipe and socket,
// frames end with a zero byte. Ids of the driver's commands are small; those of
// the client's begin at FirstID.
package cdp
