package httpapi

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"satchel/httpapi/apitest"
)

// newClientWithModel returns a client of a service whose default agent has a
// language model.
func newClientWithModel(
	t *testing.T,
	say func(n int, asked map[string]any) string,
) (*testClient, *apitest.ModelServer) {
	c, m := newTestClient(t), newModelServer(t, say)
	c.must(
		t,
		200,
		"PUT",
		"/api/agents/default/settings",
		`{"llm_provider":"openai-compatible","llm_model":"m-1","llm_base_url":"`+m.URL+
			`/v1","llm_api_key":"sk-x","system_prompt":"Be kind."}`,
	)
	return c, m
}

func TestChat(t *testing.T) {
	c, m := newClientWithModel(t, func(n int, _ map[string]any) string { return fmt.Sprintf("Answer %d.", n) })
	made := c.upload(
		t,
		"/api/agents/default/sources",
		"policy.md",
		"# Returns\n\nGoods that you do not like can be sent back within thirty days. We refund the price.\n",
		nil,
	)
	c.waitIndexed(t, "/api/agents/default/sources/"+fmt.Sprint(made.json["id"]))
	first := c.must(t, 200, "POST", "/api/agents/default/chat", `{"message":"How do I get my money back?"}`)
	conversation, _ := first["conversation_id"].(string)
	if at(first, "message.content") != "Answer 1." || at(first, "message.role") != "assistant" || conversation == "" ||
		at(first, "usage.input_tokens") != json.Number("5") || at(first, "sources.0.number") != json.Number("1") {
		t.Fatalf("%v", first)
	}
	if !strings.Contains(fmt.Sprint(at(first, "sources.0.content")), "thirty days") ||
		at(first, "sources.0.metadata.section") != "Returns" {
		t.Errorf("sources: %v", first["sources"])
	}
	system := fmt.Sprint(at(m.Messages(0)[0], "content"))
	if !strings.HasPrefix(system, "Be kind.") || !strings.Contains(system, "thirty days") {
		t.Errorf("the model received %s", system)
	}
	c.must(
		t,
		200,
		"POST",
		"/api/agents/default/chat",
		`{"message":"Thanks","conversation_id":"`+conversation+`","sources":false}`,
	)
	sent := m.Messages(1)
	if len(sent) != 4 ||
		!strings.HasPrefix(fmt.Sprint(at(sent[0], "content")), "Be kind.\n\nIt is ") ||
		at(sent[1], "content") != "How do I get my money back?" ||
		at(sent[2], "content") != "Answer 1." ||
		at(sent[3], "content") != "Thanks" {
		t.Errorf("second turn: %v", sent)
	}
	kept := c.must(t, 200, "GET", "/api/agents/default/conversations/"+conversation, "")
	if messages := kept["messages"].([]any); len(messages) != 4 ||
		at(messages[1], "metadata.model") != "m-1" ||
		at(messages[1], "metadata.sources.0.n") != json.Number("1") {
		t.Errorf("kept %v", kept)
	}
	if kept["muted"] != false {
		t.Error("an automatic answer muted the conversation")
	}
}

// readStream lists the events of a stream as name and data.
func readStream(t *testing.T, text string) (events [][2]string) {
	t.Helper()
	for block := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		var e [2]string
		for line := range strings.SplitSeq(block, "\n") {
			if name, ok := strings.CutPrefix(line, "event: "); ok {
				e[0] = name
			} else if data, ok := strings.CutPrefix(line, "data: "); ok {
				e[1] += data
			}
		}
		events = append(events, e)
	}
	return events
}

func TestChatStream(t *testing.T) {
	c, _ := newClientWithModel(t, func(int, map[string]any) string { return "One two three." })
	for _, ask := range []func() answer{
		func() answer {
			return c.send(t, "POST", "/api/agents/default/chat", `{"message":"Count","stream":true}`)
		},
		func() answer {
			return c.with("Accept", "text/event-stream").send(
				t,
				"POST",
				"/api/agents/default/chat",
				`{"message":"Count"}`,
			)
		},
	} {
		a := ask()
		var names []string
		events := readStream(t, a.text)
		for _, e := range events {
			names = append(names, e[0])
		}
		if !slices.Equal(names, []string{"delta", "delta", "delta", "done"}) || events[1][1] != `{"text":"two "}` {
			t.Errorf("%v", events)
		}
		var done map[string]any
		if err := json.Unmarshal([]byte(events[3][1]), &done); err != nil ||
			at(done, "message.content") != "One two three." {
			t.Errorf("done: %v %v", done, err)
		}
	}
}

