package flow

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"satchel/agent"
	"satchel/agent/apis"
	"satchel/agent/cputime"
	"satchel/store"
)

// four is a flow of four pure nodes.
const four = `t trigger
	if if-else {"conditions":[{"left":"{{n}}","operator":"gt","right":5}]}
	s set {"values":{"hello":"Hello {{name}}","n":"{{n}}"}}
	r webhook-response {"status":200,"body":"{{nodes.s}}"}
	t -> if
	if:true -> s
	s -> r`

var many = agent.WorkflowSettings{Concurrency: agent.MaxConcurrency, OnConflict: agent.ConflictQueue}

// inParallel runs fn n times in a number of goroutines.
func inParallel(tb testing.TB, n, workers int, fn func(i int) error) {
	var next atomic.Int64
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if err := fn(i); err != nil {
					tb.Error(err)
					return
				}
			}
		})
	}
	running.Wait()
}

// BenchmarkExecute runs a flow of four nodes to the end, with every node
// journaled durably. "of-raw" is the throughput relative to bare writes of one
// small row with the same parallelism.
func BenchmarkExecute(b *testing.B) {
	for _, workers := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("at-once=%d", workers), func(b *testing.B) {
			db, e := open(b)
			w := createWorkflowWith(b, db, e, four, many)
			input := json.RawMessage(`{"name":"Ada","n":7}`)
			start := time.Now()
			inParallel(b, 3000, workers, func(i int) error {
				return db.Log(b.Context(), agent.LevelInfo, "bench", "one row", nil)
			})
			raw := 3000 / time.Since(start).Seconds()
			b.ResetTimer()
			start = time.Now()
			inParallel(b, b.N, workers, func(i int) error {
				s, err := e.Execute(b.Context(), db, Request{
					WorkflowID: w.ID,
					Input:      input,
					Trigger:    "manual",
					Wait:       time.Minute,
				})
				if err == nil && s.Execution.Status != agent.ExecutionComplete {
					err = fmt.Errorf("ended as %s: %v", s.Execution.Status, s.Execution.Error)
				}
				return err
			})
			rate := float64(b.N) / time.Since(start).Seconds()
			b.ReportMetric(rate, "executions/s")
			b.ReportMetric(rate/raw, "of-raw")
		})
	}
}

// BenchmarkResume opens a file with 1,000 interrupted executions, and measures
// until all have ended.
func BenchmarkResume(b *testing.B) {
	for range b.N {
		b.StopTimer()
		folder, err := store.Open(store.Options{Path: b.TempDir()})
		if err != nil {
			b.Fatal(err)
		}
		db := folder.Default()
		e := New(Options{Env: store.Env{Folder: folder}})
		e.Register(testKinds)
		w := createWorkflowWith(b, db, e, `t trigger
			a chat {"prompt":"x"}
			b set {"values":{"y":"{{nodes.a.text}}"}}
			t -> a
			a -> b`, many)
		var cut []store.StartedExecution
		for range 1000 {
			now := agent.Now()
			cut = append(cut, store.StartedExecution{Name: w.Name, Execution: &agent.Execution{
				ID:          agent.NewID(agent.KindExecution),
				WorkflowID:  w.ID,
				Version:     1,
				Status:      agent.ExecutionRunning,
				Trigger:     "manual",
				TriggerNode: "t",
				Input:       json.RawMessage("{}"),
				Depth:       1,
				CreatedAt:   now,
				StartedAt:   now,
			}})
		}
		if _, err := db.InsertExecutions(b.Context(), cut); err != nil {
			b.Fatal(err)
		}
		if err := folder.Close(); err != nil {
			b.Fatal(err)
		}
		if folder, err = store.Open(store.Options{Path: folder.Path()}); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		e = New(Options{Env: store.Env{Folder: folder}})
		e.Register(testKinds)
		if err := e.Start(b.Context()); err != nil {
			b.Fatal(err)
		}
		for _, x := range cut {
			if x, err := e.Await(b.Context(), folder.Default(), x.ID); err != nil ||
				x.Status != agent.ExecutionComplete {
				b.Fatal(x.Status, err)
			}
		}
		b.StopTimer()
		e.Stop()
		if err := folder.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkMemory runs b.N executions and reports how much the heap grew. Run
// it with -benchtime 100000x.
func BenchmarkMemory(b *testing.B) {
	db, e := open(b)
	w := createWorkflowWith(b, db, e, four, many)
	heap := func() float64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc) / (1 << 20)
	}
	one := func(int) error {
		_, err := e.Execute(b.Context(), db, Request{
			WorkflowID: w.ID,
			Input:      json.RawMessage(`{"name":"Ada","n":7}`),
			Trigger:    "manual",
			Wait:       time.Minute,
		})
		return err
	}
	inParallel(b, 1000, 16, one)
	before := heap()
	b.ResetTimer()
	inParallel(b, b.N, 16, one)
	b.StopTimer()
	b.ReportMetric(heap()-before, "MB-grown")
}

// BenchmarkOperation compares loops over a node of type operation with loops over
// the same http-request, in turns. "of-http" is the processor time of an operation
// relative to that of the request; both include the server's.
func BenchmarkOperation(b *testing.B) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"ok":true,"n":1}`)
	}))
	defer server.Close()
	db, e := open(b)
	e.Register(map[string]*Kind{"operation": OperationKind(apis.New(e.options.Env))})
	if _, err := db.CreateAPI(b.Context(), agent.API{Name: "p", ServerURL: server.URL}, []agent.OperationDefinition{{
		Operation: agent.Operation{ID: "put", Name: "put", Method: "POST", Path: "/items/{id}", Parameters: json.RawMessage(`{"type":"object","properties":{"id":{"type":"integer"},"q":{"type":"string"},"X-H":{"type":"string"},
			"body":{"type":"object","properties":{"name":{"type":"string"},"n":{"type":"integer"}}}},"required":["id"],"additionalProperties":false}`)},
		Accept: "application/json",
		Body:   &agent.OperationBody{Media: "application/json"},
		Params: []agent.OperationParam{
			{Property: "id", Name: "id", In: "path"},
			{Property: "q", Name: "q", In: "query"},
			{Property: "X-H", Name: "X-H", In: "header"},
		},
	}}); err != nil {
		b.Fatal(err)
	}
	flows := []agent.Workflow{
		createWorkflow(
			b,
			db,
			e,
			loopOver(
				"http-request",
				`{"method":"POST","url":"`+server.URL+
					`/items/{{item.n}}?q=abc","headers":{"X-H":"v"},"body":{"name":"Ada","n":5}}`,
			),
		),
		createWorkflow(
			b,
			db,
			e,
			loopOver(
				"operation",
				`{"api":"p","operation":"put","arguments":{"id":"{{item.n}}","q":"abc","X-H":"v",`+
					`"body":{"name":"Ada","n":5}}}`,
			),
		),
	}
	input := numbered(100, 0)
	var used [2]time.Duration
	for b.Loop() {
		for i, w := range flows {
			start := processorTime(b)
			mustComplete(b, execute(b, db, e, w, input))
			used[i] += processorTime(b) - start
		}
	}
	b.ReportMetric(float64(used[1])/float64(used[0]), "of-http")
	b.ReportMetric(float64((used[1]-used[0]).Nanoseconds())/float64(100*b.N), "more-ns/call")
}

func processorTime(tb testing.TB) time.Duration {
	used, err := cputime.Used()
	if err != nil {
		tb.Fatal(err)
	}
	return used
}
