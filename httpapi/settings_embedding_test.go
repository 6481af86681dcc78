package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// modelAPI is a provider of embeddings with four numbers, the counts of some words in the
// text.
func modelAPI(t *testing.T) (base string, down *atomic.Bool) {
	down = &atomic.Bool{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if down.Load() || r.URL.Path != "/v1/embeddings" || r.Header.Get("Authorization") != "Bearer s3cret" {
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		var body struct{ Input []string }
		_ = json.NewDecoder(r.Body).Decode(&body)
		var data []map[string]any
		for i, text := range body.Input {
			vector := []int{1}
			for _, word := range []string{"bread", "clock", "whale"} {
				vector = append(vector, 9*strings.Count(strings.ToLower(text), word))
			}
			data = append(data, map[string]any{"index": i, "embedding": vector})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"data": data})
	}))
	t.Cleanup(s.Close)
	return s.URL + "/v1", down
}

func TestEmbeddingProvider(t *testing.T) {
	c := newTestClient(t)
	base, down := modelAPI(t)
	for _, notes := range []string{"the bread is baked at night", "a clock on the wall", "one whale at sea"} {
		c.must(t, 201, "POST", "/api/agents/default/contacts", fmt.Sprintf(`{"name":"x","notes":%q}`, notes))
	}
	made := c.must(
		t, 201, "POST", sourcesPath,
		`{"type":"database","name":"Notes","config":{"query":"SELECT notes FROM contacts"}}`,
	)
	path := sourcesPath + "/" + fmt.Sprint(made["id"])
	if source := c.waitIndexed(t, path); source["status"] != "ready" || source["stale"] != nil {
		t.Fatalf("settled as %v", source)
	}
	before := chunkIDs(t, c, path)
	settings := "/api/agents/default/settings"
	set := fmt.Sprintf(
		`{"embedding_provider":"openai-compatible","embedding_model":"tiny","embedding_base_url":%q,`+
			`"embedding_api_key":"s3cret"}`,
		base,
	)
	answer := c.must(t, 200, "PUT", settings, set)
	if answer["embedding_model"] != "tiny" || strings.Contains(fmt.Sprint(answer), "s3cret") {
		t.Errorf("settings are %v", answer)
	}
	apiCase{"stale", "GET", path, "", 200, map[string]any{"stale": true, "status": "ready"}}.run(t, c)
	apiCase{"listed as stale", "GET", sourcesPath, "", 200, map[string]any{"sources.0.stale": true}}.run(t, c)
	apiCase{
		"stale by words",
		"GET",
		sourcesPath + "/search?query=clock",
		"",
		200,
		map[string]any{"results.0.content": "notes: a clock on the wall", "mode": "hybrid", "notice": nil},
	}.run(t, c)
	apiCase{
		"stale by meaning",
		"GET",
		sourcesPath + "/search?query=clock&mode=vector",
		"",
		200,
		map[string]any{"results.0.content": "notes: a clock on the wall"},
	}.run(t, c)

	c.must(t, 200, "POST", path+"/reindex", "")
	if source := c.waitIndexed(t, path); source["stale"] != nil ||
		!strings.HasPrefix(fmt.Sprint(source["embedding_model"]), "tiny@127.0.0.1:") ||
		fmt.Sprint(at(source, "config.unchanged_records")) != "3" {
		t.Errorf("settled as %v", source)
	}
	if after := chunkIDs(t, c, path); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("chunks were split again: %v, %v", before, after)
	}
	apiCase{
		"by its meaning",
		"GET",
		sourcesPath + "/search?query=whale&mode=vector&limit=1",
		"",
		200,
		map[string]any{"results.0.content": "notes: one whale at sea"},
	}.run(t, c)

	down.Store(true)
	fallback := c.must(t, 200, "GET", sourcesPath+"/search?query=clock&min_score=0.5", "")
	if fallback["mode"] != "keyword" ||
		fallback["notice"] == nil ||
		at(fallback, "results.0.content") != "notes: a clock on the wall" ||
		fmt.Sprint(at(fallback, "results.0.similarity")) != "0" {
		t.Errorf("while the provider is down: %v", fallback)
	}
	apiCase{
		"by meaning alone",
		"GET",
		sourcesPath + "/search?query=clock&mode=vector",
		"",
		500,
		code("UPSTREAM_ERROR"),
	}.run(t, c)
	apiCase{
		"key for another host",
		"PUT",
		settings,
		`{"embedding_base_url":"http://127.0.0.2/v1"}`,
		400,
		invalid("embedding_api_key"),
	}.run(t, c)
	apiCase{
		"back to local",
		"PUT",
		settings,
		`{"embedding_provider":null}`,
		200,
		map[string]any{"embedding_provider": "local"},
	}.run(t, c)
	apiCase{"stale again", "GET", path, "", 200, map[string]any{"stale": true}}.run(t, c)
}

func TestBadEmbeddingSettings(t *testing.T) {
	c := newTestClient(t)
	settings := "/api/agents/default/settings"
	for _, tc := range []apiCase{
		{"unknown provider", "PUT", settings, `{"embedding_provider":"magic"}`, 400, invalid("embedding_provider")},
		{
			"no model",
			"PUT",
			settings,
			`{"embedding_provider":"openai-compatible","embedding_base_url":"https://example.com/v1"}`,
			400,
			invalid("embedding_model"),
		},
		{
			"no address",
			"PUT",
			settings,
			`{"embedding_provider":"openai-compatible","embedding_model":"m"}`,
			400,
			invalid("embedding_base_url"),
		},
		{
			"invalid address",
			"PUT",
			settings,
			`{"embedding_provider":"openai-compatible","embedding_model":"m","embedding_base_url":"ftp://x"}`,
			400,
			invalid("embedding_base_url"),
		},
		{
			"private address",
			"PUT",
			settings,
			`{"embedding_provider":"openai-compatible","embedding_model":"m",` +
				`"embedding_base_url":"http://10.0.0.1/v1"}`,
			400,
			invalid("embedding_base_url"),
		},
		{"file without a model", "PUT", settings, `{"embedding_provider":"file"}`, 400, invalid("embedding_model")},
		{
			"file that is not installed",
			"PUT",
			settings,
			`{"embedding_provider":"file","embedding_model":"x"}`,
			400,
			invalid("embedding_model"),
		},
		{
			"rerank without a reranker",
			"GET",
			sourcesPath + "/search?query=x&rerank=true",
			"",
			200,
			map[string]any{
				"reranked": nil,
				"notice":   "no reranker is installed on this server: the results are as without one",
			},
		},
		{"model is a number", "PUT", settings, `{"embedding_model":5}`, 400, invalid("embedding_model")},
		{
			"nothing was set", "GET", settings, "", 200,
			map[string]any{"embedding_provider": "local", "embedding_model": "", "embedding_base_url": ""},
		},
	} {
		tc.run(t, c)
	}
}
