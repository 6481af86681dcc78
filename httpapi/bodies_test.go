package httpapi

import (
	"bufio"
	"fmt"
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/coder/websocket"
	"github.com/labstack/echo/v4"

	"satchel/agent"
	"satchel/httpapi/rest"
)

// newClosedServer starts a server with all parts and access control, an agent bakery, and
// an owner of it. Strangers may read the default agent.
func newClosedServer(t *testing.T) (c *proxiedServer, owner *testClient) {
	t.Helper()
	parts, proxy := openParts(t), newIdentityProxy(t)
	server := New(Options{
		Parts:       Parts(parts),
		Verifier:    proxy.Verifier,
		DefaultRole: agent.RoleViewer,
		MaxUpload:   25 << 20,
		PublicURL:   "http://localhost",
		Version:     "test",
		Log:         slog.New(slog.DiscardHandler),
	})
	ts := httptest.NewServer(server.Handler())
	t.Cleanup(ts.Close)
	c = &proxiedServer{&testClient{url: ts.URL, folder: server.folder, header: http.Header{}}, server, proxy}
	owner = c.as(t, "owner@example.com")
	owner.must(t, 201, "POST", "/api/agents", `{"name":"bakery"}`)
	return c, owner
}

// formThen is the rest of a workflow with a form whose node changes nothing.
const formThen = `{"id":"s","type":"set","data":{"values":{"a":1}}}],"edges":[{"source":"t","target":"s"}]`

// hold sends the head of a request and a part of its body, and keeps the connection open.
func hold(t *testing.T, c *testClient, path, media, length string) *bufio.Reader {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(c.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(
		conn,
		"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: %s\r\n%s\r\n\r\n",
		path, media, length,
	); err != nil {
		t.Fatal(err)
	}
	return bufio.NewReader(conn)
}

// webhookWorkflow is a workflow that a webhook starts.
const webhookWorkflow = `{"name":"h","status":"active","nodes":[{"id":"t","type":"trigger",` +
	`"data":{"event":"webhook"}}]}`

const urlencoded = "application/x-www-form-urlencoded"

// TestAdmissionComesBeforeTheBody sends heads of requests without their bodies: whoever is
// not admitted, and whatever is too large, is refused without it.
func TestAdmissionComesBeforeTheBody(t *testing.T) {
	c, owner := newClosedServer(t)
	anyone := c.testClient
	form := createForm(t, owner, contactForm+openToAll, formThen)
	signed := createForm(t, owner, contactForm+`,"auth":{"type":"hmac","secret":"s3cret"}`, formThen)
	private := createForm(t, owner, contactForm, formThen)
	agentID := strings.Split(form, "/")[2]
	hook := func(auth string) string {
		made := owner.must(
			t,
			201,
			"POST",
			"/api/agents/bakery/workflows",
			`{"name":"h","status":"active","nodes":[{"id":"t","type":"trigger","data":{"event":"webhook"`+auth+`}}]}`,
		)
		return "/api/agents/" + agentID + "/hooks/" + made["id"].(string)
	}
	const sized, chunked = "Content-Length: 4000000", "Transfer-Encoding: chunked"
	for _, test := range []struct {
		path, media, length string
		status              int
	}{
		{"/f/x/y", urlencoded, sized, 404},
		{"/f/x/y", "multipart/form-data; boundary=b", chunked, 404},
		{"/f/" + agentID + "/workflow-none", "application/json", chunked, 404},
		{signed, urlencoded, sized, 401},
		{private, "application/json", chunked, 403},
		{form, urlencoded, "Content-Length: 9000000", 413},
		{hook(""), "application/json", sized, 403},
		{hook(`,"auth":{"type":"bearer","token":"s3cret"}`), "application/json", chunked, 401},
		{hook(`,"auth":{"type":"hmac","secret":"s3cret"}`), "application/json", chunked, 401},
		{hook(`,"auth":{"type":"standard-webhooks","secret":"s3cret"}`), "application/json", chunked, 401},
		{hook(`,"auth":{"type":"none"}`), "application/json", sized, 413},
		{"/api/agents/" + agentID + "/hooks/workflow-none", "application/json", chunked, 403},
		{"/api/agents/" + agentID + "/gateways/gateway-none/webhook", "application/json", chunked, 404},
		{"/api/agents/none/gateways/gateway-none/webhook", "application/json", sized, 404},
		{"/widget/" + agentID + "/gateway-none/messages", "application/json", chunked, 404},
		{"/widget/" + agentID + "/gateway-none/messages", "multipart/form-data; boundary=b", chunked, 404},
		{"/widget/" + agentID + "/gateway-none/session", "application/json", sized, 404},
		{"/live/none/complete?token=x.y", "application/json", chunked, 401},
		{"/api/agents/default/sql/execute", "application/json", sized, 413},
		{"/api/agents/default/sources/search", "application/json", sized, 413},
		{"/mcp/default", "application/json", sized, 413},
		{"/mcp/" + agentID, "application/json", chunked, 403},
		{"/api/agents/default/contacts", "application/json", chunked, 403},
		{"/api/agents/" + agentID + "/contacts/import", "multipart/form-data; boundary=b", chunked, 403},
		{"/api/agents", "application/json", chunked, 401},
	} {
		response, err := http.ReadResponse(hold(t, anyone, test.path, test.media, test.length), nil)
		if err != nil || response.StatusCode != test.status {
			t.Errorf("%s, %s, %s: %v, %v, want %d", test.path, test.media, test.length, response, err, test.status)
		}
	}
	if used := c.server.memory.Used(); used != 0 {
		t.Errorf("%d bytes are reserved", used)
	}
}

// TestHeldConnectionsAreRefused sends parts of submissions to a form that does not exist
// over many connections that stay open.
func TestHeldConnectionsAreRefused(t *testing.T) {
	c := newTestClient(t)
	for range 400 {
		in := hold(t, c, "/f/x/y", urlencoded, "Content-Length: 4194304\r\n\r\n"+strings.Repeat("x", 1000))
		if line, err := in.ReadString('\n'); err != nil || !strings.Contains(line, " 404 ") {
			t.Fatalf("%q, %v", line, err)
		}
	}
}

// serveBody runs a request without a network, so that it has ended when it returns.
func serveBody(s *Server, method, path, media string, body io.Reader, size int64) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, body)
	r.Host, r.ContentLength = "localhost", size
	r.Header.Set("Content-Type", media)
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	return w
}

