package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// list splits a JSON list into its entries.
func list[T ~[]byte](tb testing.TB, text string) []T {
	tb.Helper()
	var raw []json.RawMessage
	if err := json.Unmarshal([]byte(text), &raw); err != nil {
		tb.Fatalf("%v: %s", err, text)
	}
	out := make([]T, len(raw))
	for i, r := range raw {
		out[i] = T(r)
	}
	return out
}

func TestNodeSecrets(t *testing.T) {
	nodes := list[RawNode](t, `[{"id":"t","type":"set","data":{"auth":{"token":"no secret"}}},
		{"id":"h","type":"http-request","mine":1.50,"data":{"url":"https://x.y","auth":{"type":"bearer","token":"s1"},"headers":{"X-Api-Key":"s2","Accept":"a","Idempotency-Key":"k"}}},
		{"id":"i","type":"http-request","data":{"auth":{"type":"basic","username":"u","password":"********"},"headers":{"Cookie":"{{c}}"}}}]`)
	masked, secrets, err := TakeNodeSecrets(nodes)
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(secrets.Given) != "map[h/auth.token:s1 h/headers.X-Api-Key:s2]" ||
		fmt.Sprint(secrets.Unchanged) != "[i/auth.password]" {
		t.Errorf("secrets %v, unchanged %v", secrets.Given, secrets.Unchanged)
	}
	if string(masked[0]) != string(nodes[0]) || string(masked[2]) != string(nodes[2]) {
		t.Error("a node without new secrets was changed")
	}
	if text := string(masked[1]); strings.Contains(text, "s1") ||
		strings.Contains(text, "s2") ||
		!strings.Contains(text, "1.50") ||
		!strings.Contains(text, `"Accept":"a"`) {
		t.Errorf("masked: %s", text)
	}
	var n Node
	if err := json.Unmarshal(masked[1], &n); err != nil {
		t.Fatal(err)
	}
	data, err := PutNodeSecrets("h", n.Data, func(name string) (string, error) { return secrets.Given[name], nil })
	if err != nil ||
		data["auth"].(map[string]any)["token"] != "s1" ||
		data["headers"].(map[string]any)["X-Api-Key"] != "s2" {
		t.Errorf("after restoring: %v %v", data, err)
	}
	if n.Data["auth"].(map[string]any)["token"] != Mask {
		t.Error("the secret was written into the original node")
	}
}

// A secret hidden by a second member with the same name is removed from the text, too.
// TestSecretsInQueries takes the secrets out of a node's and a tool's query, wherever it is written, and puts them
// back.
func TestSecretsInQueries(t *testing.T) {
	for _, c := range []struct{ url, query, masked, maskedQuery string }{
		{"https://x.y/?a=1&api_key=s1#f", `{}`, "https://x.y/?a=1&api_key=********#f", `{}`},
		{"https://x.y/?sig=a%2Bb&sig=c", `{}`, "https://x.y/?sig=********&sig=********", `{}`},
		{"https://x.y/?page_token=1&key=name", `{"limit":1}`, "https://x.y/?page_token=1&key=name", `{"limit":1}`},
		{"https://x.y/{{p}}?token={{t}}", `{"token":"{{t}}"}`, "https://x.y/{{p}}?token={{t}}", `{"token":"{{t}}"}`},
		{
			"https://x.y/?Signature=s1",
			`{"Access-Token":"s2","apikey":"s3","key":"AIza-0123456789ab","password":"s4","secret":"s5","q":"s6"}`,
			"https://x.y/?Signature=********",
			`{"Access-Token":"********","apikey":"********","key":"********","password":"********",` +
				`"q":"s6","secret":"********"}`,
		},
	} {
		data := `{"query":` + c.query + `,"url":"` + c.url + `"}`
		nodes := []RawNode{RawNode(`{"id":"h","type":"http-request","data":` + data + `}`)}
		masked, secrets, err := TakeNodeSecrets(nodes)
		if err != nil {
			t.Fatal(err)
		}
		var n struct{ Data json.RawMessage }
		if err := json.Unmarshal(masked[0], &n); err != nil {
			t.Fatal(err)
		}
		want := `{"query":` + c.maskedQuery + `,"url":"` + c.masked + `"}`
		if !sameText(string(n.Data), want) {
			t.Errorf("%s is stored as %s, want %s", data, n.Data, want)
		}
		var shown map[string]any
		_ = json.Unmarshal(n.Data, &shown)
		sent, err := PutNodeSecrets("h", shown, func(name string) (string, error) { return secrets.Given[name], nil })
		if text, _ := json.Marshal(sent); err != nil || !sameText(string(text), data) {
			t.Errorf("%s is sent as %s, %v", data, text, err)
		}
		var tool ToolConfig
		_ = json.Unmarshal([]byte(data), &tool)
		given, _ := tool.TakeSecrets()
		if query, _ := json.Marshal(tool.Query); tool.URL != c.masked || string(query) != c.maskedQuery {
			t.Errorf("a tool's %s is stored as %s, %s", data, tool.URL, query)
		}
		tool.PutSecrets(given)
		if tool.URL != c.url {
			t.Errorf("a tool's %s is sent as %s", data, tool.URL)
		}
	}
}

