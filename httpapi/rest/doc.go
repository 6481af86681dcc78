// Package rest is what every route of the interface has in common: the line of
// the route table, binding a request, writing answers and errors, pages of
// lists, multipart uploads, server-sent events, compression, rate limits, and
// the OpenAPI description of a table. It knows no handler.
package rest
