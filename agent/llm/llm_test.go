package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"satchel/agent"
)

// fakeProvider is a fake provider of language models that sends a test's responses.
type fakeProvider struct {
	*httptest.Server
	mu     sync.Mutex
	seen   []map[string]any
	header []http.Header
	answer func(n int, w http.ResponseWriter)
}

func newFakeProvider(t *testing.T, answer func(n int, w http.ResponseWriter)) *fakeProvider {
	p := &fakeProvider{answer: answer}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body map[string]any
		_ = json.NewDecoder(r.Body).Decode(&body)
		p.mu.Lock()
		body["path"] = r.URL.Path
		p.seen = append(p.seen, body)
		p.header = append(p.header, r.Header.Clone())
		n := len(p.seen)
		p.mu.Unlock()
		p.answer(n, w)
	}))
	t.Cleanup(p.Close)
	return p
}

func respond(status int, media, body string) func(int, http.ResponseWriter) {
	return func(_ int, w http.ResponseWriter) {
		w.Header().Set("Content-Type", media)
		w.Header().Set("Retry-After-Ms", "1")
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

func eventStream(lines ...string) string {
	var b strings.Builder
	for _, line := range lines {
		if name, ok := strings.CutPrefix(line, "{\"type\":\""); ok { // Anthropic names its events
			fmt.Fprintf(&b, "event: %s\n", name[:strings.Index(name, "\"")])
		}
		fmt.Fprintf(&b, "data: %s\n\n", line)
	}
	return b.String()
}

const (
	plainOpenAI = `{"id":"x","object":"chat.completion","choices":[{"index":0,"finish_reason":"stop",` +
		`"message":{"role":"assistant","content":"Hello."}}],"usage":{"prompt_tokens":7,` +
		`"completion_tokens":2,"total_tokens":9}}`
	toolOpenAI = `{"id":"x","object":"chat.completion","choices":[{"index":0,"finish_reason":"tool_calls",` +
		`"message":{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function",` +
		`"function":{"name":"weather","arguments":"{\"city\":\"Rome\"}"}}]}}]}`
	plainClaude = `{"id":"m","type":"message","role":"assistant","content":[{"type":"text","text":"Hello."}],` +
		`"stop_reason":"end_turn","usage":{"input_tokens":7,"output_tokens":2}}`
	toolClaude = `{"id":"m","type":"message","role":"assistant","content":[{"type":"tool_use","id":"c1",` +
		`"name":"weather","input":{"city":"Rome"}}],"stop_reason":"tool_use",` +
		`"usage":{"input_tokens":7,"output_tokens":2}}`
)

func openAIStream(done bool) string {
	lines := []string{
		`{"choices":[{"index":0,"delta":{"role":"assistant","content":"Hel"}}]}`,
		`{"choices":[{"index":0,"delta":{"content":"lo."}}]}`,
		`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function",` +
			`"function":{"name":"weather","arguments":"{\"ci"}}]}}]}`,
		`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"ty\":\"Rome\"}"}}]}}]}`,
	}
	if done {
		lines = append(
			lines,
			`{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`,
			`{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9}}`,
			"[DONE]",
		)
	}
	return eventStream(lines...)
}

func claudeStream(done bool) string {
	lines := []string{
		`{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],` +
			`"usage":{"input_tokens":7,"output_tokens":1}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hel"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"lo."}}`,
		`{"type":"content_block_stop","index":0}`,
		`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"c1",` +
			`"name":"weather","input":{}}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"city\":"}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"\"Rome\"}"}}`,
	}
	if done {
		lines = append(
			lines,
			`{"type":"content_block_stop","index":1}`,
			`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":2}}`,
			`{"type":"message_stop"}`,
		)
	}
	return eventStream(lines...)
}

func modelAt(p *fakeProvider, name string) Model {
	half := 0.5
	return Model{Provider: name, Name: "m-1", BaseURL: p.URL + "/v1", Key: "sk-secret-1", Temperature: &half}
}

var hello = Request{
	System:   "Be kind.",
	Messages: []Message{{Role: agent.MessageUser, Content: "Hi"}},
	Tools: []Tool{{
		Name:        "weather",
		Description: "Tells the weather",
		Parameters: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"],` +
			`"additionalProperties":false}`),
	}},
}

// The same tests for both protocols.
func TestReplies(t *testing.T) {
	for _, c := range []struct {
		provider, plain, tool, stream, path, secret string
	}{
		{OpenAI, plainOpenAI, toolOpenAI, openAIStream(true), "/v1/chat/completions", "Authorization"},
		{Compatible, plainOpenAI, toolOpenAI, openAIStream(true), "/v1/chat/completions", "Authorization"},
		{Anthropic, plainClaude, toolClaude, claudeStream(true), "/v1/messages", "X-Api-Key"},
	} {
		t.Run(c.provider, func(t *testing.T) {
			answers := []string{c.plain, c.tool, c.stream}
			p := newFakeProvider(t, func(n int, w http.ResponseWriter) {
				media := "application/json"
				if n == 3 {
					media = "text/event-stream"
				}
				respond(200, media, answers[n-1])(n, w)
			})
			client := New(Options{HTTP: p.Client()})
			plain, err := client.Chat(t.Context(), modelAt(p, c.provider), hello, nil)
			if err != nil || plain.Text != "Hello." || plain.Usage != (Usage{7, 2}) || plain.ToolCalls != nil {
				t.Fatalf("plain: %+v %v", plain, err)
			}
			call := ToolCall{ID: "c1", Name: "weather", Arguments: `{"city":"Rome"}`}
			tool, err := client.Chat(t.Context(), modelAt(p, c.provider), hello, nil)
			if err != nil || len(tool.ToolCalls) != 1 || !reflect.DeepEqual(tool.ToolCalls[0], call) {
				t.Fatalf("tool: %+v %v", tool, err)
			}
			var pieces []string
			streamed, err := client.Chat(t.Context(), modelAt(p, c.provider), hello, func(s string) error {
				pieces = append(pieces, s)
				return nil
			})
			if err != nil ||
				streamed.Text != "Hello." ||
				strings.Join(pieces, "|") != "Hel|lo." ||
				len(streamed.ToolCalls) != 1 ||
				!reflect.DeepEqual(streamed.ToolCalls[0], call) ||
				streamed.Usage != (Usage{7, 2}) {
				t.Fatalf("stream: %+v %q %v", streamed, pieces, err)
			}
			if p.seen[0]["path"] != c.path || p.seen[0]["model"] != "m-1" || p.seen[2]["stream"] != true {
				t.Errorf("requests %v", p.seen)
			}
			if sent := p.header[0].Get(c.secret); !strings.HasSuffix(sent, "sk-secret-1") {
				t.Errorf("credential sent as %q", sent)
			}
		})
	}
}

// What a model receives in a turn with tools, in each protocol.
func TestTurnWithTools(t *testing.T) {
	r := hello
	r.Tools = []Tool{{Name: "now", Parameters: json.RawMessage(`{"type":"object"}`)}}
	r.Messages = append(
		r.Messages,
		Message{
			Role: agent.MessageAssistant,
			ToolCalls: []ToolCall{
				{ID: "c1", Name: "weather", Arguments: `{"city":"Rome"}`},
				{ID: "c2", Name: "weather", Arguments: `half {`},
			},
		},
		Message{Role: agent.MessageTool, Content: `"sun"`, CallID: "c1"},
		Message{Role: agent.MessageTool, Content: "Error", CallID: "c2"},
	)
	for name, want := range map[string]string{
		OpenAI: `[{"content":"Be kind.","role":"system"},{"content":"Hi","role":"user"},{"content":"",` +
			`"role":"assistant","tool_calls":[{"function":{"arguments":"{\"city\":\"Rome\"}","name":"weather"},` +
			`"id":"c1","type":"function"},{"function":{"arguments":"half {","name":"weather"},"id":"c2",` +
			`"type":"function"}]},{"content":"\"sun\"","role":"tool","tool_call_id":"c1"},{"content":"Error",` +
			`"role":"tool","tool_call_id":"c2"}]`,
		Anthropic: `[{"content":[{"text":"Hi","type":"text"}],"role":"user"},{"content":[{"id":"c1",` +
			`"input":{"city":"Rome"},"name":"weather","type":"tool_use"},{"id":"c2","input":{},"name":"weather",` +
			`"type":"tool_use"}],"role":"assistant"},{"content":[{"content":[{"text":"\"sun\"","type":"text"}],` +
			`"is_error":false,"tool_use_id":"c1","type":"tool_result"},{"content":[{"text":"Error","type":"text"}],` +
			`"is_error":false,"tool_use_id":"c2","type":"tool_result"}],"role":"user"}]`,
	} {
		answer := plainOpenAI
		if name == Anthropic {
			answer = plainClaude
		}
		p := newFakeProvider(t, respond(200, "application/json", answer))
		if _, err := New(Options{HTTP: p.Client()}).Chat(t.Context(), modelAt(p, name), r, nil); err != nil {
			t.Fatal(err)
		}
		if got, _ := json.Marshal(p.seen[0]["messages"]); string(got) != want {
			t.Errorf("%s was sent\n%s\nwant\n%s", name, got, want)
		}
		// some refuse an object without
		if tools := fmt.Sprint(p.seen[0]["tools"]); !strings.Contains(tools, "properties:map[]") {
			t.Errorf("%s was sent %s", name, tools)
		}
	}
}

// Stop sequences and tool choice, in each protocol.
func TestStopAndChoice(t *testing.T) {
	for name, want := range map[string][2]string{
		OpenAI:    {`"required" ["END"]`, `{"function":{"name":"weather"},"type":"function"} ["END"]`},
		Anthropic: {`{"type":"any"} ["END"]`, `{"name":"weather","type":"tool"} ["END"]`},
	} {
		answer, stop := plainOpenAI, "stop"
		if name == Anthropic {
			answer, stop = plainClaude, "stop_sequences"
		}
		p := newFakeProvider(t, respond(200, "application/json", answer))
		client := New(Options{HTTP: p.Client()})
		for i, choice := range []string{AnyTool, "weather"} {
			r := hello
			r.ToolChoice, r.Stop = choice, []string{"END"}
			if _, err := client.Chat(t.Context(), modelAt(p, name), r, nil); err != nil {
				t.Fatal(err)
			}
			chosen, _ := json.Marshal(p.seen[i]["tool_choice"])
			stops, _ := json.Marshal(p.seen[i][stop])
			if got := string(chosen) + " " + string(stops); got != want[i] {
				t.Errorf("%s was sent %s, want %s", name, got, want[i])
			}
		}
		r := hello
		r.Tools, r.ToolChoice = nil, AnyTool
		if _, err := client.Chat(t.Context(), modelAt(p, name), r, nil); err != nil || p.seen[2]["tool_choice"] != nil {
			t.Errorf("%s without tools was sent %v, %v", name, p.seen[2]["tool_choice"], err)
		}
	}
}

// A stream that is truncated at any byte returns its text and no tool call.
func TestTruncatedStreams(t *testing.T) {
	for name, whole := range map[string]string{OpenAI: openAIStream(true), Anthropic: claudeStream(true)} {
		end := strings.LastIndex(whole, "finish_reason")
		if name == Anthropic {
			end = strings.LastIndex(whole, "event: message_stop")
		}
		for cut := range end {
			p := newFakeProvider(t, respond(200, "text/event-stream", whole[:cut]))
			reply, err := New(Options{HTTP: p.Client()}).Chat(
				t.Context(),
				modelAt(p, name),
				hello,
				func(string) error { return nil },
			)
			if agent.ErrorCode(err) != agent.CodeUpstream ||
				reply.ToolCalls != nil ||
				!strings.HasPrefix("Hello.", reply.Text) {
				t.Fatalf("%s cut at %d: %+v %v", name, cut, reply, err)
			}
			p.Close()
		}
	}
}

func TestProvidersThatFail(t *testing.T) {
	secret := `{"error":{"message":"Incorrect API key provided: sk-secret-1","type":"x","code":"y","param":null}}`
	for _, c := range []struct {
		name, media, body string
		status, tries     int
		text              string
	}{
		{"unauthorized", "application/json", secret, 401, 1, "_api_key"},
		{"unknown model", "application/json", secret, 404, 1, "llm_model"},
		{"busy", "application/json", secret, 429, 3, "overloaded"},
		{"broken", "text/html", "<html>oh no</html>", 500, 3, "failed"},
		{"refused", "application/json", secret, 400, 1, "rejected the request because of the credential"},
		{
			"refused, no model",
			"application/json",
			`{"error":{"message":"Model Not Exist","type":"invalid_request_error"}}`,
			400,
			1,
			"check llm_model",
		},
		{
			"filtered",
			"application/json",
			`{"error":{"message":"The response was filtered due to the prompt","code":"content_filter","status":400}}`,
			400,
			1,
			"refused to answer",
		},
		{
			"no credit",
			"application/json",
			`{"error":{"message":"Insufficient Balance","type":"unknown_error","code":"invalid_request_error"}}`,
			402,
			1,
			"no credit",
		},
		{"html", "text/html", "<html>hello</html>", 200, 1, ""},
		{"truncated JSON", "application/json", `{"choices":[{"mess`, 200, 1, ""},
		{"empty", "application/json", `{}`, 200, 1, ""},
	} {
		for _, name := range []string{OpenAI, Anthropic} {
			p := newFakeProvider(t, respond(c.status, c.media, c.body))
			_, err := New(Options{HTTP: p.Client()}).Chat(t.Context(), modelAt(p, name), hello, nil)
			var e *agent.Error
			if !errors.As(err, &e) || e.Code != agent.CodeUpstream || !strings.Contains(e.Message, c.text) {
				t.Errorf("%s %s: %v", name, c.name, err)
				continue
			}
			if c.status != 200 && c.name != "filtered" && e.Details["status"] != c.status || len(p.seen) != c.tries {
				t.Errorf("%s %s: details %v after %d attempts", name, c.name, e.Details, len(p.seen))
			}
			if strings.Contains(fmt.Sprintf("%+v %v", e, e.Err), "sk-secret-1") {
				t.Errorf("%s %s: the credential is in the error: %v", name, c.name, e.Err)
			}
		}
	}
}

// If a provider sends data endlessly, the request ends, with little of the data in
// memory.
func TestEndlessReplies(t *testing.T) {
	piece := strings.Repeat("x", 1<<20)
	for name, c := range map[string]struct {
		status      int
		media, each string
		stream      bool
	}{
		"text": {
			200,
			"text/event-stream",
			eventStream(`{"choices":[{"index":0,"delta":{"content":"` + piece + `"}}]}`),
			true,
		},
		"other fields": {200, "text/event-stream", eventStream(`{"choices":[],"x":"` + piece + `"}`), true},
		"one line":     {200, "text/event-stream", "data: " + piece, true},
		"comments":     {200, "text/event-stream", strings.Repeat(": still here\n\n", 1<<16), true},
		"one value":    {200, "application/json", `{"choices":[{"message":{"content":"` + piece, false},
		"a page":       {200, "text/html", piece, false},
		"an error":     {400, "application/json", piece, false},
	} {
		for _, provider := range []string{OpenAI, Anthropic} {
			sent := 0
			p := newFakeProvider(t, func(_ int, w http.ResponseWriter) {
				w.Header().Set("Content-Type", c.media)
				w.WriteHeader(c.status)
				for {
					if _, err := io.WriteString(w, c.each); err != nil {
						return
					}
					sent += len(c.each)
				}
			})
			var onText func(string) error
			if c.stream {
				onText = func(string) error { return nil }
			}
			client := New(Options{HTTP: p.Client()})
			client.api.http.Transport = bounded{p.Client().Transport, 16 << 20, 2 << 20}
			reply, err := client.Chat(t.Context(), modelAt(p, provider), hello, onText)
			p.Close()
			// More was sent than was read because the sockets buffer.
			if agent.ErrorCode(err) != agent.CodeUpstream || len(reply.Text) > MaxReply || sent > 64<<20 {
				t.Errorf("%s of %s: %d bytes of %d, %v", name, provider, len(reply.Text), sent, err)
			}
		}
	}
}

// TestManyValuesAreNotDecoded: answers whose values would need much memory are refused.
func TestManyValuesAreNotDecoded(t *testing.T) {
	many := "[" + strings.Repeat("{},", maxValues) + "{}]"
	for _, provider := range []string{OpenAI, Anthropic} {
		for _, answer := range []string{
			`{"choices":` + many + `}`,
			`{"content":` + many + `}`,
			`{"choices":[{"message":{"content":` + many + `}}]}`,
			`{"type":"message","x":` + many + `}`,
		} {
			for _, media := range []string{"application/json", "text/event-stream"} {
				sent := answer
				if media != "application/json" {
					sent = eventStream(answer)
				}
				p := newFakeProvider(t, respond(200, media, sent))
				_, err := New(Options{HTTP: p.Client()}).Chat(t.Context(), modelAt(p, provider), hello, nil)
				p.Close()
				if err == nil || !strings.HasSuffix(err.Error(), errTooLong.Error()) {
					t.Errorf("%s, %s, %.30s: %v", provider, media, answer, err)
				}
			}
		}
	}
}

func TestCallerStopsReading(t *testing.T) {
	p := newFakeProvider(t, respond(200, "text/event-stream", openAIStream(true)))
	stop := errors.New("stop")
	ctx, cancel := context.WithCancel(t.Context())
	_, err := New(Options{HTTP: p.Client()}).Chat(ctx, modelAt(p, OpenAI), hello, func(string) error {
		cancel()
		return stop
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v", err)
	}
}

// A provider that is down is distinguished from one with an invalid response.
func TestUnreachable(t *testing.T) {
	p := newFakeProvider(t, nil)
	client := New(Options{HTTP: p.Client()})
	p.Close()
	for _, name := range []string{OpenAI, Anthropic} {
		if _, err := client.Chat(
			t.Context(),
			modelAt(p, name),
			hello,
			nil,
		); agent.ErrorCode(err) != agent.CodeUpstream ||
			!strings.Contains(agent.Explain(err), "cannot be reached: the connection was refused; check llm_base_url") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestMissingSettings(t *testing.T) {
	for field, m := range map[string]Model{
		"llm_provider":      {},
		"llm_model":         {Provider: Ollama},
		"openai_api_key":    {Provider: OpenAI, Name: "x"},
		"anthropic_api_key": {Provider: Anthropic, Name: "x"},
		"llm_base_url":      {Provider: Compatible, Name: "x"},
	} {
		_, err := New(Options{HTTP: http.DefaultClient}).Chat(t.Context(), m, hello, nil)
		var e *agent.Error
		if !errors.As(err, &e) || e.Code != agent.CodeValidation || e.Details["field"] != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// Nothing from the environment may reach a provider.
func TestEnvironmentIsIgnored(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "sk-environment")
	t.Setenv("OPENAI_ORG_ID", "org-environment")
	t.Setenv("ANTHROPIC_API_KEY", "sk-environment")
	t.Setenv("ANTHROPIC_AUTH_TOKEN", "sk-environment")
	for name, answer := range map[string]string{Compatible: plainOpenAI, Anthropic: plainClaude} {
		p := newFakeProvider(t, respond(200, "application/json", answer))
		m := modelAt(p, name)
		if name == Compatible {
			m.Key = ""
		}
		if _, err := New(Options{HTTP: p.Client()}).Chat(t.Context(), m, hello, nil); err != nil {
			t.Fatal(err)
		}
		if all := fmt.Sprint(p.header); strings.Contains(all, "environment") {
			t.Errorf("%s was sent %s", name, all)
		}
	}
}

// TestEventStreams reads streams in the shapes that servers send.
func TestEventStreams(t *testing.T) {
	const text, end = `{"choices":[{"delta":{"content":"Hi"}}]}`, `{"choices":[{"delta":{},"finish_reason":"stop"}]}`
	for name, c := range map[string]struct {
		stream string
		ok     bool
	}{
		"CRLF":     {"data: " + text + "\r\n\r\ndata: " + end + "\r\n\r\n", true},
		"no space": {"data:" + text + "\n\ndata:" + end + "\n\n", true},
		"comments and fields": {
			": ping\n\nid: 1\nretry: 5\ndata: " + text + "\n\nevent: x\n\ndata: " + end + "\n\n",
			true,
		},
		"two lines": {
			"data: {\"choices\":[{\"delta\":\ndata: {\"content\":\"Hi\"}}]}\n\ndata: " + end + "\n\n",
			true,
		},
		"error":    {"data: " + text + "\n\ndata: {\"error\":{\"message\":\"sk-secret-1\"}}\n\n", false},
		"not JSON": {"data: " + text + "\n\ndata: oh no\n\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			p := newFakeProvider(t, respond(200, "text/event-stream", c.stream))
			reply, err := New(Options{HTTP: p.Client()}).Chat(
				t.Context(),
				modelAt(p, Compatible),
				hello,
				func(string) error { return nil },
			)
			if reply.Text != "Hi" || (err == nil) != c.ok {
				t.Errorf("got %+v, %v", reply, err)
			}
		})
	}
}

// TestRetries: retries wait as long as the provider requests, within limits, and never
// beyond the request's deadline.
func TestRetries(t *testing.T) {
	p := newFakeProvider(t, func(n int, w http.ResponseWriter) {
		if n < 3 {
			w.Header().Set("Retry-After", []string{"", "2", "86400"}[n])
			w.WriteHeader(503)
			return
		}
		respond(200, "application/json", plainOpenAI)(n, w)
	})
	var waits []time.Duration
	client := New(Options{HTTP: p.Client()})
	client.api.sleep = func(_ context.Context, d time.Duration) error {
		waits = append(waits, d)
		return nil
	}
	if reply, err := client.Chat(t.Context(), modelAt(p, OpenAI), hello, nil); err != nil ||
		reply.Text != "Hello." ||
		fmt.Sprint(waits) != "[2s 30s]" {
		t.Errorf("%+v, %v after %v", reply, err, waits)
	}
	p.seen = nil
	client.timeout = time.Second
	if _, err := client.Chat(t.Context(), modelAt(p, OpenAI), hello, nil); agent.ErrorCode(err) != agent.CodeUpstream ||
		len(p.seen) != 1 {
		t.Errorf("%v after %d attempts", err, len(p.seen))
	}
}

// TestAddresses: the base address may be written as providers' guides have it.
func TestAddresses(t *testing.T) {
	for base, want := range map[string]string{
		"http://a/v1":                  "http://a/v1/chat/completions",
		"http://a/v1/":                 "http://a/v1/chat/completions",
		"http://a/v1/chat/completions": "http://a/v1/chat/completions",
		"https://x.openai.azure.com/openai/deployments/m?api-version=1": "https://x.openai.azure.com/openai/deployme" +
			"nts/m/chat/completions?api-version=1",
	} {
		call, err := openAICallOf(Model{BaseURL: base, Key: "k"}, "/chat/completions")
		if err != nil || call.URL.String() != want {
			t.Errorf("%s: %v, %v", base, call.URL, err)
		}
		if isAzure := strings.Contains(base, "azure"); isAzure != (call.Auth.Name == "Api-Key") {
			t.Errorf("%s: %+v", base, call.Auth)
		}
	}
	for _, base := range []string{"http://a", "http://a/v1/", "http://a/v1/messages"} {
		if call, err := anthropicCallOf(Model{BaseURL: base}, "/v1/messages"); err != nil ||
			call.URL.String() != "http://a/v1/messages" {
			t.Errorf("%s: %v, %v", base, call.URL, err)
		}
	}
}
