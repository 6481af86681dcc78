package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	lib "modernc.org/sqlite/lib"
)

func TestMain(m *testing.M) {
	CheckUse = true
	os.Exit(m.Run())
}

func open(t testing.TB, s Source) *Conn {
	t.Helper()
	c, err := Open(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func exec(t testing.TB, c *Conn, query string, args ...any) Result {
	t.Helper()
	r, err := c.Exec(query, args...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return r
}

// FuzzValues binds a value of every type and reads it back, before and after values of
// other sizes.
func FuzzValues(f *testing.F) {
	f.Add("", []byte{}, int64(0), 0.0, uint(0))
	f.Add("a\x00b", []byte{0}, int64(math.MinInt64), math.Inf(-1), uint(255))
	f.Add("ünïcödé", []byte("blob"), int64(math.MaxInt64), math.SmallestNonzeroFloat64, uint(minBuffer))
	f.Add(
		strings.Repeat("x", minBuffer),
		bytes.Repeat([]byte{1}, largestBuffer+1),
		int64(1),
		math.MaxFloat64,
		uint(largestBuffer),
	)
	c := open(f, Source{})
	f.Fuzz(func(t *testing.T, s string, b []byte, n int64, x float64, size uint) {
		filler := strings.Repeat("f", int(size%(3*largestBuffer)))
		for range 2 {
			var gotText, gotFiller string
			var gotBlob []byte
			var gotInt int64
			var gotFloat *float64
			var none any
			err := c.QueryRow("SELECT ?, ?, ?, ?, ?, ?", s, b, n, x, filler, nil).
				Scan(&gotText, &gotBlob, &gotInt, &gotFloat, &gotFiller, &none)
			if err != nil {
				t.Fatal(err)
			}
			if gotText != s || !bytes.Equal(gotBlob, b) || gotInt != n || gotFiller != filler || none != nil {
				t.Fatalf("%q %q %d %q, want %q %q %d %q", gotText, gotBlob, gotInt, gotFiller, s, b, n, filler)
			}
			if math.IsNaN(x) != (gotFloat == nil) || gotFloat != nil && *gotFloat != x {
				t.Fatalf("%v, want %v", gotFloat, x)
			}
			filler += s
		}
	})
}

type kind string

type shouting string

func (s *shouting) UnmarshalText(b []byte) error {
	*s = shouting(strings.ToUpper(string(b)))
	return nil
}

type stamp struct{ zero bool }

func (s stamp) Value() any {
	if s.zero {
		return nil
	}
	return "now"
}

func (s *stamp) Scan(value any) error {
	s.zero = value == nil
	return nil
}

func TestConversions(t *testing.T) {
	c := open(t, Source{})
	text := "t"
	for _, test := range []struct {
		value, into any
		want        string // empty: an error
	}{
		{"a", new(string), "a"},
		{"a", new(kind), "a"},
		{kind("a"), new(string), "a"},
		{&text, new(*string), "t"},
		{(*string)(nil), new(*string), "<nil>"},
		{"a", new([]byte), "a"},
		{"a", new(shouting), "A"},
		{[]byte("a"), new(string), "a"},
		{5, new(string), "5"},
		{5, new(kind), "5"},
		{5, new(uint8), "5"},
		{5, new(float64), "5"},
		{true, new(bool), "true"},
		{true, new(int), "1"},
		{1.5, new(string), "1.5"},
		{2.0, new(int), "2"},
		{uint32(7), new(int64), "7"},
		{nil, new(stamp), "{true}"},
		{stamp{}, new(stamp), "{false}"},
		{stamp{zero: true}, new(any), "<nil>"},
		{300, new(uint8), ""},
		{-1, new(uint8), ""},
		{2, new(bool), ""},
		{1.5, new(int), ""},
		{"5", new(int), ""},
		{"x", new(float64), ""},
		{nil, new(string), ""},
		{nil, new(int), ""},
		{uint64(math.MaxUint64), new(any), ""},
		{struct{}{}, new(any), ""},
		{"a", new(struct{}), ""},
		{"a", "no pointer", ""},
	} {
		t.Run(fmt.Sprintf("%T to %T", test.value, test.into), func(t *testing.T) {
			err := c.QueryRow("SELECT ?", test.value).Scan(test.into)
			if test.want == "" {
				if err == nil {
					t.Error("want an error")
				}
				return
			}
			if got := shown(test.into); err != nil || got != test.want {
				t.Errorf("%s, %v, want %s", got, err, test.want)
			}
		})
	}
}

// shown returns what a pointer points at.
func shown(p any) string {
	switch v := p.(type) {
	case **string:
		if *v == nil {
			return "<nil>"
		}
		return **v
	case *[]byte:
		return string(*v)
	case *string:
		return *v
	case *kind:
		return string(*v)
	case *shouting:
		return string(*v)
	case *stamp:
		return fmt.Sprint(*v)
	case *any:
		return fmt.Sprint(*v)
	case *bool:
		return fmt.Sprint(*v)
	case *int:
		return fmt.Sprint(*v)
	case *int64:
		return fmt.Sprint(*v)
	case *uint8:
		return fmt.Sprint(*v)
	case *float64:
		return fmt.Sprint(*v)
	}
	return "?"
}

// A statement can run again while its rows are being read.
func TestStatementRunsWhileItIsRead(t *testing.T) {
	c := open(t, Source{})
	const query = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < ?) SELECT n FROM c"
	outer, err := c.Query(query, 3)
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for outer.Next() {
		inner, err := c.Query(query, 2)
		if err != nil {
			t.Fatal(err)
		}
		for inner.Next() {
			seen++
		}
		inner.Close()
	}
	outer.Close()
	if outer.Err() != nil || seen != 6 || len(c.uncached) != 0 {
		t.Errorf("%d rows, %v, %d statements left", seen, outer.Err(), len(c.uncached))
	}
	if next, err := c.Query(query, 1); err != nil || outer.Next() || !next.Next() {
		t.Error(err)
	} else {
		outer.Close() // that were closed before
		if next.Next() || next.Err() != nil {
			t.Error(next.Err())
		}
	}
}

func TestStatementsAreBounded(t *testing.T) {
	c := open(t, Source{})
	for i := range 2 * maxStatements {
		exec(t, c, fmt.Sprintf("SELECT %d", i))
		exec(t, c, "SELECT 'often'")
	}
	if len(c.cached) > maxStatements {
		t.Errorf("%d statements are kept", len(c.cached))
	}
	if c.cached["SELECT 'often'"] == nil || c.cached["SELECT 0"] != nil {
		t.Error("a statement other than the least recently used was closed")
	}
}

func TestErrors(t *testing.T) {
	c := open(t, Source{})
	exec(t, c, "CREATE TABLE t(x TEXT UNIQUE)")
	exec(t, c, "INSERT INTO t VALUES ('a')")
	_, err := c.Exec("INSERT INTO t VALUES (?)", "a")
	if e := (*Error)(nil); !errors.As(err, &e) || e.Code() != lib.SQLITE_CONSTRAINT_UNIQUE {
		t.Errorf("%v, want an extended code", err)
	}
	if r := exec(t, c, "INSERT INTO t VALUES (?)", "b"); r.Changes != 1 || r.LastID != 2 {
		t.Errorf("%+v, want the statement to keep working", r)
	}
	for query, args := range map[string][]any{
		"SELECT ?":           {},
		"SELECT 1":           {1},
		"SELECT 1; SELECT 2": {},
		"":                   {},
		"SELECT nope":        {},
	} {
		if _, err := c.Exec(query, args...); err == nil {
			t.Errorf("%q with %v: want an error", query, args)
		}
	}
	if err := c.QueryRow("SELECT 1 WHERE 0").Scan(new(int)); !errors.Is(err, ErrNoRows) {
		t.Error(err)
	}
	if err := c.Script("CREATE TABLE u(x); INSERT INTO u VALUES (1); -- done\n"); err != nil {
		t.Error(err)
	}
}

const endless = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c"

func TestStatementsEnd(t *testing.T) {
	c := open(t, Source{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	c.SetLimits(ctx, Budget{})
	var n int
	err := c.QueryRow(endless).Scan(&n)
	c.ClearLimits()
	if e := (*Error)(nil); !errors.As(err, &e) || e.Code() != lib.SQLITE_INTERRUPT {
		t.Errorf("%v, want an interrupt", err)
	}
	stop := NewFunction("stop", func(s string) string {
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			c.Interrupt()
		}()
		<-ended
		return s
	})
	if err := c.Register(stop); err != nil {
		t.Fatal(err)
	}
	err = c.QueryRow(strings.Replace(endless, "SELECT count(*)", "SELECT count(stop(n))", 1)).Scan(&n)
	if e := (*Error)(nil); !errors.As(err, &e) || e.Code() != lib.SQLITE_INTERRUPT {
		t.Errorf("%v, want an interrupt", err)
	}
}

func TestConcurrentUsePanics(t *testing.T) {
	c := open(t, Source{})
	c.beginUse()
	defer c.endUse()
	defer func() {
		if recover() == nil {
			t.Error("want a panic")
		}
		c.busy.Store(true)
	}()
	_, _ = c.Exec("SELECT 1")
}

func TestCopyTo(t *testing.T) {
	from, to := filepath.Join(t.TempDir(), "a.db"), filepath.Join(t.TempDir(), "b.db")
	c := open(t, Source{Path: from, Mode: Create})
	exec(t, c, "CREATE TABLE t(x)")
	exec(t, c, "INSERT INTO t VALUES (randomblob(100000))")
	if err := c.CopyTo(t.Context(), Source{Path: to, Mode: Create}); err != nil {
		t.Fatal(err)
	}
	var n int
	if err := open(t, Source{Path: to, Mode: ReadOnly, Immutable: true}).
		QueryRow("SELECT length(x) FROM t").
		Scan(&n); err != nil || n != 100000 {
		t.Error(n, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.CopyTo(ended, Source{Path: to + "2", Mode: Create}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestFunction(t *testing.T) {
	c := open(t, Source{})
	if err := c.Register(NewFunction("backwards", func(s string) string {
		b := []rune(s)
		for i, j := 0, len(b)-1; i < j; i, j = i+1, j-1 {
			b[i], b[j] = b[j], b[i]
		}
		return string(b)
	})); err != nil {
		t.Fatal(err)
	}
	var got string
	if err := c.QueryRow("SELECT backwards(?) || backwards(NULL)", "añb").Scan(&got); err != nil || got != "bña" {
		t.Errorf("%q, %v", got, err)
	}
}