// A turn that fails keeps the user's message, and the part of an answer that was cut off.
func TestChatThatFails(t *testing.T) {
	c, _ := newClientWithModel(t, func(n int, _ map[string]any) string {
		return []string{"broken", "broken", "broken", "Half an CUT"}[min(n-1, 3)]
	})
	a := c.send(t, "POST", "/api/agents/default/chat", `{"message":"Hello","stream":true}`)
	if a.StatusCode != 500 ||
		at(a.json, "error.code") != "UPSTREAM_ERROR" ||
		at(a.json, "error.details.status") != json.Number("500") {
		t.Fatalf("%d %s", a.StatusCode, a.text)
	}
	conversation := fmt.Sprint(at(a.json, "error.details.conversation_id"))
	a = c.send(
		t,
		"POST",
		"/api/agents/default/chat",
		`{"message":"Again","stream":true,"conversation_id":"`+conversation+`"}`,
	)
	events := readStream(t, a.text)
	if last := events[len(events)-1]; last[0] != "error" || !strings.Contains(last[1], "UPSTREAM_ERROR") {
		t.Fatalf("%v", events)
	}
	kept := c.must(t, 200, "GET", "/api/agents/default/conversations/"+conversation, "")
	messages := kept["messages"].([]any)
	if len(messages) != 3 || at(messages[0], "content") != "Hello" || at(messages[1], "content") != "Again" ||
		at(messages[2], "content") != "Half an " || at(messages[2], "metadata.partial") != true {
		t.Errorf("%v", messages)
	}
}

func TestChatIsChecked(t *testing.T) {
	c, m := newClientWithModel(t, func(int, map[string]any) string { return "x" })
	for _, one := range []apiCase{
		{"no message", "POST", "/api/agents/default/chat", `{}`, 400, invalid("message")},
		{"empty", "POST", "/api/agents/default/chat", `{"message":""}`, 400, invalid("message")},
		{
			"too long",
			"POST",
			"/api/agents/default/chat",
			`{"message":"` + strings.Repeat("x", 100_001) + `"}`,
			400,
			invalid("message"),
		},
		{
			"no such conversation",
			"POST",
			"/api/agents/default/chat",
			`{"message":"x","conversation_id":"nope"}`,
			404,
			code("NOT_FOUND"),
		},
		{
			"no such contact",
			"POST",
			"/api/agents/default/chat",
			`{"message":"x","contact_id":"nope"}`,
			400,
			invalid("contact_id"),
		},
		{"no such tool", "POST", "/api/agents/default/chat", `{"message":"x","tools":["nope"]}`, 400, invalid("tools")},
		{
			"no such source",
			"POST",
			"/api/agents/default/chat",
			`{"message":"x","sources":["nope"]}`,
			400,
			invalid("sources"),
		},
		{
			"tools of a wrong type",
			"POST",
			"/api/agents/default/chat",
			`{"message":"x","tools":7}`,
			400,
			invalid("tools"),
		},
		{"no messages", "POST", "/api/agents/default/v1/chat/completions", `{"model":"m","messages":[]}`, 400, nil},
		{
			"a picture",
			"POST",
			"/api/agents/default/v1/chat/completions",
			`{"messages":[{"role":"user","content":[{"type":"image_url"}]}]}`,
			400,
			nil,
		},
		{"no input", "POST", "/api/agents/default/v1/embeddings", `{"input":[]}`, 400, nil},
		{"tokens", "POST", "/api/agents/default/v1/embeddings", `{"input":[[1,2]]}`, 400, nil},
	} {
		if strings.Contains(one.path, "/v1/") {
			a := c.send(t, one.method, one.path, one.body)
			if a.StatusCode != 400 || at(a.json, "error.type") != "invalid_request_error" {
				t.Errorf("%s: %d %s", one.name, a.StatusCode, a.text)
			}
			continue
		}
		one.run(t, c)
	}
	if len(m.Requests) != 0 {
		t.Errorf("the model received %d requests", len(m.Requests))
	}
	c.must(t, 200, "PUT", "/api/agents/default/settings", `{"llm_provider":null}`)
	apiCase{
		"no provider",
		"POST",
		"/api/agents/default/chat",
		`{"message":"x"}`,
		400,
		invalid("llm_provider"),
	}.run(t, c)
	for name, address := range map[string]string{
		"a private address": "http://10.0.0.1:11434/v1",
		"metadata":          "http://169.254.169.254/v1",
		"a number":          "http://2130706433/v1",
		"another scheme":    "ftp://example.com/v1",
		"no host":           "http:///v1",
		"a password":        "http://a:b@example.com/v1",
	} {
		apiCase{
			name,
			"PUT",
			"/api/agents/default/settings",
			`{"llm_provider":"ollama","llm_base_url":"` + address + `","llm_api_key":null}`,
			400,
			invalid("llm_base_url"),
		}.run(t, c)
	}
}

