package pg

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"satchel/store/cluster/pgtest"
)

// TestPG has one PostgreSQL for all that is tested.
func TestPG(t *testing.T) {
	server := pgtest.Start(t)
	for name, test := range map[string]func(*testing.T, *pgtest.Server, string){
		"values":       testValues,
		"misfits":      testMisfits,
		"errors":       testErrors,
		"batches":      testBatches,
		"transactions": testTransactions,
		"lost commit":  testLostCommit,
		"bound":        testBound,
		"cancel":       testCancel,
		"slow connect": testSlowConnect,
		"replaced":     testReplaced,
		"ages":         testAges,
		"closed":       testClosed,
	} {
		t.Run(name, func(t *testing.T) { test(t, server, server.Database(strings.ReplaceAll(name, " ", "_"))) })
	}
}

func TestPoolSettings(t *testing.T) {
	const base = "postgres://satchel:s3cret@db1,db2/satchel?target_session_attrs=any"
	for settings, want := range map[string]int{
		"":                     8,
		"&pool_max_conns=20":   20,
		"&pool_max_conns=6":    6,
		"&pool_max_conns=1000": 1000,
	} {
		p, err := New(base+settings, Options{Connections: 8, Least: 6})
		if err != nil || cap(p.slots) != want {
			t.Errorf("%q: %d connections, %v, want %d", settings, cap(p.slots), err, want)
			continue
		}
		if len(p.config.RuntimeParams) != 0 {
			t.Errorf("%q: PostgreSQL gets %v", settings, p.config.RuntimeParams)
		}
	}
	for settings, want := range map[string]string{
		"&pool_max_conns=5":    "pool_max_conns must be from 6 to 1000",
		"&pool_max_conns=1001": "pool_max_conns must be from 6 to 1000",
		"&pool_max_conns=many": "pool_max_conns must be from 6 to 1000",
		"&pool_max_conns=":     "pool_max_conns must be from 6 to 1000",
		"&pool_max_conns=9&pool_min_conns=2": "pool_min_conns is not supported: the only setting of " +
			"the pool is pool_max_conns",
		"&pool_max_conn_lifetime=1h": "pool_max_conn_lifetime is not supported: the only setting of " +
			"the pool is pool_max_conns",
		"&pool_max_conns_=9&application_name=x": "pool_max_conns_ is not supported: the only setting of " +
			"the pool is pool_max_conns",
	} {
		var setting *SettingError
		if _, err := New(base+settings, Options{Connections: 8, Least: 6}); !errors.As(err, &setting) ||
			err.Error() != want {
			t.Errorf("%q: %v, want %q", settings, err, want)
		}
	}
}

