package llm

import (
	"strings"
	"testing"

	"satchel/agent"
)

// TestDescribe: besides its text, an error has the provider's own description, read in
// the format of each API, without any part of the credential.
func TestDescribe(t *testing.T) {
	const key = "sk-proj-0123456789abcdefghijklmnop"
	for _, c := range []struct {
		name, provider, body string
		status               int
		want                 string // "" for no description
	}{
		{
			"OpenAI, key",
			OpenAI,
			`{"error":{"message":"Incorrect API key provided: sk-proj-****mnop.","type":"invalid_request_error",` +
				`"code":"invalid_api_key"}}`,
			401,
			"Incorrect API key provided: sk-proj-****mnop.",
		},
		{
			"OpenAI, model",
			OpenAI,
			`{"error":{"message":"The model 'gpt-9' does not exist or you do not have access to it.",` +
				`"code":"model_not_found"}}`,
			404,
			"The model 'gpt-9' does not exist or you do not have access to it.",
		},
		{
			"Anthropic, key",
			Anthropic,
			`{"type":"error","error":{"type":"authentication_error","message":"invalid ` +
				`x-api-key"},"request_id":"req_1"}`,
			401,
			"invalid x-api-key",
		},
		{
			"Anthropic, model",
			Anthropic,
			`{"type":"error","error":{"type":"not_found_error","message":"model: claude-9"}}`,
			404,
			"model: claude-9",
		},
		{
			"Ollama, model",
			Ollama,
			`{"error":"model \"llama9\" not found, try pulling it first"}`,
			404,
			`model "llama9" not found, try pulling it first`,
		},
		{
			"message without error",
			Compatible,
			`{"object":"error","message":"Context too\n long","code":40303}`,
			400,
			"Context too long",
		},
		{
			"Gemini, a list",
			Compatible,
			`[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.",` +
				`"status":"INVALID_ARGUMENT"}}]`,
			400,
			"API key not valid. Please pass a valid API key.",
		},
		{
			"Mistral, an object",
			Compatible,
			`{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","seed"],"msg":"Extra ` +
				`inputs are not permitted"}]},"code":null}`,
			422,
			"Extra inputs are not permitted",
		},
		{"FastAPI", Compatible, `{"detail":"Not authenticated"}`, 403, "Not authenticated"},
		{
			"xAI",
			Compatible,
			`{"code":"Client specified an invalid argument","error":"Incorrect argument"}`,
			400,
			"Incorrect argument",
		},
		{"the key", OpenAI, `{"error":{"message":"Bad key ` + key + `!"}}`, 401, "Bad key …!"},
		{"a part of the key", OpenAI, `{"error":{"message":"Bad key ` + key[:20] + ` given"}}`, 401, "Bad key … given"},
		{
			"long",
			OpenAI,
			`{"error":{"message":"` + strings.Repeat("ä", 1000) + `"}}`,
			400,
			strings.Repeat("ä", maxDescription-1) + "…",
		},
		{"HTML", OpenAI, `<html>nginx</html>`, 404, ""},
		{"another format", OpenAI, `{"error":[1]}`, 400, ""},
	} {
		err := Model{Provider: c.provider, Key: key}.explain(t.Context(), &statusError{c.status, c.body})
		if got := Describe(err); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if text := agent.Explain(err); c.want != "" && strings.Contains(text, c.want) {
			t.Errorf("%s: the provider's text is in the error: %s", c.name, text)
		}
	}
}
