package llm

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"satchel/agent"
)

// weatherCall is the call of most shapes.
var weatherCall = ToolCall{ID: "c1", Name: "weather", Arguments: `{"city":"Rome"}`}

// message returns a whole answer of OpenAI's API with a message's fields.
func message(fields string) string {
	return `{"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant",` + fields + `}}]}`
}

// deltas returns a stream of deltas, which ends with a reason and [DONE].
func deltas(list ...string) string {
	var events []string
	for _, fields := range list {
		events = append(events, `{"choices":[{"index":0,"delta":{`+fields+`}}]}`)
	}
	return eventStream(append(events, `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, "[DONE]")...)
}

// TestShapes: what servers send that call themselves compatible is read as meant. A body
// that begins with "data:" or a comment is a stream.
func TestShapes(t *testing.T) {
	const args = `{\"city\":\"Rome\"}`
	none := ToolCall{ID: "c1", Name: "now", Arguments: "{}"}
	for name, c := range map[string]struct {
		body  string
		text  string
		calls []ToolCall
	}{
		// Arguments
		"no arguments": {
			message(
				`"content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"now","arguments":""}}]`,
			),
			"",
			[]ToolCall{none},
		},
		"null arguments": {
			message(`"content":null,"tool_calls":[{"id":"c1","type":"function",` +
				`"function":{"name":"now","arguments":null}}]`),
			"",
			[]ToolCall{none},
		},
		"missing arguments": {
			message(`"content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"now"}}]`),
			"",
			[]ToolCall{none},
		},
		"the text null": {
			message(`"content":null,"tool_calls":[{"id":"c1","type":"function",` +
				`"function":{"name":"now","arguments":"null"}}]`),
			"",
			[]ToolCall{none},
		},
		"encoded twice": {
			message(`"content":null,"tool_calls":[{"id":"c1","function":{"name":"weather",` +
				`"arguments":"\"{\\\"city\\\":\\\"Rome\\\"}\""}}]`),
			"",
			[]ToolCall{weatherCall},
		},
		"an empty object first": {deltas(
			`"tool_calls":[{"index":0,"id":"c1","function":{"name":"weather","arguments":"{}"}}]`,
			`"tool_calls":[{"index":0,"function":{"arguments":"`+args+`"}}]`,
		), "", []ToolCall{weatherCall}},
		"an empty call": {
			deltas(`"content":"Hello."`, `"tool_calls":[{"index":0,"function":{"arguments":""}}]`),
			"Hello.",
			nil,
		},
		"vLLM, null names": {deltas(
			`"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"weather","arguments":null}}]`,
			`"tool_calls":[{"index":0,"id":null,"type":null,"function":{"name":null,"arguments":"`+args+`"}}]`,
		), "", []ToolCall{weatherCall}},
		"an object": {
			message(`"content":"","tool_calls":[{"id":"c1","type":"function","function":{"name":"weather",` +
				`"arguments":{"city":"Rome"}}}]`),
			"",
			[]ToolCall{weatherCall},
		},
		"an object in a stream": {
			deltas(`"tool_calls":[{"index":0,"id":"c1","function":{"name":"weather","arguments":{"city":"Rome"}}}]`),
			"",
			[]ToolCall{weatherCall},
		},
		"no arguments in a stream": {deltas(
			`"tool_calls":[{"index":0,"id":"c1","function":{"name":"now","arguments":""}}]`,
			`"tool_calls":[{"index":0,"function":{"arguments":null}}]`,
		), "", []ToolCall{none}},

		// Ids, indexes, names
		"content is missing": {
			message(
				`"tool_calls":[{"id":"c1","type":"function","function":{"name":"weather","arguments":"` + args + `"}}]`,
			),
			"",
			[]ToolCall{weatherCall},
		},
		"one call without a list": {
			message(`"content":"","tool_calls":{"id":"c1","function":{"name":"weather","arguments":"` + args + `"}}`),
			"",
			[]ToolCall{weatherCall},
		},
		"no id": {
			message(`"content":"","tool_calls":[{"type":"function","function":{"name":"weather","arguments":"` +
				args + `"}}]`),
			"",
			[]ToolCall{{ID: "call_1", Name: "weather", Arguments: weatherCall.Arguments}},
		},
		"an empty id": {
			message(`"content":"","tool_calls":[{"id":"","function":{"name":"weather","arguments":"` + args + `"}}]`),
			"",
			[]ToolCall{{ID: "call_1", Name: "weather", Arguments: weatherCall.Arguments}},
		},
		"a number as id": {
			message(`"content":"","tool_calls":[{"id":7,"function":{"name":"weather","arguments":"` + args + `"}}]`),
			"",
			[]ToolCall{{ID: "7", Name: "weather", Arguments: weatherCall.Arguments}},
		},
		"two of one id": {
			message(`"content":"","tool_calls":[{"id":"c1","function":{"name":"weather","arguments":"` + args +
				`"}},{"id":"c1","function":{"name":"now","arguments":"{}"}}]`),
			"",
			[]ToolCall{weatherCall, {ID: "call_2", Name: "now", Arguments: "{}"}},
		},
		"the name in each piece": {deltas(
			`"tool_calls":[{"index":0,"id":"c1","function":{"name":"weather","arguments":"{\"city\""}}]`,
			`"tool_calls":[{"index":0,"id":"c1","function":{"name":"weather","arguments":":\"Rome\"}"}}]`,
			`"tool_calls":[{"index":0,"id":"c1","function":{"name":"weather","arguments":""}}]`,
		), "", []ToolCall{weatherCall}},
		"the name in pieces": {deltas(
			`"tool_calls":[{"index":0,"id":"c1","function":{"name":"wea","arguments":""}}]`,
			`"tool_calls":[{"index":0,"function":{"name":"ther","arguments":"`+args+`"}}]`,
		), "", []ToolCall{weatherCall}},
		"no index and no id": {
			deltas(`"tool_calls":[{"id":"","function":{"name":"weather","arguments":"` + args +
				`"}},{"id":"","function":{"name":"now","arguments":"{}"}}]`),
			"",
			[]ToolCall{
				{ID: "call_1", Name: "weather", Arguments: weatherCall.Arguments},
				{ID: "call_2", Name: "now", Arguments: "{}"},
			},
		},
		"no index, in pieces": {deltas(
			`"tool_calls":[{"id":"c1","function":{"name":"weather","arguments":"{\"city\""}}]`,
			`"tool_calls":[{"function":{"arguments":":\"Rome\"}"}}]`,
		), "", []ToolCall{weatherCall}},
		"every index is 0": {deltas(
			`"tool_calls":[{"index":0,"id":"c1","function":{"name":"weather","arguments":"`+args+`"}}]`,
			`"tool_calls":[{"index":0,"id":"c2","function":{"name":"now","arguments":"{}"}}]`,
		), "", []ToolCall{weatherCall, {ID: "c2", Name: "now", Arguments: "{}"}}},
		"every index is 0, without ids": {
			deltas(
				`"tool_calls":[{"index":0,"id":"","function":{"name":"weather","arguments":"`+args+`"}}]`,
				`"tool_calls":[{"index":0,"id":"","function":{"name":"now","arguments":"{}"}}]`,
			),
			"",
			[]ToolCall{
				{ID: "call_1", Name: "weather", Arguments: weatherCall.Arguments},
				{ID: "call_2", Name: "now", Arguments: "{}"},
			},
		},
		"indexes from 1 as floats": {deltas(
			`"tool_calls":[{"index":1.0,"id":"c1","function":{"name":"weather","arguments":"{\"city\""}}]`,
			`"tool_calls":[{"index":1.0,"function":{"arguments":":\"Rome\"}"}}]`,
		), "", []ToolCall{weatherCall}},

		// Text
		"parts": {
			message(`"content":[{"type":"text","text":"Hel"},{"type":"text","text":"lo."}]`),
			"Hello.",
			nil,
		},
		"parts in a stream": {
			deltas(`"content":[{"type":"text","text":"Hel"}]`, `"content":"lo."`, `"content":null`),
			"Hello.",
			nil,
		},
		"parts with thinking": {
			message(`"content":[{"type":"thinking","thinking":[{"type":"text","text":"Hm."}]},` +
				`{"type":"text","text":"Hello."}]`),
			"Hello.",
			nil,
		},
		"parts that are strings": {message(`"content":["Hel","lo."]`), "Hello.", nil},
		"a refusal": {
			message(`"content":null,"refusal":"I cannot help with that."`),
			"I cannot help with that.",
			nil,
		},
		"a refusal in a stream": {deltas(`"refusal":"I cannot "`, `"refusal":"help."`), "I cannot help.", nil},
		"usage as floats": {
			`{"choices":[{"finish_reason":"stop","message":{"content":"Hello."}}],"usage":{"prompt_tokens":7.0,` +
				`"completion_tokens":"2","total":null}}`,
			"Hello.",
			nil,
		},
		"usage is null": {
			`{"choices":[{"finish_reason":"stop","message":{"content":"Hello."}}],"usage":null,"error":null}`,
			"Hello.",
			nil,
		},

		// Thought
		"a thought":        {message(`"content":"<think>\nHm.\n</think>\n\nHello."`), "Hello.", nil},
		"an empty thought": {message(`"content":"<think></think>Hello."`), "Hello.", nil},
		"a thought in a stream": {
			deltas(
				`"content":"<th"`, `"content":"ink>Hm"`, `"content":".</thi"`, `"content":"nk>\n"`, `"content":"\nHel"`,
				`"content":"lo."`,
			),
			"Hello.",
			nil,
		},
		"two thoughts":              {message(`"content":"<think>a</think>\n<think>b</think>\nHello."`), "Hello.", nil},
		"no opening tag":            {message(`"content":"Hm, hello?\n</think>\n\nHello."`), "Hello.", nil},
		"no opening tag, same line": {message(`"content":"Hm, hello?</think>\n\nHello."`), "Hello.", nil},
		"no opening tag, one line":  {message(`"content":"Hm.\n</think> Hello."`), "Hello.", nil},
		"an answer in tags": {
			message(`"content":"<think>Hm.</think>\n<answer>\nHello.\n</answer>"`),
			"<answer>\nHello.\n</answer>",
			nil,
		},
		"brackets": {message(`"content":"[THINK]Hm.[/THINK]Hello."`), "Hello.", nil},
		"channels": {
			message(`"content":"<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|` +
				`channel|>final<|message|>Hello."`),
			"Hello.",
			nil,
		},
		"a tag that is text": {
			message(`"content":"Use <think> and </think> for that."`),
			"Use <think> and </think> for that.",
			nil,
		},
		"the beginning of a tag":  {deltas(`"content":"<thi"`, `"content":"s is a tag"`), "<this is a tag", nil},
		"nothing but a beginning": {deltas(`"content":"<thi"`), "<thi", nil},
		"white space before":      {deltas(`"content":"\n "`, `"content":"Hello."`), "\n Hello.", nil},

		// Streams
		"no reason, but done": {
			eventStream(`{"choices":[{"delta":{"content":"Hello."}}]}`, "[DONE]"),
			"Hello.",
			nil,
		},
		"no blank line at the end": {
			strings.TrimRight(
				eventStream(
					`{"choices":[{"delta":{"content":"Hello."}}]}`,
					`{"choices":[{"delta":{},"finish_reason":"stop"}]}`,
				),
				"\n",
			),
			"Hello.",
			nil,
		},
		"no done": {
			eventStream(`{"choices":[{"delta":{"content":"Hello."},"finish_reason":"stop"}]}`),
			"Hello.",
			nil,
		},
		"no stream": {message(`"content":"Hello."`), "Hello.", nil},
		"a message in a stream": {
			eventStream(`{"choices":[{"message":{"content":"Hello."},"finish_reason":"stop"}]}`),
			"Hello.",
			nil,
		},
		"comments, CRLF and others": {
			": ping\r\n\r\ndata: ping\r\n\r\nevent: x\r\ndata:{\"choices\":[{\"delta\":{\"content\":\"Hello.\"}," +
				"\"finish_reason\":\"stop\"}]}\r\n\r\n",
			"Hello.",
			nil,
		},
		"a byte order mark": {"\ufeff" + message(`"content":"Hello."`), "Hello.", nil},
		"a mark before a stream": {
			"\ufeff" + eventStream(`{"choices":[{"delta":{"content":"Hello."},"finish_reason":"stop"}]}`),
			"Hello.",
			nil,
		},
		"Perplexity, all of it each time": {eventStream(
			`{"choices":[{"message":{"role":"assistant","content":"Hel"},"delta":{"content":"Hel"}}]}`,
			`{"choices":[{"message":{"role":"assistant","content":"Hello."},"delta":{"content":"lo."}}],`+
				`"citations":["https://a"]}`,
			`{"object":"chat.completion.done","choices":[{"finish_reason":"stop","message":{"role":"assistant",`+
				`"content":"Hello."},"delta":{"content":""}}]}`,
		), "Hello.", nil},
		"all of it at the end": {
			eventStream(
				`{"choices":[{"delta":{"content":"Hello."}}]}`,
				`{"choices":[{"finish_reason":"stop","message":{"content":"Hello."}}]}`,
			),
			"Hello.",
			nil,
		},
		"DeepSeek, blank lines while it works": {
			strings.Repeat("\n", 9000) + message(`"content":"Hello."`),
			"Hello.",
			nil,
		},
		"OpenRouter, comments": {
			strings.Repeat(": OPENROUTER PROCESSING\n\n", 300) + deltas(`"content":"Hello."`),
			"Hello.",
			nil,
		},
		"Azure, a chunk about the prompt": {eventStream(
			`{"choices":[],"prompt_filter_results":[{"prompt_index":0,"content_filter_results":{}}]}`,
			`{"choices":[{"delta":{"content":"Hello."},"finish_reason":"stop",`+
				`"content_filter_results":{}}],"usage":null}`,
			"[DONE]",
		), "Hello.", nil},
	} {
		for _, mode := range []string{"whole", "stream"} {
			t.Run(name+"/"+mode, func(t *testing.T) {
				p := newFakeProvider(t, respond(200, "application/json", c.body))
				var pieces strings.Builder
				var onText func(string) error
				if mode == "stream" {
					onText = func(piece string) error {
						pieces.WriteString(piece)
						return nil
					}
				}
				reply, err := New(Options{HTTP: p.Client()}).Chat(t.Context(), modelAt(p, Compatible), hello, onText)
				if err != nil || reply.Text != c.text || !reflect.DeepEqual(reply.ToolCalls, c.calls) {
					t.Fatalf("%q %+v %v, want %q %+v", reply.Text, reply.ToolCalls, err, c.text, c.calls)
				}
				if onText != nil && pieces.String() != c.text && !strings.HasPrefix(name, "no opening tag") {
					t.Errorf("streamed %q, want %q", pieces.String(), c.text)
				}
			})
		}
	}
}

// TestErrorsInAnswers: an answer that is none is an error, and never an empty text.
func TestErrorsInAnswers(t *testing.T) {
	for name, c := range map[string]struct{ provider, body, want string }{
		"an error with 200": {Compatible, `{"error":{"message":"Rate limit","code":429}}`, "overloaded"},
		"an error as text":  {Compatible, `{"error":"model is loading"}`, "failed"},
		"OpenRouter, in the middle": {
			Compatible,
			eventStream(
				`{"choices":[{"delta":{"content":"Hel"}}]}`,
				`{"error":{"code":"server_error","message":"x"},"choices":[{"delta":{"content":""},`+
					`"finish_reason":"error"}]}`,
			),
			"cut short",
		},
		"OpenRouter, in the choice": {
			Compatible,
			`{"choices":[{"finish_reason":"error","error":{"code":502,"message":"x"},"message":{"content":""}}]}`,
			"failed",
		},
		"a reason without an error": {
			Compatible,
			eventStream(
				`{"choices":[{"delta":{"content":"Hel"}}]}`,
				`{"choices":[{"delta":{},"finish_reason":"error"}]}`,
				"[DONE]",
			),
			"cut short",
		},
		"vLLM, an object": {
			Compatible,
			`{"object":"error","message":"The model m does not exist","type":"NotFoundError","code":404}`,
			"does not know the model",
		},
		"LM Studio, without /v1": {
			Compatible,
			`{"error":"Unexpected endpoint or method. (POST /chat/completions)"}`,
			"check llm_model and llm_base_url",
		},
		"llama.cpp, a field": {
			Compatible,
			"error: {\"code\":503,\"message\":\"busy\",\"type\":\"unavailable_error\"}\n\n",
			"overloaded",
		},
		"a quota by name": {
			Compatible,
			eventStream(`{"error":{"message":"no","type":"insufficient_quota","code":"insufficient_quota"}}`),
			"no credit",
		},
		"a web page": {Compatible, "<!doctype html><html><body>Open WebUI</body></html>", "web page"},
		"a list": {
			Compatible,
			`[{"error":{"code":429,"message":"Quota","status":"RESOURCE_EXHAUSTED"}}]`,
			"overloaded",
		},
		"Gemini, a call that is none": {
			Compatible,
			`{"choices":[{"finish_reason":"function_call_filter: MALFORMED_FUNCTION_CALL",` +
				`"message":{"role":"assistant"}}]}`,
			"refused to answer",
		},
		"Gemini, a filter": {
			Compatible,
			`{"choices":[{"finish_reason":"content_filter: PROHIBITED_CONTENT","message":{"role":"assistant"}}]}`,
			"refused to answer",
		},
		"an error in a stream": {
			Compatible,
			eventStream(`{"error":{"message":"no","code":"404"}}`),
			"does not know the model",
		},
		"an error after a text": {
			Compatible,
			eventStream(`{"choices":[{"delta":{"content":"Hel"}}]}`, `{"error":{"message":"no"}}`),
			"cut short",
		},
		"a filter": {
			Compatible,
			`{"choices":[{"finish_reason":"content_filter","message":{"content":""}}]}`,
			"refused to answer",
		},
		"no choice": {Compatible, `{"choices":[]}`, "cut short"},
		"nothing":   {Compatible, ``, "cut short"},
		"Anthropic: an error with 200": {
			Anthropic,
			`{"type":"error","error":{"type":"overloaded_error","message":"busy"}}`,
			"overloaded",
		},
		"Anthropic: an event": {
			Anthropic,
			eventStream(
				`{"type":"message_start","message":{"usage":{"input_tokens":1}}}`,
				`{"type":"ping"}`,
				`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`,
			),
			"overloaded",
		},
		"Anthropic: a key": {
			Anthropic,
			`{"type":"error","error":{"type":"authentication_error","message":"no"}}`,
			"check anthropic_api_key",
		},
		"Anthropic: a refusal": {
			Anthropic,
			`{"type":"message","content":[],"stop_reason":"refusal"}`,
			"refused to answer",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newFakeProvider(t, respond(200, "application/json", c.body))
			for _, onText := range []func(string) error{nil, func(string) error { return nil }} {
				_, err := New(Options{HTTP: p.Client()}).Chat(t.Context(), modelAt(p, c.provider), hello, onText)
				if err == nil || !strings.Contains(err.Error(), c.want) || agent.ErrorCode(err) != agent.CodeUpstream {
					t.Errorf("%v, want %q", err, c.want)
				}
			}
		})
	}
}

// TestRefusedParameters: a request that is refused for a parameter is repeated without it,
// and a model that supports none is not asked again.
func TestRefusedParameters(t *testing.T) {
	half := 0.5
	full := hello
	full.Stop, full.Schema = []string{"END"}, json.RawMessage(`{"type":"object"}`)
	for name, c := range map[string]struct {
		provider  string
		status    int
		refusal   string
		without   string // the field that the second request lacks
		remembers bool
	}{
		"OpenAI's temperature": {
			OpenAI,
			400,
			`{"error":{"message":"Unsupported value: 'temperature' does not support 0.5 with this model. ` +
				`Only the default (1) value is supported.","type":"invalid_request_error","param":"temperature",` +
				`"code":"unsupported_value"}}`,
			"temperature",
			true,
		},
		"Anthropic's": {
			Anthropic,
			400,
			`{"type":"error","error":{"type":"invalid_request_error","message":"temperature: this model does ` +
				`not support setting it"}}`,
			"temperature",
			true,
		},
		"pydantic's": {
			Compatible,
			422,
			`{"detail":[{"loc":["body","temperature"],"msg":"extra fields not permitted"}]}`,
			"temperature",
			true,
		},
		"max_tokens": {
			Compatible,
			400,
			`{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. ` +
				`Use 'max_completion_tokens' instead.","param":"max_tokens"}}`,
			"max_tokens",
			true,
		},
		"max_completion": {
			OpenAI,
			400,
			`{"error":{"message":"Unrecognized request argument supplied: max_completion_tokens"}}`,
			"max_completion_tokens",
			true,
		},
		"too many tokens": {
			Compatible,
			400,
			`{"error":{"message":"max_tokens is too large: 100000"}}`,
			"max_tokens",
			false,
		},
		"response_format": {
			Compatible,
			400,
			`{"error":{"message":"This response_format type is unavailable now"}}`,
			"response_format",
			false,
		},
		"json_schema": {
			Compatible,
			400,
			`{"error":"response format json_schema is not supported"}`,
			"response_format",
			true,
		},
		"tools": {
			Ollama,
			400,
			`{"error":"registry.ollama.ai/library/gemma:2b does not support tools"}`,
			"tools",
			false,
		},
		"no endpoint": {
			Compatible,
			404,
			`{"error":{"message":"No endpoints found that support tool use.","code":404}}`,
			"tools",
			false,
		},
		"stop": {
			OpenAI,
			400,
			`{"error":{"message":"Unsupported parameter: 'stop' is not supported with this model.","param":"stop"}}`,
			"stop",
			true,
		},
		"Gemma's template": {
			Compatible,
			400,
			`{"object":"error","message":"System role not supported System role not supported",` +
				`"type":"BadRequestError","code":400}`,
			"system",
			true,
		},
		"Gemma at Google": {
			Compatible,
			400,
			`[{"error":{"code":400,"message":"Developer instruction is not enabled for models/gemma-3-27b-it",` +
				`"status":"INVALID_ARGUMENT"}}]`,
			"system",
			false,
		},
		"xAI's stop": {
			Compatible,
			400,
			`{"code":"Client specified an invalid argument","error":"Argument not supported on this model: stop"}`,
			"stop",
			true,
		},
		"llama.cpp's tools": {
			Compatible,
			400,
			`{"error":{"code":400,"message":"tools param requires --jinja flag","type":"server_error"}}`,
			"tools",
			false,
		},
		"vLLM's tools": {
			Compatible,
			400,
			`{"object":"error","message":"\"auto\" tool choice requires --enable-auto-tool-choice and ` +
				`--tool-call-parser to be set","type":"BadRequestError","code":400}`,
			"tools",
			false,
		},
		"Groq's schema": {
			Compatible,
			400,
			`{"error":{"message":"This model does not support response format ` + "`json_schema`" +
				`.","type":"invalid_request_error"}}`,
			"response_format",
			true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			answer := plainOpenAI
			if c.provider == Anthropic {
				answer = plainClaude
			}
			p := newFakeProvider(t, nil)
			p.answer = func(n int, w http.ResponseWriter) {
				p.mu.Lock()
				_, has := p.seen[n-1][c.without]
				has = has ||
					c.without == "system" && strings.Contains(fmt.Sprint(p.seen[n-1]["messages"]), "role:system")
				p.mu.Unlock()
				if has {
					respond(c.status, "application/json", c.refusal)(n, w)
					return
				}
				respond(200, "application/json", answer)(n, w)
			}
			m := modelAt(p, c.provider)
			m.Temperature, m.MaxTokens = &half, 100
			client := New(Options{HTTP: p.Client()})
			for range 2 {
				if reply, err := client.Chat(t.Context(), m, full, nil); err != nil || reply.Text != "Hello." {
					t.Fatalf("%+v %v", reply, err)
				}
			}
			want := 4
			if c.remembers {
				want = 3
			}
			if len(p.seen) != want {
				t.Errorf("%d requests, want %d", len(p.seen), want)
			}
			if c.without == "response_format" && !strings.Contains(fmt.Sprint(p.seen[1]["messages"]), "JSON Schema") {
				t.Errorf("the prompt lacks the schema: %v", p.seen[1]["messages"])
			}
		})
	}
}

// TestOtherErrorsAreNotRepeated: only a refused parameter is left out.
func TestOtherErrorsAreNotRepeated(t *testing.T) {
	for name, body := range map[string]string{
		"context": `{"error":{"message":"This model's maximum context length is 8192 tokens. Please reduce the ` +
			`length of the messages."}}`,
		"tool schema": `{"error":{"message":"Invalid schema for function 'weather': type is required",` +
			`"param":"tools[0].function.parameters"}}`,
		"model": `{"error":{"message":"The model m-1 does not exist"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			p := newFakeProvider(t, respond(400, "application/json", body))
			if _, err := New(Options{HTTP: p.Client()}).Chat(
				t.Context(),
				modelAt(p, Compatible),
				hello,
				nil,
			); err == nil || len(p.seen) != 1 {
				t.Errorf("%d requests, %v", len(p.seen), err)
			}
		})
	}
}

// TestNoTemperature: what nobody set is not sent.
func TestNoTemperature(t *testing.T) {
	for _, provider := range []string{OpenAI, Compatible, Ollama, Anthropic} {
		answer := plainOpenAI
		if provider == Anthropic {
			answer = plainClaude
		}
		p := newFakeProvider(t, respond(200, "application/json", answer))
		m := modelAt(p, provider)
		m.Temperature = nil
		if _, err := New(Options{HTTP: p.Client()}).Chat(t.Context(), m, hello, nil); err != nil {
			t.Fatal(err)
		}
		for _, field := range []string{
			"temperature", "max_tokens", "max_completion_tokens", "stop", "tool_choice", "response_format",
		} {
			if value, sent := p.seen[0][field]; sent && !(provider == Anthropic && field == "max_tokens") {
				t.Errorf("%s was sent %s %v", provider, field, value)
			}
		}
	}
}

// TestHiddenFieldsGoBack: what a reply has besides its text and calls goes back as it came
// in the next round, and not if the provider refuses it.
func TestHiddenFieldsGoBack(t *testing.T) {
	const call = `"tool_calls":[{"index":0,"id":"c1","type":"function",` +
		`"extra_content":{"google":{"thought_signature":"sig=="}},"function":{"name":"weather","arguments":"{}"}}]`
	const signed = `{"type":"message","stop_reason":"tool_use","content":[{"type":"thinking","thinking":"Hm.",` +
		`"signature":"s=="},{"type":"tool_use","id":"c1","name":"weather","input":{}}]}`
	signedStream := eventStream(
		`{"type":"message_start","message":{}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"H"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"m."}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"s=="}}`,
		`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"c1",`+
			`"name":"weather","input":{}}}`,
		`{"type":"message_delta","delta":{"stop_reason":"tool_use"}}`,
		`{"type":"message_stop"}`,
	)
	for name, c := range map[string]struct{ provider, first, want string }{
		"Gemini": {
			Compatible,
			message(`"content":"",` + call),
			`"extra_content":{"google":{"thought_signature":"sig=="}}`,
		},
		"Gemini, stream": {Compatible, deltas(call), `"extra_content":{"google":{"thought_signature":"sig=="}}`},
		"DeepSeek": {
			Compatible,
			message(`"content":"","reasoning_content":"Hm, Rome.",` + call),
			`"reasoning_content":"Hm, Rome."`,
		},
		"DeepSeek, stream": {
			Compatible,
			deltas(`"reasoning_content":"Hm, "`, `"reasoning_content":"Rome."`, call),
			`"reasoning_content":"Hm, Rome."`,
		},
		"OpenRouter, stream": {
			Compatible,
			deltas(
				`"reasoning_details":[{"type":"reasoning.text","index":0,"text":"Hm"}]`,
				`"reasoning_details":[{"type":"reasoning.text","index":0,"text":".","signature":"s"}]`,
				call,
			),
			`"reasoning_details":[{"index":0,"signature":"s","text":"Hm.","type":"reasoning.text"}]`,
		},
		"LiteLLM, stream": {
			Compatible,
			deltas(
				`"thinking_blocks":[{"type":"thinking","thinking":"Hm","signature":null}]`,
				`"thinking_blocks":[{"type":"thinking","thinking":".","signature":null}]`,
				`"thinking_blocks":[{"type":"thinking","thinking":"","signature":"s"}]`,
				`"thinking_blocks":[{"type":"redacted_thinking","data":"x"}]`,
				call,
			),
			`"thinking_blocks":[{"signature":"s","thinking":"Hm.","type":"thinking"},{"data":"x",` +
				`"type":"redacted_thinking"}]`,
		},
		"LiteLLM, two blocks": {
			Compatible,
			message(`"content":"","thinking_blocks":[{"type":"thinking","thinking":"a","signature":"s"},` +
				`{"type":"thinking","thinking":"b","signature":"t"}],` + call),
			`"thinking_blocks":[{"signature":"s","thinking":"a","type":"thinking"},{"signature":"t",` +
				`"thinking":"b","type":"thinking"}]`,
		},
		"a thought in the text": {
			Compatible,
			message(`"content":"<think>Hm.</think>",` + call),
			`"content":"\u003cthink\u003eHm.\u003c/think\u003e"`,
		},
		"Anthropic":         {Anthropic, signed, `{"signature":"s==","thinking":"Hm.","type":"thinking"}`},
		"Anthropic, stream": {Anthropic, signedStream, `{"signature":"s==","thinking":"Hm.","type":"thinking"}`},
	} {
		t.Run(name, func(t *testing.T) {
			last := plainOpenAI
			if c.provider == Anthropic {
				last = plainClaude
			}
			p := newFakeProvider(t, func(n int, w http.ResponseWriter) {
				respond(200, "application/json", []string{c.first, last, last}[min(n, 3)-1])(n, w)
			})
			client := New(Options{HTTP: p.Client()})
			reply, err := client.Chat(t.Context(), modelAt(p, c.provider), hello, nil)
			if err != nil || len(reply.ToolCalls) != 1 || reply.Text != "" {
				t.Fatalf("%+v %v", reply, err)
			}
			next := hello
			next.Messages = append(
				next.Messages[:1:1],
				Message{
					Role:      agent.MessageAssistant,
					Content:   reply.Text,
					ToolCalls: reply.ToolCalls,
					Hidden:    reply.Hidden,
				},
				Message{Role: agent.MessageTool, Content: "sun", CallID: "c1"},
			)
			if _, err := client.Chat(t.Context(), modelAt(p, c.provider), next, nil); err != nil {
				t.Fatal(err)
			}
			if sent, _ := json.Marshal(p.seen[1]["messages"]); !strings.Contains(string(sent), c.want) {
				t.Errorf("sent %s, want %s", sent, c.want)
			}
		})
	}
	t.Run("refused", func(t *testing.T) {
		p := newFakeProvider(t, nil)
		p.answer = func(n int, w http.ResponseWriter) {
			if p.mu.Lock(); strings.Contains(fmt.Sprint(p.seen[n-1]), "reasoning_content") {
				defer p.mu.Unlock()
				respond(
					400,
					"application/json",
					`{"error":{"message":"property 'reasoning_content' is unsupported"}}`,
				)(n, w)
				return
			}
			p.mu.Unlock()
			respond(200, "application/json", plainOpenAI)(n, w)
		}
		r := Request{
			Messages: []Message{
				{Role: agent.MessageUser, Content: "Hi"},
				{
					Role:    agent.MessageAssistant,
					Content: "Hm",
					Hidden:  Hidden{Fields: map[string]json.RawMessage{"reasoning_content": json.RawMessage(`"x"`)}},
				},
			},
		}
		if reply, err := New(Options{HTTP: p.Client()}).Chat(
			t.Context(),
			modelAt(p, Compatible),
			r,
			nil,
		); err != nil || reply.Text != "Hello." {
			t.Errorf("%+v %v", reply, err)
		}
	})
}

// TestAlternatingRoles: neighbours of one role are one message, for every provider.
func TestAlternatingRoles(t *testing.T) {
	user := func(text string) Message { return Message{Role: agent.MessageUser, Content: text} }
	said := func(text string) Message { return Message{Role: agent.MessageAssistant, Content: text} }
	for name, c := range map[string]struct {
		messages []Message
		want     string
	}{
		"a failed turn": {
			[]Message{user("a"), user("b"), said("c"), user("d")},
			"user:a\n\nb assistant:c user:d",
		},
		"two answers": {
			[]Message{user("a"), said("b"), said("c"), user("d")},
			"user:a assistant:b\n\nc user:d",
		},
		"an answer first": {[]Message{said("a"), user("b")}, "user:" + firstUserMessage + " assistant:a user:b"},
		"a system in between": {
			[]Message{user("a"), {Role: agent.MessageSystem, Content: "s"}, user("b")},
			"user:a\n\nb",
		},
		"results": {
			[]Message{
				user("a"),
				{Role: agent.MessageAssistant, ToolCalls: []ToolCall{weatherCall}},
				{Role: agent.MessageTool, CallID: "c1", Content: "1"},
				{Role: agent.MessageTool, CallID: "c2", Content: "2"},
			},
			"user:a assistant: tool:1 tool:2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, list := alternating("", c.messages)
			var got []string
			for _, m := range list {
				got = append(got, string(m.Role)+":"+m.Content)
			}
			if text := strings.Join(got, " "); text != c.want {
				t.Errorf("%q, want %q", text, c.want)
			}
		})
	}
}
