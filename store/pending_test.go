package store

import (
	"math/bits"
	"reflect"
	"sync"
	"testing"
	"time"

	"satchel/agent"
)

// announced collects the work that subscribers are notified of.
type announced struct {
	mu sync.Mutex
	of map[string][]string // agent id -> kinds of work, as fields of Pending
}

func subscribe(f *Folder) *announced {
	a := &announced{of: map[string][]string{}}
	f.OnPending(func(db *DB, p Pending) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.of[db.id] = append(a.of[db.id], fieldsOf(p)...)
	})
	return a
}

func fieldsOf(p Pending) (names []string) {
	v := reflect.ValueOf(p)
	for i := range v.NumField() {
		if !v.Field(i).IsZero() {
			names = append(names, v.Type().Field(i).Name)
		}
	}
	return names
}

func (a *announced) take(db *DB) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	names := a.of[db.id]
	delete(a.of, db.id)
	return names
}

// TestOnPending checks that a commit announces the work that it may have caused, also
// through triggers, foreign keys and SQL of clients, and nothing else.
func TestOnPending(t *testing.T) {
	f := openFolder(t)
	db := f.Default()
	ctx := t.Context()
	workflow, err := db.CreateWorkflow(ctx, agent.Workflow{
		Name:   "w",
		Status: agent.WorkflowDraft,
		Nodes:  []agent.RawNode{},
		Edges:  []agent.RawEdge{},
	})
	if err != nil {
		t.Fatal(err)
	}
	write := func(statement string, args ...any) func() error {
		return func() error {
			return db.Do(ctx, func(tx *Tx) error {
				_, err := tx.exec(statement, args...)
				return err
			})
		}
	}
	query := func(statement string) func() error {
		return func() error {
			_, err := db.SQL(ctx, statement, Params{}, Access{Write: true})
			return err
		}
	}
	for _, c := range []struct {
		name string
		do   func() error
		want []string
	}{
		{"a contact's trigger writes an event", func() error {
			_, err := db.CreateContact(ctx, agent.ContactChange{Name: agent.Some("Ada")})
			return err
		}, []string{"Events"}},
		{"the same by SQL", query("INSERT INTO contacts(name) VALUES ('Bob')"), []string{"Events"}},
		{
			"a workflow's deletion cascades to its executions",
			func() error { return db.DeleteWorkflow(ctx, workflow.ID) },
			[]string{"Executions"},
		},
		{"a source", write("INSERT INTO _purge VALUES ('source-x')"), []string{"Sources"}},
		{
			"a column that is watched",
			write("UPDATE gateways SET status = 'active'"),
			[]string{"Events", "Messages", "Answers", "Gateways"},
		},
		{"a column that is not", write("UPDATE gateways SET event_count = event_count + 1"), nil},
		{"settings", write("UPDATE _agent SET settings = settings"), fieldsOf(func() (p Pending) {
			p.add(workAll)
			return p
		}())},
		{"a read", func() error {
			_, err := db.Stats(ctx)
			return err
		}, nil},
		{"a write whose caller claims the work", func() error {
			err := db.Do(ctx, func(tx *Tx) error {
				tx.claimWork(workExecutions)
				_, err := tx.exec("UPDATE executions SET suspended = 0")
				return err
			})
			if db.Pending().Executions.IsZero() {
				t.Error("nothing is pending")
			}
			return err
		}, nil},
		{"a write that fails", func() error {
			err := db.Do(ctx, func(tx *Tx) error {
				_, _ = tx.exec("INSERT INTO _purge VALUES ('source-y')")
				return errCut
			})
			if err == nil {
				t.Error("it succeeded")
			}
			return nil
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := subscribe(f)
			a.take(db) // what was pending before
			if err := c.do(); err != nil {
				t.Fatal(err)
			}
			if got := a.take(db); !reflect.DeepEqual(got, c.want) {
				t.Errorf("announced %v, want %v", got, c.want)
			}
		})
	}
}

