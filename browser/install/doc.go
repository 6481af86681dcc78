// Package install finds the browser that sessions run in, and gets it where
// there is none: a Chromium, and the driver that speaks to it (Playwright's
// Node.js program at the one version that our client library understands).
//
// A Chromium is looked for where the settings say, on PATH and in the usual
// places; failing that, Playwright's own download and then the system's package
// manager are asked. The driver comes from the npm registry and is checked
// against a hash in this package. What this package downloads itself goes
// through agent/egress, as the operator's word: private mirrors are allowed.
// Playwright's download and package managers are programs of their own, with
// the system's settings for proxies.
package install
