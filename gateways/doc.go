// Package gateways connects agents to messaging platforms. It sends messages
// through an agent's gateways, and receives what the platforms send.
package gateways
