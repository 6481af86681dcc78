// Package live shows running browser sessions to people and lets them act in
// them: images of tabs, mouse and keyboard input, recordings, and takeovers.
//
// One cast per tab requests images from Chromium while it has viewers, and
// sends each viewer the newest one: a slow viewer gets fewer images, and
// nothing is queued. Nothing runs for a session without viewers.
//
// The messages follow the protocol of Steel's live view. This package creates
// and parses them; package httpapi sends and receives them.
package live
