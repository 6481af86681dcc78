package flow

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"satchel/agent"
	"satchel/store"
)

// requestTakeover inserts a session with a pending takeover and returns its link.
func requestTakeover(t *testing.T, folder *store.Folder, db *store.DB) (made agent.Takeover, link string) {
	t.Helper()
	folder.Links().Serve("http://satchel.test")
	now := agent.Now()
	session := agent.Session{
		ID:           agent.NewID(agent.KindSession),
		Status:       agent.SessionActive,
		Viewport:     agent.DefaultViewport,
		CreatedAt:    now,
		LastActivity: now,
	}
	if err := db.CreateSession(t.Context(), session); err != nil {
		t.Fatal(err)
	}
	wanted := agent.Takeover{
		ID:        agent.NewID(agent.KindTakeover),
		SessionID: session.ID,
		Timeout:   60,
		CreatedAt: now,
		ExpiresAt: agent.At(now.Add(time.Minute)),
	}
	made, err := db.CreateTakeover(t.Context(), wanted)
	if err != nil {
		t.Fatal(err)
	}
	return made, folder.Links().Takeover(&made)
}

// TestLinksBySource sends a reference to a takeover from executions with all kinds of
// triggers. Those that a stranger may have written send the reference itself.
func TestLinksBySource(t *testing.T) {
	sent := make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		sent <- r.Header.Get("X-Link") + " " + string(raw)
		_, _ = w.Write(append([]byte(r.Header.Get("X-Link")+" "), raw...))
	}))
	t.Cleanup(server.Close)
	folder, e := openAt(t, t.TempDir())
	db := folder.Default()
	made, link := requestTakeover(t, folder, db)
	other, err := folder.CreateAgent(t.Context(), agent.Agent{Name: "other"}, "")
	if err != nil {
		t.Fatal(err)
	}
	reference := "satchel-link:" + made.ID
	node := `{"url":"` + server.URL + `","method":"POST","headers":{"X-Link":"{{trigger.link}}"},` +
		`"body_type":"text","body":"{{trigger.link}}"}`
	sender := createWorkflowWith(t, db, e, "t trigger {\"event\":\"webhook\"}\nh http-request "+node+"\nt -> h", many)
	parent := createWorkflowWith(t, db, e, `t trigger
		w workflow {"workflow_id":"`+sender.ID+`","input":{"link":"{{trigger.link}}"}}
		t -> w`, many)
	run := func(in *store.DB, w agent.Workflow, trigger, input string, hook bool) (agent.Execution, string) {
		t.Helper()
		s, err := e.Execute(t.Context(), in, Request{
			WorkflowID: w.ID,
			Input:      json.RawMessage(input),
			Trigger:    trigger,
			Wait:       time.Minute,
			Incoming:   hook,
		})
		if err != nil {
			t.Fatal(err)
		}
		x, err := e.Await(t.Context(), in, s.Execution.ID)
		stored := string(x.Input) + string(x.Output)
		if err != nil || x.Status != agent.ExecutionComplete || strings.Contains(stored, "token=") {
			t.Errorf("%s: %s %s %s %v", trigger, x.Status, x.Input, x.Output, err)
		}
		return x, <-sent
	}
	input := `{"link":"` + reference + `"}`
	for trigger, fills := range map[string]bool{
		"manual": true, "schedule": true, "calendar": true, agent.EventTakeoverRequested: true,
		agent.EventMessageReceived: false, "form": false, "gateway.event": false, "contact.created": false,
		"workflow": false, "anything": false,
	} {
		want := reference + " " + reference
		if fills {
			want = link + " " + link
		}
		x, got := run(db, sender, trigger, input, false)
		if got != want {
			t.Errorf("%s sends %s, want %s", trigger, got, want)
		}
		if _, got := run(db, parent, trigger, input, false); got != want {
			t.Errorf("a workflow started by %s sends %s", trigger, got)
		}
		if _, err := e.Retry(t.Context(), db, x.ID, "t"); err != nil {
			t.Fatal(err)
		}
		if got := <-sent; got != want {
			t.Errorf("the retry of %s sends %s", trigger, got)
		}
	}
	for input, want := range map[string]string{
		`{"link":"` + link + `"}`:                                 link,
		`{"link":"` + reference + `"}`:                            "satchel_link:" + made.ID,
		`{"link":"satchel\u002dlin\u006b:` + made.ID + `"}`:       "satchel_link:" + made.ID,
		`{"link":"Call \u00e9","satchel-link:` + made.ID + `":1}`: "Call é",
	} {
		if _, got := run(db, sender, "webhook", input, true); !strings.HasSuffix(got, " "+want) {
			t.Errorf("a hook with %s sends %s, want %s", input, got, want)
		}
	}
	foreign := createWorkflow(t, other, e, "t trigger\nh http-request "+node+"\nt -> h")
	if _, got := run(other, foreign, "manual", input, false); got != reference+" "+reference {
		t.Errorf("another agent sends %s", got)
	}
}
