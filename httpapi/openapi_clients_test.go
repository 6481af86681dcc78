package httpapi

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// TestComponentsDifferInEveryCase checks, for generators that make a type of each
// component, that no name differs from another only in the case of its first letter.
func TestComponentsDifferInEveryCase(t *testing.T) {
	d := describe(t)
	seen := map[string]string{}
	for _, section := range []string{"schemas", "parameters", "responses", "requestBodies"} {
		for name := range objectAt(d.document, "components", section) {
			place := section + "/" + name
			if other := seen[strings.ToLower(name)]; other != "" {
				t.Errorf("%s and %s", place, other)
			}
			seen[strings.ToLower(name)] = place
		}
	}
}

// TestDescribedRequests checks requests against their schemas: those that the server
// accepts match, and those that it refuses for their shape do not.
func TestDescribedRequests(t *testing.T) {
	d := describe(t)
	const agent = "/agents/{id}"
	for _, tc := range []struct {
		method, path string
		good, bad    []string
	}{
		{
			"post",
			agent + "/chat",
			[]string{
				`{"message":"Hi","tools":true,"sources":false}`,
				`{"message":"Hi","tools":["tool-1"],"sources":[]}`,
				`{"retry_of":18}`,
			},
			[]string{
				`{"message":"Hi","fallback":"guess"}`,
				`{"message":"Hi","tools":{"None":true,"IDs":[]}}`,
				`{"message":"Hi","sources":[1]}`,
			},
		},
		{
			"post",
			agent + "/browser/{sessionId}/execute",
			[]string{`{"action":"evaluate","script":"1","args":[1]}`, `{"action":"evaluate","script":"1","args":"x"}`,
				`{"actions":[{"action":"evaluate","script":"1","args":null}]}`},
			[]string{`{"action":"fly"}`},
		},
		{
			"post",
			agent + "/v1/chat/completions",
			[]string{
				`{"model":"m","messages":[{"role":"user","content":"Hi"}],"stop":"x","tool_choice":"auto"}`,
				`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"Hi"}]}],"stop":["x"],` +
					`"tool_choice":{"type":"function","function":{"name":"f"}}}`,
				`{"model":"m","messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"c",` +
					`"type":"function","function":{"name":"f","arguments":"{}"}}]}]}`,
				`{"model":"m","messages":[{"role":"assistant"}],"tools":[{"type":"function",` +
					`"function":{"name":"f"}}],"n":1,"temperature":null,"stop":null}`,
			},
			[]string{
				`{"model":"m"}`,
				`{"model":"m","messages":[{"role":"user","content":5}]}`,
				`{"model":"m","messages":[],"stop":1}`,
			},
		},
		{
			"post",
			agent + "/v1/embeddings",
			[]string{`{"model":"m","input":"a"}`, `{"model":"m","input":["a","b"]}`},
			[]string{`{"model":"m"}`, `{"model":"m","input":[1]}`},
		},
		{
			"post",
			agent + "/workflows",
			[]string{`{"name":"Welcome"}`, `{"name":"Welcome","status":"draft","nodes":[]}`},
			[]string{`{}`, `{"name":null}`, `{"name":"x","status":"asleep"}`},
		},
		{
			"put",
			agent + "/workflows/{workflowId}",
			[]string{`{}`, `{"description":null,"settings":null}`},
			[]string{`{"status":"asleep"}`},
		},
		{
			"post",
			agent + "/schedules",
			[]string{`{"name":"Daily","type":"cron","cron_expression":"0 9 * * *"}`},
			[]string{`{}`, `{"name":"x"}`, `{"name":"x","type":"yearly"}`, `{"name":null,"type":"once"}`},
		},
		{
			"put",
			agent + "/schedules/{scheduleId}",
			[]string{`{}`, `{"overlap":"queue"}`},
			[]string{`{"overlap":"maybe"}`},
		},
		{
			"post",
			agent + "/calendar",
			[]string{`{"title":"Review","start_time":"2027-01-04T09:00:00Z","recurrence_end":"2027-01-31"}`},
			[]string{`{}`, `{"title":"x"}`, `{"title":"x","start_time":null}`},
		},
		{
			"put",
			agent + "/calendar/{taskId}",
			[]string{`{}`, `{"recurrence":null}`},
			[]string{`{"recurrence":"hourly"}`},
		},
		{
			"put",
			agent + "/calendar/{taskId}/occurrences/{start}",
			[]string{`{}`, `{"start_time":null}`},
			[]string{`{"title":7}`},
		},
		{
			"put",
			agent + "/settings",
			[]string{`{"llm_provider":"openai"}`, `{"llm_provider":null}`},
			[]string{`{"llm_provider":"acme"}`},
		},
		{
			"post",
			agent + "/gateways",
			[]string{`{"type":"telegram","name":"x"}`, `{"type":"chatbot_a","name":"x"}`},
			[]string{`{"type":"fax","name":"x"}`, `{"type":"sms","name":null}`},
		},
		{
			"post",
			agent + "/webhooks",
			[]string{`{"url":"https://example.com","events":["*"]}`},
			[]string{`{"url":null,"events":["*"]}`},
		},
		{
			"post",
			agent + "/sources",
			[]string{
				`{"type":"api","name":"x","config":{"url":"https://example.com","body":"text","method":"POST"}}`,
				`{"type":"api","name":"x","config":{"body":[1]}}`,
			},
			[]string{`{"type":"url"}`},
		},
		{
			"post",
			agent + "/sources/crawl",
			[]string{`{"url":"https://example.com","name":"x","config":{"chunk_size":500}}`},
			[]string{`{"url":"https://example.com","name":"x","config":{"chunk_size":"500"}}`},
		},
		{
			"post",
			agent + "/sql/execute",
			[]string{`{"query":"SELECT ?","params":[1]}`, `{"query":"SELECT :a","params":{"a":1}}`},
			[]string{`{}`},
		},
		{
			"post",
			agent + "/sources/search",
			[]string{`{"query":"x","mode":"vector"}`},
			[]string{`{"query":"x","mode":"magic"}`},
		},
		{"post", agent + "/hooks/{workflowId}", []string{`{"a":1}`, `[1]`, `"text"`}, nil},
	} {
		t.Run(tc.method+" "+tc.path, func(t *testing.T) {
			_, place := d.find("paths", tc.path, tc.method, "requestBody", "content", "application/json", "schema")
			schema, err := d.schema(place)
			if err != nil {
				t.Fatal(err)
			}
			for body, want := range eachBody(tc.good, tc.bad) {
				value, err := jsonschema.UnmarshalJSON(strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				if err := schema.Validate(value); (err == nil) != want {
					t.Errorf("%s: %v", body, err)
				}
			}
		})
	}
}

// eachBody yields bodies and whether they should match.
func eachBody(good, bad []string) func(func(string, bool) bool) {
	return func(yield func(string, bool) bool) {
		for _, body := range slices.Concat(good, bad) {
			if !yield(body, slices.Contains(good, body)) {
				return
			}
		}
	}
}

func TestDescribedMediaTypes(t *testing.T) {
	d := describe(t)
	media := func(keys ...string) map[string]any {
		found, _ := d.find(append([]string{"paths"}, keys...)...)
		return objectAt(found, "content")
	}
	const agent = "/agents/{id}"
	for _, tc := range []struct {
		path, method, part string
		want               []string
	}{
		{agent + "/chat", "post", "200", []string{"application/json", "text/event-stream"}},
		{agent + "/v1/chat/completions", "post", "200", []string{"application/json", "text/event-stream"}},
		{
			agent + "/sources/{sourceId}/file",
			"get",
			"200",
			[]string{
				"application/pdf", "text/csv", "text/markdown", "text/plain",
				"application/vnd.openxmlformats-officedocument.wordprocessingml.document",
			},
		},
		{agent + "/downloads/{downloadId}", "get", "200", []string{"*/*"}},
		{agent + "/hooks/{workflowId}", "post", "200", []string{"application/json", "*/*"}},
		{
			agent + "/hooks/{workflowId}",
			"post",
			"",
			[]string{"application/json", "application/x-www-form-urlencoded", "text/plain"},
		},
		{
			agent + "/gateways/{gatewayId}/webhook",
			"post",
			"",
			[]string{"application/json", "application/x-www-form-urlencoded"},
		},
		{
			agent + "/gateways/{gatewayId}/webhook",
			"post",
			"200",
			[]string{"application/json", "text/xml", "text/plain"},
		},
	} {
		t.Run(tc.method+" "+tc.path+" "+tc.part, func(t *testing.T) {
			found := media(tc.path, tc.method, "requestBody")
			if tc.part != "" {
				found = media(tc.path, tc.method, "responses", tc.part)
			}
			for _, want := range tc.want {
				if found[want] == nil {
					t.Errorf("%s is missing in %v", want, found)
				}
			}
		})
	}
	create := d.raw[bytes.Index(d.raw, []byte(`"operationId":"createSource"`)):]
	if bytes.Index(create, []byte(`"multipart/form-data"`)) > bytes.Index(create, []byte(`"application/json"`)) {
		t.Error("the upload is not the first body of createSource")
	}
	if _, place := d.find("paths", "/openapi.json", "get", "responses", "304"); !strings.HasSuffix(place, "/304") {
		t.Error("the document's 304 is not described")
	}
	if found, _ := d.find("paths", agent+"/hooks/{workflowId}", "post", "responses", "default"); found == nil {
		t.Error("a webhook-response's own status is not described")
	}
}

// TestNoDefaultMakesAFieldRequired checks that no field has a default, because some
// generators require a field that has one.
func TestNoDefaultMakesAFieldRequired(t *testing.T) {
	d := describe(t)
	for name, schema := range objectAt(d.document, "components", "schemas") {
		for field, property := range objectAt(schema, "properties") {
			if _, ok := objectAt(property)["default"]; ok {
				t.Errorf("%s.%s has a default", name, field)
			}
		}
	}
}

func TestDescribedSecurity(t *testing.T) {
	d := describe(t)
	for path, open := range map[string]bool{
		"/health":               true,
		"/ready":                true,
		"/openapi.json":         true,
		"/keys":                 false,
		"/agents/{id}/contacts": false,
	} {
		op := objectAt(d.document, "paths", path, "get")
		if list, given := op["security"].([]any); given != open || len(list) > 0 {
			t.Errorf("%s: security %v", path, op["security"])
		}
	}
	post := objectAt(d.document, "paths", "/agents/{id}/gateways/{gatewayId}/webhook", "post")
	if list, given := post["security"].([]any); !given || len(list) > 0 {
		t.Errorf("a platform's post: security %v", post["security"])
	}
}

func TestOperationNames(t *testing.T) {
	ids, api := map[string]bool{}, new(Server).description()
	for _, r := range table() {
		ids[api.OperationID(r)] = true
	}
	for _, want := range []string{"redeliverDelivery", "listDeliveries", "createSource", "getContact"} {
		if !ids[want] {
			t.Errorf("%s is missing", want)
		}
	}
	d := describe(t)
	for _, want := range []string{"DeliveryList", "MCPServerList", "MCPToolList"} {
		if objectAt(d.document, "components", "schemas", want)["type"] != "object" {
			t.Errorf("the component %s is missing", want)
		}
	}
}
