package e2e

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"satchel/agent"
	"satchel/agent/openapi"
	"satchel/agent/script"
	"satchel/agent/testenv"
	"satchel/browser"
	"satchel/browser/install/installtest"
	"satchel/httpapi"
	"satchel/httpapi/apitest"
	"satchel/store"
	"satchel/vector/document"
)

// TestMain also runs the child that reads documents.
func TestMain(m *testing.M) {
	if browser.RunChild(os.Args) ||
		document.RunChild(os.Args[1:]) ||
		openapi.RunChild(os.Args[1:]) ||
		script.RunChild(os.Args[1:]) {
		return
	}
	code := testenv.Run(m)
	endPeople()
	os.Exit(code)
}

// endPeople stops the browser of people, if it was started.
var endPeople = func() {}

// people is the browser in which users open the console. All tests share its Chromium:
// starting one takes longer than many tests.
var people = sync.OnceValues(func() (parts apitest.Parts, err error) {
	path, err := os.MkdirTemp("", "satchel-test-")
	if err != nil {
		return parts, err
	}
	quiet := slog.New(slog.DiscardHandler)
	if parts.Folder, err = store.Open(store.Options{Path: path, Log: quiet}); err != nil {
		return parts, err
	}
	loopback := agent.MustAddressRanges("127.0.0.0/8")
	parts.Browser = browser.New(browser.Options{
		Env:         store.Env{Folder: parts.Folder, Allow: loopback, Log: quiet},
		MaxSessions: 50,
		AgentMax:    50,
		Find:        apitest.Chromium,
	})
	endPeople = func() {
		parts.Browser.Stop()
		_ = parts.Folder.Close()
		_ = os.RemoveAll(path)
	}
	return parts, parts.Browser.Start(context.Background())
})

// idle are the windows of the people's browser that no test uses, by size. Opening one, and
// the process of its page, takes longer than many tests.
var idle = struct {
	sync.Mutex
	windows map[agent.Viewport][]*browser.Session
}{windows: map[agent.Viewport][]*browser.Session{}}

// openWindow opens an address in the people's browser, in a session that shares nothing
// with others, until the end of the test.
func openWindow(t *testing.T, width, height int, address string) *browser.Session {
	t.Helper()
	installtest.Need(t)
	shared, err := people()
	if err != nil {
		t.Fatal(err)
	}
	size := agent.Viewport{Width: width, Height: height}
	var s *browser.Session
	idle.Lock()
	if last := len(idle.windows[size]) - 1; last >= 0 {
		s, idle.windows[size] = idle.windows[size][last], idle.windows[size][:last]
	}
	idle.Unlock()
	if s == nil {
		s = shared.StartSession(t, shared.Folder.Default(), width, height)
	}
	t.Cleanup(func() {
		if !t.Failed() && clearWindow(s) == nil {
			idle.Lock()
			idle.windows[size] = append(idle.windows[size], s)
			idle.Unlock()
		} else if _, err := shared.Browser.Close(context.Background(), shared.Folder.Default(), s.ID()); err != nil {
			t.Error(err)
		}
	})
	if err := s.ActivePage().Navigate(t.Context(), address); err != nil {
		t.Fatal(err)
	}
	return s
}

// emptySite has an empty page, of the same site as the services, so that a window keeps
// its process there.
var emptySite = sync.OnceValue(func() string {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
	})).URL
})

// clearWindow removes what a test has left in a window. An error means that others cannot
// use it.
func clearWindow(s *browser.Session) error {
	if len(s.Pages()) != 1 {
		return errors.New("it has several tabs")
	}
	ctx, cancel := context.WithTimeout(context.Background(), pageTimeout)
	defer cancel()
	page := s.ActivePage()
	left, err := url.Parse(page.Address())
	if err != nil {
		return err
	}
	if err := page.Navigate(ctx, emptySite()); err != nil {
		return err
	}
	cdp, err := page.CDP(ctx)
	if err != nil {
		return err
	}
	for _, command := range []struct {
		method string
		params map[string]any
	}{
		{
			"Storage.clearDataForOrigin",
			map[string]any{"origin": left.Scheme + "://" + left.Host, "storageTypes": "all"},
		},
		{"Network.clearBrowserCookies", nil},
		{"Page.resetNavigationHistory", nil},
	} {
		if _, err := browser.Within(ctx, func() (any, error) {
			return cdp.Send(command.method, command.params)
		}); err != nil {
			return err
		}
	}
	_, err = browser.Within(ctx, func() (any, error) { return nil, cdp.Detach() })
	return err
}

// Names that the tests of the API use as well.
var (
	at        = apitest.At
	quoted    = apitest.Quoted
	waitTitle = apitest.WaitTitle
)

const (
	hostile  = apitest.Hostile
	handbook = apitest.Handbook
	flowBase = "/api/agents/default/workflows"
)

