package httpapi

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"satchel/store"
)

const weatherTool = `,"tools":[{"type":"function","name":"weather","description":null,` +
	`"parameters":{"type":"object"},"strict":true}]`

// TestResponses tests a conversation that the service stores: responses are continued,
// referenced, read and deleted, and have every field.
func TestResponses(t *testing.T) {
	c, m := newClientWithModel(t, func(n int, asked map[string]any) string {
		if asked["response_format"] != nil {
			return "```json\n{\"mood\": \"fine\"}\n```"
		}
		return fmt.Sprintf("Answer %d.", n)
	})
	first := c.openAI(
		t,
		"responses",
		`"model":"gpt-5","input":"Hi","instructions":"Be brief.","temperature":0.1,"max_output_tokens":9,`+
			`"metadata":{"a":"b"},"include":[],"truncation":"auto","reasoning":{"effort":"low"},`+
			`"parallel_tool_calls":false`,
	)
	one := first.json
	id := fmt.Sprint(one["id"])
	if first.StatusCode != 200 ||
		one["object"] != "response" ||
		one["status"] != "completed" ||
		one["model"] != "gpt-5" ||
		!strings.HasPrefix(id, "resp_") ||
		at(one, "output.0.content.0.text") != "Answer 1." ||
		at(one, "output.0.role") != "assistant" ||
		at(one, "usage.total_tokens") != json.Number("8") ||
		at(one, "metadata.a") != "b" ||
		at(one, "text.format.type") != "text" ||
		one["store"] != true ||
		at(one, "output.0.id") != "msg_"+id[5:] {
		t.Fatalf("%d %s", first.StatusCode, first.text)
	}
	for _, field := range []string{
		"error", "incomplete_details", "previous_response_id", "max_tool_calls", "safety_identifier",
		"prompt_cache_key", "tools", "tool_choice", "truncation", "top_p", "service_tier", "background", "reasoning",
		"completed_at",
	} {
		if _, ok := one[field]; !ok {
			t.Errorf("the field %s is missing", field)
		}
	}
	if asked := m.Requests[0]; asked["max_tokens"] != 9.0 ||
		asked["temperature"] != 0.1 ||
		at(asked, "messages.1.content") != "Be brief." && at(asked, "messages.0.content") == nil {
		t.Errorf("the provider received %v", asked)
	}
	saw := func(n int, want string) {
		t.Helper()
		var said []string
		for _, message := range m.Requests[n]["messages"].([]any) {
			if role := at(message, "role"); role != "system" {
				said = append(said, fmt.Sprintf("%v:%v", role, at(message, "content")))
			}
		}
		if got := strings.Join(said, " "); got != want {
			t.Errorf("the provider received %s, want %s", got, want)
		}
	}
	second := c.openAI(t, "responses", `"input":"And?","previous_response_id":"`+id+`"`).json
	saw(1, "user:Hi assistant:Answer 1. user:And?")
	c.openAI(
		t,
		"responses",
		`"input":[{"role":"user","content":[{"type":"input_text","text":"More"}]}],"previous_response_id":"`+
			fmt.Sprint(second["id"])+`"`,
	)
	saw(2, "user:Hi assistant:Answer 1. user:And? assistant:Answer 2. user:More")
	c.openAI(
		t,
		"responses",
		`"store":false,"input":[{"role":"user","content":"Hi"},{"type":"reasoning","id":"rs_1","summary":[]},`+
			`{"type":"item_reference","id":"`+fmt.Sprint(at(one, "output.0.id"))+`"},{"role":"user","content":"So?"}]`,
	)
	saw(3, "user:Hi assistant:Answer 1. user:So?")
	if formed := c.openAI(
		t,
		"responses",
		`"input":"Hi","text":{"format":{"type":"json_schema","name":"mood","schema":{"type":"object",`+
			`"properties":{"mood":{"type":"string"}},"required":["mood"]}}}`,
	).json; at(formed, "output.0.content.0.text") != `{"mood": "fine"}` {
		t.Errorf("with a schema: %v", formed)
	}
	path := "/api/agents/default/v1/responses/" + id
	if kept := c.send(t, "GET", path, ""); kept.text != first.text {
		t.Errorf("stored as %s", kept.text)
	}
	if deleted := c.must(t, 200, "DELETE", path, ""); deleted["deleted"] != true || deleted["id"] != id {
		t.Errorf("deleted: %v", deleted)
	}
	for _, method := range []string{"GET", "DELETE"} {
		if a := c.send(t, method, path, ""); a.StatusCode != 404 ||
			at(a.json, "error.type") != "invalid_request_error" {
			t.Errorf("%s of a deleted one: %d %s", method, a.StatusCode, a.text)
		}
	}
	for fields, param := range map[string]string{
		`"input":"x","previous_response_id":"` + id + `"`:                                       "previous_response_id",
		`"input":[{"type":"item_reference","id":"` + fmt.Sprint(at(one, "output.0.id")) + `"}]`: "input[0].id",
		`"input":[{"type":"item_reference","id":"msg_x"}]`:                                      "input[0].id",
		`"input":[]`: "input",
		`"input":[{"role":"user","content":[{"type":"input_image","image_url":"x"}]}]`: "input[0].content",
		`"input":[{"role":"narrator","content":"x"}]`:                                  "input[0].role",
		`"input":[{"type":"web_search_call","id":"ws_1"}]`:                             "input[0].type",
		`"input":[{"type":"function_call_output","call_id":"nowhere","output":"x"}]`:   "input",
		`"input":"x","background":true`:                                                "background",
		`"input":"x","conversation":"conv_1"`:                                          "conversation",
		`"input":"x","prompt":{"id":"p"}`:                                              "prompt",
		`"input":"x","tools":[{"type":"web_search"}]`:                                  "tools[0]",
		`"input":"x","tool_choice":"required"`:                                         "tool_choice",
		`"input":"x","text":{"format":{"type":"grammar"}}`:                             "text.format",
		`"input":"x","max_output_tokens":0`:                                            "max_output_tokens",
		`"input":"x","metadata":{"a":"` + strings.Repeat("x", 513) + `"}`:              "metadata.a",
	} {
		if a := c.openAI(t, "responses", fields); a.StatusCode != 400 || at(a.json, "error.param") != param {
			t.Errorf("%s: %d %s", fields, a.StatusCode, a.text)
		}
	}
}

