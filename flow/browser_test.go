package flow

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"satchel/agent"
	"satchel/browser"
	"satchel/browser/install/installtest"
	"satchel/browser/live"
	"satchel/store"
)

// openWithBrowser starts an engine with a browser.
func openWithBrowser(t *testing.T) (*store.DB, *Engine, *browser.Browser) {
	t.Helper()
	p := installtest.Need(t)
	folder, e := openAt(t, t.TempDir())
	b := browser.New(browser.Options{
		Env: store.Env{Folder: folder, Allow: loopback, Log: slog.New(slog.DiscardHandler)},
		Find: func(context.Context) (browser.Program, error) {
			return browser.Program{Chromium: p.Chromium, Driver: p.Driver, Environment: os.Environ()}, nil
		},
	})
	if err := b.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Stop)
	l := live.New(live.Options{Browser: b, PublicURL: "http://127.0.0.1:1", Log: slog.New(slog.DiscardHandler)})
	if err := l.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Stop)
	e.Browse(b, l)
	return folder.Default(), e, b
}

// startShop serves a site with a form handled by scripts.
func startShop(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, `<!doctype html><title>Shop</title><input id=name><select id=size><option>small<option>large</select>
			<button id=order onclick="said.textContent = name_() + ' wants ' + size.value; document.title = 'Ordered'">Order</button><p id=said></p>
			<script>const said = document.getElementById("said"), size = document.getElementById("size"), name_ = () => document.getElementById("name").value</script>`)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// eventually waits until a condition holds, for at most a minute.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick, limit := time.NewTicker(5*time.Millisecond), time.After(time.Minute)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("timed out waiting for %s", what)
		}
	}
}

