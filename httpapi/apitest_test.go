package httpapi

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

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
	return New(Options{
		Parts:       Parts(parts),
		CORSOrigins: []string{"*"},
		MaxUpload:   25 << 20,
		PublicURL:   "http://localhost",
		Version:     "test",
		Log:         slog.New(slog.DiscardHandler),
	})
}

// testServer is a service with a browser, and a site that its sessions may visit.
type testServer struct {
	*testClient
	server *Server
	site   string
}

func newTestServer(tb testing.TB) *testServer {
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
	return apitest.Parts(ts.server.options.Parts).OpenLoaded(tb, ts.site+path)
}
