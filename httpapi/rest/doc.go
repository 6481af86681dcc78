// Package rest provides what all routes of the API share: the entries of the route table,
// binding requests, writing responses and errors, pages of lists, multipart uploads,
// server-sent events, compression, rate limits, and the OpenAPI description. It does not
// know any handler.
package rest
