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

// Environment variables of the process that is killed.
const (
	childFolder = "SATCHEL_TEST_FLOW_FOLDER"
	childURL    = "SATCHEL_TEST_FLOW_URL"
	childGraph  = "SATCHEL_TEST_FLOW_GRAPH"
)

// twelveNodes is a flow of twelve nodes with a branch, a loop, a wait, code and
// calls to another service.
const twelveNodes = `t trigger
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

// runInChild executes or resumes the flow of twelve nodes, and prints the
// results of its nodes until it has ended.
func runInChild(path string) error {
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
	e := New(Options{
		Env:     store.Env{Folder: folder, Allow: loopback, Version: "test", Log: slog.New(slog.DiscardHandler)},
		Scripts: scripts,
	})
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
		w.Nodes, w.Edges = parseGraph(strings.ReplaceAll(os.Getenv(childGraph), "URL", os.Getenv(childURL)))
		if w, err = db.CreateWorkflow(ctx, w); err != nil {
			return err
		}
		s, err := e.Execute(ctx, db, Request{
			WorkflowID: w.ID,
			Input:      json.RawMessage(`{"name":"Ada"}`),
			Trigger:    "manual",
		})
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
	if err != nil {
		fmt.Println("await:", err)
	}
	fmt.Println("ended as", x.Status)
	e.Stop()
	return folder.Close()
}

// receiver logs the requests that it receives, by path and Idempotency-Key.
type receiver struct {
	*httptest.Server
	mu   sync.Mutex
	log  []string
	hold chan string // receives the key of each request that is held
	at   string      // the key to hold, without its prefix; empty: none
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{hold: make(chan string, 10)}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		key := q.Header.Get("Idempotency-Key")
		_, short, _ := strings.Cut(key, ":")
		if short == "" { // from a script
			short = strings.TrimPrefix(q.URL.Path, "/")
		}
		_, _ = io.Copy(io.Discard, q.Body) // the server notices a closed connection only after the body was read
		r.mu.Lock()
		r.log = append(r.log, short)
		held := r.at != "" && short == r.at
		r.mu.Unlock()
		if held {
			r.hold <- key
			<-q.Context().Done() // the client was killed
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

// runKilled runs the child until it ends or is killed: when the receiver holds
// a request, or when the child prints the line until.
func runKilled(t *testing.T, graph, path string, r *receiver, holdAt, until string) (lines []string) {
	t.Helper()
	r.holdAt(holdAt)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childFolder+"="+path, childURL+"="+r.URL, childGraph+"="+graph)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	printed := make(chan string)
	go func() {
		defer close(printed)
		for s := bufio.NewScanner(out); s.Scan(); {
			printed <- s.Text()
		}
	}()
	for {
		select {
		case <-r.hold:
			if holdAt != "" { // not the last request of a run before
				_ = cmd.Process.Kill()
			}
		case line, open := <-printed:
			if !open {
				_ = cmd.Wait() // usually killed
				return lines
			}
			if lines = append(lines, line); until != "" && line == until {
				_ = cmd.Process.Kill()
			}
		}
	}
}

// endKilled runs the server without killing it: the only execution must complete,
// with these requests in the receiver's log. Those that end in ? may be missing: a line
// that is to end the child can be read after the child sent its next request.
func endKilled(t *testing.T, workflow, path string, r *receiver, log ...string) (*store.DB, *Engine, agent.Execution) {
	t.Helper()
	lines := runKilled(t, workflow, path, r, "", "")
	if !slices.Contains(lines, "ended as complete") {
		t.Fatalf("the last run printed:\n%s", strings.Join(lines, "\n"))
	}
	t.Logf("the receiver's log: %s", strings.Join(r.log, " "))
	var want []string
	for _, key := range log {
		if sure := strings.TrimSuffix(key, "?"); sure == key || len(r.log) == len(log) {
			want = append(want, sure)
		}
	}
	if !slices.Equal(r.log, want) {
		t.Errorf("the receiver's log is\n%v, want\n%v", r.log, log)
	}
	folder, e := openAt(t, path)
	db := folder.Default()
	found, _, err := db.Executions(t.Context(), store.ExecutionFilter{}, store.Page{Limit: 10})
	if err != nil || len(found) != 1 {
		t.Fatalf("%d executions, %v", len(found), err)
	}
	return db, e, found[0]
}

// TestKillNine kills the server three times during one execution: while a
// request is in flight, while a request of a loop is in flight, and while the
// flow waits. Finished nodes do not run again, and interrupted ones run again
// with the same key.
func TestKillNine(t *testing.T) {
	if testing.Short() {
		t.Skip("slow, and tests a child process")
	}
	t.Parallel()
	path, r := t.TempDir(), newReceiver(t)
	runKilled(t, twelveNodes, path, r, "fetch:0", "")
	runKilled(t, twelveNodes, path, r, "call:1", "")
	runKilled(t, twelveNodes, path, r, "after:0", "node.started pause waiting")
	db, _, only := endKilled(
		t, twelveNodes, path, r, "fetch:0", "fetch:0", "call:0", "call:1", "call:1", "call:2", "after:0?", "after:0",
	)
	x, results, err := db.Execution(t.Context(), only.ID)
	if err != nil || x.Status != agent.ExecutionComplete {
		t.Fatalf("got %v %v %v", x.Status, x.Error, err)
	}
	const printed = "t=success prep=success if=success no=skipped fetch=success step@0=success call@0=success " +
		"step@1=success call@1=success step@2=success call@2=success l=success pause=success " +
		"after=success s=success end=success"
	if got := summarize(results); got != printed {
		t.Errorf("nodes:\n%s, want\n%s", got, printed)
	}
}

// codeFlow is a loop of code that fetches and code that does not.
const codeFlow = `t trigger
	l loop {"items":[0,1,2,3,4]}
	a code {"code":"return {drawn: Math.random()}"}
	b code {"code":"await fetch('URL/' + item); return {after: nodes.a.drawn}"}
	c code {"code":"return {same: nodes.a.drawn === nodes.b.after}"}
	t -> l
	l:loop -> a
	a -> b
	b -> c
	c -> l`

// A script that has fetched does not run again once it has finished, even if the
// server is killed immediately afterwards.
func TestKillNineInCode(t *testing.T) {
	if testing.Short() {
		t.Skip("slow, and tests a child process")
	}
	t.Parallel()
	path, r := t.TempDir(), newReceiver(t)
	runKilled(t, codeFlow, path, r, "1", "")
	runKilled(t, codeFlow, path, r, "3", "")
	lines := runKilled(t, codeFlow, path, r, "", "")
	if !slices.Contains(lines, "ended as complete") {
		t.Fatalf("the last run printed:\n%s", strings.Join(lines, "\n"))
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
		t.Errorf("the stored results differ from those that were read: %s", got)
	}
}

// newItemsFlow sends a request for each new item.
const newItemsFlow = `t trigger
	n new-items {"items":["a","b","c"]}
	l loop {"items":"{{nodes.n.items}}"}
	call http-request {"url":"URL/call","method":"POST","body":{"item":"{{item}}"}}
	end set {"values":{"new":"{{nodes.n.count}}"}}
	t -> n
	n -> l
	l:loop -> call
	call -> l
	l:done -> end`

// The items of a new-items node are neither lost nor processed twice when the
// server is killed as the node starts, as it ends, and while its items are
// processed: only the request in flight is repeated, with its key.
func TestKillNineInNewItems(t *testing.T) {
	if testing.Short() {
		t.Skip("slow, and tests a child process")
	}
	t.Parallel()
	path, r := t.TempDir(), newReceiver(t)
	runKilled(t, newItemsFlow, path, r, "call:0", "node.started n running")
	runKilled(t, newItemsFlow, path, r, "call:0", "")
	runKilled(t, newItemsFlow, path, r, "call:2", "")
	db, e, only := endKilled(t, newItemsFlow, path, r, "call:0?", "call:0", "call:0", "call:1", "call:2", "call:2")
	s := execute(t, db, e, agent.Workflow{ID: only.WorkflowID}, `{}`)
	if got := string(s.Execution.Output); got != `{"new":0}` {
		t.Errorf("the output of the next execution is %s", got)
	}
}
