package script

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestChangedInteger(t *testing.T) {
	for text, want := range map[string]bool{
		`{"id":9007199254740993}`:                              true,
		`[-12345678901234567890]`:                              true,
		`12345678901234567890`:                                 true,
		`{"id":9007199254740991}`:                              false,
		`{"id":9007199254740992}`:                              false,
		`{"id":"9007199254740993","a":"\\\"9007199254740993"}`: false,
		`[3.14159265358979323846,1e400,10000000000000000]`:     false,
		``:    false,
		`"`:   false,
		`"\\`: false,
	} {
		if got := changedInteger([]byte(text)); (got != "") != want {
			t.Errorf("%s: %q", text, got)
		}
	}
}

// TestBigIntegers: a script whose numbers lose digits says so, and only then.
func TestBigIntegers(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(`{"id":12345678901234567891}`))
	}))
	defer server.Close()
	p := newPool(t, Options{Fetch: http.DefaultClient.Do})
	large := map[string]any{"id": json.Number("9007199254740993"), "text": strings.Repeat("x", 2*inlineBytes)}
	for code, want := range map[string]string{
		`return input.id`: "9007199254740993 became 9007199254740992",
		`return large.id`: "9007199254740993 became 9007199254740992",
		`return (await (await fetch(url)).json()).id`: "12345678901234567891 became",
		`return await (await fetch(url)).text()`:      "",
		`return input2.id`:                            "",
	} {
		variables := map[string]any{"url": server.URL}
		for name, value := range map[string]any{
			"input":  map[string]any{"id": json.Number("9007199254740993")},
			"large":  large,
			"input2": map[string]any{"id": json.Number("42")},
		} {
			if strings.Contains(code, name+".") {
				variables[name] = value
			}
		}
		got, err := p.Run(t.Context(), Call{Code: code, Variables: variables})
		if err != nil ||
			(want == "") != (len(got.Logs) == 0) ||
			want != "" && (got.Logs[0].Level != "warn" || !strings.Contains(got.Logs[0].Message, want)) {
			t.Errorf("%s: %v %v %v", code, got.Value, got.Logs, err)
		}
	}
}
