// Package llm speaks to providers of language models: one request, one reply,
// streamed or not. OpenAI, Ollama and everything that speaks OpenAI's protocol
// go through OpenAI's SDK, Anthropic through its own.
//
// Nothing is read from the environment, requests go through the HTTP client
// that the caller gives, and a credential is sent to the address of its own
// provider only.
package llm