func TestOpenAIRoutes(t *testing.T) {
	c, m := newClientWithModel(t, func(n int, asked map[string]any) string {
		if asked["tools"] != nil {
			return `{"choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant",` +
				`"content":null,"tool_calls":[{"id":"c1","type":"function",` +
				`"function":{"name":"f","arguments":"{}"}}]}}]}`
		}
		return "Hello there."
	})
	models := c.must(t, 200, "GET", "/api/agents/default/v1/models", "")
	name := c.db().Agent().Name
	if at(models, "data.0.id") != name || at(models, "data.0.object") != "model" {
		t.Errorf("%v", models)
	}
	ask := `"model":"` + name + `","messages":[{"role":"developer","content":"Be brief."},{"role":"user",` +
		`"content":[{"type":"text","text":"Hi"}]}]`
	plain := c.must(t, 200, "POST", "/api/agents/default/v1/chat/completions", `{`+ask+`}`)
	if at(plain, "choices.0.message.content") != "Hello there." ||
		at(plain, "choices.0.finish_reason") != "stop" ||
		at(plain, "usage.total_tokens") != json.Number("8") ||
		plain["object"] != "chat.completion" {
		t.Errorf("%v", plain)
	}
	if sent := fmt.Sprint(m.Messages(0)); !strings.Contains(sent, "Be kind.") ||
		!strings.Contains(sent, "Be brief.") ||
		m.Requests[0]["model"] != "m-1" {
		t.Errorf("sent %s", sent)
	}
	foreign := c.must(
		t,
		200,
		"POST",
		"/api/agents/default/v1/chat/completions",
		`{`+ask+`,"tools":[{"type":"function","function":{"name":"f"}}]}`,
	)
	if at(foreign, "choices.0.message.tool_calls.0.function.name") != "f" ||
		at(foreign, "choices.0.finish_reason") != "tool_calls" {
		t.Errorf("%v", foreign)
	}
	a := c.send(
		t,
		"POST",
		"/api/agents/default/v1/chat/completions",
		`{`+ask+`,"stream":true,"stream_options":{"include_usage":true}}`,
	)
	events := readStream(t, a.text)
	var text string
	for _, e := range events[:len(events)-1] {
		var chunk map[string]any
		if err := json.Unmarshal([]byte(e[1]), &chunk); err != nil || chunk["object"] != "chat.completion.chunk" {
			t.Fatalf("%v: %v", e, err)
		}
		if piece, ok := at(chunk, "choices.0.delta.content").(string); ok {
			text += piece
		}
	}
	if text != "Hello there." ||
		events[len(events)-1][1] != "[DONE]" ||
		!strings.Contains(events[len(events)-2][1], `"total_tokens":8`) {
		t.Errorf("%q in %v", text, events)
	}
	floats := c.must(t, 200, "POST", "/api/agents/default/v1/embeddings", `{"model":"x","input":["one","two"]}`)
	if vector, _ := at(floats, "data.1.embedding").([]any); len(vector) != 512 {
		t.Errorf("a vector of %d", len(vector))
	}
	packed := c.must(
		t,
		200,
		"POST",
		"/api/agents/default/v1/embeddings",
		`{"model":"x","input":"one","encoding_format":"base64"}`,
	)
	raw, err := base64.StdEncoding.DecodeString(fmt.Sprint(at(packed, "data.0.embedding")))
	if err != nil || len(raw) != 4*512 {
		t.Errorf("%d bytes, %v", len(raw), err)
	}
}

// When an answer does not follow its schema, the model is asked once more.
func TestChatFollowsASchema(t *testing.T) {
	replies := []string{`[1]`, "```json\n{\"n\": 3}\n```"}
	c, m := newClientWithModel(t, func(n int, _ map[string]any) string { return replies[n-1] })
	got := c.must(
		t,
		200,
		"POST",
		"/api/agents/default/v1/chat/completions",
		`{"messages":[{"role":"user","content":"x"}],"response_format":{"type":"json_schema",`+
			`"json_schema":{"name":"a","schema":{"type":"object",`+
			`"properties":{"n":{"type":"integer"}},"required":["n"]}}}}`,
	)
	if !strings.Contains(fmt.Sprint(at(got, "choices.0.message.content")), `"n": 3`) || len(m.Requests) != 2 {
		t.Errorf("%v after %d", got, len(m.Requests))
	}
}

