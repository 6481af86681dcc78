// Package httpapi serves the program over HTTP: routes, handlers, limits,
// errors and the OpenAPI description.
//
// All routes are in one table (routes.go), which determines a route's role,
// rate class, binding, errors and description. A request passes, in this
// order: request id, host and origin, rate limit, identity, agent by id or
// name, role, binding, the handler, and one writer for answers and errors.
package httpapi
