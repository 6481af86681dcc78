// Package auth decides who makes a request and what they may do: API keys, the
// tokens of an identity proxy, roles on agents, and which pages may send
// requests and read answers. It reads requests and writes headers; it answers
// none.
package auth
