package store

import (
	"context"
	"fmt"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"satchel/agent"
)

func BenchmarkCreateContact(b *testing.B) {
	for _, n := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("goroutines=%d", n), func(b *testing.B) {
			f, err := Open(Options{Path: b.TempDir()})
			if err != nil {
				b.Fatal(err)
			}
			defer f.Close()
			db := f.Default()
			ctx := WithActor(context.Background(), "bench@example.com")
			var seq atomic.Int64
			b.SetParallelism((n + 1) / 2)
			b.ReportAllocs()
			cpu := cpuTime()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					i := seq.Add(1)
					change := agent.ContactChange{Name: agent.Some("Ada Lovelace"), Email: agent.Some(fmt.Sprintf("ada%d@example.com", i)),
						Phone: agent.Some(fmt.Sprintf("+1 555 %07d", i)), Tags: agent.Some([]string{"vip"})}
					if _, err := db.CreateContact(ctx, change); err != nil {
						b.Fatal(err)
					}
				}
			})
			b.ReportMetric(float64((cpuTime()-cpu).Microseconds())/float64(b.N), "cpu-µs/op")
		})
	}
}

// cpuTime is the processor time that this process has used.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