// TestSlowSubmissionOccupiesWhatItSent: a form's body is announced but hardly sent.
func TestSlowSubmissionOccupiesWhatItSent(t *testing.T) {
	c, owner := newClosedServer(t)
	form := createForm(t, owner, contactForm+openToAll, formThen)
	var used int64
	slow := io.MultiReader(strings.NewReader("email=a"), readerFunc(func([]byte) (int, error) {
		used = c.server.memory.Used()
		return 0, io.ErrUnexpectedEOF
	}))
	if w := serveBody(c.server, "POST", form, urlencoded, slow, 200_000); w.Code != 400 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if used == 0 || used > 4096 || c.server.memory.Used() != 0 {
		t.Errorf("%d bytes were reserved, and %d are", used, c.server.memory.Used())
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func textOf(t *testing.T, r io.Reader) string {
	t.Helper()
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestBodyMemoryIsReturned: nothing stays reserved however a request ends.
func TestBodyMemoryIsReturned(t *testing.T) {
	_, server := openService(t)
	server.post("/test/panic", 1<<20, func(c *rest.Call) error {
		if _, err := c.ReadBody(); err != nil {
			return err
		}
		if server.memory.Used() == 0 {
			t.Error("nothing is reserved while the body is used")
		}
		panic("a test")
	})
	form, media := multipartForm(t, nil, "contacts.csv", []byte("name\nAda\n"), nil)
	file := textOf(t, form)
	gone := iotest.ErrReader(net.ErrClosed)
	for _, test := range []struct {
		path, media, body string
		end               io.Reader
		size              int64
		status            int
	}{
		{"/api/agents/default/contacts", "application/json", `{"name":"Ada"}`, nil, 14, 201},
		{"/api/agents/default/contacts", "application/json", `{"name":"Ada"`, nil, -1, 400},
		{"/api/agents/default/contacts", "application/json", `{"name":""}`, nil, 11, 400},
		{"/api/agents/default/contacts", "application/json", `{"name":"Ada`, gone, 100_000, 400},
		{"/api/agents/default/contacts", "application/json", strings.Repeat(" ", rest.MaxBody+1), nil, -1, 413},
		{
			"/api/agents/default/sources",
			"application/json",
			`{"type":"none","name":"` + strings.Repeat("word ", 50_000) + `"}`,
			nil,
			-1,
			400,
		},
		{"/api/agents/default/sql/execute", "application/json", `{"query":"SELECT 1"}`, nil, -1, 200},
		{"/api/agents/default/sql/execute", "application/json", strings.Repeat(" ", rest.MaxOpenBody+1), nil, -1, 413},
		{"/api/agents/default/contacts/import", media, file, nil, -1, 200},
		{"/api/agents/default/contacts/import", media, file[:len(file)/2], gone, -1, 400},
		{"/mcp/default", "application/json", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, nil, -1, 400},
		{"/test/panic", "application/json", "{}", nil, 2, 500},
	} {
		var body io.Reader = strings.NewReader(test.body)
		if test.end != nil {
			body = io.MultiReader(body, test.end)
		}
		w := serveBody(server, "POST", test.path, test.media, body, test.size)
		if w.Code != test.status {
			t.Errorf("%s %.40s: %d %s", test.path, test.body, w.Code, w.Body)
		}
		if used := server.memory.Used(); used != 0 {
			t.Errorf("%s %.40s: %d bytes stay reserved", test.path, test.body, used)
		}
	}
}

// TestServerWithoutMemoryForBodies: requests with a body are asked to come back, others are
// answered.
func TestServerWithoutMemoryForBodies(t *testing.T) {
	c, owner := newClosedServer(t)
	path := createForm(t, owner, contactForm+openToAll, formThen)
	_, post, platform := owner.hooked(t, "bakery")
	made := owner.must(t, 201, "POST", "/api/agents/bakery/workflows", webhookWorkflow)
	form, media := multipartForm(t, nil, "contacts.csv", []byte("name\nAda\n"), nil)
	file := textOf(t, form)
	const full = 1 << 20
	c.server.memory = rest.NewMemory(full, time.Millisecond)
	c.server.memory.Try(netip.Prefix{}, full)
	for _, test := range []struct {
		client            *testClient
		path, media, body string
	}{
		{owner, "/api/agents", "application/json", `{"name":"a"}`},
		{owner, "/api/agents/bakery/contacts", "application/json", `{"name":"Ada"}`},
		{owner, "/api/agents/bakery/contacts/import", media, file},
		{owner, "/api/agents/bakery/hooks/" + made["id"].(string), "text/plain", "x"},
		{owner, "/api/agents/bakery/v1/chat/completions", "application/json", `{"messages":[]}`},
		{owner, "/mcp/bakery", "application/json", `{}`},
		{c.testClient, "/api/agents/default/sql/execute", "application/json", `{"query":"SELECT 1"}`},
		{c.testClient, path, urlencoded, "email=a@example.com"},
		{c.testClient, path, "application/json", `{"email":"a@example.com"}`},
		{platform, post, "application/json", `{"from":"ada","text":"Hello"}`},
	} {
		a := test.client.do(t, "POST", test.path, strings.NewReader(test.body), test.media)
		if a.StatusCode != 503 ||
			a.Header.Get("Retry-After") == "" ||
			a.json != nil && at(a.json, "error.code") != "UNAVAILABLE" && at(a.json, "error.type") == nil {
			t.Errorf("%s: %d %v %s", test.path, a.StatusCode, a.Header, a.text)
		}
	}
	owner.must(t, 200, "GET", "/api/agents/bakery", "")
	c.server.memory.Release(netip.Prefix{}, full)
	owner.must(t, 201, "POST", "/api/agents/bakery/contacts", `{"name":"Ada"}`)
	if used := c.server.memory.Used(); used != 0 {
		t.Errorf("%d bytes stay reserved", used)
	}
}

// TestStrangersLeaveMemoryToOthers: a stranger holds a connection with a large part of a
// body; the network gets no more than its share of the memory, and the owner works on.
func TestStrangersLeaveMemoryToOthers(t *testing.T) {
	c, owner := newClosedServer(t)
	path := createForm(t, owner, contactForm+openToAll, formThen)
	const limit = 4 << 20
	c.server.memory = rest.NewMemory(limit, time.Millisecond)
	part, sender := io.Pipe()
	ended := make(chan int)
	const sql = "/api/agents/default/sql/execute"
	go func() { ended <- serveBody(c.server, "POST", sql, "application/json", part, 1_000_000).Code }()
	if _, err := sender.Write(make([]byte, 1_000_000-1)); err != nil { // returns when it is read
		t.Fatal(err)
	}
	for path, media := range map[string]string{sql: "application/json", path: urlencoded} {
		if w := serveBody(
			c.server, "POST", path, media,
			strings.NewReader(strings.Repeat(" ", 150_000)),
			-1,
		); w.Code != 503 {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	if used := c.server.memory.Used(); used > limit/4 {
		t.Errorf("one network holds %d bytes", used)
	}
	owner.must(t, 201, "POST", "/api/agents/bakery/contacts", `{"name":"Ada"`+strings.Repeat(" ", 1_000_000)+`}`)
	_ = sender.CloseWithError(net.ErrClosed)
	if code := <-ended; code != 400 || c.server.memory.Used() != 0 {
		t.Errorf("%d, %d bytes stay reserved", code, c.server.memory.Used())
	}
}

// TestCompressedBodiesAreRefused: what a compressed body holds could not be limited before
// it is in memory.
func TestCompressedBodiesAreRefused(t *testing.T) {
	c, owner := newClosedServer(t)
	form := createForm(t, owner, contactForm+openToAll, formThen)
	_, post, platform := owner.hooked(t, "bakery")
	made := owner.must(t, 201, "POST", "/api/agents/bakery/workflows", webhookWorkflow)
	hook := "/api/agents/bakery/hooks/" + made["id"].(string)
	for _, test := range []struct {
		client      *testClient
		path, media string
	}{
		{owner, "/api/agents/bakery/contacts", "application/json"},
		{owner, "/api/agents/bakery/contacts/import", "multipart/form-data; boundary=b"},
		{owner, "/api/agents/bakery/v1/chat/completions", "application/json"},
		{owner, "/mcp/bakery", "application/json"},
		{owner, hook, "application/json"},
		{c.testClient, form, urlencoded},
		{platform, post, "application/json"},
	} {
		for _, encoding := range []string{"gzip", "deflate", "br"} {
			// chunked
			r, err := http.NewRequestWithContext(
				t.Context(),
				"POST",
				c.url+test.path,
				iotest.DataErrReader(strings.NewReader("\x1f\x8b\x08")),
			)
			if err != nil {
				t.Fatal(err)
			}
			r.Header = test.client.header.Clone()
			r.Header.Set("Content-Type", test.media)
			r.Header.Set("Content-Encoding", encoding)
			response, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			text := textOf(t, response.Body)
			_ = response.Body.Close()
			if response.StatusCode != 415 {
				t.Errorf("%s, %s: %d %.300s", test.path, encoding, response.StatusCode, text)
			}
		}
	}
}

// TestFormTakesWhatItsFieldsHold submits the longest valid values in each encoding.
func TestFormTakesWhatItsFieldsHold(t *testing.T) {
	c, owner := newClosedServer(t)
	form := createForm(t, owner, `"event":"form","fields":[{"name":"text","type":"long_text"}]`+openToAll, formThen)
	for name, character := range map[string]string{"Latin": "a", "Cyrillic": "ж", "emoji": "😀"} {
		text := strings.Repeat(character, 20_000)
		if a := c.submit(t, form, map[string][]string{"text": {text}}); a.StatusCode != 200 {
			t.Errorf("%s: %d %.200s", name, a.StatusCode, a.text)
		}
		if a := c.send(t, "POST", form, `{"text":`+quoted(text)+`}`); a.StatusCode != 200 {
			t.Errorf("%s as JSON: %d %.200s", name, a.StatusCode, a.text)
		}
	}
	for _, size := range []int{300_000, 1 << 20} {
		if a := c.submit(t, form, map[string][]string{"text": {strings.Repeat("a", size)}}); a.StatusCode != 413 {
			t.Errorf("%d bytes: %d", size, a.StatusCode)
		}
	}
	fields := strings.Repeat(`{"type":"long_text"},`, 9) + `{"type":"long_text"}`
	var large agent.Form
	for range strings.Count(fields, "long_text") {
		large.Fields = append(large.Fields, agent.FormField{Name: "a", Type: "long_text"})
	}
	if large.MaxBody() != 1<<20 {
		t.Errorf("a large form takes %d bytes", large.MaxBody())
	}
}

// TestSlowBodyEnds: a client that sends for ever is cut off by the time limit of requests,
// and its memory is returned.
func TestSlowBodyEnds(t *testing.T) {
	_, server := openService(t)
	server.http.ReadTimeout = 100 * time.Millisecond
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server.Start(l)
	defer server.Stop()
	c := &testClient{url: "http://" + l.Addr().String()}
	in := hold(t, c, "/api/agents/default/contacts", "application/json", "Content-Length: 500000\r\n\r\n"+`{"name":"`)
	response, err := http.ReadResponse(in, nil)
	if err != nil || response.StatusCode != 400 || server.memory.Used() != 0 {
		t.Errorf("%v, %v, %d bytes stay reserved", response, err, server.memory.Used())
	}
}

// TestSocketMessageIsCounted: a message of a WebSocket needs memory like a body.
func TestSocketMessageIsCounted(t *testing.T) {
	memory := rest.NewMemory(1<<20, time.Millisecond)
	result := make(chan error, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			result <- err
			return
		}
		defer conn.CloseNow()
		body := memory.Body(maxMessage)
		defer body.Release()
		for range 2 {
			raw, err := readMessage(r.Context(), conn, &body)
			if err == nil && memory.Used() != int64(len(raw)) {
				err = fmt.Errorf("%d bytes of %d are reserved", memory.Used(), len(raw))
			}
			result <- err
			memory.Try(netip.Prefix{}, 1<<20-int64(len(raw)))
		}
	}))
	defer server.Close()
	conn, _, err := websocket.Dial(t.Context(), server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	for i, want := range []agent.Code{"", agent.CodeUnavailable} {
		if err := conn.Write(
			t.Context(),
			websocket.MessageText,
			[]byte(strings.Repeat("x", 100+10_000*i)),
		); err != nil {
			t.Fatal(err)
		}
		if err := <-result; agent.ErrorCode(err) != want {
			t.Errorf("message %d: %v", i, err)
		}
	}
}

// TestForwardedBodiesAreCounted: what a server keeps of the bodies that it forwards is
// within the same memory, and without memory it is in files.
func TestForwardedBodiesAreCounted(t *testing.T) {
	first, second := newCluster(t)
	far := second.Own(t, "far")
	body := `{"name":"Ada","notes":"` + strings.Repeat("x", 20_000) + `"}`
	for _, limit := range []int64{1 << 20, 0} {
		first.server.memory = rest.NewMemory(limit, 0)
		first.server.forwarder.bodies = newBodies(first.folder.Path(), first.server.memory)
		path, size := "/api/agents/"+far.ID()+"/contacts", int64(len(body))
		if w := serveBody(
			first.server, "POST", path, "application/json", strings.NewReader(body), size,
		); w.Code != 201 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		kept := first.server.forwarder.bodies
		if used, filed := first.server.memory.Used(), kept.files.Load(); used != 0 || filed != 0 {
			t.Errorf("%d bytes stay reserved, %d in files", used, filed)
		}
		r := httptest.NewRequest("POST", "/", strings.NewReader(body))
		b := kept.keep(r, netip.Prefix{})
		if first.server.memory.Used() != 0 {
			t.Error("a body is read before its request is admitted")
		}
		if err := b.load(); err != nil {
			t.Fatal(err)
		}
		if used := first.server.memory.Used(); used != min(limit, int64(len(body))) ||
			kept.files.Load() != int64(len(body))-used {
			t.Errorf("%d bytes of %d are in memory and %d in files", used, len(body), kept.files.Load())
		}
		again, err := io.ReadAll(&bodyReader{body: b})
		if err != nil || string(again) != body {
			t.Errorf("%d bytes, %v", len(again), err)
		}
		b.discard()
	}
}

// TestEveryRouteHasALargestBody refuses a route that may be sent a body without a limit, and
// large bodies where strangers may send them.
func TestEveryRouteHasALargestBody(t *testing.T) {
	_, server := openService(t)
	if wrong := wrongLimits(server); len(wrong) > 0 {
		t.Errorf("%q", wrong)
	}
	for path, most := range map[string]int64{
		"/agents/{id}/sql/execute":    1 << 20,
		"/agents/{id}/sources/search": 1 << 20,
		"/agents/{id}/contacts":       10 << 20,
	} {
		for _, r := range server.table {
			if r.Path == path && r.Method == "POST" && r.MaxBody() != most {
				t.Errorf("%s takes %d bytes", path, r.MaxBody())
			}
		}
	}
	raw := func(*rest.Call) error { return nil }
	server.table = append(
		server.table,
		rest.Raw[struct{}]("POST", "/agents/{id}/a", 200, "Take text", raw).Accepts("text/plain"),
		rest.Raw[struct{}]("POST", "/agents/{id}/b", 200, "Take a large text", raw).
			Role(rest.Viewer).
			Accepts("text/plain").
			BodyUpTo(rest.MaxBody),
		rest.Raw[struct{}]("POST", "/agents/{id}/c", 200, "Take a larger text", raw).
			Accepts("text/plain").
			BodyUpTo(rest.MaxBody+1),
	)
	server.echo.PATCH("/d", func(echo.Context) error { return nil })
	if wrong := wrongLimits(server); len(wrong) != 4 {
		t.Errorf("of four routes with wrong limits, these are found: %q", wrong)
	}
}

// wrongLimits returns the routes that may be sent a body without a limit, or too large ones.
func wrongLimits(server *Server) (wrong []string) {
	for _, r := range server.table {
		most := r.MaxBody()
		reads := r.HasBody() || r.Form != nil || len(r.Accepted) > 0
		strangers := !r.OwnSecret &&
			(r.Access == rest.Anyone || r.Access == rest.Platform || r.Access.Role() == agent.RoleViewer)
		if reads != (most > 0) || most > rest.MaxBody || strangers && most > rest.MaxOpenBody {
			wrong = append(wrong, fmt.Sprintf("%s %s takes bodies of %d bytes", r.Method, r.Path, most))
		}
	}
	without := []string{http.MethodGet, http.MethodHead, echo.RouteNotFound}
	for _, r := range server.echo.Routes() {
		key := routeKey{r.Method, r.Path}
		if _, isPage := server.posts[key]; !slices.Contains(without, r.Method) && server.routes[key] == nil && !isPage {
			wrong = append(wrong, fmt.Sprintf("%s %s has no largest body", r.Method, r.Path))
		}
	}
	return wrong
}

// TestBodiesAreReadInOnePlace looks for code that reads bodies of requests other than
// through rest.Call, outside the files that implement it.
func TestBodiesAreReadInOnePlace(t *testing.T) {
	own := map[string]bool{
		"rest/body.go":      true,
		"rest/multipart.go": true,
		"request_body.go":   true,
		"forward_body.go":   true,
		"forwarder.go":      true,
		"mcp.go":            true,
	} // mcp.go sets a body that was read
	found := map[string]bool{}
	for _, pattern := range []string{"*.go", "rest/*.go", "auth/*.go"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			for _, use := range bodyReads(t, name) {
				if found[name] = true; !own[name] {
					t.Errorf("%s reads a request's body by %s; use rest.Call.ReadBody", name, use)
				}
			}
		}
	}
	if !maps.Equal(found, own) {
		t.Errorf("bodies are read in %v", slices.Sorted(maps.Keys(found)))
	}
	if uses := bodyReads(t, "testdata/reads_bodies.go"); len(uses) != 6 {
		t.Errorf("of six ways to read a body, these are found: %v", uses)
	}
}

// bodyReads returns the expressions of a file that reach the body of a request: fields
// named Body of what is a request by its type or its assignment, and the methods of
// net/http and echo that read it.
func bodyReads(t *testing.T, name string) (uses []string) {
	t.Helper()
	source, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	file, err := parser.ParseFile(gotoken.NewFileSet(), name, source, 0)
	if err != nil {
		t.Fatal(err)
	}
	requests := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field: // a parameter or a field
			if pointer, ok := n.Type.(*ast.StarExpr); ok && isSelector(pointer.X, "Request") {
				for _, id := range n.Names {
					requests[id.Name] = true
				}
			}
		case *ast.AssignStmt:
			if len(n.Rhs) == 1 && makesRequest(n.Rhs[0]) {
				if id, ok := n.Lhs[0].(*ast.Ident); ok {
					requests[id.Name] = true
				}
			}
		}
		return true
	})
	readers := []string{
		"MultipartReader", "ParseForm", "ParseMultipartForm", "FormFile", "FormValue", "PostFormValue", "PostForm",
		"FormParams", "MultipartForm",
	}
	ast.Inspect(file, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		id, isName := s.X.(*ast.Ident)
		field, isField := s.X.(*ast.SelectorExpr)
		body := s.Sel.Name == "Body" &&
			(isName && requests[id.Name] || isField && requests[field.Sel.Name] || makesRequest(s.X))
		if body || slices.Contains(readers, s.Sel.Name) {
			uses = append(uses, s.Sel.Name)
		}
		return true
	})
	return uses
}

