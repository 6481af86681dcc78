package postings

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"satchel/store/sqlite"
)

// table is an FTS5 table with small pages, and its expected content.
type table struct {
	*sqlite.Conn
	texts map[int64][2]string
}

func newTable(t testing.TB, page int) *table {
	c, err := sqlite.Open(sqlite.Source{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	tb := &table{c, map[int64][2]string{}}
	tb.do(t, "CREATE VIRTUAL TABLE f USING fts5(a, b, content='', tokenize='unicode61')")
	tb.do(t, "INSERT INTO f(f, rank) VALUES ('pgsz', ?)", page)
	return tb
}

func (tb *table) do(t testing.TB, query string, args ...any) {
	t.Helper()
	if _, err := tb.Exec(query, args...); err != nil {
		t.Fatal(err)
	}
}

func (tb *table) insert(t testing.TB, row int64, a, b string) {
	tb.do(t, "INSERT INTO f(rowid, a, b) VALUES (?,?,?)", row, a, b)
	tb.texts[row] = [2]string{a, b}
}

func (tb *table) delete(t testing.TB, row int64) {
	tb.do(t, "INSERT INTO f(f, rowid, a, b) VALUES ('delete',?,?,?)", row, tb.texts[row][0], tb.texts[row][1])
	delete(tb.texts, row)
}

// expected returns how often each row contains some consecutive words.
func (tb *table) expected(phrase string) map[int64]int32 {
	want := map[int64]int32{}
	words := strings.Fields(phrase)
	for row, texts := range tb.texts {
		for _, text := range texts {
			list := strings.Fields(text)
			for i := range list {
				if len(list)-i >= len(words) && slices.Equal(list[i:i+len(words)], words) {
					want[row]++
				}
			}
		}
	}
	return want
}

// check compares every term, some phrases and the vocabulary with the texts.
func (tb *table) check(t *testing.T, when string) {
	t.Helper()
	x, err := Open(tb.Query, "f")
	if err != nil {
		t.Fatalf("%s: %v", when, err)
	}
	vocabulary, words := map[string]bool{}, 0
	for _, texts := range tb.texts {
		for _, word := range strings.Fields(texts[0] + " " + texts[1]) {
			vocabulary[word] = true
			words++
		}
	}
	if x.Rows != len(tb.texts) || x.Words != words {
		t.Errorf("%s: %d rows of %d words, want %d of %d", when, x.Rows, x.Words, len(tb.texts), words)
	}
	read := func(term string) List {
		l, err := x.Term(term, true, 0)
		if err != nil {
			t.Fatalf("%s, %s: %v", when, term, err)
		}
		return l
	}
	sorted := slices.Sorted(maps.Keys(vocabulary))
	for i, term := range append(sorted, "absent", "w") {
		compare(t, when+", "+term, read(term), tb.expected(term))
		if next := sorted[(i*7+1)%len(sorted)]; i < len(sorted) {
			compare(t, when+", "+term+" "+next, Phrase([]List{read(term), read(next)}), tb.expected(term+" "+next))
		}
	}
	for n := range 100 {
		term := fmt.Sprint("w", n)
		if has, err := x.Contains(term); err != nil || has != vocabulary[term] {
			t.Errorf("%s: contains %s: %v, %v", when, term, has, err)
		}
	}
	terms, err := x.Terms("w1", 10_000)
	for _, term := range sorted {
		if _, has := slices.BinarySearch(terms, term); has != strings.HasPrefix(term, "w1") {
			t.Errorf("%s: %s is in the vocabulary: %v, %v", when, term, has, err)
		}
	}
}

func compare(t *testing.T, what string, got List, want map[int64]int32) {
	t.Helper()
	if len(got.Rows) != len(want) || !slices.IsSorted(got.Rows) || got.Cut {
		t.Errorf("%s: %d rows, want %d", what, len(got.Rows), len(want))
	}
	for i, row := range got.Rows {
		if got.Counts[i] != want[row] {
			t.Errorf("%s: %d times in row %d, want %d", what, got.Counts[i], row, want[row])
		}
	}
}

// TestReadsWhatFTS5Writes changes tables in many ways, and reads them after each change.
func TestReadsWhatFTS5Writes(t *testing.T) {
	for _, page := range []int{64, 200, 4050} {
		random := rand.New(rand.NewPCG(uint64(page), 1))
		tb := newTable(t, page)
		text := func(most int) string {
			var words []string
			for range random.IntN(most) {
				words = append(words, fmt.Sprint("w", int(random.ExpFloat64()*12)))
			}
			return strings.Join(words, " ")
		}
		row := int64(0)
		for step := range 24 {
			tb.do(t, "BEGIN")
			for range 1 + random.IntN(30) {
				row += 1 + int64(random.IntN(3)*random.IntN(400))
				tb.insert(t, row, text(4), text(90))
			}
			for _, old := range slices.Sorted(maps.Keys(tb.texts)) {
				if random.IntN(12) == 0 {
					before := tb.texts[old]
					tb.delete(t, old)
					if random.IntN(3) == 0 {
						tb.insert(t, old, before[1], text(20))
					}
				}
			}
			tb.do(t, "COMMIT")
			if step%8 == 5 {
				tb.do(t, "INSERT INTO f(f, rank) VALUES ('merge', ?)", 1+random.IntN(20)) // leaves it partly done
			}
			if step%4 == 0 || step > 22 {
				tb.check(t, fmt.Sprintf("page %d, step %d", page, step))
			}
		}
		tb.do(t, "INSERT INTO f(f) VALUES ('optimize')")
		tb.check(t, fmt.Sprintf("page %d, optimized", page))
	}
}

func TestLimits(t *testing.T) {
	tb := newTable(t, 64)
	for row := range int64(300) {
		tb.insert(t, row+1, "", fmt.Sprint("same v", row))
	}
	x, err := Open(tb.Query, "f")
	if err != nil {
		t.Fatal(err)
	}
	if l, err := x.Term("same", false, 50); err != nil || !l.Cut || len(l.Rows) <= 50 || len(l.Rows) == 300 {
		t.Errorf("%d rows, truncated %v, %v", len(l.Rows), l.Cut, err)
	}
	if terms, err := x.Terms("v2", 7); err != nil ||
		!slices.Equal(terms, []string{"v2", "v20", "v200", "v201", "v202", "v203", "v204"}) {
		t.Errorf("%v, %v", terms, err)
	}
	l, _ := x.Term("same", false, 0)
	for _, row := range []int64{0, 1, 2, 150, 299, 300, 301} {
		for from := range int(max(row, 1)) {
			if at := l.At(row, from); at != max(from, min(int(row)-1, 300)) {
				t.Fatalf("row %d from %d is at %d", row, from, at)
			}
		}
	}
}

// FuzzDamaged reads pages that FTS5 did not write: it must end, without a panic.
func FuzzDamaged(f *testing.F) {
	f.Add(10, 3, byte(255))
	f.Add(1<<37+1, 2, byte(9))
	f.Fuzz(func(t *testing.T, id, at int, value byte) {
		tb := newTable(t, 64)
		for row := range int64(30) {
			tb.insert(t, row+1, "", fmt.Sprint("some words w", row%7))
		}
		tb.do(
			t,
			"UPDATE f_data SET block = CAST(substr(block, 1, ?2) || ?3 || substr(block, ?2 + 2) AS BLOB) WHERE id = ?1",
			id,
			at,
			[]byte{value},
		)
		x, err := Open(tb.Query, "f")
		if err != nil {
			return
		}
		for _, term := range []string{"some", "w3", "words"} {
			_, _ = x.Contains(term)
			if l, err := x.Term(term, true, 1000); err == nil {
				Phrase([]List{l, l})
			}
		}
		_, _ = x.Terms("w", 100)
	})
}
