package httpapi

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// TestNodeParts reads the inputs of nodes, their data with templates filled, and parts of
// their outputs, in loops too.
func TestNodeParts(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"rows":[{"a/b":"` + strings.Repeat("ü", 50_000) + `"},{"n":2}]}`))
	}))
	defer other.Close()
	c := newTestClient(t)
	id := createFlow(
		t,
		c,
		`[{"id":"t","type":"trigger"},{"id":"h","type":"http-request","data":{"url":"`+other.URL+`","query":{"q":"{{name}}"},"headers":{"X-Api-Key":"sesame"}}},
		{"id":"l","type":"loop","data":{"items":["x","y"]}},{"id":"b","type":"set","data":{"values":{"got":"{{item}} {{nodes.h.status}}"}}},{"id":"s","type":"set","data":{"values":{"n":"{{input.count}}"}}}]`,
		`[{"source":"t","target":"h"},{"source":"h","target":"l"},{"source":"l","target":"b","sourceHandle":"loop"},`+
			`{"source":"b","target":"l"},{"source":"l","target":"s","sourceHandle":"done"}]`,
		"",
	)
	x := c.must(t, 200, "POST", flowBase+"/execute?wait=30", `{"workflow_id":"`+id+`","input":{"name":"Ada"}}`)
	one := flowBase + "/executions/" + x["id"].(string)
	for _, test := range []struct{ node, query, want string }{
		{"t", "part=input", `{"name":"Ada"}`},
		{"h", "part=input&pointer=/name", `"Ada"`},
		{"h", "part=resolved", `{"headers":{"X-Api-Key":"********"},"query":{"q":"Ada"},"url":"` + other.URL + `"}`},
		{"h", "pointer=/body/rows/1", `{"n":2}`},
		{"h", "part=output&pointer=" + url.QueryEscape("/body/rows/0/a~1b"), `"` + strings.Repeat("ü", 50_000) + `"`},
		{"b", "part=input&path=1", `"y"`},
		{"b", "part=resolved&path=1", `{"values":{"got":"y 200"}}`},
		{"b", "path=0", `{"got":"x 200"}`},
		{"s", "part=resolved", `{"values":{"n":2}}`},
	} {
		a := c.send(t, "GET", one+"/nodes/"+test.node+"?"+test.query, "")
		if got := string(mustRaw(t, a.json["value"])); a.StatusCode != 200 || got != test.want {
			t.Errorf("%s %s: %d %.200s, want %.200s", test.node, test.query, a.StatusCode, a.text, test.want)
		}
	}
	for query, status := range map[string]int{
		"h?pointer=/no":       404,
		"h?pointer=no":        400,
		"h?part=all":          400,
		"b":                   404,
		"b?part=input&path=7": 404,
		"x?part=input":        404,
	} {
		if a := c.send(t, "GET", one+"/nodes/"+query, ""); a.StatusCode != status {
			t.Errorf("%s: %d %.200s", query, a.StatusCode, a.text)
		}
	}
	p := c.must(t, 200, "GET", one+"?preview=1001", "")
	head, _ := at(p, "node_previews.h.head").(string)
	if at(p, "node_previews.h.truncated") != true ||
		len(head) < 998 ||
		len(head) > 1001 ||
		at(p, "node_previews.h.bytes").(json.Number) <= "100000" ||
		at(p, "node_previews.b") != nil {
		t.Errorf("preview: %v", at(p, "node_previews"))
	}
	c.must(t, 400, "GET", one+"?preview=1", "")
}
