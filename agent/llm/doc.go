// Package llm speaks to providers of language models: one request, one reply,
// streamed or not. OpenAI, Ollama and many others are asked over OpenAI's
// chat completions, Anthropic over its own messages.
//
// Nothing is read from the environment, requests go through the caller's HTTP
// client, and a credential is only sent to the address of its own provider.
package llm
