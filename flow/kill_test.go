package flow

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"satchel/agent"
	"satchel/agent/egress"
	"satchel/agent/script"
	"satchel/store"
)

// The environment of the program that is killed.
const (
	victimFolder = "SATCHEL_TEST_FLOW_FOLDER"
	victimURL    = "SATCHEL_TEST_FLOW_URL"
	victimGraph  = "SATCHEL_TEST_FLOW_GRAPH"
)

// twelve is a flow of twelve nodes with a branch, a loop, a wait, code and
// calls to another service.
const twelve = `t trigger
	prep set {"values":{"list":["a","b","c"],"who":"{{name}}"}}
	if if-else {"conditions":[{"left":"{{nodes.prep.who}}","operator":"equals","right":"Ada"}]}
	no set {"values":{"never":true}}
	fetch http-request {"url":"URL/fetch"}
	l loop {"items":"{{nodes.prep.list}}"}
	step code {"code":"return {text: item + index}"}
	call http-request {"url":"URL/call","method":"POST","body":{"text":"{{nodes.step.text}}"}}
	pause wait {"duration":0.3}
	after http-request {"url":"URL/after"}
	s switch {"value":"{{nodes.l.count}}","cases":[{"id":"three","value":3}]}
	end set {"values":{"first":"{{nodes.fetch.body.path}}","calls":"{{nodes.l.results}}"}}
	t -> prep
	prep -> if
	if:false -> no
	if:true -> fetch
	fetch -> l
	l:loop -> step
	step -> call
	call -> l
	l:done -> pause
	pause -> after
	after -> s
	s:three -> end`

