package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
)

// sdk is OpenAI's own client, pointed at an agent.
func (c *visitor) sdk(agent string) openai.Client {
	return openai.NewClient(option.WithBaseURL(c.url+"/api/agents/"+agent+"/v1"), option.WithAPIKey("sk-anything"), option.WithMaxRetries(0))
}

var hi = []openai.ChatCompletionMessageParamUnion{openai.DeveloperMessage("Be brief."), openai.UserMessage("Hi")}

// TestOpenAISDK uses an agent through OpenAI's own Go client, unchanged.
func TestOpenAISDK(t *testing.T) {
	c, m := minded(t, func(n int, asked map[string]any) string {
		switch {
		case asked["tools"] != nil:
			return `{"choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"weather","arguments":"{\"city\":\"Rome\"}"}}]}}]}`
		case asked["response_format"] != nil:
			return "```json\n{\"mood\": \"fine\"}\n```"
		}
		return "Hello there."
	})
	client := c.sdk("default")
	ctx := t.Context()
	models, err := client.Models.List(ctx)
	if err != nil || len(models.Data) != 1 || models.Data[0].ID != "default" || models.Data[0].Created == 0 {
		t.Errorf("models: %+v %v", models, err)
	}
	if one, err := client.Models.Get(ctx, "default"); err != nil || one.ID != "default" || one.OwnedBy != "satchel" {
		t.Errorf("model: %+v %v", one, err)
	}
	plain, err := client.Chat.Completions.New(ctx, openai.ChatCompletionNewParams{Model: "gpt-5", Messages: hi, MaxCompletionTokens: param.NewOpt[int64](9), Temperature: param.NewOpt(0.1),
		Seed: param.NewOpt[int64](7), N: param.NewOpt[int64](1), Stop: openai.ChatCompletionNewParamsStopUnion{OfString: param.NewOpt("END")}})
	if err != nil || plain.Choices[0].Message.Content != "Hello there." || plain.Choices[0].FinishReason != "stop" || plain.Usage.TotalTokens != 8 || plain.Model != "gpt-5" {
		t.Errorf("plain: %+v %v", plain, err)
	}
	if asked := m.seen[0]; asked["max_tokens"] != 9.0 || asked["temperature"] != 0.1 || fmt.Sprint(asked["stop"]) != "[END]" || asked["model"] != "m-1" {
		t.Errorf("the provider was asked %v", asked)
	}

	stream := client.Chat.Completions.NewStreaming(ctx, openai.ChatCompletionNewParams{Model: "x", Messages: hi,
		StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: param.NewOpt(true)}})
	var whole openai.ChatCompletionAccumulator
	var pieces int
	for stream.Next() {
		if pieces++; !whole.AddChunk(stream.Current()) {
			t.Errorf("the SDK cannot add %+v", stream.Current())
		}
	}
	if err := stream.Err(); err != nil || whole.Choices[0].Message.Content != "Hello there." || whole.Choices[0].Message.Role != "assistant" || whole.Choices[0].FinishReason != "stop" || whole.Usage.TotalTokens != 8 || pieces < 4 {
		t.Errorf("stream: %+v in %d pieces, %v", whole, pieces, err)
	}

	form := openai.ChatCompletionNewParams{Model: "x", Messages: hi}
	form.ResponseFormat.OfJSONSchema = &openai.ResponseFormatJSONSchemaParam{JSONSchema: openai.ResponseFormatJSONSchemaJSONSchemaParam{Name: "mood",
		Schema: json.RawMessage(`{"type":"object","properties":{"mood":{"type":"string"}},"required":["mood"]}`)}}
	formed, err := client.Chat.Completions.New(ctx, form)
	if err != nil || formed.Choices[0].Message.Content != `{"mood": "fine"}` {
		t.Errorf("formed: %+v %v", formed, err)
	}
	pieces = 0
	for stream = client.Chat.Completions.NewStreaming(ctx, form); stream.Next(); {
		if text := stream.Current().Choices[0].Delta.Content; text != "" && text != `{"mood": "fine"}` {
			t.Errorf("streamed with a form: %q", text)
		} else if text != "" {
			pieces++
		}
	}
	if stream.Err() != nil || pieces != 1 {
		t.Errorf("streamed with a form in %d pieces, %v", pieces, stream.Err())
	}
}

