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
	started chan time.Time
}

// newStorm makes agents with schedules that rest; openFiles bounds how many of
// the agents' files may be open.
func newStorm(b *testing.B, openFiles int, callback string) *storm {
	b.Helper()
	quiet := slog.New(slog.DiscardHandler)
	folder, err := store.Open(store.Options{Path: b.TempDir(), OpenFiles: openFiles, Log: quiet})
	if err != nil {
		b.Fatal(err)
	}
	s := &storm{folder: folder, started: make(chan time.Time, stormAgents*stormSchedules)}
	engine := flow.New(flow.Options{Folder: folder, Log: quiet})
	scheduler := schedule.New(schedule.Options{Folder: folder, Log: quiet, Runners: map[string]schedule.Runner{
		agent.CallbackAgent: func(context.Context, *store.DB, schedule.Callback) (string, error) {
			s.started <- time.Now()
			return "", nil
		},
		agent.CallbackWorkflow: func(ctx context.Context, db *store.DB, c schedule.Callback) (string, error) {
			return engine.Once(ctx, db, flow.Request{WorkflowID: c.Schedule.CallbackID, Trigger: "schedule", Cause: c.RunID, Input: c.Trigger()},
				func(id string) {
					s.started <- time.Now()
					c.Began(id)
				})
		},
	}})
	if err := engine.Start(context.Background()); err != nil {
		b.Fatal(err)
	}
	if err := scheduler.Start(context.Background()); err != nil {
		b.Fatal(err)
	}
	s.server = httptest.NewServer(New(Options{Folder: folder, Scheduler: scheduler, Flow: engine, CORSOrigins: []string{"*"},
		PublicURL: "http://localhost", Version: "test", Log: quiet}).Handler())
	b.Cleanup(func() {
		s.server.Close()
		scheduler.Stop()
		engine.Stop()
		if err := folder.Close(); err != nil {
			b.Error(err)
		}
	})
	for i := range stormAgents {
		s.agents = append(s.agents, s.makeAgent(b, i, callback))
	}
	return s
}

const stormGraph = `"nodes":[{"id":"t","type":"trigger","position":{"x":0,"y":0},"data":{}},{"id":"s","type":"set","position":{"x":0,"y":0},"data":{"values":{"a":1}}}],
	"edges":[{"id":"e","source":"t","target":"s"}],"settings":{"concurrency":100}`

func (s *storm) makeAgent(b *testing.B, i int, callback string) *store.DB {
	b.Helper()
	db, err := s.folder.CreateAgent(b.Context(), agent.Agent{Name: fmt.Sprintf("storm-%d", i)}, "")
	if err != nil {
		b.Fatal(err)
	}
	c := &visitor{url: s.server.URL, folder: s.folder, header: http.Header{}}
	at := "/api/agents/" + db.ID()
	workflow := c.must(b, 201, "POST", at+"/workflows", `{"name":"w","status":"active",`+stormGraph+`}`)
	s.sql(b, db, fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
		INSERT INTO schedules(name, type, cron_expression, callback_type, callback_id, payload, overlap)
		SELECT 's', 'cron', '0 0 1 1 *', '%s', '%s', '{"prompt":"x"}', 'allow' FROM n`, stormSchedules, callback, workflow["id"]))
	return db
}

func (s *storm) sql(b *testing.B, db *store.DB, query string) {
	b.Helper()
	if _, err := db.SQL(b.Context(), query, store.Params{}, store.Access{Write: true}); err != nil {
		b.Fatal(err)
	}
}

// call works as four clients of the API until done, and returns how long their
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

// BenchmarkScheduleStorm has 10,000 schedules of 100 agents come due at the
// same moment, and measures when their calls start and what clients of the API
// notice of it.
func BenchmarkScheduleStorm(b *testing.B) {
	for _, tc := range []struct {
		name, callback string
		openFiles      int
	}{
		{"call", agent.CallbackAgent, 256}, {"call/32-files-open", agent.CallbackAgent, 32}, {"workflow", agent.CallbackWorkflow, 256},
	} {
		b.Run(tc.name, func(b *testing.B) {
			s := newStorm(b, tc.openFiles, tc.callback)
			b.ResetTimer()
			for range b.N {
				due := time.Now().Add(3 * time.Second)
				for _, db := range s.agents {
					s.sql(b, db, "UPDATE schedules SET next_run = '"+agent.At(due).String()+"'")
				}
				late, calls := s.wait(b, due)
				b.ReportMetric(quantile(late, 0.99), "ms-start-p99")
				b.ReportMetric(quantile(late, 1), "ms-start-last")
				b.ReportMetric(quantile(calls, 0.5), "ms-api-p50")
				b.ReportMetric(quantile(calls, 0.99), "ms-api-p99")
			}
		})
	}
}

// wait waits until all have started and returns how late each was, and how long
// requests of clients took meanwhile.
func (s *storm) wait(b *testing.B, due time.Time) (late, calls []time.Duration) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range stormAgents * stormSchedules {
			late = append(late, (<-s.started).Sub(due))
		}
	}()
	<-time.After(time.Until(due)) // clients come when the storm does
	calls = s.call(b, done)
	slices.Sort(late)
	slices.Sort(calls)
	if late[0] < 0 {
		b.Errorf("a run started %s early", -late[0])
	}
	return late, calls
}
