// Package feed reads the items of a JSON API, page by page, and converts items
// and rows to text.
//
// Requests go through agent/egress with limits of time and size. A server that
// answers 429 or 5xx is retried a few times, after the time it asks for.
// Credentials are only sent to the host in the config, whatever redirects say.
package feed