// TestOpenAISDKTools walks through a call of the caller's own tool.
func TestOpenAISDKTools(t *testing.T) {
	c, m := minded(t, func(n int, asked map[string]any) string {
		if n == 2 {
			return "Sunny."
		}
		return `{"choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"weather","arguments":"{\"city\":\"Rome\"}"}}]}}]}`
	})
	client := c.sdk("default")
	weather := openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{Name: "weather", Parameters: openai.FunctionParameters{"type": "object"}})
	ask := openai.ChatCompletionNewParams{Model: "x", Messages: hi, Tools: []openai.ChatCompletionToolUnionParam{weather},
		ToolChoice: openai.ToolChoiceOptionFunctionToolChoice(openai.ChatCompletionNamedToolChoiceFunctionParam{Name: "weather"})}
	called, err := client.Chat.Completions.New(t.Context(), ask)
	if err != nil || len(called.Choices[0].Message.ToolCalls) != 1 || called.Choices[0].FinishReason != "tool_calls" {
		t.Fatalf("%+v %v", called, err)
	}
	call := called.Choices[0].Message.ToolCalls[0]
	if call.ID != "c1" || call.Function.Name != "weather" || call.Function.Arguments != `{"city":"Rome"}` || !strings.Contains(called.RawJSON(), `"content":null`) {
		t.Errorf("call %s", called.RawJSON())
	}
	if got := fmt.Sprint(m.seen[0]["tool_choice"]); got != "map[function:map[name:weather] type:function]" {
		t.Errorf("the provider was told %s", got)
	}
	ask.ToolChoice = openai.ChatCompletionToolChoiceOptionUnionParam{OfAuto: param.NewOpt("auto")}
	ask.Messages = append(ask.Messages, called.Choices[0].Message.ToParam(), openai.ToolMessage(`"sun"`, "c1"))
	said, err := client.Chat.Completions.New(t.Context(), ask)
	if err != nil || said.Choices[0].Message.Content != "Sunny." {
		t.Fatalf("%+v %v", said, err)
	}
	if told := m.messages(1); at(told[4], "tool_call_id") != "c1" || at(told[3], "tool_calls.0.function.name") != "weather" || m.seen[1]["tool_choice"] != nil {
		t.Errorf("told %v", told)
	}
}

// TestOpenAISDKEmbeddings: of the model inside the program, and of a
// provider's when the agent is set to one.
func TestOpenAISDKEmbeddings(t *testing.T) {
	c := newVisitor(t)
	client := c.sdk("default")
	ask := openai.EmbeddingNewParams{Model: "x", Input: openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: []string{"bread and bread", "a whale"}}}
	got, err := client.Embeddings.New(t.Context(), ask)
	if err != nil || len(got.Data) != 2 || len(got.Data[1].Embedding) != 512 || got.Data[1].Index != 1 || got.Usage.TotalTokens == 0 {
		t.Errorf("%+v %v", got, err)
	}
	base, down := modelAPI(t)
	c.must(t, 200, "PUT", "/api/agents/default/settings", fmt.Sprintf(`{"embedding_provider":"openai-compatible","embedding_model":"tiny","embedding_base_url":%q,"embedding_api_key":"s3cret"}`, base))
	got, err = client.Embeddings.New(t.Context(), ask)
	if err != nil || fmt.Sprint(got.Data[0].Embedding) != "[1 18 0 0]" || fmt.Sprint(got.Data[1].Embedding) != "[1 0 0 9]" || !strings.HasPrefix(got.Model, "tiny@") {
		t.Errorf("%+v %v", got, err)
	}
	down.Store(true)
	var fault *openai.Error
	if _, err = client.Embeddings.New(t.Context(), ask); !errors.As(err, &fault) || fault.StatusCode != 500 || fault.Code != "UPSTREAM_ERROR" || fault.Type != "server_error" {
		t.Errorf("while the provider is down: %v", err)
	}
}

