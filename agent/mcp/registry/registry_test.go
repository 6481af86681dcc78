package registry

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"satchel/agent"
	"satchel/agent/work/worktest"
	"satchel/store"
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// open opens a folder and a running Registry that may reach loopback.
func open(t *testing.T, path string) (*store.Folder, *Registry) {
	t.Helper()
	folder, r := openIdle(t, path)
	if err := r.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Stop)
	return folder, r
}

func openIdle(t *testing.T, path string) (*store.Folder, *Registry) {
	t.Helper()
	folder, err := store.Open(store.Options{Path: path, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = folder.Close() })
	r := New(Options{
		Env: store.Env{Folder: folder, Allow: agent.MustAddressRanges("127.0.0.1/32"), Version: "test", Log: quiet},
	})
	return folder, r
}

// fakeClock starts a Registry and returns a function that advances its clock.
func fakeClock(t *testing.T, r *Registry) (later func(time.Duration)) {
	t.Helper()
	start := time.Now()
	var ahead atomic.Int64
	r.now = func() time.Time { return start.Add(time.Duration(ahead.Load())) }
	if err := r.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Stop)
	return func(d time.Duration) { ahead.Add(int64(d)) }
}

// fingerprint returns what a server may repeat of a secret without its being masked.
func fingerprint(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text)))[:16] }

// testServer is a server with the tool echo that can be shut down and counts its
// requests.
type testServer struct {
	*httptest.Server
	away     atomic.Bool
	requests atomic.Int64
}