// A workflow asks the model, whose answer follows a schema.
func TestChatNode(t *testing.T) {
	c, m := newClientWithModel(t, func(int, map[string]any) string { return "```\n{\"mood\": \"cross\"}\n```" })
	graph := `{"name":"Mood","status":"active","nodes":[{"id":"t","type":"trigger"},{"id":"ask","type":"chat","data":{"prompt":"How is {{name}}?","system_prompt":"Be brief.",
		"temperature":0,"sources":false,"output_schema":{"type":"object","properties":{"mood":{"type":"string"}},"required":["mood"]}}}],"edges":[{"source":"t","target":"ask"}]}`
	id := fmt.Sprint(c.must(t, 201, "POST", "/api/agents/default/workflows", graph)["id"])
	x := c.must(
		t,
		200,
		"POST",
		"/api/agents/default/workflows/execute?wait=30",
		`{"workflow_id":"`+id+`","input":{"name":"Ada"}}`,
	)
	if x["status"] != "complete" ||
		at(x, "output.json.mood") != "cross" ||
		at(x, "output.usage.output_tokens") != json.Number("3") {
		t.Errorf("%v", x)
	}
	if sent := m.Messages(0); !strings.HasPrefix(fmt.Sprint(at(sent[0], "content")), "Be brief.\n\nIt is ") ||
		at(sent[1], "content") != "How is Ada?" ||
		m.Requests[0]["temperature"] != 0.0 {
		t.Errorf("sent %v", m.Requests[0])
	}
	bad := strings.Replace(graph, `"type":"string"`, `"type":"strong"`, 1)
	a := c.send(t, "POST", "/api/agents/default/workflows", bad)
	if a.StatusCode != 400 || !strings.Contains(a.text, "output_schema") {
		t.Errorf("%d %s", a.StatusCode, a.text)
	}
}

// TestFeedback checks that a person's rating of an answer is shown with it.
func TestFeedback(t *testing.T) {
	c, _ := newClientWithModel(t, func(int, map[string]any) string { return "Hello." })
	a := c.must(t, 200, "POST", "/api/agents/default/chat", `{"message":"Hi"}`)
	id, _ := at(a, "message.id").(json.Number)
	path, conversation :=
		"/api/agents/default/messages/"+string(id)+"/feedback",
		"/api/agents/default/conversations/"+fmt.Sprint(a["conversation_id"])
	shown := func() any { return at(c.must(t, 200, "GET", conversation+"/messages", ""), "messages.1.feedback") }
	if shown() != nil {
		t.Errorf("at first %v", shown())
	}
	m := c.must(t, 200, "PUT", path, `{"rating":-1,"comment":"Too short."}`)
	if m["id"] != id || at(shown(), "rating") != json.Number("-1") || at(shown(), "comment") != "Too short." {
		t.Errorf("%v, shown %v", m, shown())
	}
	listed := func(query string) any {
		list, _ := c.must(t, 200, "GET", "/api/agents/default/feedback"+query, "")["feedback"].([]any)
		return len(list)
	}
	rated := at(c.must(t, 200, "GET", "/api/agents/default/feedback", ""), "feedback.0")
	for field, want := range map[string]any{
		"message_id":      id,
		"conversation_id": a["conversation_id"],
		"question":        "Hi",
		"answer":          "Hello.",
		"rating":          json.Number("-1"),
		"comment":         "Too short.",
		"gateway_id":      "",
	} {
		if got := at(rated, field); got != want {
			t.Errorf("listed with %s %v, want %v", field, got, want)
		}
	}
	for query, want := range map[string]int{
		"?rating=bad":                1,
		"?rating=good":               0,
		"?search=short":              1,
		"?search=long":               0,
		"?from=2020-01-01T00:00:00Z": 1,
		"?to=2020-01-01T00:00:00Z":   0,
	} {
		if n := listed(query); n != want {
			t.Errorf("%s lists %v, want %d", query, n, want)
		}
	}
	c.must(t, 400, "GET", "/api/agents/default/feedback?rating=1", "")
	c.must(t, 200, "PUT", path, `{"rating":1}`)
	if at(shown(), "rating") != json.Number("1") || at(shown(), "comment") != "Too short." {
		t.Errorf("changed: %v", shown())
	}
	c.must(t, 200, "PUT", path, `{"rating":null,"comment":null}`)
	if shown() != nil || listed("") != 0 {
		t.Errorf("withdrawn: %v, %v listed", shown(), listed(""))
	}
	c.must(t, 400, "PUT", path, `{"rating":5}`)
	c.must(t, 400, "PUT", path, `{"rating":"good"}`)
	c.must(t, 404, "PUT", "/api/agents/default/messages/999/feedback", `{"rating":1}`)
	question := at(c.must(t, 200, "GET", conversation+"/messages", ""), "messages.0.id")
	c.must(t, 400, "PUT", "/api/agents/default/messages/"+fmt.Sprint(question)+"/feedback", `{"rating":1}`)
}
