package httpapi

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestStopAnswersRequests stops the server while requests wait for another service that
// does not answer: each is answered in its own format, with its state or with 503.
func TestStopAnswersRequests(t *testing.T) {
	_, server := openService(t)
	server.cutAfter = time.Millisecond
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server.Start(listener)
	t.Cleanup(server.Stop)
	arrived, over := make(chan string, 16), make(chan struct{})
	stalled := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		arrived <- r.URL.Path
		select {
		case <-over:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(stalled.Close)
	t.Cleanup(func() { close(over) })
	c := &testClient{url: "http://" + listener.Addr().String(), folder: server.folder, header: http.Header{}}
	const at = "/api/agents/default"
	c.must(
		t, 200, "PUT", at+"/settings",
		`{"llm_provider":"ollama","llm_base_url":"`+stalled.URL+`/v1","llm_model":"m"}`,
	)
	create := func(name string) (id string) {
		return c.must(t, 201, "POST", at+"/workflows", `{"name":"`+name+`","status":"active","edges":[{"source":"t","target":"h"}],
			"nodes":[{"id":"t","type":"trigger"},{"id":"h","type":"http-request","data":{"url":"`+stalled.URL+`"}}]}`)["id"].(string)
	}
	create("called")
	tool := c.must(t, 201, "POST", at+"/tools", `{"name":"api","type":"api","description":"d",
		"config":{"url":"`+stalled.URL+`/tool","method":"GET"}}`)["id"].(string)
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"workflow_called","arguments":{}}}`
	requests := map[string]struct{ path, body string }{
		"an execution":             {at + "/workflows/execute?wait=60", `{"workflow_id":"` + create("executed") + `"}`},
		"a chat turn":              {at + "/chat", `{"message":"Hi"}`},
		"a chat completion":        {at + "/v1/chat/completions", `{"messages":[{"role":"user","content":"Hi"}]}`},
		"a response":               {at + "/v1/responses", `{"input":"Hi"}`},
		"a tool":                   {at + "/tools/" + tool + "/execute", `{}`},
		"a workflow called by MCP": {"/mcp/default", call},
	}
	type result struct {
		name string
		answer
	}
	results := make(chan result, len(requests))
	accepting := c.with("Accept", "application/json, text/event-stream")
	for name, r := range requests {
		go func() { results <- result{name, accepting.send(t, "POST", r.path, r.body)} }()
	}
	for range requests {
		select {
		case <-arrived:
		case a := <-results:
			t.Fatalf("%s: %d %s before the server stops", a.name, a.StatusCode, a.text)
		}
	}
	server.Stop()
	for range requests {
		a := <-results
		switch running := strings.Contains(a.text, `"running"`); {
		case a.StatusCode == http.StatusOK && running: // it resumes after the next start
		case a.StatusCode != http.StatusServiceUnavailable || a.Header.Get("Retry-After") == "",
			!strings.Contains(a.text, "UNAVAILABLE"):
			t.Errorf("%s: %d %v %s", a.name, a.StatusCode, a.Header, a.text)
		}
	}
}
