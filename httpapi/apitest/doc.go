// Package apitest helps to test the API and the console: it starts the parts of a
// service, and fakes what they talk to: models, MCP servers, authorization servers,
// Telegram, an identity proxy, other servers of a cluster.
package apitest