// TestOpenAIRequests is what is refused, in the shape that OpenAI's client
// reads, and what is taken though it changes nothing.
func TestOpenAIRequests(t *testing.T) {
	c, m := minded(t, func(int, map[string]any) string { return "x" })
	client := c.sdk("default")
	const tool = `"tools":[{"type":"function","function":{"name":"f"}}]`
	for body, field := range map[string]string{
		`"n":2`: "n", `"n":0`: "n", `"logprobs":true`: "logprobs", `"modalities":["text","audio"]`: "modalities", `"functions":[{"name":"f"}]`: "functions",
		`"stop":["a","b","c","d","e"]`: "stop", `"stop":""`: "stop", `"stop":[7]`: "stop", `"temperature":2.5`: "temperature", `"max_tokens":-1`: "max_tokens", `"max_completion_tokens":-1`: "max_completion_tokens",
		`"tool_choice":"required"`: "tool_choice", `"tool_choice":"perhaps"`: "tool_choice", `"tool_choice":7`: "tool_choice",
		tool + `,"tool_choice":{"type":"function","function":{"name":"g"}}`: "tool_choice", `"tools":[{"type":"custom","custom":{"name":"f"}}]`: "tools[0]",
		`"response_format":{"type":"grammar"}`: "response_format", `"response_format":7`: "response_format", `"response_format":{"type":"json_schema"}`: "response_format.json_schema.schema",
		`"response_format":{"type":"json_schema","json_schema":{"name":"a","schema":{"type":"strong"}}}`: "response_format.json_schema.schema",
		`"messages":[]`: "messages", `"messages":[{"role":"robot","content":"x"}]`: "messages[0].role", `"messages":[{"role":"tool","content":"x"}]`: "messages[0].tool_call_id",
		`"messages":7`: "messages", `"stream":"yes"`: "stream",
	} {
		if !strings.Contains(body, `"messages"`) {
			body += `,"messages":[{"role":"user","content":"x"}]`
		}
		var fault *openai.Error
		err := client.Post(t.Context(), "chat/completions", json.RawMessage("{"+body+"}"), nil)
		if !errors.As(err, &fault) || fault.StatusCode != 400 || fault.Param != field || fault.Type != "invalid_request_error" || fault.Message == "" {
			t.Errorf("%s: %v, param %v", body, err, fault)
		}
	}
	if len(m.seen) != 0 {
		t.Errorf("the model was asked %d times", len(m.seen))
	}
	for _, body := range []string{
		`"n":null,"stop":null,"tools":[],"tool_choice":null,"response_format":null,"modalities":null,"functions":null,"logprobs":null,"temperature":null,"max_tokens":null,"stream":null,"stream_options":null`,
		`"top_p":0.5,"seed":1,"user":"u","presence_penalty":1,"frequency_penalty":1,"logit_bias":{},"metadata":{},"store":true,"parallel_tool_calls":false,"service_tier":"auto","unheard_of":{"x":1}`,
		`"response_format":{"type":"text"},"tool_choice":"auto","modalities":["text"],"n":1,"stop":["a","b","c","d"]`,
		tool + `,"tool_choice":"required"`, tool + `,"tool_choice":"none"`,
	} {
		if err := client.Post(t.Context(), "chat/completions", json.RawMessage(`{"messages":[{"role":"user","content":"x"}],`+body+`}`), nil); err != nil {
			t.Errorf("%s: %v", body, err)
		}
	}
	if m.seen[3]["tool_choice"] != "required" || m.seen[4]["tools"] != nil {
		t.Errorf("the provider was asked %v", m.seen[3:])
	}
	for path, status := range map[string]int{"models/other": 404, "nothing": 404} {
		var fault *openai.Error
		if err := client.Get(t.Context(), path, nil, nil); !errors.As(err, &fault) || fault.StatusCode != status || fault.Message == "" {
			t.Errorf("%s: %v", path, err)
		}
	}
}
