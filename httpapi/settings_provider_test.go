package httpapi

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// modelProvider is a provider that lists two models, records the credentials of its
// requests, and rejects the key sk-bad.
type modelProvider struct {
	*httptest.Server
	mu       sync.Mutex
	requests []string // paths with their credentials
}

func newModelProvider(t *testing.T) *modelProvider {
	t.Helper()
	m := &modelProvider{}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := r.Header.Get("Authorization")
		if r.Header.Get("X-Api-Key") != "" {
			key = r.Header.Get("X-Api-Key")
		}
		m.mu.Lock()
		m.requests = append(m.requests, r.URL.Path+" "+key)
		m.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		switch {
		case strings.HasSuffix(key, "sk-bad"):
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"error":{"message":"no such key: %s"}}`, key)
		case strings.HasSuffix(r.URL.Path, "/models"):
			_, _ = io.WriteString(
				w,
				`{"object":"list","data":[{"id":"m-2","type":"model"},{"id":"m-1","type":"model"}],"has_more":false}`,
			)
		default:
			fmt.Fprintf(
				w,
				`{"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"OK, %s"}}]}`,
				key,
			)
		}
	}))
	t.Cleanup(m.Close)
	return m
}

func (m *modelProvider) takeRequests() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return strings.Join(m.requests, ", ")
}

// TestModelsOfTheProvider checks that the list is requested once a minute, and that a
// stored credential is not sent to a host that a query names.
func TestModelsOfTheProvider(t *testing.T) {
	c, m, other := newTestClient(t), newModelProvider(t), newModelProvider(t)
	const path, settings = "/api/agents/default/models", "/api/agents/default/settings"
	if a := c.send(t, "GET", path, ""); a.StatusCode != 400 || at(a.json, "error.details.field") != "llm_provider" {
		t.Errorf("without a provider: %d %s", a.StatusCode, a.text)
	}
	c.must(
		t, 200, "PUT", settings,
		`{"llm_provider":"openai-compatible","llm_base_url":"`+m.URL+`/v1","llm_api_key":"sk-mine"}`,
	)
	for range 2 {
		if a := c.must(t, 200, "GET", path, ""); a["provider"] != "openai-compatible" ||
			fmt.Sprint(a["models"]) != "[m-1 m-2]" {
			t.Errorf("%v", a)
		}
	}
	if got := m.takeRequests(); got != "/v1/models Bearer sk-mine" {
		t.Errorf("requests %s", got)
	}
	if a := c.send(
		t,
		"GET",
		path+"?llm_base_url="+other.URL+"/v1",
		"",
	); a.StatusCode != 409 || other.takeRequests() != "" {
		t.Errorf("another host: %d %s; requests %s", a.StatusCode, a.text, other.takeRequests())
	}
	c.must(t, 400, "GET", path+"?llm_provider=acme", "")
	c.must(
		t, 200, "PUT", settings,
		`{"llm_provider":"anthropic","llm_base_url":"`+other.URL+`/v1","anthropic_api_key":"sk-ant"}`,
	)
	if a := c.must(t, 200, "GET", path, ""); fmt.Sprint(a["models"]) != "[m-1 m-2]" ||
		other.takeRequests() != "/v1/models sk-ant" {
		t.Errorf("%v, requests %s", a, other.takeRequests())
	}
}

