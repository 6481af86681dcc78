// Package install finds the browser for sessions, and installs it if there is
// none: a Chromium, and the driver that controls it (Playwright's Node.js
// program, in the one version that our client library supports).
//
// A Chromium is searched for in the configured place, on PATH and in the usual
// places; otherwise Playwright's own download and then the system's package
// manager are tried. The driver comes from the npm registry and is checked
// against a hash in this package. What this package downloads itself goes
// through agent/egress, with the operator's rights: private mirrors are allowed.
// Playwright's download and package managers are separate programs, with
// the system's settings for proxies.
package install