// victim executes the flow of twelve nodes, or goes on with it, and tells what
// becomes of its nodes until it has ended.
func victim(path string) error {
	ctx := context.Background()
	folder, err := store.Open(store.Options{Path: path, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	db := folder.Default()
	scripts := script.New(script.Options{Fetch: egress.New(egress.Policy{Allow: loopback}).Do})
	if err := scripts.Start(ctx); err != nil {
		return err
	}
	e := New(Options{Env: store.Env{Folder: folder, Allow: loopback, Version: "test", Log: slog.New(slog.DiscardHandler)}, Scripts: scripts})
	known, _, err := db.Executions(ctx, store.ExecutionFilter{}, store.Page{Limit: 10})
	if err != nil {
		return err
	}
	id := ""
	if len(known) > 0 {
		id = known[0].ID
	}
	live, done := e.Watch(id)
	defer done()
	if err := e.Start(ctx); err != nil {
		return err
	}
	if id == "" {
		w := agent.Workflow{Name: "Twelve", Status: agent.WorkflowActive, Settings: agent.DefaultWorkflowSettings()}
		w.Nodes, w.Edges = drawn(strings.ReplaceAll(os.Getenv(victimGraph), "URL", os.Getenv(victimURL)))
		if w, err = db.CreateWorkflow(ctx, w); err != nil {
			return err
		}
		s, err := e.Execute(ctx, db, Request{WorkflowID: w.ID, Input: json.RawMessage(`{"name":"Ada"}`), Trigger: "manual"})
		if err != nil {
			return err
		}
		id = s.Execution.ID
		live, done = e.Watch(id)
		defer done()
	}
	go func() {
		for ev := range live {
			if ev.Node != nil {
				fmt.Println(ev.Type, ev.Node.NodeID, ev.Node.Status)
			}
		}
	}()
	x, err := e.Await(ctx, db, id)
	fmt.Println("ended as", x.Status)
	e.Stop()
	return folder.Close()
}

// receiver logs the requests that come in, by path and Idempotency-Key.
type receiver struct {
	*httptest.Server
	mu   sync.Mutex
	log  []string
	hold chan string // told of a request that is not answered, whose key it holds
	at   string      // the end of the keys of such requests; empty: none
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{hold: make(chan string, 10)}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		key := q.Header.Get("Idempotency-Key")
		_, short, _ := strings.Cut(key, ":")
		if short == "" { // of a script
			short = strings.TrimPrefix(q.URL.Path, "/")
		}
		_, _ = io.Copy(io.Discard, q.Body) // the end of the client shows behind the body only
		r.mu.Lock()
		r.log = append(r.log, short)
		held := r.at != "" && short == r.at
		r.mu.Unlock()
		if held {
			r.hold <- key
			<-q.Context().Done() // its client was killed
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"path":%q}`, q.URL.Path)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) holdAt(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at = key
}

// round runs the victim until it ends, or is killed: when the receiver holds a
// request, or when the victim tells the line until.
func round(t *testing.T, graph, path string, r *receiver, holdAt, until string) (lines []string) {
	t.Helper()
	r.holdAt(holdAt)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), victimFolder+"="+path, victimURL+"="+r.URL, victimGraph+"="+graph)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	told := make(chan string)
	go func() {
		defer close(told)
		for s := bufio.NewScanner(out); s.Scan(); {
			told <- s.Text()
		}
	}()
	for {
		select {
		case <-r.hold:
			_ = cmd.Process.Kill()
		case line, more := <-told:
			if !more {
				_ = cmd.Wait() // killed, mostly
				return lines
			}
			if lines = append(lines, line); until != "" && line == until {
				_ = cmd.Process.Kill()
			}
		}
	}
}

// TestKillNine kills the server three times on the way of one execution: while
// a call is under way, while one of a loop is, and while the flow waits. What
// had ended is not done again, and what was cut is done again by the same key.
func TestKillNine(t *testing.T) {
	t.Parallel()
	path, r := t.TempDir(), newReceiver(t)
	round(t, twelve, path, r, "fetch:0", "")
	round(t, twelve, path, r, "call:1", "")
	round(t, twelve, path, r, "", "node.started pause waiting")
	lines := round(t, twelve, path, r, "", "")
	if !slices.Contains(lines, "ended as complete") {
		t.Fatalf("the last round told:\n%s", strings.Join(lines, "\n"))
	}
	want := []string{"fetch:0", "fetch:0", "call:0", "call:1", "call:1", "call:2", "after:0"}
	t.Logf("the receiver's log: %s", strings.Join(r.log, " "))
	if !slices.Equal(r.log, want) {
		t.Errorf("the receiver's log is\n%v, want\n%v", r.log, want)
	}
	folder, _ := openAt(t, path)
	found, _, err := folder.Default().Executions(t.Context(), store.ExecutionFilter{}, store.Page{Limit: 10})
	if err != nil || len(found) != 1 {
		t.Fatalf("%d executions, %v", len(found), err)
	}
	x, results, err := folder.Default().Execution(t.Context(), found[0].ID)
	if err != nil || x.Status != agent.ExecutionComplete {
		t.Fatalf("%v %v %v", x.Status, x.Error, err)
	}
	const told = "t=success prep=success if=success no=skipped fetch=success step@0=success call@0=success step@1=success call@1=success " +
		"step@2=success call@2=success l=success pause=success after=success s=success end=success"
	if got := story(results); got != told {
		t.Errorf("nodes:\n%s, want\n%s", got, told)
	}
}

// coded is a loop of code that fetches and of code that does not.
const coded = `t trigger
	l loop {"items":[0,1,2,3,4]}
	a code {"code":"return {drawn: Math.random()}"}
	b code {"code":"await fetch('URL/' + item); return {after: nodes.a.drawn}"}
	c code {"code":"return {same: nodes.a.drawn === nodes.b.after}"}
	t -> l
	l:loop -> a
	a -> b
	b -> c
	c -> l`

// A script that has fetched does not run again once it has ended, however soon
// after it the server is killed.
func TestKillNineInCode(t *testing.T) {
	t.Parallel()
	path, r := t.TempDir(), newReceiver(t)
	round(t, coded, path, r, "1", "")
	round(t, coded, path, r, "3", "")
	lines := round(t, coded, path, r, "", "")
	if !slices.Contains(lines, "ended as complete") {
		t.Fatalf("the last round printed:\n%s", strings.Join(lines, "\n"))
	}
	if want := []string{"0", "1", "1", "2", "3", "3", "4"}; !slices.Equal(r.log, want) {
		t.Errorf("the receiver's log is %v, want %v", r.log, want)
	}
	folder, _ := openAt(t, path)
	found, _, err := folder.Default().Executions(t.Context(), store.ExecutionFilter{}, store.Page{Limit: 10})
	if err != nil || len(found) != 1 {
		t.Fatalf("%d executions, %v", len(found), err)
	}
	if got := string(found[0].Output); strings.Count(got, `{"same":true}`) != 5 {
		t.Errorf("what was read is not what is kept: %s", got)
	}
}
