package httpapi

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"satchel/agent"
	"satchel/browser"
	"satchel/httpapi/apitest"
	"satchel/store"
)

// Names that the tests of the console use as well.
var (
	at               = apitest.At
	quoted           = apitest.Quoted
	multipartForm    = apitest.Form
	newModelServer   = apitest.NewModelServer
	newOAuthProvider = apitest.NewOAuthProvider
	newMCPServer     = apitest.NewMCPServer
	newMCPLogin      = apitest.NewMCPLogin
	newIdentityProxy = apitest.NewIdentityProxy
	waitTitle        = apitest.WaitTitle
)

const (
	hostile  = apitest.Hostile
	handbook = apitest.Handbook
)

// parallel are the tests that run in parallel.
var parallel sync.Map

// inParallel makes a test run in parallel with others, unless it does already. Subtests,
// fuzz tests and benchmarks run as before.
func inParallel(tb testing.TB) {
	tb.Helper()
	t, ok := tb.(*testing.T)
	if !ok || strings.Contains(t.Name(), "/") {
		return
	}
	if _, running := parallel.LoadOrStore(t.Name(), true); !running {
		t.Cleanup(func() { parallel.Delete(t.Name()) }) // it may run again
		t.Parallel()
	}
}

// openParts starts the parts of a service, for a test that runs in parallel with others.
func openParts(tb testing.TB) apitest.Parts {
	tb.Helper()
	inParallel(tb)
	return apitest.Open(tb)
}

// openService creates a complete service with rate limits off.
func openService(tb testing.TB) (*store.Folder, *Server) {
	tb.Helper()
	server := newService(openParts(tb))
	return server.folder, server
}

// newService creates a service from its parts with rate limits off.
func newService(parts apitest.Parts) *Server {
	return New(serviceOptions(parts))
}

func serviceOptions(parts apitest.Parts) Options {
	return Options{
		Parts:       Parts(parts),
		CORSOrigins: []string{"*"},
		MaxUpload:   25 << 20,
		PublicURL:   "http://localhost",
		Version:     "test",
		Log:         slog.New(slog.DiscardHandler),
	}
}

// startShared starts the service that tests share, for the first that needs it. Everybody
// may use it, whatever keys there are.
var startShared = sync.OnceValues(func() (*Server, error) {
	path, err := os.MkdirTemp("", "satchel-httpapi-")
	if err != nil {
		return nil, err
	}
	parts, stop, err := apitest.Start(path)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(path))
	}
	options := serviceOptions(parts)
	options.NoAuth = true
	server := New(options)
	stopShared = func() error {
		server.Stop()
		return errors.Join(stop(), os.RemoveAll(path))
	}
	return server, nil
})

// stopShared stops that service, if it has started.
var stopShared = func() error { return nil }

// sharedServer returns the server of the service that tests share.
func sharedServer(tb testing.TB) *Server {
	tb.Helper()
	inParallel(tb)
	server, err := startShared()
	if err != nil {
		tb.Fatal(err)
	}
	return server
}

// newSharedClient returns a client of a server of the shared service, for an agent of the
// test's own, which it reaches by the address of the default one.
func newSharedClient(tb testing.TB, server *Server) *testClient {
	tb.Helper()
	name := fmt.Sprintf("test-%d", sharedAgents.Add(1))
	db, err := server.folder.CreateAgent(tb.Context(), agent.Agent{Name: name}, "")
	if err != nil {
		tb.Fatal(err)
	}
	ts := httptest.NewServer(asDefault(db.ID(), server.Handler()))
	tb.Cleanup(func() {
		ts.Close()
		if err := server.folder.DeleteAgent(db); err != nil && agent.ErrorCode(err) != agent.CodeNotFound {
			tb.Error(err)
		}
	})
	return &testClient{url: ts.URL, folder: server.folder, agent: db, header: http.Header{}}
}

var (
	sharedAgents atomic.Int64
	defaultAgent = regexp.MustCompile(`^(/api/agents|/[a-z]+)/default(/|$)`)
)

// asDefault serves an agent where the paths of requests name the default one.
func asDefault(id string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, path := range []*string{&r.URL.Path, &r.URL.RawPath} {
			*path = defaultAgent.ReplaceAllString(*path, "${1}/"+id+"${2}")
		}
		next.ServeHTTP(w, r)
	})
}

// testServer is a server with a browser, and a site that its sessions may visit.
type testServer struct {
	*testClient
	server *Server
	site   string
}

// newTestServer starts a server of the shared service, for an agent of the test's own.
func newTestServer(t *testing.T) *testServer {
	t.Helper()
	server := New(sharedServer(t).options)
	client := newSharedClient(t, server)
	t.Cleanup(server.Stop) // sockets end with it
	return &testServer{testClient: client, server: server, site: apitest.NewSite(t)}
}

// newOwnServer starts a service of the test's own.
func newOwnServer(tb testing.TB) *testServer {
	tb.Helper()
	_, server := openService(tb)
	ts := httptest.NewServer(server.Handler())
	tb.Cleanup(func() {
		server.Stop() // sockets end with it
		ts.Close()
	})
	return &testServer{
		testClient: &testClient{url: ts.URL, folder: server.folder, header: http.Header{}},
		server:     server,
		site:       apitest.NewSite(tb),
	}
}

// openLoaded opens a session at a page of the site and waits until it has loaded.
func (ts *testServer) openLoaded(tb testing.TB, path string) *browser.Session {
	tb.Helper()
	return apitest.Parts(ts.server.options.Parts).OpenLoadedOf(tb, ts.db(), ts.site+path)
}
