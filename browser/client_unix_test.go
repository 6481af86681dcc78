//go:build unix

package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"satchel/agent"
)

// rawClient is a client of the DevTools protocol, controlled by a test.
type rawClient struct {
	t      *testing.T
	client *Client
	id     int
	page   string // its session with the page
	events []event
}

type event struct {
	ID        int
	Method    string
	SessionID string
	Params    map[string]any
	Result    map[string]any
	Error     *struct{ Message string }
}

// connectRaw connects a client and attaches it to the session's tab.
func connectRaw(t *testing.T, s *Session) *rawClient {
	t.Helper()
	client, err := s.ConnectCDP(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	c := &rawClient{t: t, client: client}
	c.must("Target.setAutoAttach", `{"autoAttach":true,"waitForDebuggerOnStart":false,"flatten":true}`)
	at := c.await(func(e event) bool { return e.Method == "Target.attachedToTarget" })
	c.page, _ = at.Params["sessionId"].(string)
	return c
}

// next reads a message.
func (c *rawClient) next() event {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	raw, err := c.client.Next(ctx)
	if err != nil {
		c.t.Fatal(err)
	}
	var e event
	if err := json.Unmarshal(raw, &e); err != nil {
		c.t.Fatalf("%s: %v", raw, err)
	}
	return e
}

// await returns the first matching event, of those received before or later.
func (c *rawClient) await(match func(event) bool) event {
	c.t.Helper()
	for i, e := range c.events {
		if match(e) {
			c.events = append(c.events[:i:i], c.events[i+1:]...)
			return e
		}
	}
	for {
		if e := c.next(); match(e) {
			return e
		} else if e.Method != "" {
			c.events = append(c.events, e)
		}
	}
}

func (c *rawClient) send(session, method, params string) int {
	c.t.Helper()
	c.id++
	frame := fmt.Sprintf(`{"id":%d,"method":%q,"params":%s`, c.id, method, params)
	if session != "" {
		frame += fmt.Sprintf(`,"sessionId":%q`, session)
	}
	if err := c.client.Send([]byte(frame + "}")); err != nil {
		c.t.Fatal(err)
	}
	return c.id
}

// call sends a command to the tab and returns its answer.
func (c *rawClient) call(method, params string) event {
	c.t.Helper()
	id := c.send(c.page, method, params)
	return c.await(func(e event) bool { return e.ID == id })
}

// must is like call, but fails the test if the command fails.
func (c *rawClient) must(method, params string) map[string]any {
	c.t.Helper()
	e := c.call(method, params)
	if e.Error != nil {
		c.t.Fatalf("%s: %s", method, e.Error.Message)
	}
	return e.Result
}

// eval returns the value of an expression in the tab, or a message.
func (c *rawClient) eval(expression string) any {
	c.t.Helper()
	got := c.must("Runtime.evaluate", `{"awaitPromise":true,"returnByValue":true,"expression":`+quoted(expression)+`}`)
	value, _ := got["result"].(map[string]any)
	return value["value"]
}

// A client of the DevTools protocol, the API and a person use one session.
func TestClientOfTheDevToolsProtocol(t *testing.T) {
	t.Parallel()
	b, db := newBrowser(t, func(o *Options) { o.CDP = 2 })
	secret, hits := newForbiddenServer(t)
	site := serveSite(t, map[string]string{
		"/":      `<title>Shop</title><h1>Bread</h1>`,
		"/frame": `<iframe src="about:blank"></iframe>`,
	})
	s := openIn(t, b, db, agent.SessionOptions{CDP: true})
	c := connectRaw(t, s)
	processes, folder := append(processTree(t, s.chromium), s.chromium.folder.pid(driverName)), s.chromium.folder

	parent := t
	run := func(name string, test func(t *testing.T)) {
		t.Run(name, func(t *testing.T) {
			c.t = t
			test(t)
		})
	}
	run("client and API act on one page", func(t *testing.T) {
		c.must("Page.enable", `{}`)
		c.must("Page.navigate", `{"url":"`+site+`/"}`)
		s.waitFor(t, "the page", func() bool { return s.ActivePage().Title() == "Shop" })
		must(t, s, `{"action":"evaluate","script":"document.title='Ours'"}`)
		if got := c.eval("document.title"); got != "Ours" {
			t.Errorf("the client sees the title %v", got)
		}
	})
	run("the client sees no other session", func(t *testing.T) {
		other, err := s.chromium.browser.NewContext()
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		if _, err := other.NewPage(); err != nil {
			t.Fatal(err)
		}
		targets, _ := c.must("Target.getTargets", `{}`)["targetInfos"].([]any)
		if len(targets) == 0 {
			t.Error("the client sees no target")
		}
		for _, one := range targets {
			if info, _ := one.(map[string]any); info["browserContextId"] != s.contextID {
				t.Errorf("the client sees %v", info)
			}
		}
		for _, e := range c.events {
			if info, _ := e.Params["targetInfo"].(map[string]any); info != nil &&
				info["browserContextId"] != s.contextID {
				t.Errorf("the client receives %v", e)
			}
		}
	})
	run("the client reaches only what pages reach", func(t *testing.T) { checkReach(t, c, site, secret, hits.Load) })
	run("the client answers dialogs", func(t *testing.T) {
		id := c.send(c.page, "Runtime.evaluate", `{"expression":"prompt('Who?')"}`)
		c.await(func(e event) bool { return e.Method == "Page.javascriptDialogOpening" })
		c.must("Page.handleJavaScriptDialog", `{"accept":true,"promptText":"Ada"}`)
		e := c.await(func(e event) bool { return e.ID == id })
		if got, _ := e.Result["result"].(map[string]any); got["value"] != "Ada" {
			t.Errorf("the prompt gave %v", e)
		}
	})
	run("commands wait during a takeover", func(t *testing.T) {
		if err := s.Takeover(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		id := c.send(c.page, "Runtime.evaluate", `{"expression":"document.title='client'"}`)
		c.must("Debugger.disable", `{}`) // which resumes a page, is answered during the takeover
		c.client.mu.Lock()
		if held := len(c.client.queued); held != 1 {
			t.Errorf("%d commands are queued", held)
		}
		c.client.mu.Unlock()
		if err := s.Takeover(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		c.await(func(e event) bool { return e.ID == id })
		if got := c.eval("document.title"); got != "client" {
			t.Errorf("the title is %v", got)
		}
	})
	run("one client at a time", func(t *testing.T) {
		if _, err := s.ConnectCDP(t.Context()); agent.ErrorCode(err) != agent.CodeConflict {
			t.Errorf("a second client: %v", err)
		}
		// the session answers the dialog when the client has disconnected
		id := c.send(c.page, "Runtime.evaluate", `{"expression":"alert('left')"}`)
		c.await(func(e event) bool { return e.Method == "Page.javascriptDialogOpening" })
		c.client.Close()
		for { // messages received before Close are returned first
			if _, err := c.client.Next(t.Context()); errors.Is(err, ErrClientLost) {
				break
			} else if err != nil {
				t.Fatalf("after command %d: %v", id, err)
			}
		}
		must(t, s, `{"action":"evaluate","script":"1"}`)
		c = connectRaw(parent, s)
		c.t = t
		if got := c.eval("document.title"); got != "client" {
			t.Errorf("the next client sees the title %v", got)
		}
	})
	run("the client closes the session", func(t *testing.T) {
		c.page = ""
		c.must("Browser.close", `{}`)
		<-s.Done()
		s.end("")
		if row, err := b.Describe(t.Context(), db, s.ID()); err != nil || row.Status != agent.SessionClosed {
			t.Errorf("got %+v, %v", row, err)
		}
		for {
			if _, err := c.client.Next(t.Context()); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
		<-s.chromium.cleaned
		for _, pid := range processes {
			waitExit(t, pid)
		}
		if _, err := os.Stat(folder.path); !os.IsNotExist(err) {
			t.Errorf("%s still exists: %v", folder.path, err)
		}
	})
}

// checkReach checks that files and blocked addresses cannot be reached.
func checkReach(t *testing.T, c *rawClient, site, secret string, hits func() int64) {
	for _, url := range []string{
		"file:///etc/passwd",
		"chrome://version",
		"view-source:" + site,
		"http://169.254.169.254/",
		"devtools://devtools/bundled/inspector.html",
		secret,
	} {
		for _, method := range []string{"Page.navigate", "Target.createTarget"} {
			if e := c.call(method, `{"url":"`+url+`"}`); e.Error == nil {
				t.Errorf("%s to %s: %v", method, url, e.Result)
			}
		}
	}
	c.must("Page.navigate", `{"url":"`+site+`/frame"}`)
	c.await(func(e event) bool {
		return e.Method == "Page.frameNavigated" && strings.Contains(fmt.Sprint(e.Params), site+"/frame")
	})
	for name, script := range map[string]string{
		"fetch":  `fetch("` + secret + `").then(r => r.ok, () => false)`,
		"file":   `fetch("file:///etc/passwd").then(() => true, () => false)`,
		"window": `(open("file:///etc/passwd"), false)`,
	} {
		if got := c.eval(script); got != false {
			t.Errorf("%s: %v", name, got)
		}
	}
	// An isolated world that the client creates with universal access.
	tree, _ := c.must("Page.getFrameTree", `{}`)["frameTree"].(map[string]any)
	frame, _ := tree["frame"].(map[string]any)
	world := c.must(
		"Page.createIsolatedWorld",
		`{"frameId":"`+fmt.Sprint(frame["id"])+`","worldName":"x","grantUniveralAccess":true}`,
	)
	read := `new Promise(done => { const f = document.createElement("iframe"); f.onload = () => { try { ` +
		`done(f.contentDocument.body.innerText) } catch (e) { done("" + e) } }; f.src = "file:///etc/passwd"; ` +
		`document.body.append(f); setTimeout(() => done("no load"), 500) })`
	for _, expression := range []string{read, `fetch("file:///etc/passwd").then(r => r.text(), e => "" + e)`} {
		got := c.must(
			"Runtime.evaluate",
			fmt.Sprintf(
				`{"awaitPromise":true,"returnByValue":true,"contextId":%v,"expression":%s}`,
				world["executionContextId"],
				quoted(expression),
			),
		)
		if strings.Contains(fmt.Sprint(got), "root:") {
			t.Errorf("an isolated world reads a file: %v", got)
		}
	}
	if n := hits(); n != 0 {
		t.Errorf("%d requests reached the blocked address", n)
	}
}

func TestClientsAreLimited(t *testing.T) {
	t.Parallel()
	none, db := newBrowser(t, nil)
	if _, err := none.Create(
		t.Context(),
		db,
		agent.SessionOptions{CDP: true},
	); agent.ErrorCode(err) != agent.CodeValidation {
		t.Errorf("without CDP enabled: %v", err)
	}
	b, db := newBrowser(t, func(o *Options) { o.CDP = 1 })
	s := openIn(t, b, db, agent.SessionOptions{CDP: true})
	if _, err := b.Create(
		t.Context(),
		db,
		agent.SessionOptions{CDP: true},
	); agent.ErrorCode(err) != agent.CodeRateLimited {
		t.Errorf("one session more than allowed: %v", err)
	}
	if !s.IsShared() {
		t.Error("the session is not for clients")
	}
	c := connectRaw(t, s)
	if err := unix.Kill(s.chromium.folder.pid(chromiumName), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-s.Done()
	s.end("")
	for {
		if _, err := c.client.Next(t.Context()); err != nil {
			break
		}
	}
	row, err := b.Describe(t.Context(), db, s.ID())
	if err != nil || row.Status != agent.SessionFailed {
		t.Errorf("got %+v, %v", row, err)
	}
	<-s.chromium.cleaned
	openIn(t, b, db, agent.SessionOptions{CDP: true}) // its slot is free
}

// A client that connects while the previous one is leaving waits for that.
func TestClientConnectsAgainAtOnce(t *testing.T) {
	t.Parallel()
	b, db := newBrowser(t, func(o *Options) { o.CDP = 1 })
	s := openIn(t, b, db, agent.SessionOptions{CDP: true})
	first, err := s.ConnectCDP(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	connected := make(chan error, 1)
	go func() {
		second, err := s.ConnectCDP(t.Context())
		if err == nil {
			defer second.Close()
		}
		connected <- err
	}()
	first.Close()
	if err := <-connected; err != nil {
		t.Error(err)
	}
}
