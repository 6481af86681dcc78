package sqlsandbox

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"

	"satchel/agent"
	"satchel/store/sqlite"
)

func TestMain(m *testing.M) {
	sqlite.CheckUse = true
	os.Exit(m.Run())
}

// newPool creates a database file with an open and a closed table.
func newPool(t *testing.T) *Pool {
	t.Helper()
	path := filepath.Join(t.TempDir(), "test.db")
	c, err := openConn(sqlite.Source{Path: path, Mode: sqlite.Create, Pragmas: []string{"journal_mode(WAL)"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		"CREATE TABLE items(name TEXT)",
		"CREATE TABLE parts(name TEXT)",
		"CREATE TABLE _closed(x)",
	} {
		if _, err := c.Trusted(statement); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
	p := New(path, &Options{
		Rules:       map[string]Rule{"parts": {Update: []string{"name"}, Reason: "parts stay"}},
		LaterTables: []string{"_later"},
	})
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func mustParse(t *testing.T, query string, params ...any) *Statement {
	t.Helper()
	s, err := Parse(query, Params{List: params})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// write runs a statement in a transaction of its own.
func (p *Pool) write(t *testing.T, query string) (map[string]bool, error) {
	t.Helper()
	s := mustParse(t, query)
	return p.Write(func(c *Conn) error {
		_, err := c.Run(t.Context(), s, DefaultLimits)
		return err
	})
}

func TestPool(t *testing.T) {
	p := newPool(t)
	changed, err := p.write(t, "INSERT INTO items VALUES ('a'), ('b')")
	if err != nil || len(changed) != 1 || !changed["items"] {
		t.Fatalf("changed %v, %v", changed, err)
	}
	for query, code := range map[string]agent.Code{
		"INSERT INTO parts VALUES ('a')":     agent.CodeForbiddenOperation,
		"UPDATE parts SET name = 'b'":        "",
		"DELETE FROM _closed":                agent.CodeForbiddenOperation,
		"INSERT INTO _later_7 VALUES (1)":    agent.CodeForbiddenOperation,
		"INSERT INTO items VALUES (nope(1))": agent.CodeInvalidQuery,
	} {
		t.Run(query, func(t *testing.T) {
			if _, err := p.write(t, query); agent.ErrorCode(err) != code && (err != nil || code != "") {
				t.Errorf("%v, want %q", err, code)
			}
		})
	}
	r, err := p.Read(t.Context(), mustParse(t, "SELECT count(*) FROM items"), DefaultLimits)
	if err != nil || r.Rows[0][0] != int64(2) {
		t.Errorf("%v, %v", r.Rows, err)
	}
}

func TestFailedStatementsLeaveNothing(t *testing.T) {
	p := newPool(t)
	failed := errors.New("failed")
	insert := mustParse(t, "INSERT INTO items VALUES ('a')")
	_, err := p.Write(func(c *Conn) error {
		_, err := c.Run(t.Context(), insert, DefaultLimits)
		return errors.Join(err, failed)
	})
	if !errors.Is(err, failed) {
		t.Fatal(err)
	}
	func() {
		defer func() { _ = recover() }()
		_, _ = p.Write(func(c *Conn) error {
			_, _ = c.Run(t.Context(), insert, DefaultLimits)
			panic("a fault")
		})
	}()
	if _, err := p.write(t, "INSERT INTO items VALUES ('b')"); err != nil {
		t.Fatal(err)
	}
	r, err := p.Read(t.Context(), mustParse(t, "SELECT group_concat(name) FROM items"), DefaultLimits)
	if err != nil || r.Rows[0][0] != "b" {
		t.Errorf("%v, %v", r.Rows, err)
	}
}

func TestCloseClosesConnections(t *testing.T) {
	p := newPool(t)
	before := sqlite.Count()
	if _, err := p.write(t, "DELETE FROM items"); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Read(t.Context(), mustParse(t, "SELECT 1"), DefaultLimits); err != nil {
		t.Fatal(err)
	}
	if n := sqlite.Count() - before; n != 2 {
		t.Errorf("%d connections open, want a reader and a writer", n)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if n := sqlite.Count() - before; n != 0 {
		t.Errorf("%d connections left open", n)
	}
}

// TestGuardIsClosedByDefault checks that nothing can be prepared outside of a client's
// statement.
func TestGuardIsClosedByDefault(t *testing.T) {
	p := newPool(t)
	for _, mode := range []sqlite.Mode{sqlite.ReadOnly, sqlite.ReadWrite} {
		c, err := p.open(mode, nil)
		if err != nil {
			t.Fatal(err)
		}
		if s, err := c.sql.Prepare("SELECT 1"); err == nil {
			s.Close()
			t.Error("a statement was prepared without a client")
		}
		if err := c.close(); err != nil {
			t.Error(err)
		}
	}
}

// TestCheckRunsNothing checks that PRAGMAs which SQLite runs while it compiles them are
// not run.
func TestCheckRunsNothing(t *testing.T) {
	tls := libc.NewTLS()
	defer tls.Close()
	defer lib.Xsqlite3_hard_heap_limit64(tls, 0)
	if err := CheckSpans("PRAGMA hard_heap_limit = 1000000000", nil); err != nil {
		t.Error(err)
	}
	if limit := lib.Xsqlite3_hard_heap_limit64(tls, -1); limit != 0 {
		t.Errorf("checking a statement has set the memory of the process to %d bytes", limit)
	}
}

func TestCheckSpans(t *testing.T) {
	for _, c := range []struct {
		query string
		ok    bool
	}{
		{"SELECT name FROM nowhere WHERE id = {{x}}", true},
		{"SELECT name FROM nowhere WHERE id = '{{x}}'", true},
		{"SELECT \"syntax error\", {{x}}", true},
		{"INSERT INTO nowhere(a) VALUES ({{x}}) ON CONFLICT DO NOTHING RETURNING *", true},
		{"WITH a AS (SELECT {{x}}) UPDATE nowhere SET b = (SELECT * FROM a)", true},
		{"PRAGMA table_info({{x}})", false},
		{"SELECT {{x}} FROM FROM contacts", false},
		{"SELECT name FROM {{x}}", false},
		{"SELECT {{x}} nope nope", false},
		{"DROP TABLE {{x}}", false},
		{"SELECT {{x}}; SELECT 1", false},
		{"SELECT 'a {{x}}'", false},
	} {
		t.Run(c.query, func(t *testing.T) {
			var spans []Span
			for i := range c.query {
				if c.query[i:min(i+5, len(c.query))] == "{{x}}" {
					spans = append(spans, Span{i, i + 5})
				}
			}
			if err := CheckSpans(c.query, spans); (err == nil) != c.ok {
				t.Errorf("%v", err)
			}
		})
	}
}
