// Package llm speaks to providers of language models: one request, one reply,
// streamed or not. OpenAI, Ollama and many others are asked over OpenAI's
// chat completions, Anthropic over its own messages.
//
// Nothing is read from the environment, requests go through the HTTP client
// that the caller gives, and a credential is sent to the address of its own
// provider only.
package llm