func open(t *testing.T, url string, connections int) *Pool {
	t.Helper()
	p, err := New(url, Options{
		Connections:    connections,
		ConnectTimeout: 5 * time.Second,
		Params:         map[string]string{"application_name": "pool"},
		Fatal:          []string{"25006"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func exec(t *testing.T, p *Pool, sql string, args ...any) {
	t.Helper()
	if _, err := p.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// one returns the only value of a statement.
func one[T any](t *testing.T, p *Pool, sql string, args ...any) (v T) {
	t.Helper()
	if err := p.QueryRow(t.Context(), sql, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

func code(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// What is stored is returned as it was, and the database understands it as it is meant.
func testValues(t *testing.T, _ *pgtest.Server, url string) {
	p := open(t, url+"&pool_max_conns=3", 1)
	texts := []string{"", "bread, rolls", `"quoted" \n {NULL}`, "line\nline", "Bäckerei 🥖", "NULL"}
	large := bytes.Repeat([]byte{0, 1, '\\', 255}, 1<<20)
	for _, text := range texts {
		if got := one[string](t, p, "SELECT $1::text", text); got != text {
			t.Errorf("%q became %q", text, got)
		}
		if got := one[[]byte](t, p, "SELECT $1::bytea", []byte(text)); got == nil || string(got) != text {
			t.Errorf("the bytes %q became %q", text, got)
		}
	}
	if got := one[[]byte](t, p, "SELECT $1::bytea", large); !bytes.Equal(got, large) {
		t.Errorf("%d bytes became %d others", len(large), len(got))
	}
	var gotTexts []string
	var gotBytes [][]byte
	for row, err := range p.Query(
		t.Context(),
		"SELECT a, b, n FROM unnest($1::text[], $2::bytea[], $3::bigint[]) WITH ORDINALITY AS u(a, b, n, i) ORDER BY i",
		texts,
		[][]byte{{}, large, {0}, {1}, {2}, []byte("x")},
		[]int64{1, -2, 3, 4, 5, 1 << 62},
	) {
		var text string
		var b []byte
		var n int64
		if err == nil {
			err = row.Scan(&text, &b, &n)
		}
		if err != nil {
			t.Fatal(err)
		}
		gotTexts, gotBytes = append(gotTexts, text), append(gotBytes, b)
		if want := []int64{1, -2, 3, 4, 5, 1 << 62}[len(gotTexts)-1]; n != want {
			t.Errorf("number %d became %d", want, n)
		}
	}
	if !slices.Equal(gotTexts, texts) ||
		len(gotBytes) != 6 ||
		len(gotBytes[0]) != 0 ||
		!bytes.Equal(gotBytes[1], large) ||
		string(gotBytes[5]) != "x" {
		t.Errorf("arrays became %q and %d others", gotTexts, len(gotBytes))
	}
	if n := one[int64](
		t,
		p,
		"SELECT count(*) FROM unnest($1::text[], $2::bytea[], $3::bigint[])",
		[]string(nil),
		[][]byte{},
		[]int64{},
	); n != 0 {
		t.Errorf("empty arrays have %d elements", n)
	}
	if got := one[int](
		t,
		p,
		"SELECT sum(n)::int FROM generate_series(1, 9) n WHERE n = ANY($1)",
		[]int64{2, 3},
	); got != 5 {
		t.Errorf("the numbers 2 and 3 as int4[] make %d", got)
	}
	for _, n := range []int64{0, -1, 1 << 31, -1 << 63, 1<<63 - 1} {
		if got := one[int64](t, p, "SELECT $1::bigint", n); got != n {
			t.Errorf("%d became %d", n, got)
		}
	}
	if got := one[int](t, p, "SELECT $1::int", -1<<31); got != -1<<31 {
		t.Errorf("%d became %d", -1<<31, got)
	}
	for _, f := range []float64{0, -0.1, 3600, 1e-300, 123456789.123456789} {
		if got := one[float64](t, p, "SELECT $1::float8", f); got != f {
			t.Errorf("%v became %v", f, got)
		}
	}
	if !one[bool](t, p, "SELECT $1 AND NOT $2", true, false) {
		t.Error("true is false")
	}
	for _, at := range []time.Time{
		{},
		time.Unix(0, 0),
		time.Date(1999, 12, 31, 23, 59, 59, 999_999_000, time.UTC),
		time.Date(2026, 3, 29, 2, 30, 0, 1000, time.FixedZone("", 3600)),
	} {
		if got := one[time.Time](t, p, "SELECT $1::timestamptz", at); !got.Equal(at) {
			t.Errorf("%v became %v", at, got)
		}
		if got := one[string](
			t,
			p,
			"SELECT to_char($1::timestamptz AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US')",
			at,
		); got != at.UTC().Format("2006-01-02 15:04:05.000000") {
			t.Errorf("%v is %s there", at, got)
		}
	}
	for sql, want := range map[string]int64{"SELECT NULL::bigint": 0, "SELECT 7::bigint": 7} {
		if got := one[*int64](t, p, sql); (got == nil) != (want == 0) || got != nil && *got != want {
			t.Errorf("%s is %v", sql, got)
		}
	}
}

// Values that do not fit are errors, and cost nothing but the statement.
func testMisfits(t *testing.T, _ *pgtest.Server, url string) {
	p := open(t, url, 1)
	for _, c := range []struct {
		sql  string
		args []any
		to   any
		says string
	}{
		{"SELECT 1::bigint", nil, new(string), "type 20"},
		{"SELECT 'abcd'::text", nil, new(int), "type 25"},
		{"SELECT 'abcd'::text", nil, new([]byte), "type 25"},
		{"SELECT NULL::text", nil, new(string), "NULL: true"},
		{"SELECT NULL::bool", nil, new(bool), "NULL: true"},
		{"SELECT 1::numeric", nil, new(float64), "type 1700"},
		{"SELECT now()::timestamp", nil, new(time.Time), "type 1114"},
		{"SELECT 1", nil, new(uint8), "*uint8"},
		{"SELECT 1, 2", nil, new(int), "2 columns"},
		{"SELECT $1::text", []any{[]float64{1}}, new(string), "[]float64"},
		{"SELECT $1::text", []any{"a", "b"}, new(string), "requires 1"},
		{"SELECT $1::int", []any{1 << 40}, new(int), "out of range"},
		{"SELECT 1 WHERE false", nil, new(int), ErrNoRows.Error()},
	} {
		if err := p.QueryRow(t.Context(), c.sql, c.args...).Scan(c.to); err == nil ||
			!strings.Contains(err.Error(), c.says) {
			t.Errorf("%s %v to %T: %v", c.sql, c.args, c.to, err)
		}
		if got := one[int](t, p, "SELECT 1"); got != 1 {
			t.Errorf("after %s: %d", c.sql, got)
		}
	}
}

// The error of a statement is found wherever it arises, also after its first rows, and
// when it is committed.
func testErrors(t *testing.T, _ *pgtest.Server, url string) {
	p := open(t, url, 1)
	exec(t, p, "CREATE TABLE bread (name text PRIMARY KEY DEFERRABLE INITIALLY DEFERRED); CREATE TABLE rolls (n int)")
	exec(t, p, "INSERT INTO bread VALUES ($1)", "rye")
	var n int
	if err := p.QueryRow(
		t.Context(),
		"SELECT 1 / (2 - n) FROM generate_series($1::int, 3) n",
		1,
	).Scan(&n); code(err) != "22012" {
		t.Errorf("an error after the first row: %d, %v", n, err)
	}
	rows := 0
	var last error
	for row, err := range p.Query(t.Context(), "SELECT 1 / (2 - n) FROM generate_series($1::int, 3) n", 1) {
		if last = err; err == nil {
			last = row.Scan(&n)
			rows++
		}
	}
	if rows != 1 || code(last) != "22012" {
		t.Errorf("%d rows, then %v", rows, last)
	}
	var name string
	if err := p.QueryRow(
		t.Context(),
		"INSERT INTO bread VALUES ($1) RETURNING name",
		"rye",
	).Scan(&name); code(err) != "23505" {
		t.Errorf("an error of the commit: %q, %v", name, err)
	}
	if _, err := p.Exec(t.Context(), "INSERT INTO bread VALUES ($1)", "rye"); code(err) != "23505" {
		t.Errorf("an error of the commit: %v", err)
	}
	if _, err := p.Exec(t.Context(), "INSERT INTO rolls VALUES (1); SELECT 1 / 0"); code(err) != "22012" {
		t.Errorf("the second of two statements: %v", err)
	}
	if n := one[int64](t, p, "SELECT count(*) FROM rolls"); n != 0 {
		t.Errorf("the first of two statements was executed: %d", n)
	}
	// the others are discarded
	for row, err := range p.Query(t.Context(), "SELECT n FROM generate_series(1, 100000) n") {
		if err == nil {
			err = row.Scan(&n)
		}
		if err != nil || n != 1 {
			t.Errorf("the first of many rows: %d, %v", n, err)
		}
		break
	}
	done, err := p.Exec(t.Context(), "INSERT INTO rolls SELECT generate_series(1, $1)", 3)
	if err != nil || done.RowsAffected() != 3 {
		t.Errorf("three rows: %v, %v", done, err)
	}
}

// A batch is executed as a whole or not at all.
func testBatches(t *testing.T, _ *pgtest.Server, url string) {
	p := open(t, url, 1)
	exec(t, p, "CREATE TABLE bread (name text PRIMARY KEY)")
	var read []string
	store := func(row Row) error {
		var name string
		err := row.Scan(&name)
		read = append(read, name)
		return err
	}
	const insert, list = "INSERT INTO bread VALUES ($1)", "SELECT name FROM bread ORDER BY name"
	err := p.ExecBatch(t.Context(), Batch{
		{SQL: list, Read: store},
		{SQL: insert, Args: []any{"rye"}},
		{SQL: insert, Args: []any{"spelt"}},
		{SQL: list},
		{SQL: list, Read: store},
	})
	if err != nil || !slices.Equal(read, []string{"rye", "spelt"}) {
		t.Errorf("a batch: %q, %v", read, err)
	}
	if err := p.ExecBatch(t.Context(), Batch{
		{SQL: insert, Args: []any{"oat"}},
		{SQL: insert, Args: []any{"rye"}},
		{SQL: list, Read: store},
	}); code(err) != "23505" {
		t.Errorf("a batch whose second statement fails: %v", err)
	}
	broken := errors.New("broken")
	if err := p.ExecBatch(t.Context(), Batch{
		{SQL: list, Read: func(Row) error { return broken }},
		{SQL: list, Read: store},
	}); !errors.Is(err, broken) {
		t.Errorf("a batch whose first rows cannot be read: %v", err)
	}
	if n := one[int64](t, p, "SELECT count(*) FROM bread"); n != 2 || len(read) != 2 {
		t.Errorf("%d rows, %q were read", n, read)
	}
}

// A transaction is committed as a whole, or its connection is as before.
func testTransactions(t *testing.T, _ *pgtest.Server, url string) {
	p := open(t, url, 1)
	exec(t, p, "CREATE TABLE bread (name text PRIMARY KEY DEFERRABLE INITIALLY DEFERRED)")
	insert := func(tx *Tx, name string) error {
		_, err := tx.Exec(t.Context(), "INSERT INTO bread VALUES ($1)", name)
		return err
	}
	broken := errors.New("broken")
	for _, c := range []struct {
		do func(tx *Tx) error
		is func(error) bool
	}{
		{func(tx *Tx) error { return insert(tx, "rye") }, func(err error) bool { return err == nil }},
		{
			func(tx *Tx) error { return cmp.Or(insert(tx, "oat"), broken) },
			func(err error) bool { return errors.Is(err, broken) },
		},
		// at the commit
		{func(tx *Tx) error { return insert(tx, "rye") }, func(err error) bool { return code(err) == "23505" }},
		{func(tx *Tx) error {
			_, err := tx.Exec(t.Context(), "SELECT 1 / $1", 0)
			return err
		}, func(err error) bool { return code(err) == "22012" }},
		{func(tx *Tx) error {
			_, _ = tx.Exec(t.Context(), "SELECT 1 / 0")
			return nil
		}, func(err error) bool { return errors.Is(err, errRolledBack) }},
	} {
		if err := p.Transact(t.Context(), c.do); !c.is(err) {
			t.Errorf("a transaction: %v", err)
		}
	}
	func() {
		defer func() { _ = recover() }()
		_ = p.Transact(t.Context(), func(tx *Tx) error {
			_ = insert(tx, "spelt")
			for range tx.Query(t.Context(), "SELECT generate_series(1, 10)") {
				panic("broken")
			}
			return nil
		})
	}()
	if n := one[int64](t, p, "SELECT count(*) FROM bread"); n != 1 {
		t.Errorf("%d rows were committed", n)
	}
	tx, err := p.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := insert(tx, "oat"); code(err) != "25006" {
		t.Errorf("a change of a snapshot: %v", err)
	}
	tx.Rollback(t.Context())
	other := open(t, url, 1)
	if tx, err = p.Snapshot(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context())
	for range 2 {
		var n int64
		if err := tx.QueryRow(t.Context(), "SELECT count(*) FROM bread").Scan(&n); err != nil || n != 1 {
			t.Errorf("a snapshot has %d rows, %v", n, err)
		}
		exec(t, other, "INSERT INTO bread VALUES (gen_random_uuid()::text)")
	}
}

// A commit whose answer is lost is an error that is not the database's.
func testLostCommit(t *testing.T, server *pgtest.Server, url string) {
	relay := pgtest.NewRelay(t)
	relay.To(server.Addr())
	p := open(t, strings.Replace(url, server.Addr(), relay.Addr(), 1), 1)
	exec(t, p, "CREATE TABLE bread (name text)")
	err := p.Transact(t.Context(), func(tx *Tx) error {
		_, err := tx.Exec(t.Context(), "INSERT INTO bread VALUES ($1)", "rye")
		relay.Lose(true)
		return err
	})
	<-relay.Lost
	relay.Lose(false)
	if err == nil || code(err) != "" {
		t.Errorf("a commit whose answer was lost: %v", err)
	}
	if n := one[int64](t, p, "SELECT count(*) FROM bread"); n != 1 {
		t.Errorf("%d rows were committed", n)
	}
}

// Whoever finds all connections in use waits for one, but not longer than asked.
func testBound(t *testing.T, _ *pgtest.Server, url string) {
	p := open(t, url, 2)
	var held []*Tx
	for range 2 {
		tx, err := p.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, tx)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := p.Exec(ctx, "SELECT 1"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a third connection: %v", err)
	}
	done := make(chan error)
	go func() {
		_, err := p.Exec(t.Context(), "SELECT 1")
		done <- err
	}()
	held[0].Rollback(t.Context())
	if err := <-done; err != nil {
		t.Errorf("the one who waited: %v", err)
	}
	held[1].Rollback(t.Context())
	if n := one[int64](t, p, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"); n != 2 {
		t.Errorf("%d connections", n)
	}
}

// A statement that takes too long is cancelled in the database too, and so is a
// transaction.
func testCancel(t *testing.T, server *pgtest.Server, url string) {
	p := open(t, url, 1)
	exec(t, p, "CREATE TABLE bread (name text)")
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	err := p.Transact(ctx, func(tx *Tx) error {
		if _, err := tx.Exec(ctx, "INSERT INTO bread VALUES ($1)", "rye"); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "SELECT pg_sleep($1)", 300)
		return err
	})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a long statement: %v", err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	err = errors.Join(err, p.Transact(ctx, func(tx *Tx) error {
		defer cancel() // so that neither "commit" nor "rollback" is sent
		_, err := tx.Exec(ctx, "INSERT INTO bread VALUES ($1)", "rye")
		return err
	}))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a commit that nobody waits for: %v", err)
	}
	if n := one[int64](t, p, "SELECT count(*) FROM bread"); n != 0 { // on another connection: there may be one
		t.Errorf("%d rows were committed", n)
	}
	p.Close()
	if n := server.Query(
		"postgres",
		"SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep%' AND state = 'active' "+
			"AND pid <> pg_backend_pid()",
	); n != "0" {
		t.Errorf("%s statements are still executed", n)
	}
}

// A connection attempt continues after its caller has stopped waiting.
func testSlowConnect(t *testing.T, server *pgtest.Server, url string) {
	relay := pgtest.NewRelay(t)
	relay.To(server.Addr())
	resume := relay.Stall()
	p := open(t, strings.Replace(url, server.Addr(), relay.Addr(), 1), 1)
	var attempts atomic.Int64
	dial := p.config.DialFunc
	p.config.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		attempts.Add(1)
		return dial(ctx, network, addr)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := p.Exec(ctx, "SELECT 1"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("connected through a relay that does nothing: %v", err)
	}
	resume()
	exec(t, p, "SELECT 1")
	if n := attempts.Load(); n != 1 {
		t.Errorf("there were %d attempts to connect", n)
	}
	relay.To("")
	if _, err := p.Exec(t.Context(), "SELECT 1"); err == nil {
		t.Error("a statement on a connection that was cut")
	}
	if _, err := p.Exec(t.Context(), "SELECT 1"); err == nil || len(p.slots) != 0 {
		t.Errorf("connected to nothing: %v, %d slots are taken", err, len(p.slots))
	}
}

// Connections that cannot be used are replaced: before a statement if they were not used
// for a while, otherwise after it.
func testReplaced(t *testing.T, _ *pgtest.Server, url string) {
	p, other := open(t, url, 1), open(t, url, 1)
	exec(t, p, "CREATE TABLE bread (name text); INSERT INTO bread VALUES ('rye')")
	const list = "SELECT * FROM bread"
	for _, c := range []struct {
		name   string
		harm   func(pid int)
		unused bool
		code   string
	}{
		{
			"terminated while unused",
			func(pid int) { exec(t, other, "SELECT pg_terminate_backend($1, 60000)", pid) },
			true,
			"",
		},
		{"terminated", func(pid int) { exec(t, other, "SELECT pg_terminate_backend($1, 60000)", pid) }, false, "57P01"},
		{"table changed", func(int) { exec(t, other, "ALTER TABLE bread ADD COLUMN price int") }, false, "0A000"},
		{"statements discarded", func(int) { exec(t, p, "DEALLOCATE ALL") }, false, "26000"},
	} {
		exec(t, p, "SELECT pg_backend_pid()")
		for range p.Query(t.Context(), list) { // is prepared
		}
		before := one[int](t, p, "SELECT pg_backend_pid()")
		c.harm(before)
		if c.unused {
			p.idle[0].used = time.Now().Add(-2 * checkAfter)
		}
		var got error
		for _, err := range p.Query(t.Context(), list) {
			got = err
		}
		broken := c.code == "57P01" && got != nil // what the server says last may not arrive
		if code(got) != c.code && !broken || c.unused && got != nil {
			t.Errorf("%s: %v", c.name, got)
		}
		for _, err := range p.Query(t.Context(), list) {
			if err != nil {
				t.Errorf("after %s: %v", c.name, err)
			}
		}
		if pid := one[int](t, p, "SELECT pg_backend_pid()"); pid == before {
			t.Errorf("%s: the connection is still used", c.name)
		}
	}
	before := one[int](t, p, "SELECT pg_backend_pid()")
	exec(t, p, "SET default_transaction_read_only = on")
	if _, err := p.Exec(t.Context(), "CREATE TABLE rolls ()"); code(err) != "25006" {
		t.Errorf("a change on a connection that is read-only: %v", err)
	}
	exec(t, p, "CREATE TABLE rolls ()")
	if pid := one[int](t, p, "SELECT pg_backend_pid()"); pid == before {
		t.Error("the connection that is read-only is still used")
	}
}

// Connections that are old are replaced, those that are not needed are closed.
func testAges(t *testing.T, server *pgtest.Server, url string) {
	p := open(t, url, 3)
	first := one[int](t, p, "SELECT pg_backend_pid()")
	p.idle[0].opened = time.Now().Add(-maxAge - time.Second)
	second, third := one[int](t, p, "SELECT pg_backend_pid()"), one[int](t, p, "SELECT pg_backend_pid()")
	if first == second || second != third {
		t.Errorf("the connections are %d, %d and %d", first, second, third)
	}
	var held []*Tx
	for range 3 {
		tx, err := p.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, tx)
	}
	for _, tx := range held {
		tx.Rollback(t.Context())
	}
	for _, c := range p.idle[:2] {
		c.used = time.Now().Add(-maxIdle - time.Second)
	}
	for range 2 {
		exec(t, p, "SELECT 1")
	}
	if len(p.idle) != 1 {
		t.Errorf("%d connections are kept", len(p.idle))
	}
	p.Close()
	if n := server.Query(
		"postgres",
		"SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pool' AND datname = 'ages'",
	); n != "0" {
		t.Errorf("%s connections are open", n)
	}
}

// Closing waits for what is being done, and then nothing can be.
func testClosed(t *testing.T, _ *pgtest.Server, url string) {
	p := open(t, url, 2)
	tx, err := p.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	closed := make(chan bool)
	go func() {
		p.Close()
		close(closed)
	}()
	<-p.ctx.Done()
	select {
	case <-closed:
		t.Error("closed while a transaction is open")
	default:
	}
	if got := fmt.Sprint(tx.QueryRow(t.Context(), "SELECT 1").Scan(new(int))); got != "<nil>" {
		t.Error(got)
	}
	tx.Rollback(t.Context())
	<-closed
	if _, err := p.Exec(t.Context(), "SELECT 1"); !errors.Is(err, errClosed) {
		t.Errorf("a statement on a closed pool: %v", err)
	}
}
