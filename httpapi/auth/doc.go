// Package auth determines who makes a request and what they may do: API keys,
// the tokens of an identity proxy, roles on agents, and which pages may send
// requests and read responses. It reads requests and sets headers, but writes
// no responses.
package auth
