// Package feed reads the items of a JSON API, page by page, and makes texts of
// items and of rows.
//
// Requests go through agent/egress with limits of time and size. A server that
// answers 429 or 5xx is asked again a few times, after the time that it names.
// Credentials go to the host that the config names and to no other, whatever
// redirects say.
package feed
