package httpapi

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"satchel/agent"
)

// big is an integer that a float64 cannot hold.
const big = "9007199254740993"

// TestDigitsOfTools: an API gets the id that it is called with, and its result has all
// digits.
func TestDigitsOfTools(t *testing.T) {
	c := newTestClient(t)
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(w, `{"sent":[%q,%s],"id":%s1}`, r.URL.RequestURI(), body, big)
	}))
	t.Cleanup(host.Close)
	tool := c.must(t, 201, "POST", "/api/agents/default/tools", `{"name":"get","type":"api","config":{"method":"POST","url":"`+host.URL+`/{{id}}","query":{"q":"{{id}}"},
		"body":{"id":"{{id}}","fixed":`+big+`2},"parameters":{"type":"object","properties":{"id":{"type":"integer"}}}}}`)
	text := c.send(
		t,
		"POST",
		fmt.Sprint("/api/agents/default/tools/", tool["id"], "/execute"),
		`{"arguments":{"id":`+big+`}}`,
	).text
	for _, want := range []string{
		"/" + big + "?q=" + big, `"id":` + big + "}", `"fixed":` + big + "2", `"id":` + big + "1",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
}

// TestDigitsOfHooks: what a hook receives and answers has all digits.
func TestDigitsOfHooks(t *testing.T) {
	body, err := incomingBody("application/json", []byte(`{"id":`+big+`}`))
	if raw, _ := json.Marshal(body); err != nil || string(raw) != `{"id":`+big+`}` {
		t.Errorf("received: %s %v", raw, err)
	}
	for _, want := range []string{`{"id":` + big + `}`, big, `[` + big + `]`} {
		rec := httptest.NewRecorder()
		c := echo.New().NewContext(httptest.NewRequestWithContext(t.Context(), "POST", "/", nil), rec)
		if err := answerIncomingWebhook(c, &agent.NodeResult{
			Output: json.RawMessage(`{"status":201,"headers":{},"body":` + want + `}`),
		}); err != nil ||
			rec.Code != 201 ||
			strings.TrimSpace(rec.Body.String()) != want {
			t.Errorf("answered: %d %s %v, want %s", rec.Code, rec.Body, err, want)
		}
	}
	r := httptest.NewRequestWithContext(t.Context(), "POST", "/", nil)
	r.Header.Set("Content-Type", "application/json")
	if s, err := readSubmission(r, []byte(`{"id":`+big+`}`)); err != nil || s.entered["id"][0] != big {
		t.Errorf("a form: %v %v", s, err)
	}
}