func isSelector(e ast.Expr, name string) bool {
	s, ok := e.(*ast.SelectorExpr)
	return ok && s.Sel.Name == name
}

// makesRequest reports whether an expression is a call such as c.Request() or
// c.Request().WithContext(ctx).
func makesRequest(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	return ok && (isSelector(call.Fun, "Request") || isSelector(call.Fun, "WithContext"))
}

// TestManyValuesNeedMemory: the values of a body need more memory than its text, so a body
// of many values is refused before it is decoded. Characters in strings are no values.
func TestManyValuesNeedMemory(t *testing.T) {
	c, owner := newClosedServer(t)
	made := owner.must(t, 201, "POST", "/api/agents/bakery/workflows", webhookWorkflow)
	hook, sql, chat :=
		"/api/agents/bakery/hooks/"+made["id"].(string), "/api/agents/default/sql/execute",
		"/api/agents/bakery/v1/chat/completions"
	const media = "application/json"
	many := func(value string, n int) string { return strings.Repeat(value+",", n) + value }
	for _, test := range []struct {
		client            *testClient
		path, media, body string
		want              int
	}{
		{c.testClient, sql, media, `{"query":"SELECT 1","params":[` + many("{}", 30_000) + `]}`, 413},
		{c.testClient, sql, media, `{"query":"SELECT '` + many(`{}\"`, 100_000) + `'"}`, 400}, // \" is no quote in SQL
		{c.testClient, sql, media, `{"query":"SELECT ?","params":["` + many("[", 100_000) + `"]}`, 200},
		{owner, hook, urlencoded, "a" + strings.Repeat("&a", 110_000), 413},
		{owner, hook, media + "; charset=utf-8", "[" + many("[]", 60_000) + "]", 413},
		{owner, hook, "text/plain", many("[]", 60_000), 200},
		{
			owner,
			"/api/agents/bakery/contacts",
			media,
			`{"name":"a","metadata":{"a":[` + many("1", 600_000) + `]}}`,
			413,
		},
		{owner, "/api/agents/bakery/contacts", media, `{"name":"a","tags":[` + many(`"a"`, 100_000) + `]}`, 201},
		{owner, chat, media, `{"messages":[` + many(`{}`, 300_000) + `]}`, 413},
		{owner, "/mcp/bakery", media, "[" + many(`{}`, 200_000) + "]", 413},
	} {
		a := test.client.do(t, "POST", test.path, strings.NewReader(test.body), test.media)
		if a.StatusCode != test.want {
			t.Errorf("%s, %.40s: %d %.200s, want %d", test.path, test.body, a.StatusCode, a.text, test.want)
		}
	}
	c.server.memory = rest.NewMemory(2<<20, 0)
	body := `{"name":"a","tags":[` + many(`"a"`, 50_000) + `]}`
	if a := owner.send(t, "POST", "/api/agents/bakery/contacts", body); a.StatusCode != 503 ||
		c.server.memory.Used() != 0 {
		t.Errorf("values without memory: %d %.200s", a.StatusCode, a.text)
	}
}
