// Package mcp speaks the Model Context Protocol. Client calls the tools of MCP
// servers: over streamable HTTP, in the stateless protocol of 2026-07-28 and in
// the ones before it, and over the older HTTP with SSE. Serve answers a
// client's request, with the functions of an agent as tools.
//
// The SDK does the protocol. This package bounds what a foreign server may
// cost in time and bytes, keeps credentials to the server they are for, and
// says what went wrong in words that the agent's owner can act on.
package mcp