func newTestServer(t *testing.T) *testServer {
	t.Helper()
	s := sdk.NewServer(&sdk.Implementation{Name: "peer", Version: "1"}, nil)
	s.AddTool(
		&sdk.Tool{Name: "echo", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{
				Content: []sdk.Content{&sdk.TextContent{
					Text: fingerprint(r.Extra.Header.Get("Authorization")) + string(r.Params.Arguments),
				}},
			}, nil
		},
	)
	handler := sdk.NewStreamableHTTPHandler(
		func(*http.Request) *sdk.Server { return s },
		&sdk.StreamableHTTPOptions{Stateless: true},
	)
	p := &testServer{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.requests.Add(1)
		if p.away.Load() {
			panic(http.ErrAbortHandler)
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(p.Close)
	return p
}

func register(t *testing.T, r *Registry, db *store.DB, url string, auth agent.MCPAuth) agent.MCPServer {
	t.Helper()
	s, err := r.Create(t.Context(), db, agent.MCPServer{Name: "Peer", URL: url}, auth)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var bearer = agent.MCPAuth{Type: "bearer", Token: "sesame-7"}

func TestCall(t *testing.T) {
	folder, r := open(t, t.TempDir())
	p := newTestServer(t)
	s := register(t, r, folder.Default(), p.URL, bearer)
	got, err := r.Call(t.Context(), folder.Default(), s.ID, "echo", json.RawMessage(`{"a":1}`))
	if err != nil || got != fingerprint("Bearer sesame-7")+`{"a":1}` {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := r.Call(
		t.Context(),
		folder.Default(),
		"mcp-x",
		"echo",
		nil,
	); agent.ErrorCode(err) != agent.CodeNotFound {
		t.Errorf("unknown server: %v", err)
	}
	if err := r.Delete(t.Context(), folder.Default(), s.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Call(t.Context(), folder.Default(), s.ID, "echo", nil); agent.ErrorCode(err) != agent.CodeNotFound {
		t.Errorf("deleted server: %v", err)
	}
}

// TestCredentialsStayWithTheirAddress: a token is only sent to the address it was set for,
// whatever SQL changes, and reads as locked under another master key.
func TestCredentialsStayWithTheirAddress(t *testing.T) {
	path := t.TempDir()
	folder, r := open(t, path)
	db, p, other := folder.Default(), newTestServer(t), newTestServer(t)
	s := register(t, r, db, p.URL, bearer)
	move := func(url string) {
		t.Helper()
		if _, err := db.SQL(
			t.Context(),
			"UPDATE mcp_servers SET url = '"+url+"'",
			store.Params{},
			store.Access{Write: true},
		); err != nil {
			t.Fatal(err)
		}
	}
	move(other.URL)
	_, err := r.Call(t.Context(), db, s.ID, "echo", nil)
	if agent.ErrorCode(err) != agent.CodeConflict || other.requests.Load() != 0 {
		t.Errorf("with another address: %v, %d requests", err, other.requests.Load())
	}
	servers, _, err := r.List(t.Context(), db, store.Page{Limit: 10})
	if err != nil || len(servers) != 1 {
		t.Fatalf("got %v, %v", servers, err)
	}
	move(p.URL)
	if got, err := r.Call(t.Context(), db, s.ID, "echo", nil); err != nil ||
		got != fingerprint("Bearer sesame-7")+"{}" {
		t.Errorf("with the first address again: %v, %v", got, err)
	}
	if err := folder.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(path, "master.key")); err != nil {
		t.Fatal(err)
	}
	folder, r = open(t, path)
	_, err = r.Call(t.Context(), folder.Default(), s.ID, "echo", nil)
	if agent.ErrorCode(err) != agent.CodeConflict || !strings.Contains(agent.Explain(err), "locked") {
		t.Errorf("under another key: %v", err)
	}
	if tools, stale, err := r.Tools(t.Context(), folder.Default(), s.ID); err != nil || !stale || len(tools) != 1 {
		t.Errorf("tools under another key: %v %v %v", tools, stale, err)
	}
}

// TestListChecksServers: a list checks servers, except those checked just now.
func TestListChecksServers(t *testing.T) {
	folder, r := openIdle(t, t.TempDir())
	db, p := folder.Default(), newTestServer(t)
	later := fakeClock(t, r)
	register(t, r, db, p.URL, agent.MCPAuth{})
	requests := p.requests.Load()
	list := func() agent.MCPStatus {
		t.Helper()
		servers, total, err := r.List(t.Context(), db, store.Page{Limit: 10})
		if err != nil || total != 1 {
			t.Fatalf("got %v, %v", servers, err)
		}
		return servers[0].Status
	}
	p.away.Store(true)
	if got := list(); got != agent.MCPConnected || p.requests.Load() != requests {
		t.Errorf("just after: %s, %d requests", got, p.requests.Load()-requests)
	}
	later(time.Minute)
	if got := list(); got != agent.MCPDisconnected {
		t.Errorf("a minute later: %s", got)
	}
	p.away.Store(false)
	later(time.Minute)
	if got := list(); got != agent.MCPConnected {
		t.Errorf("back again: %s", got)
	}
}

// TestClock: servers of active agents are checked on schedule, also after a
// restart, and files of agents without servers stay closed.
func TestClock(t *testing.T) {
	path := t.TempDir()
	folder, r := open(t, path)
	p := newTestServer(t)
	agents := map[string]*store.DB{}
	for _, name := range []string{"with", "without", "paused"} {
		db, err := folder.CreateAgent(t.Context(), agent.Agent{Name: name, Status: agent.StatusActive}, "")
		if err != nil {
			t.Fatal(err)
		}
		agents[name] = db
	}
	with := register(t, r, agents["with"], p.URL, agent.MCPAuth{})
	register(t, r, agents["paused"], p.URL, agent.MCPAuth{})
	if _, err := folder.UpdateAgent(t.Context(), agents["paused"], agent.AgentChange{
		Status: agent.Some(agent.StatusPaused),
	}); err != nil {
		t.Fatal(err)
	}
	if err := folder.Close(); err != nil {
		t.Fatal(err)
	}
	r.Stop()
	folder, r = openIdle(t, path)
	for _, db := range folder.Agents() {
		if want := db.Agent().Name == "with" || db.Agent().Name == "paused"; db.Pending().MCPServers.IsZero() == want {
			t.Errorf("%s is stored as having servers: %v", db.Agent().Name, !want)
		}
	}
	p.away.Store(true)
	var mu sync.Mutex
	var seen []string
	signal := make(chan string, 10)
	r.checked = func(db *store.DB, s agent.MCPServer) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, db.Agent().Name)
		signal <- fmt.Sprintf("%s %s %s", db.Agent().Name, s.ID, s.Status)
	}
	r.now = func() time.Time { return time.Now().Add(time.Hour) }
	r.every = 10 * time.Millisecond
	for range 2 {
		if err := r.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if got := <-signal; got != "with "+with.ID+" disconnected" {
			t.Errorf("checked %s", got)
		}
	}
	go func() { // checks continue until Stop
		for range signal {
		}
	}()
	r.Stop()
	r.Stop()
	close(signal)
	for _, name := range seen {
		if name != "with" {
			t.Errorf("checked a server of %s", name)
		}
	}
	for _, db := range folder.Agents() {
		if s, _, err := db.MCPServers(t.Context(), store.Page{Limit: 5}); db.Agent().Name == "with" &&
			(err != nil || s[0].Status != agent.MCPDisconnected) {
			t.Errorf("stored: %v, %v", s, err)
		}
	}
}

// TestStartStop starts and stops repeatedly while servers are registered, and all of
// them are checked afterwards.
func TestStartStop(t *testing.T) {
	folder, r := openIdle(t, t.TempDir())
	db, err := folder.CreateAgent(t.Context(), agent.Agent{Name: "a", Status: agent.StatusActive}, "")
	if err != nil {
		t.Fatal(err)
	}
	p := newTestServer(t)
	checked := make(chan string)
	r.checked = func(_ *store.DB, s agent.MCPServer) {
		select {
		case checked <- s.ID:
		default: // the next check is as good
		}
	}
	r.every = 10 * time.Millisecond
	left := map[string]bool{}
	worktest.Stress(t, r, 5, func(int) { left[register(t, r, db, p.URL, agent.MCPAuth{}).ID] = true })
	for len(left) > 0 {
		delete(left, <-checked)
	}
}

func TestServersAreLimited(t *testing.T) {
	folder, r := open(t, t.TempDir())
	p := newTestServer(t)
	for range agent.MaxMCPServers {
		register(t, r, folder.Default(), p.URL, agent.MCPAuth{})
	}
	_, err := r.Create(t.Context(), folder.Default(), agent.MCPServer{Name: "Peer", URL: p.URL}, agent.MCPAuth{})
	if agent.ErrorCode(err) != agent.CodeConflict {
		t.Errorf("one server too many: %v", err)
	}
}