// sameText compares two JSON texts by their values.
func sameText(a, b string) bool {
	var va, vb any
	return json.Unmarshal([]byte(a), &va) == nil && json.Unmarshal([]byte(b), &vb) == nil && reflect.DeepEqual(va, vb)
}

func TestHiddenNodeSecrets(t *testing.T) {
	for node, given := range map[string]int{
		`{"id":"a","type":"http-request","data":{"auth":{"token":"s1"},"auth":{"token":"{{x}}"}}}`:                0,
		`{"id":"a","type":"http-request","data":{"auth":{"token":"s1","token":"s2"}}}`:                            1,
		`{"id":"a","type":"http-request","data":{"headers":{"X-Key":"s1"}},"data":{"url":"https://x.y"}}`:         0,
		`{"id":"a","type":"http\u002drequest","data":{"headers":{"X-Key":"s1"}}}`:                                 1,
		`{"id":"a","type":"set","data":{"values":[{"b":1,"b":2},{"note":"http-request"}],"auth":{"token":"s1"}}}`: 0,
	} {
		out, secrets, err := TakeNodeSecrets([]RawNode{RawNode(node)})
		if err != nil || len(secrets.Given) != given {
			t.Errorf("%s: %v, %v", node, secrets.Given, err)
		}
		if strings.Contains(string(out[0]), "s1") != strings.Contains(node, `"set"`) {
			t.Errorf("%s became %s", node, out[0])
		}
	}
	plain := RawNode(`{"id":"a","type":"http-request","data":{"values":[1.50,{"b":[]},[{}]],"url":"https://x.y"}}`)
	if out, _, err := TakeNodeSecrets([]RawNode{plain}); err != nil || string(out[0]) != string(plain) {
		t.Errorf("got %s, %v", out[0], err)
	}
}

// Fields that hold secrets must be spelled exactly.
func TestSecretFieldsInAnotherCase(t *testing.T) {
	for config, field := range map[string]string{
		`{"url":"https://x.y","Auth":{"token":"t"}}`:                          "config.Auth",
		`{"url":"https://x.y","auth":{"type":"bearer","TOKEN":"t"}}`:          "config.auth.TOKEN",
		"{\"url\":\"https://x.y\",\"auth\":{\"to\u212aen\":\"t\"}}":           "config.auth.to\u212aen",
		`{"url":"https://x.y","HEADERS":{"X-Key":"t"}}`:                       "config.HEADERS",
		`{"url":"https://x.y","auth":{"type":"bearer","token":"t"},"Note":1}`: "",
	} {
		tool := Tool{Name: "t", Type: ToolAPI, Config: json.RawMessage(config)}
		_, err := tool.Validate()
		var e *Error
		if errors.As(err, &e) != (field != "") || e != nil && !strings.Contains(fmt.Sprint(e.Details), field) {
			t.Errorf("%s: %v", config, err)
		}
	}
}
