package flow

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"satchel/agent"
	"satchel/agent/apis"
	"satchel/store"
)

// TestOperationNode calls an operation with arguments from templates. Invalid
// arguments and unknown operations are rejected without a request.
func TestOperationNode(t *testing.T) {
	db, e := open(t)
	e.Register(map[string]*Kind{"operation": OperationKind(apis.New(e.options.Env))})
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body) // a partial body fails the comparison below
		got = append(got, r.Method+" "+r.URL.String()+" "+string(raw)+" "+r.Header.Get("Idempotency-Key"))
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"order":{"id":12345678901234567890}}`)
	}))
	defer server.Close()
	object := map[string]any{"type": "object", "properties": map[string]any{"n": map[string]any{"type": "integer"}}}
	o := agent.OperationDefinition{
		Operation: agent.Operation{ID: "orders/put", Name: "orders_put", Method: "PUT", Path: "/orders/{id}"},
		Accept:    "application/json",
		Params:    []agent.OperationParam{{Property: "id", Name: "id", In: "path"}},
		Body:      &agent.OperationBody{Media: "application/json"},
	}
	var err error
	o.Parameters, err = json.Marshal(map[string]any{
		"type":                 "object",
		"properties":           map[string]any{"id": map[string]any{"type": "string"}, "body": object},
		"required":             []string{"id"},
		"additionalProperties": false,
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.CreateAPI(
		t.Context(),
		agent.API{Name: "shop", ServerURL: server.URL + "/v1"},
		[]agent.OperationDefinition{o},
	); err != nil {
		t.Fatal(err)
	}
	run := func(data string) Started {
		w := createWorkflow(t, db, e, "t trigger {}\n\t\tcall operation "+data+"\n\t\tt -> call")
		return execute(t, db, e, w, `{"id":"../a b","n":7}`)
	}
	s := run(`{"api":"Shop","operation":"orders_put","arguments":{"id":"{{id}}","body":{"n":"{{n}}"},"left":null},` +
		`"response_path":"order.id"}`)
	if s.Execution.Status != agent.ExecutionComplete ||
		!strings.Contains(string(s.Execution.Output), `"body":12345678901234567890`) {
		t.Errorf("got %s %+v %s", s.Execution.Status, s.Execution.Error, s.Execution.Output)
	}
	if want := "PUT /v1/orders/..%2Fa%20b " + `{"n":7} ` + s.Execution.ID + ":call:0"; len(got) != 1 || got[0] != want {
		t.Errorf("sent %q, want %q", got, want)
	}
	for data, want := range map[string]string{
		`{"api":"shop","operation":"orders/put","arguments":{"id":7}}`: "arguments id",
		`{"api":"shop","operation":"orders/put",` +
			`"arguments":{"id":"1","more":1}}`: "additional properties",
		`{"api":"shop","operation":"none"}`: "operation",
		`{"api":"shop","operation":"orders/put","arguments":{"id":"1"},"response_path":"orders"}`: "no value at orders",
	} {
		if s := run(data); s.Execution.Error == nil || !strings.Contains(s.Execution.Error.Message, want) {
			t.Errorf("%s: %+v, want %s", data, s.Execution.Error, want)
		}
	}
	if len(got) != 2 {
		t.Errorf("invalid arguments were sent: %q", got)
	}
}

// TestNewItems checks that each item is returned once, even if the node is
// restarted, and again if the execution failed.
func TestNewItems(t *testing.T) {
	db, e := open(t)
	w := createWorkflow(t, db, e, `t trigger {}
		new new-items {"items":"{{items}}","key":"id"}
		end code {"code":"if (trigger.fail) throw new Error('no'); return nodes.new"}
		t -> new
		new -> end`)
	for i, c := range []struct{ input, want string }{
		{`{"items":[{"id":1},{"id":2},{"id":1}]}`, `{"count":2,"items":[{"id":1},{"id":2}]}`},
		{`{"items":[{"id":2},{"id":3}],"fail":true}`, ""},
		{`{"items":[{"id":2},{"id":3}]}`, `{"count":1,"items":[{"id":3}]}`},
		{`{"items":[{"id":2,"name":"other"},{"id":3}]}`, `{"count":0,"items":[]}`},
		{`{"items":[{"id":null}]}`, ""},
		{`{"items":[{"id":"2"}]}`, `{"count":1,"items":[{"id":"2"}]}`},
	} {
		s := execute(t, db, e, w, c.input)
		if c.want == "" {
			if s.Execution.Status != agent.ExecutionErrored {
				t.Errorf("%d: %s", i, s.Execution.Status)
			}
		} else if string(s.Execution.Output) != c.want {
			t.Errorf("%d: %s %+v, want %s", i, s.Execution.Output, s.Execution.Error, c.want)
		}
	}
}

// With "first": "none", all items of the first run count as seen, even an empty list.
func TestNewItemsSkipFirst(t *testing.T) {
	db, e := open(t)
	w := createWorkflow(
		t,
		db,
		e,
		"t trigger {}\n\t\tnew new-items {\"items\":\"{{items}}\",\"first\":\"none\"}\n\t\tt -> new",
	)
	for i, c := range [][2]string{
		{`[]`, `{"count":0,"items":[]}`},
		{`["a"]`, `{"count":1,"items":["a"]}`},
		{`["a","b"]`, `{"count":1,"items":["b"]}`},
	} {
		if s := execute(t, db, e, w, `{"items":`+c[0]+`}`); string(s.Execution.Output) != c[1] {
			t.Errorf("%d: %s, want %s", i, s.Execution.Output, c[1])
		}
	}
	other := createWorkflow(
		t,
		db,
		e,
		"t trigger {}\n\t\tnew new-items {\"items\":\"{{items}}\",\"first\":\"none\"}\n\t\tt -> new",
	)
	if s := execute(t, db, e, other, `{"items":["a"]}`); string(s.Execution.Output) != `{"count":0,"items":[]}` {
		t.Errorf("another workflow: %s", s.Execution.Output)
	}
	tested, err := e.TestNode(t.Context(), db, w.ID, "new", json.RawMessage(`{"items":["c"]}`))
	if err != nil || string(tested.Output) != `{"count":1,"items":["c"]}` {
		t.Errorf("got %s %v", tested.Output, err)
	}
	if s := execute(t, db, e, w, `{"items":["c"]}`); string(s.Execution.Output) != `{"count":1,"items":["c"]}` {
		t.Errorf("a test run changed the stored items: %s", s.Execution.Output)
	}
	many := make([]any, store.MaxNewItems+1)
	if s := execute(t, db, e, w, `{"items":`+string(mustJSON(many))+`}`); s.Execution.Status != agent.ExecutionErrored {
		t.Errorf("got %s", s.Execution.Status)
	}
}

func TestResponseTypes(t *testing.T) {
	for _, c := range []struct{ want, raw, json string }{
		{
			"xml",
			"\xEF\xBB\xBF<?xml version=\"1.0\"?><feed xmlns=\"urn:x\" a=\"1\"><entry><id>1</id><x:t xmlns:x=\"u\">A " +
				"&amp; B</x:t></entry><entry/><one> x <b/></one></feed>",
			`{"feed":{"@a":"1","entry":[{"id":"1","t":"A \u0026 B"},""],"one":{"#text":"x","b":""}}}`,
		},
		{"xml", "<?xml version=\"1.0\" encoding=\"iso-8859-1\"?><a>\xE9</a>", `{"a":"é"}`},
		{
			"csv",
			"\xEF\xBB\xBFname;age;name;\r\n\"A;da\";36\r\n",
			`[{"age":"36","column_3":"","column_4":"","name":"A;da"}]`,
		},
		{"csv", "", `[]`},
	} {
		v, warning := readAnswer("text/plain", c.want, []byte(c.raw))
		raw, err := json.Marshal(v)
		if err != nil || warning != "" || string(raw) != c.json {
			t.Errorf("%s: %s %q %v", c.want, raw, warning, err)
		}
	}
	for want, raw := range map[string]string{"xml": "<a>", "xml ": ""} {
		if v, warning := readAnswer("", strings.TrimSpace(want), []byte(raw)); v != raw ||
			want == "xml" && warning == "" {
			t.Errorf("%s: %v %q", want, v, warning)
		}
	}
	deep := strings.Repeat("<a>", 200) + strings.Repeat("</a>", 200)
	if v, warning := readAnswer("", "xml", []byte(deep)); v != deep || warning == "" {
		t.Errorf("got %q", warning)
	}
}
