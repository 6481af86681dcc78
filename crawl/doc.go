// Package crawl crawls sites breadth first and returns their pages as
// Markdown.
//
// A walk lives in rows of the agent's file: the frontier, what each address
// came to, what each page said. Pages are stored as they come in, those that
// come fast in one commit, so a walk that is stopped or killed goes on where it
// was. The order is that of a sequential walk whatever the network does: pages
// are fetched a few at a time and stored in the order they were queued, so
// depth and page limits are exact.
//
// A crawl stays on one site: the host and port of its start and the www twin.
// It obeys robots.txt and canonical links, asks for changes only where the
// server gave an ETag or a date, keeps requests to a host apart, and reaches
// nothing but what package egress lets it.
package crawl
