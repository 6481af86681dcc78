package httpapi

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"satchel/httpapi/apitest"
)

// openAI posts to a route of the default agent's OpenAI interface, with the fields of a
// body. OpenAI's own client runs against it in .ci/openai-sdk.
func (c *testClient) openAI(t *testing.T, route, fields string) answer {
	t.Helper()
	return c.send(t, "POST", "/api/agents/default/v1/"+route, "{"+fields+"}")
}

const (
	hi = `"model":"gpt-5","messages":[{"role":"developer","content":"Be brief."},` +
		`{"role":"user","content":"Hi"}]`
	called     = apitest.WeatherCall
	moodSchema = `"response_format":{"type":"json_schema","json_schema":{"name":"mood","schema":{"type":"object",` +
		`"properties":{"mood":{"type":"string"}},"required":["mood"]}}}`
)

// deltas joins the texts of a streamed completion, and returns its last events.
func deltas(t *testing.T, a answer) (text string, pieces int, finish, usage any) {
	t.Helper()
	for _, e := range readStream(t, a.text) {
		if e[1] == "[DONE]" {
			return text, pieces, finish, usage
		}
		var chunk map[string]any
		if err := json.Unmarshal([]byte(e[1]), &chunk); err != nil || chunk["object"] != "chat.completion.chunk" {
			t.Fatalf("%s: %v", e[1], err)
		}
		if piece, _ := at(chunk, "choices.0.delta.content").(string); piece != "" {
			text += piece
			pieces++
		}
		if reason := at(chunk, "choices.0.finish_reason"); reason != nil {
			finish = reason
		}
		if u := at(chunk, "usage.total_tokens"); u != nil {
			usage = u
		}
	}
	t.Fatalf("a stream without an end: %s", a.text)
	return
}

func TestOpenAIModels(t *testing.T) {
	c := newOwnClient(t)
	models := c.must(t, 200, "GET", "/api/agents/default/v1/models", "")
	if len(models["data"].([]any)) != 1 || at(models, "data.0.id") != "default" || at(models, "data.0.created") == nil {
		t.Errorf("models: %v", models)
	}
	if one := c.must(
		t,
		200,
		"GET",
		"/api/agents/default/v1/models/default",
		"",
	); one["id"] != "default" || one["owned_by"] != "satchel" {
		t.Errorf("model: %v", one)
	}
}

func TestOpenAICompletions(t *testing.T) {
	c, m := newClientWithModel(t, func(n int, asked map[string]any) string {
		if asked["response_format"] != nil {
			return "```json\n{\"mood\": \"fine\"}\n```"
		}
		return "Hello there."
	})
	plain := c.openAI(
		t,
		"chat/completions",
		hi+`,"max_completion_tokens":9,"temperature":0.1,"seed":7,"n":1,"stop":"END"`,
	).json
	if at(plain, "choices.0.message.content") != "Hello there." ||
		at(plain, "choices.0.finish_reason") != "stop" ||
		at(plain, "usage.total_tokens") != json.Number("8") ||
		plain["model"] != "gpt-5" {
		t.Errorf("plain: %v", plain)
	}
	if asked := m.Requests[0]; asked["max_tokens"] != 9.0 ||
		asked["temperature"] != 0.1 ||
		fmt.Sprint(asked["stop"]) != "[END]" ||
		asked["model"] != "m-1" {
		t.Errorf("the provider received %v", asked)
	}
	text, pieces, finish, usage := deltas(
		t,
		c.openAI(t, "chat/completions", hi+`,"stream":true,"stream_options":{"include_usage":true}`),
	)
	if text != "Hello there." || pieces < 2 || finish != "stop" || usage != 8.0 {
		t.Errorf("streamed %q in %d pieces, %v, %v", text, pieces, finish, usage)
	}
	if formed := c.openAI(
		t,
		"chat/completions",
		hi+","+moodSchema,
	).json; at(formed, "choices.0.message.content") != `{"mood": "fine"}` {
		t.Errorf("with a schema: %v", formed)
	}
	text, pieces, _, _ = deltas(t, c.openAI(t, "chat/completions", hi+`,"stream":true,`+moodSchema))
	if text != `{"mood": "fine"}` || pieces != 1 {
		t.Errorf("streamed with a schema: %q in %d pieces", text, pieces)
	}
}

