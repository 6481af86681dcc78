// Package httpapi is the service over HTTP: routes, handlers, limits, errors and
// the OpenAPI description.
//
// Every route stands in one table (routes.go). A route's role, rate class,
// binding, errors and description all come from its line there, so that none
// can be forgotten. A request passes, in this order: request id, host and
// origin, rate limit, identity, agent by id or name, role, binding, the
// handler, and one writer for answers and errors.
package httpapi
