package chat

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"satchel/agent"
	"satchel/agent/apis"
	"satchel/agent/egress"
	"satchel/store"
)

// TestAPISetInChat: a model searches for an operation of an API, calls it with
// arguments that match its schema, and cannot call operations that the tool does not
// allow.
func TestAPISetInChat(t *testing.T) {
	var got []string
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Method+" "+r.URL.String())
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"id":7,"state":"paid"}`)
	}))
	defer shop.Close()
	s := newChatFixture(t, nil, func(n int, request map[string]any) string {
		switch n {
		case 1:
			return toolCallsAnswer("shop_find", `{"query":"read an order"}`)
		case 2:
			return toolCallsAnswer(
				"shop_call",
				`{"operation":"getOrder","arguments":{"id":7}}`,
				"shop_call",
				`{"operation":"getOrder","arguments":{"id":"seven"}}`,
				"shop_call",
				`{"operation":"deleteOrder","arguments":{"id":7}}`,
			)
		}
		return textAnswer("It is paid.")
	})
	loopback := agent.MustAddressRanges("127.0.0.0/8")
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	all := apis.New(store.Env{Allow: loopback, Log: quiet, Version: "1"})
	box := NewToolbox(ToolOptions{
		HTTP:    egress.New(egress.Policy{Allow: loopback}),
		APIs:    all,
		Version: "1",
		Log:     quiet,
	})
	s.chat.tools = box.Tools
	document := `{"openapi":"3.1.0","info":{"title":"Shop","version":"1"},"servers":[{"url":"` + shop.URL + `"}],"paths":{"/orders/{id}":{
		"parameters":[{"name":"id","in":"path","required":true,"schema":{"type":"integer"}}],
		"get":{"operationId":"getOrder","summary":"Read an order"},"delete":{"operationId":"deleteOrder","summary":"Delete an order"}}}}`
	if _, err := all.Create(t.Context(), s.db, apis.Draft{Name: "shop", Document: document}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.db.CreateTool(t.Context(), agent.ToolChange{
		Name:   agent.Some("shop"),
		Type:   agent.Some(agent.ToolAPISet),
		Config: agent.Some(json.RawMessage(`{"api_id":"shop","allow":{"methods":["GET"]}}`)),
	}); err != nil {
		t.Fatal(err)
	}
	m, a, err := s.chat.Reply(t.Context(), s.db, Turn{Message: "What about order 7?"}, nil)
	if err != nil || m.Content != "It is paid." || len(a.ToolCalls) != 4 {
		t.Fatalf("got %+v %+v %v", m, a, err)
	}
	if offered := fmt.Sprint(s.seen[0]["tools"]); !strings.Contains(offered, "shop_find") ||
		!strings.Contains(offered, "shop_call") ||
		strings.Contains(offered, "getOrder") {
		t.Errorf("the tools offered to the model are %s", offered)
	}
	if found := fmt.Sprint(s.seen[1]["messages"]); !strings.Contains(found, "getOrder") ||
		strings.Contains(found, "deleteOrder") {
		t.Errorf("the model found %s", found)
	}
	if fmt.Sprint(got) != "[GET /orders/7]" {
		t.Errorf("the API received %v", got)
	}
	for i, wrong := range []bool{false, false, true, true} {
		if (a.ToolCalls[i].Error != "") != wrong {
			t.Errorf("call %d: %q", i, a.ToolCalls[i].Error)
		}
	}
}
