package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"satchel/agent"
)

// TestPendingSources: answers by every way in which a person asks name the sources that
// have not been read.
func TestPendingSources(t *testing.T) {
	c, _ := newClientWithModel(t, func(int, map[string]any) string { return "I will see." })
	over := make(chan struct{})
	site := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-over }))
	t.Cleanup(site.Close)
	t.Cleanup(func() { close(over) })
	const at = "/api/agents/default"
	made := c.must(t, 201, "POST", at+"/sources/crawl", `{"url":"`+site.URL+`","name":"Guide"}`)
	want := fmt.Sprintf(`"pending_sources":[{"id":"%s","name":"Guide","status":"crawling"}]`, made["id"])
	for _, tc := range [][2]string{
		{"/chat", `{"message":"When?"}`},
		{"/chat", `{"message":"When?","stream":true}`},
		{"/v1/chat/completions", `{"messages":[{"role":"user","content":"When?"}]}`},
		{"/v1/chat/completions", `{"messages":[{"role":"user","content":"When?"}],"stream":true}`},
		{"/v1/responses", `{"input":"When?"}`},
		{"/v1/responses", `{"input":"When?","stream":true}`},
	} {
		if a := c.send(t, "POST", at+tc[0], tc[1]); a.StatusCode != 200 || !strings.Contains(a.text, want) {
			t.Errorf("%s %s: %d %s", tc[0], tc[1], a.StatusCode, a.text)
		}
	}
	found := c.must(t, 200, "GET", at+"/sources/search?query=when", "")
	if !strings.Contains(fmt.Sprint(found["notice"]), `"Guide" is still being read`) {
		t.Errorf("search: %v", found)
	}
	stored := agent.Message{Role: agent.MessageAssistant, Metadata: json.RawMessage("{" + want + "}")}
	if m := newVisitorMessage(&stored, ""); len(m.PendingSources) != 1 || m.PendingSources[0] != "Guide" {
		t.Errorf("a visitor sees %v", m.PendingSources)
	}
	ids, _ := json.Marshal(make([]string, 101))
	if a := c.send(
		t,
		"POST",
		at+"/chat",
		`{"message":"x","wait_for":`+string(ids)+`}`,
	); a.StatusCode != 400 || !strings.Contains(a.text, `"wait_for"`) {
		t.Errorf("101 ids: %d %s", a.StatusCode, a.text)
	}
}
