package script

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// report reports the median and the 99th percentile.
func report(b *testing.B, times []time.Duration) {
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Microseconds()), "µs-p50")
	b.ReportMetric(float64(times[len(times)*99/100].Microseconds()), "µs-p99")
}

// BenchmarkEngine measures an engine on its own: creating it, once per child,
// and resetting it between two scripts.
func BenchmarkEngine(b *testing.B) {
	b.Run("new", func(b *testing.B) {
		for b.Loop() {
			if _, err := newEngine(&worker{}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("reset", func(b *testing.B) {
		e, err := newEngine(&worker{})
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if err := e.reset(); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(len(e.heap.image)), "bytes")
	})
}

// BenchmarkRun measures a small script: sending it, running it in a clean
// engine, and returning the result.
func BenchmarkRun(b *testing.B) {
	small := Call{
		Code:      "return {total: input.price * input.count}",
		Variables: map[string]any{"input": map[string]any{"price": 3, "count": 4}},
	}
	rows := make([]any, 1000)
	for i := range rows {
		rows[i] = map[string]any{"id": i, "name": fmt.Sprint("row ", i), "price": 1.5}
	}
	list := Call{
		Code:      "return input.rows.filter(r => r.id % 2).map(r => r.price).reduce((a, b) => a + b)",
		Variables: map[string]any{"input": map[string]any{"rows": rows}},
	}
	for name, call := range map[string]Call{"small": small, "1000 rows": list} {
		b.Run("warm/"+name, func(b *testing.B) {
			p := newPool(b, Options{Size: 1})
			var times []time.Duration
			for b.Loop() {
				start := time.Now()
				if _, err := p.Run(b.Context(), call); err != nil {
					b.Fatal(err)
				}
				times = append(times, time.Since(start))
			}
			report(b, times)
		})
	}
	b.Run("cold/small", func(b *testing.B) {
		var times []time.Duration
		for b.Loop() {
			b.StopTimer()
			p := newPool(b, Options{Size: 1, Warm: 1})
			b.StartTimer()
			start := time.Now()
			if _, err := p.Run(b.Context(), small); err != nil {
				b.Fatal(err)
			}
			times = append(times, time.Since(start))
			b.StopTimer()
			p.Stop()
			b.StartTimer()
		}
		report(b, times)
	})
	b.Run("parallel/small", func(b *testing.B) {
		p := newPool(b, Options{})
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := p.Run(b.Context(), small); err != nil {
					b.Fatal(err)
				}
			}
		})
	})
}
