package cluster

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"satchel/agent"
	"satchel/store/cluster/pgtest"
)

// between starts a relay to the database at a URL, and returns it with the URL that goes
// through it.
func between(t *testing.T, url string) (*pgtest.Relay, string) {
	t.Helper()
	host := url[strings.Index(url, "@")+1:]
	host = host[:strings.Index(host, "/")]
	r := pgtest.NewRelay(t)
	r.To(host)
	return r, strings.Replace(url, host, r.Addr(), 1)
}

// A commit whose response is lost is acknowledged once and stored once.
func testLostAnswers(t *testing.T, url string) {
	r, through := between(t, url)
	a := serve(t, through, "a", t.TempDir())
	a.agent(t, agent.DefaultID)
	db := a.make(t, "Bakery")
	var ids []string
	for range 5 {
		ids = append(ids, mustWrite(t, db, "before"))
		r.Lose(true)
		done := make(chan error, 1)
		go func() {
			id, err := write(context.WithoutCancel(t.Context()), db, "its answer is lost")
			ids = append(ids, id)
			done <- err
		}()
		<-r.Lost
		r.Lose(false)
		if err := <-done; err != nil {
			t.Fatalf("a write whose answer was lost: %v", err)
		}
	}
	b := serve(t, url, "b", t.TempDir())
	a.eventually(t, "to see b", func() bool {
		_, err := a.target("b")
		return err == nil
	})
	if err := a.Move(t.Context(), db.ID(), "b"); err != nil {
		t.Fatal(err)
	}
	if lost := missing(t, b.agent(t, db.ID()), ids); lost != nil {
		t.Errorf("lost: %v", lost)
	}

	// An outcome that stays unknown ends the session: nothing was acknowledged.
	db = b.agent(t, db.ID())
	c := serve(t, through, "c", t.TempDir())
	b.eventually(t, "to see c", func() bool {
		_, err := b.target("c")
		return err == nil
	})
	if err := b.Move(t.Context(), db.ID(), "c"); err != nil {
		t.Fatal(err)
	}
	db = c.agent(t, db.ID())
	ids = append(ids, mustWrite(t, db, "opens the file"))
	c.ship.uncertain = 200 * time.Millisecond
	old := c.Self().Session
	r.Lose(true)
	if _, err := write(t.Context(), db, "never known"); !errors.Is(err, ErrUnavailable) {
		t.Errorf("a write whose outcome is unknown: %v", err)
	}
	if _, err := db.Contact(t.Context(), ids[0]); err == nil {
		t.Error("a file whose newest commit has an unknown outcome is read")
	}
	r.Lose(false)
	c.eventually(t, "to begin a new session", func() bool { return c.Self().Session != old && c.Ready() == nil })
	c.eventually(t, "to see that a server has the agent", func() bool {
		_, _, err := c.Owner(t.Context(), db.ID())
		return err == nil
	})
}

// A file that cannot be fetched because the database does not respond is not reported as
// damaged.
func testRestoreIsCutOff(t *testing.T, url string) {
	r, through := between(t, url)
	a := serve(t, through, "a", t.TempDir())
	db := a.agent(t, agent.DefaultID)
	to := filepath.Join(t.TempDir(), "restored")
	if _, _, err := a.write(t.Context(), db.ID(), to, olderCopy{}); err != nil {
		t.Fatal(err)
	}
	a.stepping.Lock() // only the test sends queries
	defer a.stepping.Unlock()
	r.Lose(true)
	if _, _, err := a.write(t.Context(), db.ID(), to, olderCopy{}); !errors.Is(err, ErrUnavailable) {
		t.Errorf("restored without the database: %v", err)
	}
	r.Lose(false)
}

// A read that sees a commit does not return before the cluster has stored it.
func testReadsWaitForTheCluster(t *testing.T, url string) {
	r, through := between(t, url)
	a := serve(t, through, "a", t.TempDir())
	a.agent(t, agent.DefaultID)
	db := a.make(t, "Bakery")
	first := mustWrite(t, db, "before")
	release := r.Hold(db.ID())
	t.Cleanup(release)
	wrote := make(chan error, 1)
	go func() {
		_, err := write(context.WithoutCancel(t.Context()), db, "on its way")
		wrote <- err
	}()
	<-r.Seen
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := db.Contact(ctx, first); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a read during a commit: %v", err)
	}
	release()
	if err := <-wrote; err != nil {
		t.Error(err)
	}
	if _, err := db.Contact(t.Context(), first); err != nil {
		t.Error(err)
	}
}

// A commit is tried again if the database refused it for a reason that passes, or closed
// the connection meanwhile.
func testRefusedCommits(t *testing.T, url string) {
	a := serve(t, url, "a", t.TempDir())
	a.agent(t, agent.DefaultID)
	db := a.make(t, "Bakery")
	ids := []string{mustWrite(t, db, "before")}
	// What a sequence has counted is not rolled back: two commits are refused each time.
	execAlone(t, url, `CREATE SEQUENCE refused; CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF nextval('refused') > 2 THEN RETURN NEW;
		ELSIF TG_ARGV[0] = 'terminate' THEN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NEW;
		ELSE RAISE EXCEPTION USING ERRCODE = TG_ARGV[0]; END IF; END $$`)
	for _, code := range []string{
		"40001", // serialization failure
		"40P01", // deadlock
		"55P03", // lock timeout
		"57014", // statement timeout
		"57P03", // the server starts
		"terminate",
	} {
		before := a.Stats().Errors
		execAlone(
			t,
			url,
			"ALTER SEQUENCE refused RESTART; CREATE TRIGGER refuse BEFORE INSERT ON log FOR EACH ROW "+
				"EXECUTE FUNCTION refuse('"+code+"')",
		)
		ids = append(ids, mustWrite(t, db, code))
		if a.Stats().Errors == before {
			t.Errorf("%s: nothing was refused", code)
		}
		execAlone(t, url, "DROP TRIGGER refuse ON log")
	}
	b := serve(t, url, "b", t.TempDir())
	a.eventually(t, "to see b", func() bool {
		_, err := a.target("b")
		return err == nil
	})
	if err := a.Move(t.Context(), db.ID(), "b"); err != nil {
		t.Fatal(err)
	}
	if lost := missing(t, b.agent(t, db.ID()), ids); lost != nil {
		t.Errorf("lost: %v", lost)
	}
}
