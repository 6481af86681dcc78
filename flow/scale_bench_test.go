package flow

import (
	"fmt"
	"testing"
)

// BenchmarkLoopOfCode runs loops of growing size whose body is a code node that
// reads one item of the payload. The time per item should stay constant.
func BenchmarkLoopOfCode(b *testing.B) {
	for _, n := range []int{100, 1000, 5000} {
		b.Run(fmt.Sprintf("items=%d", n), func(b *testing.B) {
			db, e := open(b)
			w := createWorkflow(
				b,
				db,
				e,
				loopOver(
					"code",
					`{"code":"return {twice: item.n * 2, of: trigger.items.length, same: `+
						`trigger.items[index].n === item.n}"}`,
				),
			)
			input := numbered(n, 400)
			b.ResetTimer()
			for b.Loop() {
				mustComplete(b, execute(b, db, e, w, input))
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*n), "µs/item")
		})
	}
}

// BenchmarkLoopOfSet does the same with a pure node.
func BenchmarkLoopOfSet(b *testing.B) {
	for _, n := range []int{100, 1000, 5000} {
		b.Run(fmt.Sprintf("items=%d", n), func(b *testing.B) {
			db, e := open(b)
			w := createWorkflow(b, db, e, loopOver("set", `{"values":{"n":"{{item.n}}"}}`))
			input := numbered(n, 400)
			b.ResetTimer()
			for b.Loop() {
				mustComplete(b, execute(b, db, e, w, input))
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*n), "µs/item")
		})
	}
}
