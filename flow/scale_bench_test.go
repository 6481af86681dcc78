package flow

import (
	"fmt"
	"testing"
)

// BenchmarkLoopOfCode runs loops of growing sizes whose body is a node of code
// that reads one item of the payload; the time per item is to stay the same.
func BenchmarkLoopOfCode(b *testing.B) {
	for _, n := range []int{100, 1000, 5000} {
		b.Run(fmt.Sprintf("items=%d", n), func(b *testing.B) {
			db, e := open(b)
			w := made(b, db, e, loopOver("code", `{"code":"return {twice: item.n * 2, of: trigger.items.length, same: trigger.items[index].n === item.n}"}`))
			input := numbered(n, 400)
			b.ResetTimer()
			for b.Loop() {
				mustComplete(b, ran(b, db, e, w, input))
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*n), "µs/item")
		})
	}
}

// BenchmarkLoopOfSet is the same with a node that only computes.
func BenchmarkLoopOfSet(b *testing.B) {
	for _, n := range []int{100, 1000, 5000} {
		b.Run(fmt.Sprintf("items=%d", n), func(b *testing.B) {
			db, e := open(b)
			w := made(b, db, e, loopOver("set", `{"values":{"n":"{{item.n}}"}}`))
			input := numbered(n, 400)
			b.ResetTimer()
			for b.Loop() {
				mustComplete(b, ran(b, db, e, w, input))
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*n), "µs/item")
		})
	}
}