// TestOpenAITools tests a call of the client's own tool.
func TestOpenAITools(t *testing.T) {
	c, m := newClientWithModel(t, func(n int, asked map[string]any) string {
		if n == 2 {
			return "Sunny."
		}
		return called
	})
	const tools = `,"tools":[{"type":"function","function":{"name":"weather",` +
		`"parameters":{"type":"object"}}}],"tool_choice":`
	first := c.openAI(t, "chat/completions", hi+tools+`{"type":"function","function":{"name":"weather"}}`)
	if at(first.json, "choices.0.finish_reason") != "tool_calls" || !strings.Contains(first.text, `"content":null`) {
		t.Fatalf("%s", first.text)
	}
	if call := at(first.json, "choices.0.message.tool_calls.0"); at(call, "id") != "c1" ||
		at(call, "function.name") != "weather" ||
		at(call, "function.arguments") != `{"city":"Rome"}` {
		t.Errorf("call %v", call)
	}
	if got := fmt.Sprint(m.Requests[0]["tool_choice"]); got != "map[function:map[name:weather] type:function]" {
		t.Errorf("the provider received %s", got)
	}
	message, _ := json.Marshal(at(first.json, "choices.0.message"))
	second := c.openAI(
		t,
		"chat/completions",
		strings.TrimSuffix(hi, "]")+","+string(message)+`,{"role":"tool","content":"\"sun\"","tool_call_id":"c1"}]`+
			tools+`"auto"`,
	)
	if at(second.json, "choices.0.message.content") != "Sunny." {
		t.Fatalf("%s", second.text)
	}
	if asked := m.Messages(1); at(asked[3], "tool_call_id") != "c1" ||
		at(asked[2], "tool_calls.0.function.name") != "weather" ||
		m.Requests[1]["tool_choice"] != nil {
		t.Errorf("the provider received %v", asked)
	}
}

// TestOpenAIEmbeddings checks that embeddings come from the program's own model, or from
// a provider if the agent has one set.
func TestOpenAIEmbeddings(t *testing.T) {
	c := newTestClient(t)
	const input = `"model":"x","input":["bread and bread","a whale"],"encoding_format":"float"`
	got := c.openAI(t, "embeddings", input).json
	if data, _ := got["data"].([]any); len(data) != 2 ||
		len(at(data[1], "embedding").([]any)) != 512 ||
		at(data[1], "index") != json.Number("1") ||
		at(got, "usage.total_tokens") == json.Number("0") {
		t.Errorf("%v", got)
	}
	base, down := modelAPI(t)
	c.must(
		t,
		200,
		"PUT",
		"/api/agents/default/settings",
		fmt.Sprintf(
			`{"embedding_provider":"openai-compatible","embedding_model":"tiny","embedding_base_url":%q,`+
				`"embedding_api_key":"s3cret"}`,
			base,
		),
	)
	got = c.openAI(t, "embeddings", input).json
	if fmt.Sprint(at(got, "data.0.embedding")) != "[1 18 0 0]" ||
		fmt.Sprint(at(got, "data.1.embedding")) != "[1 0 0 9]" ||
		!strings.HasPrefix(fmt.Sprint(got["model"]), "tiny@") {
		t.Errorf("%v", got)
	}
	down.Store(true)
	if failed := c.openAI(t, "embeddings", input); failed.StatusCode != 500 ||
		at(failed.json, "error.code") != "UPSTREAM_ERROR" ||
		at(failed.json, "error.type") != "server_error" {
		t.Errorf("while the provider is down: %s", failed.text)
	}
}