// TestOnPendingOfAgents checks that subscribers are notified of agents whose status
// changes, that appear with work, and that are deleted.
func TestOnPendingOfAgents(t *testing.T) {
	f := openFolder(t)
	a := subscribe(f)
	all := fieldsOf(func() (p Pending) {
		p.add(workAll)
		return p
	}())
	db, err := f.CreateAgent(t.Context(), agent.Agent{Name: "one"}, "")
	if err != nil {
		t.Fatal(err)
	}
	a.take(db)
	if _, err := f.UpdateAgent(t.Context(), db, agent.AgentChange{Status: agent.Some(agent.StatusPaused)}); err != nil {
		t.Fatal(err)
	}
	if got := a.take(db); !reflect.DeepEqual(got, all) {
		t.Errorf("a new status announced %v", got)
	}
	fork, err := f.Fork(t.Context(), db, "two", "")
	if err != nil {
		t.Fatal(err)
	}
	a.take(fork)
	if err := f.DeleteAgent(fork); err != nil {
		t.Fatal(err)
	}
	if got := a.take(fork); !reflect.DeepEqual(got, all) || !fork.Gone() {
		t.Errorf("a deletion announced %v; deleted: %v", got, fork.Gone())
	}
}

// TestPendingIsKept checks that the pending work of a closed file is known without
// opening it, in this process and after a restart.
func TestPendingIsKept(t *testing.T) {
	f := openFolder(t)
	db, err := f.CreateAgent(t.Context(), agent.Agent{Name: "a"}, "")
	if err != nil {
		t.Fatal(err)
	}
	due := agent.At(time.Now().Add(time.Hour))
	for statement, args := range map[string][]any{
		"INSERT INTO webhooks(id, url, events, created_at, updated_at) VALUES ('webhook-1', " +
			"'http://x', '[]', ?1, ?1)": {agent.Now()},
		"UPDATE _cursors SET seq = 1000": {},
	} {
		if err := db.Do(t.Context(), func(tx *Tx) error {
			_, err := tx.exec(statement, args...)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	err = db.Do(t.Context(), func(tx *Tx) error {
		_, err := tx.exec(`INSERT INTO _deliveries(id, webhook_id, event_id, event, body, status, next_attempt_at, created_at)
			VALUES ('delivery-1', 'webhook-1', 'event-1', 'contact.created', '{}', 'pending', ?, ?)`, due, agent.Now())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if db.Pending().Deliveries != dueNow {
		t.Error("an open file reports no pending deliveries")
	}
	if _, err := db.closeIdle(); err != nil {
		t.Fatal(err)
	}
	want := Pending{Deliveries: due}
	if got := db.Pending(); got != want {
		t.Errorf("closed: %+v", got)
	}
	f = restart(t, f)
	if db, err = f.Agent("a"); err != nil {
		t.Fatal(err)
	}
	if got := db.Pending(); got != want {
		t.Errorf("after a restart: %+v", got)
	}
	if got := subscribe(f).take(db); !reflect.DeepEqual(got, []string{"Deliveries"}) {
		t.Errorf("a new subscriber is notified of %v", got)
	}
	if db.isOpen() {
		t.Error("the file was opened")
	}
}

// TestKindsOfWork checks that each kind of work has its line in dueTimes, and is caused
// by a change to some table; runs are not, since the scheduler knows those that it
// starts.
func TestKindsOfWork(t *testing.T) {
	if n := bits.TrailingZeros32(uint32(workChanged)); len(dueTimes) != n {
		t.Errorf("dueTimes has %d lines for %d kinds", len(dueTimes), n)
	}
	var caused workKinds
	for _, kinds := range tableWork {
		if kinds != workAll { // the agent's own settings
			caused |= kinds
		}
	}
	for i := range dueTimes {
		if kind := workKinds(1) << i; caused&kind == 0 && kind != workRuns {
			t.Errorf("tableWork has no table for the work that %s finds", dueTimes[i].due)
		}
	}
}
