package cluster

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"satchel/agent"
	"satchel/store/cluster/pg"
)

// When the database is full or read-only, no acknowledged write is lost, errors name the
// cause, and the server continues once the database accepts writes again.
func testDatabaseTakesNoChanges(t *testing.T, url string) {
	a := serve(t, url, "a", t.TempDir())
	a.agent(t, agent.DefaultID)
	id := a.make(t, "Bakery").ID()
	a.ship.uncertain = 2 * time.Second // in which it connects again, on a busy machine, too
	var kept []string
	for _, c := range []struct{ begin, end, says string }{
		{`CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION USING ERRCODE = ''53100'', MESSAGE = ''No space left on device''; END';
			CREATE TRIGGER full_disk BEFORE INSERT ON log EXECUTE FUNCTION full_disk()`, "DROP TRIGGER full_disk ON log", "No space left on device"},
		// Open connections stay read-only after the reset.
		{
			setDatabase("SET default_transaction_read_only = on") + endOthers,
			setDatabase("RESET default_transaction_read_only"),
			"read-only transaction",
		},
	} {
		db := a.agent(t, id)
		kept = append(kept, mustWrite(t, db, "before"))
		execAlone(t, url, c.begin)
		refused, err := write(t.Context(), db, "is not taken")
		if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("a write of %q: %q, %v", c.says, refused, err)
		}
		if _, err := db.Contact(t.Context(), kept[0]); err == nil {
			t.Error("a file with a commit that the database refused is read")
		}
		execAlone(t, url, c.end)
		a.eventually(t, "to continue", func() bool {
			return a.Ready() == nil && !slices.Contains(a.f.Agents(), db) && a.has(id)()
		})
		db = a.agent(t, id)
		kept = append(kept, mustWrite(t, db, "after"))
		if lost := missing(t, db, kept); lost != nil {
			t.Errorf("%s: lost: %v", c.says, lost)
		}
	}
}

// setDatabase returns a statement that sets a parameter of the current database for all
// new connections.
func setDatabase(what string) string {
	return "DO $do$ BEGIN EXECUTE format('ALTER DATABASE %I " + what + "', current_database()); END $do$;"
}

// endOthers closes all other connections of the current database.
const endOthers = "COMMIT; SELECT pg_terminate_backend(pid) FROM pg_stat_activity " +
	"WHERE datname = current_database() AND pid <> pg_backend_pid(); BEGIN"

// execAlone runs statements on a connection of their own.
func execAlone(t *testing.T, url, statements string) {
	t.Helper()
	pool, err := pg.New(url, pg.Options{Connections: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if _, err := pool.Exec(
		t.Context(),
		"BEGIN READ WRITE; SET LOCAL search_path = satchel; "+statements+"; COMMIT",
	); err != nil {
		t.Fatal(err)
	}
}

// A program does not use tables of a format that it does not know.
func testFormat(t *testing.T, url string) {
	a := serve(t, url, "a", t.TempDir())
	execAlone(t, url, "UPDATE cluster SET format = format + 1")
	_, err := Open(t.Context(), Options{URL: url, MasterKeys: [][]byte{testKey}, Path: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), "have format 2, this program knows 1") {
		t.Errorf("opened with tables of a newer format: %v", err)
	}
	if err := a.step(t.Context()); err != nil || a.Ready() != nil {
		t.Errorf("the server that is running: %v, %v", err, a.Ready())
	}
	execAlone(t, url, "DELETE FROM cluster")
	if err := a.step(t.Context()); err == nil || a.Ready() != nil {
		t.Errorf("a poll of tables without the row of the cluster: %v, %v", err, a.Ready())
	}
}

// The URL may set the number of connections and what PostgreSQL knows; the error names
// any other setting.
func testSettings(t *testing.T, url string) {
	open := func(settings string) error {
		c, err := Open(t.Context(), Options{URL: url + settings, MasterKeys: [][]byte{testKey}, Path: t.TempDir()})
		if err == nil {
			c.Close()
		}
		return err
	}
	if err := open("&pool_max_conns=12&lock_timeout=5000"); err != nil {
		t.Error(err)
	}
	for settings, want := range map[string]string{
		"&sslmod=require":   `unrecognized configuration parameter "sslmod"`,
		"&pool_max_conns=2": "pool_max_conns must be from 6 to 1000",
		"&pool_min_conns=2": "pool_min_conns is not supported",
	} {
		if err := open(settings); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", settings, err, want)
		}
	}
}

// The error names the privilege that a user lacks to create the tables.
func testRights(t *testing.T, url string) {
	pool, err := connect(url)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if _, err := pool.Exec(t.Context(), "CREATE ROLE guest LOGIN"); err != nil {
		t.Fatal(err)
	}
	as := strings.Replace(url, "satchel@", "guest@", 1)
	if _, err := Open(t.Context(), Options{URL: as, MasterKeys: [][]byte{testKey}, Path: t.TempDir()}); err == nil ||
		!strings.Contains(err.Error(), "must own the database") {
		t.Errorf("a user who may not create a schema: %v", err)
	}
}
