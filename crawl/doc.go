// Package crawl crawls websites breadth first and returns their pages as
// Markdown.
//
// A walk lives in rows of the agent's file: the frontier, the outcome of each
// URL, and the text of each page. Pages are stored as they arrive, several in
// one commit if they arrive quickly, so a walk that is stopped or killed
// resumes where it was. The order is that of a sequential walk whatever the
// network does: pages are fetched a few at a time but stored in the order in
// which they were queued, so depth and page limits are exact.
//
// A crawl stays on one site: the host and port of its start, with or without
// www. It respects robots.txt and canonical links, makes conditional requests
// if the server sent an ETag or a date, spaces the requests to a host, and
// reaches only what package egress allows.
package crawl
