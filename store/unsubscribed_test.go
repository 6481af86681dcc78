package store

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"satchel/agent"
)

// withoutSubscribers creates an agent whose consumers know that nobody subscribes to its
// events, and returns how often they are notified of events.
func withoutSubscribers(t *testing.T) (db *DB, notified *atomic.Int32) {
	t.Helper()
	f := openFolder(t)
	db, notified = createAgent(t, f, "a"), &atomic.Int32{}
	createContact(t, db, named("x"))
	for _, consumer := range []string{ConsumerWebhooks, ConsumerWorkflows} {
		if u, err := db.Undelivered(t.Context(), consumer, 10); err != nil || !u.NoSubscribers {
			t.Fatal(u, err)
		}
	}
	f.OnPending(func(of *DB, p Pending) {
		if of == db && !p.Events.IsZero() {
			notified.Add(1)
		}
	})
	notified.Store(0)
	return db, notified
}

func cursors(t *testing.T, db *DB) int {
	t.Helper()
	return value[int](t, db, "SELECT min(seq) FROM _cursors")
}

// Events without subscribers notify no consumer, and the consumers' cursors follow when
// the file becomes idle or is closed.
func TestNoNotificationWithoutSubscribers(t *testing.T) {
	db, notified := withoutSubscribers(t)
	before := cursors(t, db)
	createContact(t, db, named("y"))
	if n := notified.Load(); n != 0 {
		t.Errorf("notified %d times", n)
	}
	if seq := cursors(t, db); seq != before {
		t.Errorf("cursors moved from %d to %d", before, seq)
	}
	db.folder.maintain(t.Context(), time.Now().Add(2*checkpointAfter))
	last := value[int](t, db, lastEvent)
	if seq := cursors(t, db); seq != last {
		t.Errorf("idle: cursors %d, want %d", seq, last)
	}
	createContact(t, db, named("z"))
	if closed, err := db.closeIdle(); !closed || err != nil {
		t.Fatal(closed, err)
	}
	if p := db.Pending(); !p.Events.IsZero() {
		t.Errorf("closed with events pending: %+v", p)
	}
	if seq := cursors(t, db); seq == last {
		t.Error("cursors did not follow when the file was closed")
	}
}

// A new subscriber receives the events of the same write and of later ones, whether the
// API or SQL writes.
func TestSubscribersReceiveLaterEvents(t *testing.T) {
	const wait = `INSERT INTO _waits(execution_id, node_id, path, type, kind, event, started_at) ` +
		`VALUES ('e','n','','wait','event','contact.created','2026-01-01T00:00:00.000Z')`
	for name, subscribe := range map[string]func(*testing.T, *DB){
		"a trigger": func(t *testing.T, db *DB) { listen(t, db, "contact.*") },
		"a trigger by SQL": func(t *testing.T, db *DB) {
			askSQL(
				t,
				db,
				`INSERT INTO workflows(id, name, status, nodes) VALUES ('w','n','active','[{"id":"t",`+
					`"type":"trigger","data":{"event":"contact.created"}}]')`,
			)
		},
		"a wait": func(t *testing.T, db *DB) {
			do(t, db, `INSERT INTO workflows(id, name) VALUES ('w','n')`)
			do(
				t,
				db,
				`INSERT INTO executions(id, workflow_id, version, status, trigger, created_at) `+
					`VALUES ('e','w',1,'running','manual','2026-01-01T00:00:00.000Z')`,
			)
			do(t, db, wait)
		},
	} {
		t.Run(name, func(t *testing.T) {
			db, notified := withoutSubscribers(t)
			createContact(t, db, named("before"))
			subscribe(t, db)
			notified.Store(0)
			after := createContact(t, db, named("after"))
			if notified.Load() == 0 {
				t.Error("not notified")
			}
			u, err := db.Undelivered(t.Context(), ConsumerWorkflows, 10)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, e := range u.Events {
				if e.Type == "contact.created" {
					got = append(got, string(e.Data))
				}
			}
			if len(got) != 1 || !strings.Contains(got[0], after.ID) {
				t.Errorf("events %v, want that of %s", got, after.ID)
			}
		})
	}
}

// A consumer that read before somebody subscribed is notified nevertheless.
func TestSubscribedMeanwhile(t *testing.T) {
	db, notified := withoutSubscribers(t)
	f, err := db.acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer db.release(t.Context())
	at := f.unsubscribed.now()
	listen(t, db, "*")
	f.unsubscribed.note(ConsumerWorkflows, true, at)
	notified.Store(0)
	createContact(t, db, agent.ContactChange{Name: agent.Some("x")})
	if notified.Load() == 0 {
		t.Error("not notified")
	}
}

// A consumer is notified until it has read the events itself, whatever other consumers
// have read.
func TestOneConsumerHasRead(t *testing.T) {
	db, notified := withoutSubscribers(t)
	listen(t, db, "contact.*")
	createContact(t, db, named("x"))
	if u, err := db.Undelivered(t.Context(), ConsumerWebhooks, 10); err != nil || !u.NoSubscribers {
		t.Fatal(u, err)
	}
	notified.Store(0)
	createContact(t, db, named("y"))
	if notified.Load() == 0 {
		t.Error("not notified")
	}
}
