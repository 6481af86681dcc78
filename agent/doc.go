// Package agent defines the nouns of Satchel and their rules: agents and what
// they own, roles, identifiers, times and the one error type. It has no
// knowledge of storage or HTTP and imports only the standard library.
package agent