// TestResponsesStream compares the events of a stream with the expected ones.
func TestResponsesStream(t *testing.T) {
	c, _ := newClientWithModel(t, func(n int, asked map[string]any) string {
		if n == 2 {
			return called
		}
		return "Hello there."
	})
	var last map[string]any
	kinds := func(a answer) (kinds []string, text string) {
		t.Helper()
		events := readStream(t, a.text)
		for i, e := range events {
			if e[1] == "[DONE]" {
				return kinds, text
			}
			last = nil
			if err := json.Unmarshal([]byte(e[1]), &last); err != nil ||
				last["type"] != e[0] ||
				last["sequence_number"] != float64(i) {
				t.Errorf("event %d: %v, %v", i, e, err)
			}
			if e[0] == "response.output_text.delta" {
				if text += last["delta"].(string); len(kinds) > 0 && kinds[len(kinds)-1] == "output_text.delta" {
					continue
				}
			}
			kinds = append(kinds, strings.TrimPrefix(e[0], "response."))
		}
		t.Errorf("a stream without an end: %s", a.text)
		return
	}
	got, text := kinds(c.openAI(t, "responses", `"input":"Hi","stream":true`))
	if want := "created in_progress output_item.added content_part.added output_text.delta output_text.done " +
		"content_part.done output_item.done completed"; strings.Join(got, " ") != want ||
		text != "Hello there." {
		t.Errorf("%q with\n%s\nwant\n%s", text, strings.Join(got, " "), want)
	}
	if at(last, "response.output.0.content.0.text") != "Hello there." ||
		at(last, "response.usage.total_tokens") != 8.0 {
		t.Errorf("the last event: %v", last)
	}
	id := fmt.Sprint(at(last, "response.id"))
	got, _ = kinds(c.openAI(
		t,
		"responses",
		`"input":"Weather?","stream":true,"previous_response_id":"`+id+
			`","tool_choice":{"type":"function","name":"weather"}`+weatherTool,
	))
	if want := "created in_progress output_item.added function_call_arguments.delta function_call_arguments.done " +
		"output_item.done completed"; strings.Join(got, " ") != want {
		t.Errorf("a call: %s\nwant %s", strings.Join(got, " "), want)
	}
	call := at(last, "response.output.0")
	if at(call, "type") != "function_call" ||
		at(call, "call_id") != "c1" ||
		at(call, "name") != "weather" ||
		at(call, "arguments") != `{"city":"Rome"}` ||
		!strings.HasPrefix(fmt.Sprint(at(call, "id")), "fc_") {
		t.Errorf("the call is %v", call)
	}
	raw, _ := json.Marshal(call)
	for name, input := range map[string]string{
		"continued": `"previous_response_id":"` + fmt.Sprint(at(last, "response.id")) + `","input":[`,
		"whole":     `"input":[{"role":"user","content":"Weather?"},` + string(raw) + `,`,
		"referred": `"input":[{"role":"user","content":"Weather?"},{"type":"item_reference","id":"` +
			fmt.Sprint(at(call, "id")) + `"},`,
	} {
		if a := c.openAI(
			t,
			"responses",
			input+`{"type":"function_call_output","call_id":"c1","output":"sun"}]`+weatherTool,
		); at(a.json, "output.0.content.0.text") != "Hello there." {
			t.Errorf("%s: %d %s", name, a.StatusCode, a.text)
		}
	}
}

