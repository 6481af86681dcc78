// Package gateways connects agents to messaging platforms: it sends messages by
// the gateways that an agent has configured, and receives what the platforms
// send.
package gateways
