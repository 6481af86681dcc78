// Package mcp implements the Model Context Protocol. Client calls the tools of
// MCP servers: over streamable HTTP, in the stateless protocol of 2026-07-28
// and earlier versions, and over the older HTTP with SSE. Serve answers a
// client's request, with the functions of an agent as tools.
//
// The SDK implements the protocol. This package limits the time and bytes that
// a remote server may cost, keeps credentials to the server they are for, and
// reports failures in terms that the agent's owner can act on.
package mcp