// TestResponsesAreBounded checks that responses are kept up to their age.
func TestResponsesAreBounded(t *testing.T) {
	c := newTestClient(t)
	db := c.db()
	put := func(id, previous string) {
		t.Helper()
		r := store.Response{
			ID:       id,
			Previous: previous,
			Input:    json.RawMessage(`[{"role":"user","content":"Hi"}]`),
			Body:     json.RawMessage(`{"output":[]}`),
		}
		if err := db.PutResponse(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 102 {
		put(fmt.Sprintf("resp_%d", i), map[bool]string{true: fmt.Sprintf("resp_%d", i-1)}[i > 0])
	}
	if chain, whole, err := db.ResponseChain(t.Context(), "resp_101"); err != nil ||
		whole ||
		len(chain) != 100 ||
		chain[99].ID != "resp_101" {
		t.Errorf("a chain of %d, whole: %v, %v", len(chain), whole, err)
	}
	if chain, whole, err := db.ResponseChain(t.Context(), "resp_3"); err != nil || !whole || len(chain) != 4 {
		t.Errorf("a chain of %d, whole: %v, %v", len(chain), whole, err)
	}
	if a := c.send(
		t,
		"POST",
		"/api/agents/default/sql/execute",
		`{"query":"SELECT * FROM _responses"}`,
	); a.StatusCode != 403 {
		t.Errorf("SQL reads what is kept: %d %s", a.StatusCode, a.text)
	}
}

// TestResponsesCite checks that a citation of an answer is a url_citation, whose position
// is counted in characters, and that a number without a passage is none.
func TestResponsesCite(t *testing.T) {
	c, _ := newClientWithModel(t, func(int, map[string]any) string { return "Für 30 Tage [1], sagt [9] – so [1]." })
	made := c.upload(
		t,
		"/api/agents/default/sources",
		"policy.md",
		"# Returns\n\nGoods that you do not like can be sent back within thirty days.\n",
		nil,
	)
	source := fmt.Sprint(made.json["id"])
	c.waitIndexed(t, "/api/agents/default/sources/"+source)
	a := c.openAI(t, "responses", `"input":"How long can goods be sent back?"`)
	cited, _ := at(a.json, "output.0.content.0.annotations").([]any)
	if len(cited) != 2 {
		t.Fatalf("%d %s", a.StatusCode, a.text)
	}
	for i, start := range []string{"12", "31"} {
		end, _ := strconv.Atoi(start)
		if at(cited[i], "type") != "url_citation" ||
			at(cited[i], "start_index") != json.Number(start) ||
			at(cited[i], "end_index") != json.Number(strconv.Itoa(end+3)) ||
			at(cited[i], "title") != "policy.md" ||
			!strings.HasSuffix(fmt.Sprint(at(cited[i], "url")), "/#/agents/"+c.db().ID()+"/knowledge/"+source) {
			t.Errorf("citation %d is %v", i, cited[i])
		}
	}
}
