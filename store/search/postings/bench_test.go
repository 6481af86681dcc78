package postings

import (
	"fmt"
	"strings"
	"testing"
)

// BenchmarkTerm reads a term that every one of many rows has.
func BenchmarkTerm(b *testing.B) {
	const rows = 20_000
	tb := newTable(b, 4050)
	tb.do(b, "BEGIN")
	for row := range int64(rows) {
		tb.insert(b, row+1, "", fmt.Sprint(strings.Repeat("filler ", int(row%9)), "same v", row%500))
	}
	tb.do(b, "COMMIT")
	x, err := Open(tb.Query, "f")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if l, err := x.Term("same", false, 0); err != nil || len(l.Rows) != rows {
			b.Fatal(len(l.Rows), err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/row")
}