// testClient sends requests to a service.
type testClient struct {
	url    string
	header http.Header
}

// with returns a client that sends one more header.
func (c *testClient) with(name, value string) *testClient {
	header := c.header.Clone()
	header.Set(name, value)
	return &testClient{c.url, header}
}

// send makes a request with a body of JSON.
func (c *testClient) send(tb testing.TB, method, path, body string) apitest.Response {
	tb.Helper()
	return apitest.Send(tb, c.header, method, c.url+path, strings.NewReader(body), "application/json")
}

// must is send for a request whose status is known.
func (c *testClient) must(tb testing.TB, status int, method, path, body string) map[string]any {
	tb.Helper()
	a := c.send(tb, method, path, body)
	if a.StatusCode != status {
		tb.Fatalf("%s %s %s: %d, want %d\n%s", method, path, body, a.StatusCode, status, a.Text)
	}
	return a.JSON
}

// upload sends a file in a form.
func (c *testClient) upload(tb testing.TB, path, name, content string, fields map[string]string) apitest.Response {
	tb.Helper()
	body, media := apitest.Form(tb, fields, name, []byte(content), nil)
	return apitest.Send(tb, c.header, "POST", c.url+path, body, media)
}

// until waits until a condition about the default agent holds.
func (c *testClient) until(tb testing.TB, path, what string, holds func() bool) {
	tb.Helper()
	apitest.Until(tb, c.header, c.url+"/api/agents/default/stream", path+" "+what, holds)
}

// waitIndexed waits until the work on a source has ended, and returns it.
func (c *testClient) waitIndexed(tb testing.TB, path string) (source map[string]any) {
	tb.Helper()
	c.until(tb, path, "is read", func() bool {
		source = c.must(tb, 200, "GET", path, "")
		return source["status"] == "ready" || source["status"] == "error"
	})
	return source
}

// createFlow creates an active workflow; settings may be "".
func createFlow(tb testing.TB, c *testClient, nodes, edges, settings string) string {
	tb.Helper()
	return c.must(
		tb, 201, "POST", flowBase,
		`{"name":"Flow","status":"active","nodes":`+nodes+`,"edges":`+edges+`,"settings":`+cmp.Or(settings, "{}")+`}`,
	)["id"].(string)
}

// createWidget creates an active widget and returns its id and path.
func (c *testClient) createWidget(tb testing.TB, config string) (id, path string) {
	tb.Helper()
	id = c.must(
		tb,
		201,
		"POST",
		"/api/agents/default/gateways",
		`{"type":"web","name":"Shop","config":`+config+`}`,
	)["id"].(string)
	if v := c.must(tb, 200, "POST", "/api/agents/default/gateways/"+id+"/verify", ""); v["success"] != true {
		tb.Fatalf("verified %v", v)
	}
	return id, "/widget/default/" + id
}

// testServer is a service with a browser, and a site that its sessions may visit.
type testServer struct {
	*testClient
	apitest.Parts
	handler http.Handler
	site    string
}

// newTestServer starts a service without access control, with options that changes sets.
func newTestServer(tb testing.TB, changes ...func(*httpapi.Options)) *testServer {
	tb.Helper()
	return serve(tb, apitest.Open(tb), changes...)
}

// serve starts a service from its parts.
func serve(tb testing.TB, parts apitest.Parts, changes ...func(*httpapi.Options)) *testServer {
	tb.Helper()
	o := httpapi.Options{
		Parts:       httpapi.Parts(parts),
		CORSOrigins: []string{"*"},
		MaxUpload:   25 << 20,
		PublicURL:   "http://localhost",
		Version:     "test",
		Log:         slog.New(slog.DiscardHandler),
	}
	for _, change := range changes {
		change(&o)
	}
	server := httpapi.New(o)
	ts := httptest.NewServer(server.Handler())
	tb.Cleanup(func() {
		server.Stop() // sockets end with it
		ts.Close()
	})
	return &testServer{
		testClient: &testClient{ts.URL, http.Header{}},
		Parts:      parts,
		handler:    server.Handler(),
		site:       apitest.NewSite(tb),
	}
}

// openLoaded opens a session at a page of the site and waits until it has loaded.
func (ts *testServer) openLoaded(tb testing.TB, path string) *browser.Session {
	tb.Helper()
	return ts.OpenLoaded(tb, ts.site+path)
}

// withKey creates an API key and returns a client that sends it.
func (ts *testServer) withKey(tb testing.TB, role agent.Role, agents ...string) *testClient {
	tb.Helper()
	_, secret, err := ts.Folder.CreateKey(tb.Context(), agent.Key{Name: "k", Role: role, Agents: agents})
	if err != nil {
		tb.Fatal(err)
	}
	return ts.with("X-API-Key", secret)
}
