// Package llm is a client for providers of language models: one request, one
// reply, streamed or not. It uses OpenAI's chat completions for OpenAI, Ollama
// and many others, and Anthropic's Messages API.
//
// Nothing is read from the environment, requests go through the caller's HTTP
// client, and a credential is only sent to the address of its own provider.
package llm