// TestOpenAIRequests checks what is refused, in the format that OpenAI's client reads,
// and what is accepted without any effect.
func TestOpenAIRequests(t *testing.T) {
	c, m := newClientWithModel(t, func(int, map[string]any) string { return "x" })
	const tool = `"tools":[{"type":"function","function":{"name":"f"}}]`
	for body, field := range map[string]string{
		`"n":2`:                         "n",
		`"n":0`:                         "n",
		`"logprobs":true`:               "logprobs",
		`"modalities":["text","audio"]`: "modalities",
		`"functions":[{"name":"f"}]`:    "functions",
		`"stop":["a","b","c","d","e"]`:  "stop",
		`"stop":""`:                     "stop",
		`"stop":[7]`:                    "stop",
		`"temperature":2.5`:             "temperature",
		`"max_tokens":-1`:               "max_tokens",
		`"max_completion_tokens":-1`:    "max_completion_tokens",
		`"tool_choice":"required"`:      "tool_choice",
		`"tool_choice":"perhaps"`:       "tool_choice",
		`"tool_choice":7`:               "tool_choice",
		tool + `,"tool_choice":{"type":"function","function":{"name":"g"}}`: "tool_choice",
		`"tools":[{"type":"custom","custom":{"name":"f"}}]`:                 "tools[0]",
		`"response_format":{"type":"grammar"}`:                              "response_format",
		`"response_format":7`:                                               "response_format",
		`"response_format":{"type":"json_schema"}`:                          "response_format.json_schema.schema",
		`"response_format":{"type":"json_schema","json_schema":{"name":"a",` +
			`"schema":{"type":"strong"}}}`: "response_format.json_schema.schema",
		`"messages":[]`: "messages",
		`"messages":[{"role":"robot","content":"x"}]`: "messages[0].role",
		`"messages":[{"role":"tool","content":"x"}]`:  "messages[0].tool_call_id",
		`"messages":7`:   "messages",
		`"stream":"yes"`: "stream",
	} {
		if !strings.Contains(body, `"messages"`) {
			body += `,"messages":[{"role":"user","content":"x"}]`
		}
		if a := c.openAI(t, "chat/completions", body); a.StatusCode != 400 ||
			at(a.json, "error.param") != field ||
			at(a.json, "error.type") != "invalid_request_error" ||
			at(a.json, "error.message") == "" {
			t.Errorf("%s: %s", body, a.text)
		}
	}
	if len(m.Requests) != 0 {
		t.Errorf("the model received %d requests", len(m.Requests))
	}
	for _, body := range []string{
		`"n":null,"stop":null,"tools":[],"tool_choice":null,"response_format":null,"modalities":null,` +
			`"functions":null,"logprobs":null,"temperature":null,"max_tokens":null,"stream":null,"stream_options":null`,
		`"top_p":0.5,"seed":1,"user":"u","presence_penalty":1,"frequency_penalty":1,"logit_bias":{},"metadata":{},` +
			`"store":true,"parallel_tool_calls":false,"service_tier":"auto","unheard_of":{"x":1}`,
		`"response_format":{"type":"text"},"tool_choice":"auto","modalities":["text"],"n":1,"stop":["a","b","c","d"]`,
		tool + `,"tool_choice":"required"`, tool + `,"tool_choice":"none"`,
	} {
		if a := c.openAI(
			t,
			"chat/completions",
			`"messages":[{"role":"user","content":"x"}],`+body,
		); a.StatusCode != 200 {
			t.Errorf("%s: %s", body, a.text)
		}
	}
	if m.Requests[3]["tool_choice"] != "required" || m.Requests[4]["tools"] != nil {
		t.Errorf("the provider received %v", m.Requests[3:])
	}
	for path, status := range map[string]int{"models/other": 404, "nothing": 404} {
		if a := c.send(t, "GET", "/api/agents/default/v1/"+path, ""); a.StatusCode != status ||
			at(a.json, "error.message") == "" {
			t.Errorf("%s: %s", path, a.text)
		}
	}
}
