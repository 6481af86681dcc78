package registry

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"satchel/agent"
	"satchel/store"
)

// hangingServer is an MCP server whose responses can be held.
type hangingServer struct {
	*httptest.Server
	arrived chan struct{} // a request is held
	release chan struct{}
}

func newHangingServer(t *testing.T) *hangingServer {
	t.Helper()
	h := &hangingServer{arrived: make(chan struct{}, 1000), release: make(chan struct{})}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.arrived <- struct{}{}
		select {
		case <-h.release:
		case <-r.Context().Done():
		}
		http.Error(w, "broken", http.StatusInternalServerError)
	}))
	t.Cleanup(func() {
		h.CloseClientConnections()
		h.Close()
	})
	return h
}

// TestListDoesNotWait: servers that do not respond are checked concurrently,
// listed with their previous status, and with the new one in the next list.
func TestListDoesNotWait(t *testing.T) {
	folder, r := openIdle(t, t.TempDir())
	db, p, h := folder.Default(), newTestServer(t), newHangingServer(t)
	r.wait = 20 * time.Millisecond
	later := fakeClock(t, r)
	const dead = 12
	for range dead {
		register(t, r, db, p.URL, agent.MCPAuth{})
	}
	if _, err := db.SQL(
		t.Context(),
		"UPDATE mcp_servers SET url = '"+h.URL+"'",
		store.Params{},
		store.Access{Write: true},
	); err != nil {
		t.Fatal(err)
	}
	register(t, r, db, p.URL, agent.MCPAuth{})
	statuses := func() string {
		t.Helper()
		servers, _, err := r.List(t.Context(), db, store.Page{Limit: 50})
		if err != nil {
			t.Fatal(err)
		}
		count := map[agent.MCPStatus]int{}
		for _, s := range servers {
			count[s.Status]++
		}
		return fmt.Sprint(count)
	}
	later(time.Minute)
	if got := statuses(); got != "map[connected:13]" {
		t.Errorf("while the servers hang: %s", got)
	}
	for range dead { // all concurrently: none is released yet
		<-h.arrived
	}
	if got := statuses(); got != "map[connected:13]" || len(h.arrived) > 0 {
		t.Errorf("listed again: %s, %d more checks", got, len(h.arrived))
	}
	close(h.release)
	r.wait = time.Hour
	if got := statuses(); got != "map[connected:1 error:12]" {
		t.Errorf("after the checks: %s", got)
	}
}
