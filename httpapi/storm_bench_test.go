package httpapi

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"satchel/agent"
	"satchel/agent/work"
	"satchel/flow"
	"satchel/schedule"
	"satchel/store"
)

// Size of the storm: so many schedules of so many agents are due at once.
const (
	stormAgents    = 100
	stormSchedules = 100 // of each
)

// storm is a service whose schedules are all due at the same moment.
type storm struct {
	folder  *store.Folder
	server  *httptest.Server
	agents  []*store.DB
	reached chan time.Time // receives the time at which a run reached the measured point
}

// stormCase is a kind of storm.
type stormCase struct {
	name      string
	callback  string
	openFiles int    // of the agents, at most
	settings  string // of the workflows
	ends      bool   // measures the ends of runs instead of their starts
}

// newStorm creates agents with paused schedules.
func newStorm(b *testing.B, tc stormCase) *storm {
	b.Helper()
	quiet := slog.New(slog.DiscardHandler)
	folder, err := store.Open(store.Options{Path: b.TempDir(), OpenFiles: tc.openFiles, Log: quiet})
	if err != nil {
		b.Fatal(err)
	}
	s := &storm{folder: folder, reached: make(chan time.Time, stormAgents*stormSchedules)}
	engine := flow.New(flow.Options{Env: store.Env{Folder: folder, Log: quiet}})
	scheduler := schedule.New(schedule.Options{
		Env: store.Env{Folder: folder, Log: quiet},
		Runners: map[string]schedule.Runner{
			agent.CallbackAgent: func(context.Context, *store.DB, schedule.Callback) (string, error) {
				s.reached <- time.Now()
				return "", nil
			},
			agent.CallbackWorkflow: func(ctx context.Context, db *store.DB, c schedule.Callback) (string, error) {
				id, err := engine.ExecuteIdempotent(
					ctx,
					db,
					flow.Request{
						WorkflowID:     c.Schedule.CallbackID,
						Trigger:        "schedule",
						IdempotencyKey: c.RunID,
						Input:          c.Trigger(),
					},
					func(id string) {
						if !tc.ends {
							s.reached <- time.Now()
						}
						work.Release(ctx)
						c.Started(id)
					},
				)
				if tc.ends {
					s.reached <- time.Now()
				}
				return id, err
			},
		},
	})
	if err := engine.Start(context.Background()); err != nil {
		b.Fatal(err)
	}
	if err := scheduler.Start(context.Background()); err != nil {
		b.Fatal(err)
	}
	s.server = httptest.NewServer(New(Options{
		Parts:       Parts{Folder: folder, Scheduler: scheduler, Flow: engine},
		CORSOrigins: []string{"*"},
		PublicURL:   "http://localhost",
		Version:     "test",
		Log:         quiet,
	}).Handler())
	b.Cleanup(func() {
		s.server.Close()
		scheduler.Stop()
		engine.Stop()
		if err := folder.Close(); err != nil {
			b.Error(err)
		}
	})
	for i := range stormAgents {
		s.agents = append(s.agents, s.makeAgent(b, i, tc))
	}
	return s
}

const stormGraph = `"nodes":[{"id":"t","type":"trigger","position":{"x":0,"y":0},"data":{}},{"id":"s","type":"set","position":{"x":0,"y":0},"data":{"values":{"a":1}}}],
	"edges":[{"id":"e","source":"t","target":"s"}]`

