package script

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"satchel/agent"
)

// TestDocs runs the scripts in docs/workflows.md.
func TestDocs(t *testing.T) {
	doc, err := os.ReadFile("../../docs/workflows.md")
	if err != nil {
		t.Fatal(err)
	}
	p := newPool(t, Options{Size: 1, Fetch: func(r *http.Request) (*http.Response, error) {
		if r.URL.String() != "https://api.example.com/weather?city=K%C3%B6ln" ||
			r.Header.Get("Accept") != "application/json" {
			return nil, agent.Errorf(agent.CodeUpstream, "unexpected URL %s", r.URL)
		}
		return &http.Response{
			StatusCode: 200,
			Request:    r,
			Body:       io.NopCloser(strings.NewReader(`{"degrees": 24}`)),
		}, nil
	}})
	example := regexp.MustCompile("(?s)```js\n// input = (.*?)\n(.*?)\n// → (.*?)\n```")
	found := example.FindAllStringSubmatch(string(doc), -1)
	if len(found) < 3 {
		t.Fatalf("only %d examples", len(found))
	}
	for _, m := range found {
		var input, want any
		if err := json.Unmarshal([]byte(m[1]), &input); err != nil {
			t.Fatalf("%s: %v", m[1], err)
		}
		got, err := p.Run(t.Context(), Call{Code: "\n" + m[2], Variables: map[string]any{"input": input}})
		var e *agent.Error
		if errors.As(err, &e) {
			if got := fmt.Sprintf("error in line %v: %s", e.Details["line"], e.Message); got != m[3] {
				t.Errorf("%s: %s, want %s", m[2], got, m[3])
			}
			continue
		}
		if bad := json.Unmarshal([]byte(m[3]), &want); bad != nil || err != nil || !reflect.DeepEqual(got.Value, want) {
			t.Errorf("%s: got %v, %v, want %s", m[2], got.Value, err, m[3])
		}
	}
}
