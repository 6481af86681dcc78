package httpapi

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// badProvider is a provider that sends the responses of script in turn; the last one is
// repeated.
type badProvider struct {
	*httptest.Server
	asked  atomic.Int64
	status int
	media  string
	script []string
}

func newBadProvider(t *testing.T) *badProvider {
	t.Helper()
	r := &badProvider{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		n := int(r.asked.Add(1))
		w.Header().Set("Content-Type", r.media)
		w.Header().Set("Retry-After-Ms", "1")
		w.WriteHeader(r.status)
		_, _ = io.WriteString(w, r.script[min(n, len(r.script))-1])
	}))
	t.Cleanup(r.Close)
	return r
}

const (
	partialText     = `data: {"choices":[{"index":0,"delta":{"content":"Half "}}]}` + "\n\n"
	partialToolCall = `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function",` +
		`"function":{"name":"note","arguments":"{\"text\":\"x\"}"}}]}}]}` + "\n\n"
)

// TestRogueProviders calls, through each of the routes, a provider that answers wrongly:
// the error says so without the provider's own words, the user's message is kept, and no
// tool is called from a truncated answer.
func TestRogueProviders(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	c, r := newTestClient(t), newBadProvider(t)
	c.must(
		t,
		200,
		"PUT",
		"/api/agents/default/settings",
		`{"llm_provider":"openai-compatible","llm_model":"m-1","llm_base_url":"`+r.URL+`/v1","llm_api_key":"sk-hush"}`,
	)
	c.must(
		t,
		201,
		"POST",
		"/api/agents/default/tools",
		`{"name":"note","type":"function","config":{"code":"return 'noted'","parameters":{"type":"object",`+
			`"properties":{"text":{"type":"string"}},"required":["text"]}}}`,
	)
	words := `{"error":{"message":"Incorrect key sk-hush, says Mallory"}}`
	for name, test := range map[string]struct {
		status      int
		media, body string
		tries       int64
		details     string
	}{
		"401":              {401, "application/json", words, 1, "401"},
		"404":              {404, "application/json", words, 1, "404"},
		"429":              {429, "application/json", words, 3, "429"},
		"500":              {500, "text/html", "<h1>Mallory</h1>", 3, "500"},
		"a page":           {200, "text/html", "<h1>Mallory</h1>", 1, ""},
		"half a JSON":      {200, "application/json", `{"choices":[{"message":{"content":"Mallory`, 1, ""},
		"no choices":       {200, "application/json", `{"choices":[]}`, 1, ""},
		"nothing":          {200, "text/event-stream", "", 1, ""},
		"no JSON":          {200, "text/event-stream", "data: Mallory\n\n", 1, ""},
		"cut in a word":    {200, "text/event-stream", partialText[:len(partialText)-9], 1, ""},
		"cut after a call": {200, "text/event-stream", partialToolCall, 1, ""},
		"cut in a call":    {200, "text/event-stream", partialToolCall[:len(partialToolCall)-20], 1, ""},
		"an error event":   {200, "text/event-stream", partialText + "data: " + words + "\n\n", 1, ""},
	} {
		r.status, r.media, r.script = test.status, test.media, []string{test.body}
		for _, way := range []struct{ path, body string }{
			{"/chat", `{"message":"Hello %s"}`},
			{"/chat", `{"message":"Hello %s","stream":true}`},
			{"/v1/chat/completions", `{"messages":[{"role":"user","content":"Hello %s"}]}`},
			{"/v1/chat/completions", `{"messages":[{"role":"user","content":"Hello %s"}],"stream":true}`},
		} {
			r.asked.Store(0)
			a := c.send(t, "POST", "/api/agents/default"+way.path, fmt.Sprintf(way.body, name))
			broken := a.StatusCode == 500 ||
				a.StatusCode == 200 && strings.Contains(a.Header.Get("Content-Type"), "event-stream")
			if !broken ||
				!strings.Contains(a.text, "UPSTREAM_ERROR") ||
				strings.Contains(a.text, "Mallory") ||
				strings.Contains(a.text, "sk-hush") ||
				strings.Contains(a.text, "tool_result") {
				t.Errorf("%s, %s: %d %s", name, way.path, a.StatusCode, a.text)
			}
			if got := r.asked.Load(); got != test.tries {
				t.Errorf("%s, %s: %d requests, want %d", name, way.path, got, test.tries)
			}
			if test.details != "" && fmt.Sprint(at(a.json, "error.details.status")) != test.details {
				t.Errorf("%s, %s: details %v", name, way.path, at(a.json, "error.details"))
			}
			if !strings.HasPrefix(way.path, "/chat") || a.StatusCode != 500 {
				continue
			}
			kept := c.must(
				t,
				200,
				"GET",
				"/api/agents/default/conversations/"+fmt.Sprint(at(a.json, "error.details.conversation_id")),
				"",
			)
			if messages := kept["messages"].([]any); len(messages) != 1 || at(messages[0], "content") != "Hello "+name {
				t.Errorf("%s: kept %v", name, messages)
			}
		}
	}
	if logs := c.send(t, "GET", "/api/agents/default/logs?limit=200", ""); strings.Contains(logs.text, "sk-hush") {
		t.Error("the credential is in the log")
	}
}

// TestRogueToolCalls checks that calls with broken arguments, of unknown tools, against
// the schema, and without end are answered with errors to the model, which then answers.
func TestRogueToolCalls(t *testing.T) {
	c, r := newTestClient(t), newBadProvider(t)
	c.must(
		t,
		200,
		"PUT",
		"/api/agents/default/settings",
		`{"llm_provider":"openai-compatible","llm_model":"m-1","llm_base_url":"`+r.URL+`/v1"}`,
	)
	c.must(
		t,
		201,
		"POST",
		"/api/agents/default/tools",
		`{"name":"note","type":"function","config":{"code":"return 'noted'","parameters":{"type":"object",`+
			`"properties":{"text":{"type":"string"}},"required":["text"]}}}`,
	)
	call := func(name, arguments string) string {
		return fmt.Sprintf(
			`{"choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","content":null,`+
				`"tool_calls":[{"id":"c","type":"function","function":{"name":%q,"arguments":%q}}]}}]}`,
			name,
			arguments,
		)
	}
	const done = `{"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"Done."}}]}`
	r.status, r.media = 200, "application/json"
	r.script = []string{
		call("note", `{"text":`),
		call("erase_all", `{}`),
		call("note", `{"text":7}`),
		call("note", `["x"]`),
		call("", ``),
		call("note", `{"text":"x"}`),
		done,
	}
	a := c.must(t, 200, "POST", "/api/agents/default/chat", `{"message":"Go"}`)
	calls, _ := a["tool_calls"].([]any)
	if at(a, "message.content") != "Done." || len(calls) != 6 {
		t.Fatalf("%v", a)
	}
	for i, says := range []string{
		"not a JSON object", "no tool with this name", "text", "not a JSON object", "no tool with this name", "",
	} {
		if got, _ := at(calls[i], "error").(string); !strings.Contains(got, says) || (says == "") != (got == "") {
			t.Errorf("call %d: %v", i, calls[i])
		}
	}
	if at(calls[5], "result") != "noted" {
		t.Errorf("the good call: %v", calls[5])
	}
	r.asked.Store(0)
	r.script = []string{call("note", `{"text":"x"}`)} // never answers
	a = c.must(t, 200, "POST", "/api/agents/default/chat", `{"message":"Go on"}`)
	if calls, _ := a["tool_calls"].([]any); len(calls) != 8 || r.asked.Load() != 9 {
		t.Errorf("%d calls in %d rounds", len(calls), r.asked.Load())
	}
}