// noSessions waits until an agent has no session left: the execution that owned
// it has ended.
func noSessions(t *testing.T, db *store.DB, b *browser.Browser) {
	t.Helper()
	eventually(t, "the end of all sessions", func() bool {
		list, _, err := b.List(t.Context(), db, store.Page{Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		return !slices.ContainsFunc(list, func(s agent.Session) bool {
			return !s.Status.Ended() || b.Find(s.ID) != nil
		})
	})
}

func TestBrowserNodes(t *testing.T) {
	db, e, b := openWithBrowser(t)
	x := execute(t, db, e, createWorkflow(t, db, e, `t trigger
		n navigate {"url":"{{shop}}"}
		y type {"selector":"#name","text":"{{who}}","clear":true}
		z select {"selector":"#size","value":"large"}
		w wait-for {"selector":"#order","timeout":"{{limit}}"}
		c click {"selector":"#order"}
		x extract {"selector":"#said","attribute":"text"}
		v evaluate {"script":"args.a + document.title.length","args":{"a":1}}
		p press {"selector":"#name","key":"End"}
		r scroll {"direction":"down","amount":10}
		i screenshot {"selector":"#order"}
		s set {"values":{"said":"{{nodes.x.value}}","n":"{{nodes.v.value}}","first":"{{nodes.n.title}}","then":"{{nodes.c.title}}","status":"{{nodes.n.status}}","session":"{{nodes.n.session_id}}","size":"{{nodes.z.values}}","image":"{{nodes.i.image}}"}}
		t -> n
		n -> y
		y -> z
		z -> w
		w -> c
		c -> x
		x -> v
		v -> p
		p -> r
		r -> i
		i -> s`), string(mustJSON(map[string]any{"shop": startShop(t), "who": "Ada", "limit": "5000"})))
	var out struct {
		Said, First, Then, Session, Image string
		N, Status                         float64
		Size                              []string
	}
	if err := json.Unmarshal(x.Execution.Output, &out); err != nil || x.Execution.Status != agent.ExecutionComplete {
		t.Fatalf("%+v: %v\n%s", x.Execution.Error, err, x.Execution.Output)
	}
	if out.Said != "Ada wants large" ||
		out.N != 8 ||
		out.First != "Shop" ||
		out.Then != "Ordered" ||
		out.Status != 200 ||
		len(out.Size) != 1 ||
		!strings.HasPrefix(out.Image, "data:image/png;base64,") {
		t.Errorf("got %.600s", x.Execution.Output)
	}
	noSessions(t, db, b)
	if _, err := b.Session(db, out.Session); agent.ErrorCode(err) != agent.CodeNotFound {
		t.Errorf("the session is still open: %v", err)
	}
}

// TestBrowserNodesShareASession: branches of an execution share one session,
// and a branch that names another session uses that.
func TestBrowserNodesShareASession(t *testing.T) {
	db, e, b := openWithBrowser(t)
	other, err := b.Create(t.Context(), db, agent.SessionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	x := execute(t, db, e, createWorkflow(t, db, e, `t trigger
		a navigate {"url":"{{shop}}"}
		b navigate {"url":"{{shop}}"}
		c navigate {"url":"{{shop}}","session_id":"{{other}}"}
		s set {"values":{"a":"{{nodes.a.session_id}}","b":"{{nodes.b.session_id}}","c":"{{nodes.c.session_id}}"}}
		t -> a
		t -> b
		t -> c
		a -> s
		b -> s
		c -> s`), string(mustJSON(map[string]any{"shop": startShop(t), "other": other.ID})))
	var out struct{ A, B, C string }
	_ = json.Unmarshal(x.Execution.Output, &out)
	if out.A == "" || out.A != out.B || out.C != other.ID || out.A == out.C {
		t.Errorf("%+v: %s", x.Execution.Error, x.Execution.Output)
	}
	if err := b.Delete(t.Context(), db, other.ID); err != nil {
		t.Errorf("the named session ended with the execution: %v", err)
	}
	noSessions(t, db, b)
}

// TestBrowserSessionEndsWithExecution: a suspended execution keeps its session,
// a terminated one does not.
func TestBrowserSessionEndsWithExecution(t *testing.T) {
	db, e, b := openWithBrowser(t)
	id := startWorkflow(t, db, e, createWorkflow(t, db, e, `t trigger
		n navigate {"url":"{{shop}}"}
		w wait {"event":"x.y","timeout":600}
		t -> n
		n -> w`), string(mustJSON(map[string]any{"shop": startShop(t)})))
	waitReleased(e, db, id)
	if _, total, err := b.List(t.Context(), db, store.Page{Limit: 10}); err != nil || total != 1 {
		t.Fatalf("%d sessions are open, %v", total, err)
	}
	if _, err := e.Terminate(t.Context(), db, id); err != nil {
		t.Fatal(err)
	}
	noSessions(t, db, b)
}

func TestBrowserNodesFail(t *testing.T) {
	db, e, b := openWithBrowser(t)
	for _, c := range []struct {
		name, graph string
		code        agent.Code
		says        string
	}{
		{"no session", `a click {"selector":"#x"}`, agent.CodeConflict, "open one with a navigate node"},
		{
			"unknown session",
			`a click {"selector":"#x","session_id":"session-00000000000000000000"}`,
			agent.CodeValidation,
			"session_id",
		},
		{"private address", `a navigate {"url":"http://10.0.0.1/"}`, agent.CodeInvalidAction, "url"},
		{"a file", `a navigate {"url":"file:///etc/passwd"}`, agent.CodeInvalidAction, "url"},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := execute(t, db, e, createWorkflow(t, db, e, "t trigger\n"+c.graph+"\nt -> a"), "{}").Execution
			if x.Error == nil ||
				x.Error.Code != string(c.code) ||
				x.Error.NodeID != "a" ||
				!strings.Contains(x.Error.Message, c.says) {
				t.Errorf("got %s %+v", x.Status, x.Error)
			}
		})
	}
	noSessions(t, db, b)
	w := agent.Workflow{Name: "Test", Status: agent.WorkflowActive, Settings: agent.DefaultWorkflowSettings()}
	w.Nodes, w.Edges = parseGraph("t trigger\na wait-for {\"selector\":\"#x\",\"state\":\"gone\"}\nt -> a")
	if err := e.Check(w); agent.ErrorCode(err) != agent.CodeValidation || !strings.Contains(err.Error(), "state") {
		t.Errorf("an unknown state: %v", err)
	}
}

// requestedTakeover returns the takeover that an execution requested.
func requestedTakeover(t *testing.T, db *store.DB) agent.Takeover {
	t.Helper()
	events, err := db.Events(t.Context(), 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	var data struct{ Takeover agent.Takeover }
	for _, ev := range events {
		if ev.Type == agent.EventTakeoverRequested {
			if err := json.Unmarshal(ev.Data, &data); err != nil {
				t.Fatal(err)
			}
		}
	}
	return data.Takeover
}

// TestApprovalByTakeover: an approval with a session stays suspended until a
// person has taken over the session and handed it back; then the execution
// continues in it.
func TestApprovalByTakeover(t *testing.T) {
	for _, c := range []struct{ name, output string }{
		{"given back", `{"decision":"approved","then":"Ordered"}`},
		{"decided by the API", `{"decision":"rejected","then":""}`},
		{"no takeover", `{"decision":"timeout","then":""}`},
		{"cancelled", `{"decision":"timeout","then":""}`},
		{"session closed", `{"decision":"timeout","then":""}`},
		{"session lost", `{"decision":"timeout","then":""}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			db, e, b := openWithBrowser(t)
			timeout := 600
			if c.name == "no takeover" {
				timeout = 1
			}
			id := startWorkflow(t, db, e, createWorkflow(t, db, e, fmt.Sprintf(`t trigger
				n navigate {"url":"{{shop}}"}
				a approval {"title":"Sign in","session_id":"{{nodes.n.session_id}}","timeout":%d}
				c click {"selector":"#order"}
				s set {"values":{"decision":"{{nodes.a.decision}}","then":"{{nodes.c.title}}"}}
				t -> n
				n -> a
				a -> c
				c -> s
				a:rejected -> s
				a:timeout -> s`, timeout)), string(mustJSON(map[string]any{"shop": startShop(t)})))
			waitReleased(e, db, id)
			takeover := requestedTakeover(t, db)
			s, err := b.Session(db, takeover.SessionID)
			if err != nil && c.name != "no takeover" || takeover.Reason != "Sign in" { // it may have expired by now
				t.Fatalf("%+v: %v", takeover, err)
			}
			l := e.browsing.live
			switch c.name {
			case "given back":
				if _, err := l.MoveTakeover(t.Context(), s, takeover.ID, agent.TakeoverActive); err != nil {
					t.Fatal(err)
				}
				if _, err := s.Do(
					t.Context(),
					agent.Action{Action: "reload"},
				); agent.ErrorCode(err) != agent.CodeInvalidAction {
					t.Errorf("an action during a takeover: %v", err)
				}
				if _, err := l.MoveTakeover(t.Context(), s, takeover.ID, agent.TakeoverCompleted); err != nil {
					t.Fatal(err)
				}
			case "decided by the API":
				if _, err := e.Resume(t.Context(), db, id, Answer{
					NodeID: "a",
					Data:   json.RawMessage(`{"decision":"rejected"}`),
				}); err != nil {
					t.Fatal(err)
				}
				if current, err := l.Takeover(t.Context(), s, takeover.ID); err == nil && current.Status.Open() {
					t.Errorf("the takeover is %s", current.Status)
				}
			case "cancelled":
				if _, err := l.MoveTakeover(t.Context(), s, takeover.ID, agent.TakeoverCancelled); err != nil {
					t.Fatal(err)
				}
			case "session closed":
				if err := b.Delete(t.Context(), db, s.ID()); err != nil && agent.ErrorCode(err) != agent.CodeNotFound {
					t.Fatal(err) // the execution, which continues, may have deleted it
				}
			case "session lost": // as the start after a kill does, before the engine starts
				if err := db.EndLostSessions(t.Context(), func(string) bool { return false }, "killed"); err != nil {
					t.Fatal(err)
				}
			}
			deliverEvents(t, db, e, id)
			x, story := waitForEnd(t, db, e, id)
			if string(x.Output) != c.output {
				t.Errorf("%s: %s\n%s", x.Status, x.Output, story)
			}
			noSessions(t, db, b)
		})
	}
}

// deliverEvents delivers the events of an agent to the engine, as the
// dispatcher does, until an execution has ended or no longer waits.
func deliverEvents(t *testing.T, db *store.DB, e *Engine, id string) {
	t.Helper()
	after := int64(0)
	eventually(t, "the end of the wait", func() bool {
		events, err := db.Events(t.Context(), after, 100)
		if err != nil {
			t.Fatal(err)
		}
		if len(events) > 0 {
			after = events[len(events)-1].Seq
			if _, err := e.OnEvents(t.Context(), db, events); err != nil {
				t.Fatal(err)
			}
		}
		waits, err := db.ExecutionWaits(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return len(waits) == 0
	})
}