func (s *storm) makeAgent(b *testing.B, i int, tc stormCase) *store.DB {
	b.Helper()
	db, err := s.folder.CreateAgent(b.Context(), agent.Agent{Name: fmt.Sprintf("storm-%d", i)}, "")
	if err != nil {
		b.Fatal(err)
	}
	c := &testClient{url: s.server.URL, folder: s.folder, header: http.Header{}}
	at := "/api/agents/" + db.ID()
	workflow := c.must(
		b, 201, "POST", at+"/workflows",
		`{"name":"w","status":"active",`+stormGraph+`,"settings":{`+tc.settings+`}}`,
	)
	s.sql(b, db, fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
		INSERT INTO schedules(name, type, cron_expression, callback_type, callback_id, payload, overlap)
		SELECT 's', 'cron', '0 0 1 1 *', '%s', '%s', '{"prompt":"x"}', 'allow' FROM n`, stormSchedules, tc.callback, workflow["id"]))
	return db
}

func (s *storm) sql(b *testing.B, db *store.DB, query string) {
	b.Helper()
	if _, err := db.SQL(b.Context(), query, store.Params{}, store.Access{Write: true}); err != nil {
		b.Fatal(err)
	}
}

// call acts as four clients of the API until done is closed, and returns how long their
// requests took.
func (s *storm) call(b *testing.B, done chan struct{}) (took []time.Duration) {
	var mu sync.Mutex
	var clients sync.WaitGroup
	for n := range 4 {
		clients.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				default:
				}
				began := time.Now()
				url := fmt.Sprintf("%s/api/agents/%s/contacts", s.server.URL, s.agents[(n*25+i)%stormAgents].ID())
				var resp *http.Response
				var err error
				if i%2 == 0 {
					resp, err = http.Get(url)
				} else {
					resp, err = http.Post(url, "application/json", strings.NewReader(`{"name":"Ada"}`))
				}
				if err != nil {
					b.Error(err)
					return
				}
				resp.Body.Close()
				mu.Lock()
				took = append(took, time.Since(began))
				mu.Unlock()
			}
		})
	}
	clients.Wait()
	return took
}

func quantile(sorted []time.Duration, q float64) float64 {
	return float64(sorted[min(len(sorted)-1, int(q*float64(len(sorted))))].Microseconds()) / 1000
}

// BenchmarkScheduleStorm has 10,000 schedules of 100 agents become due at the same
// moment, and measures when their calls start and how it affects clients of the API.
func BenchmarkScheduleStorm(b *testing.B) {
	for _, tc := range []stormCase{
		{"call", agent.CallbackAgent, 256, "", false}, {"call/32-files-open", agent.CallbackAgent, 32, "", false},
		{"workflow", agent.CallbackWorkflow, 256, `"concurrency":100`, false},
		{"one-at-a-time/queue", agent.CallbackWorkflow, 256, `"concurrency":1,"on_conflict":"queue"`, true},
		// which does not apply to schedules
		{"one-at-a-time/reject", agent.CallbackWorkflow, 256, `"concurrency":1,"on_conflict":"reject"`, true},
	} {
		b.Run(tc.name, func(b *testing.B) {
			s := newStorm(b, tc)
			what := "start"
			if tc.ends {
				what = "end"
			}
			b.ResetTimer()
			for range b.N {
				due := time.Now().Add(3 * time.Second)
				for _, db := range s.agents {
					s.sql(b, db, "UPDATE schedules SET next_run = '"+agent.At(due).String()+"'")
				}
				late, calls := s.wait(b, due)
				if tc.ends {
					s.checkOrder(b)
				}
				b.ReportMetric(quantile(late, 0.99), "ms-"+what+"-p99")
				b.ReportMetric(quantile(late, 1), "ms-"+what+"-last")
				b.ReportMetric(quantile(calls, 0.5), "ms-api-p50")
				b.ReportMetric(quantile(calls, 0.99), "ms-api-p99")
			}
		})
	}
}

// checkOrder checks the executions of each agent, of which one runs at a time: none is
// lost, no two ran at once, and none that was queued ran before one that was created half
// a second earlier, long enough to be inserted.
func (s *storm) checkOrder(b *testing.B) {
	b.Helper()
	for _, db := range s.agents {
		r, err := db.SQL(b.Context(), `WITH x AS (SELECT id, status, created_at, started_at, completed_at, lag(completed_at) OVER (ORDER BY started_at, completed_at) AS before
				FROM executions WHERE created_at >= (SELECT max(last_run) FROM schedules))
			SELECT count(*), coalesce(sum(status <> 'complete'), 0), coalesce(sum(started_at < before), 0),
				coalesce(sum(started_at > created_at AND EXISTS (SELECT 1 FROM x y
					WHERE y.created_at < strftime('%Y-%m-%dT%H:%M:%fZ', x.created_at, '-0.5 seconds') AND y.started_at > x.started_at)), 0) FROM x`, store.Params{}, store.Access{})
		if want := fmt.Sprintf("[[%d 0 0 0]]", stormSchedules); err != nil || fmt.Sprint(r.Rows) != want {
			b.Fatalf(
				"%s: executions, not complete, overlapping, out of order: %v, want %s, %v",
				db.ID(),
				r.Rows,
				want,
				err,
			)
		}
	}
}

// wait waits until all runs have reached the measured point, and returns how late each
// was, and how long requests of clients took meanwhile.
func (s *storm) wait(b *testing.B, due time.Time) (late, calls []time.Duration) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range stormAgents * stormSchedules {
			late = append(late, (<-s.reached).Sub(due))
		}
	}()
	<-time.After(time.Until(due)) // clients start when the storm does
	calls = s.call(b, done)
	slices.Sort(late)
	slices.Sort(calls)
	if late[0] < 0 {
		b.Errorf("a run started %s early", -late[0])
	}
	return late, calls
}
