// Package live shows browser sessions to people while they run, and lets
// people act in them: pictures of tabs, the mouse and keyboard of whoever
// watches, recordings of what happens, and takeovers.
//
// One cast per tab asks Chromium for pictures as long as anybody watches it,
// and hands each viewer the newest one: a slow viewer sees fewer, and nothing
// is queued. Nothing runs for a session that nobody watches.
//
// What goes over the wire is the dialect of Steel's live view. This package
// makes and reads the messages; package httpapi sends and receives them.
package live
