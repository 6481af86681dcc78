// Package cdp lets a client of the Chrome DevTools Protocol, such as Playwright or
// Puppeteer, use a Chromium that Playwright's driver already controls.
//
// Mux runs in the process that is started in place of Chromium. It shares Chromium's
// pipe between the driver and one client at a time, which connects through a Unix
// socket. Filter runs in the server, between that socket and the client: it decides
// which commands are passed on, and shows the client only the targets of its own
// session.
//
// A frame is one message of the protocol, a JSON object; on pipe and socket, frames end
// with a zero byte. Ids of the driver's commands are small; those of the client's begin
// at FirstID.
package cdp
