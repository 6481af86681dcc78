package httpapi

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"satchel/httpapi/rest"
)

// checkAnswer runs a request and checks what must hold for any request: no server error,
// and every error in the same format.
func checkAnswer(t *testing.T, handler http.Handler, req *http.Request) {
	t.Helper()
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, req)
	if w.Code >= 500 {
		t.Fatalf("%s %s: %d %s", req.Method, req.URL, w.Code, w.Body)
	}
	if w.Code < 400 {
		return
	}
	var body rest.ErrorBody
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || body.Error.Code == "" || body.Error.Message == "" {
		t.Fatalf("%s %s: %d is not the error envelope: %s", req.Method, req.URL, w.Code, w.Body)
	}
}

// FuzzBodies sends arbitrary bytes as JSON to the routes that accept a body.
func FuzzBodies(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `null`, `[]`, `"x"`, `{"name":"a"}`,
		`{"name":null,"email":{},"tags":[null],"metadata":{"a":{}}}`,
		`{"name":"\u0000","tags":["\ud800"],"metadata":"x"}`,
		`{"name":"a","name":1}`,
		"{\"name\":\"\xff\"}",
		`{"metadata":` + strings.Repeat(`{"a":`, 200) + `1` + strings.Repeat(`}`, 200) + `}`,
		`{"llm_temperature":1e400,"retention_days":1.5,"openai_api_key":""}`,
		`{"role":"user","content":"x","metadata":[]}`,
		`{"query":"SELECT 1","params":[[1]]}`,
		`{"query":"SELECT :a","params":{"a":{}}}`,
		`{"name":"k","role":"admin","agents":["*","*"],"expires_at":"9999-12-31T23:59:59Z"}`,
	} {
		for route := range 6 {
			f.Add(route, seed)
		}
	}
	_, server := openService(f)
	conversation := "/api/agents/default/conversations"
	targets := []struct{ method, path string }{
		{"POST", "/api/agents/default/contacts"},
		{"PUT", "/api/agents/default/settings"},
		{"POST", conversation},
		{"POST", "/api/agents/default/sql/execute"},
		{"PUT", "/api/agents/default"},
		{"POST", "/api/agents/default/sources/search"},
	}
	f.Fuzz(func(t *testing.T, route int, body string) {
		target := targets[(route%len(targets)+len(targets))%len(targets)]
		if target.method == "PUT" && strings.Contains(body, "disabled") {
			return // a disabled default agent would refuse the rest
		}
		req := httptest.NewRequestWithContext(
			t.Context(),
			target.method,
			"http://localhost"+target.path,
			strings.NewReader(body),
		)
		req.Header.Set("Content-Type", "application/json")
		checkAnswer(t, server.Handler(), req)
	})
}

// FuzzParameters sends arbitrary values as the parameters of lists.
func FuzzParameters(f *testing.F) {
	for _, seed := range [][4]string{
		{"limit", "0", "sort", "name"},
		{"offset", "-1", "order", "desc,asc"},
		{"tag", "\x00", "search", "%_\\"},
		{"sort", "name,name", "order", ""},
		{"from", "2026-01-01", "to", "x"},
		{"cursor", "bTE", "limit", "99999999999999999999"},
		{"query", "\"a\" OR *", "min_score", "NaN"},
		{"query", strings.Repeat("é", 3000), "mode", "hybrid"},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3])
	}
	_, server := openService(f)
	f.Fuzz(func(t *testing.T, name1, value1, name2, value2 string) {
		query := url.Values{name1: {value1, value2}, name2: {value2}}.Encode()
		for _, path := range []string{
			"/api/agents",
			"/api/agents/default/contacts",
			"/api/agents/default/logs",
			"/api/agents/default/sources",
			"/api/agents/default/sources/search",
		} {
			req := httptest.NewRequestWithContext(t.Context(), "GET", "http://localhost"+path+"?"+query, nil)
			checkAnswer(t, server.Handler(), req)
		}
	})
}
