package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"satchel/agent"
)

// TestAnswersToOtherRequests: a response to a request that was not sent is an
// immediate error.
func TestAnswersToOtherRequests(t *testing.T) {
	result := `"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"x","version":"1"}}`
	for name, id := range map[string]string{"another number": `4711`, "a text": `"x"`, "null": `null`, "none": ``} {
		message := `{"jsonrpc":"2.0",` + result + `}`
		if id != "" {
			message = `{"jsonrpc":"2.0","id":` + id + `,` + result + `}`
		}
		for media, body := range map[string]string{
			"application/json":  message,
			"text/event-stream": "event: message\ndata: " + message + "\n\n",
		} {
			t.Run(name+", "+media, func(t *testing.T) {
				done := make(chan struct{})
				peer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Content-Type", media)
					_, _ = io.WriteString(w, body)
					if media == "text/event-stream" { // the stream stays open
						_ = http.NewResponseController(w).Flush()
						select {
						case <-done:
						case <-r.Context().Done():
						}
					}
				}))
				t.Cleanup(func() {
					close(done)
					peer.CloseClientConnections()
					peer.Close()
				})
				c := newClient(t)
				c.options.ListTimeout = time.Hour
				_, err := c.Tools(t.Context(), Server{URL: peer.URL})
				if StatusOf(err) != agent.MCPError ||
					agent.Explain(err) != "the MCP server answered a different request than the one it was sent" {
					t.Errorf("%s: %v", StatusOf(err), err)
				}
			})
		}
	}
}

// TestIDsInStreams reads events in pieces of every length.
func TestIDsInStreams(t *testing.T) {
	event := func(id, rest string) string {
		return fmt.Sprintf("id: 1\r\ndata: {\"id\":%s,\ndata: %s}\r\n\r\n", id, rest)
	}
	for name, tc := range map[string]struct {
		text    string
		foreign bool
	}{
		"own id": {event("7", `"result":{}`), false},
		"notification, own id": {
			": ping\n\ndata: {\"method\":\"notifications/progress\"}\n\n" + event("7", `"result":{}`),
			false,
		},
		"server's request":   {event("9", `"method":"ping"`), false},
		"another id":         {event("8", `"result":{}`), true},
		"error, another id":  {event("8", `"error":{"code":1}`), true},
		"own id, another id": {event("7", `"result":{}`) + event("8", `"result":{}`), true},
		"not JSON":           {"data: hello\n\n", false},
	} {
		for size := 1; size <= len(tc.text); size++ {
			x := &exchange{requestIDs: map[string]bool{}}
			pieces := iotest.OneByteReader(strings.NewReader(tc.text))
			resp := &http.Response{
				StatusCode: 200,
				Header:     http.Header{"Content-Type": {"text/event-stream"}},
				Body:       io.NopCloser(pieces),
			}
			_, err := io.CopyBuffer(
				struct{ io.Writer }{io.Discard},
				struct{ io.Reader }{x.readMessages("7", resp)},
				make([]byte, size),
			)
			if errors.Is(err, errForeign) != tc.foreign {
				t.Fatalf("%s in pieces of %d: %v", name, size, err)
			}
		}
	}
	var m rpcMessage
	if err := json.Unmarshal([]byte(`{"id": 7 }`), &m); err != nil || string(m.ID) != "7" {
		t.Errorf("id %q, %v", m.ID, err)
	}
}