// TestSettingsAreTested checks that one short call reports whether settings work, saved
// or not, and reveals no credential.
func TestSettingsAreTested(t *testing.T) {
	c, m, other := newTestClient(t), newModelProvider(t), newModelProvider(t)
	const path, settings = "/api/agents/default/settings/test", "/api/agents/default/settings"
	if a := c.send(t, "POST", path, `{}`); a.StatusCode != 400 || at(a.json, "error.details.field") != "llm_provider" {
		t.Errorf("without a provider: %d %s", a.StatusCode, a.text)
	}
	given := `{"llm_provider":"openai-compatible","llm_model":"m-9","llm_base_url":"` + other.URL +
		`/v1","api_key":"sk-given"}`
	a := c.send(t, "POST", path, given)
	if a.StatusCode != 200 ||
		a.json["ok"] != true ||
		a.json["reply"] != "OK, Bearer ********" ||
		a.json["error"] != "" ||
		strings.Contains(a.text, "sk-given") {
		t.Errorf("given: %d %s", a.StatusCode, a.text)
	}
	if s := c.send(t, "GET", settings, ""); s.json["llm_provider"] != "" || strings.Contains(s.text, "api_key") {
		t.Errorf("saved %s", s.text)
	}
	c.must(
		t, 200, "PUT", settings,
		`{"llm_provider":"openai-compatible","llm_model":"m-1","llm_base_url":"`+m.URL+`/v1","llm_api_key":"sk-mine"}`,
	)
	if a := c.must(t, 200, "POST", path, `{}`); a["ok"] != true ||
		m.takeRequests() != "/v1/chat/completions Bearer sk-mine" {
		t.Errorf("stored: %v, requests %s", a, m.takeRequests())
	}
	before := other.takeRequests()
	a = c.send(t, "POST", path, `{"llm_base_url":"`+other.URL+`/v1"}`)
	if a.StatusCode != 400 || at(a.json, "error.details.field") != "api_key" || other.takeRequests() != before {
		t.Errorf("another host: %d %s; requests %s", a.StatusCode, a.text, other.takeRequests())
	}
	a = c.send(t, "POST", path, `{"api_key":"sk-bad"}`)
	if a.StatusCode != 200 ||
		a.json["ok"] != false ||
		!strings.HasSuffix(
			fmt.Sprint(a.json["error"]),
			"(status 401). The provider says: no such key: Bearer ********",
		) ||
		strings.Contains(a.text, "sk-bad") {
		t.Errorf("refused: %d %s", a.StatusCode, a.text)
	}
	if logs := c.send(t, "GET", "/api/agents/default/logs?limit=200", ""); strings.Contains(logs.text, "sk-") {
		t.Errorf("the log has %s", logs.text)
	}
	c.must(t, 400, "POST", path, `{"llm_base_url":"ftp://x"}`)
}

// TestModelsOfGivenSettings checks that a provider's models can be listed with settings
// that are not saved, and that a stored credential stays with its host.
func TestModelsOfGivenSettings(t *testing.T) {
	c, m, other := newTestClient(t), newModelProvider(t), newModelProvider(t)
	const path, settings = "/api/agents/default/settings/models", "/api/agents/default/settings"
	if a := c.send(t, "POST", path, `{}`); a.StatusCode != 400 || at(a.json, "error.details.field") != "llm_provider" {
		t.Errorf("without a provider: %d %s", a.StatusCode, a.text)
	}
	a := c.must(
		t, 200, "POST", path,
		`{"llm_provider":"openai-compatible","llm_base_url":"`+other.URL+`/v1","api_key":"sk-given"}`,
	)
	if fmt.Sprint(a["models"]) != "[m-1 m-2]" || other.takeRequests() != "/v1/models Bearer sk-given" {
		t.Errorf("given: %v, requests %s", a, other.takeRequests())
	}
	if s := c.send(t, "GET", settings, ""); s.json["llm_provider"] != "" || strings.Contains(s.text, "api_key") {
		t.Errorf("saved %s", s.text)
	}
	if a := c.send(
		t,
		"POST",
		path,
		`{"llm_provider":"openai-compatible","llm_base_url":"`+m.URL+`/v1","api_key":"sk-bad"}`,
	); a.StatusCode != 500 ||
		at(a.json, "error.code") != "UPSTREAM_ERROR" ||
		strings.Contains(a.text, "sk-bad") {
		t.Errorf("a key that is refused: %d %s", a.StatusCode, a.text)
	}
	c.must(
		t, 200, "PUT", settings,
		`{"llm_provider":"openai-compatible","llm_model":"m-1","llm_base_url":"`+m.URL+`/v1","llm_api_key":"sk-mine"}`,
	)
	before := other.takeRequests()
	a = c.must(t, 400, "POST", path, `{"llm_base_url":"`+other.URL+`/v1"}`)
	if at(a, "error.details.field") != "api_key" || other.takeRequests() != before {
		t.Errorf("another host: %v; requests %s", a, other.takeRequests())
	}
}
