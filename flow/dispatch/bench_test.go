package dispatch

import (
	"context"
	"fmt"
	"testing"

	"satchel/agent"
	"satchel/store"
)

// BenchmarkDispatch dispatches waiting events to two consumers that do nothing,
// each advancing its cursor durably; "read" only reads the same rows, twice.
func BenchmarkDispatch(b *testing.B) {
	write := func(b *testing.B) *store.Folder {
		b.Helper()
		f := openFolder(b, b.TempDir())
		for from := 0; from < b.N; from += 1000 {
			rows := make([]agent.ContactChange, min(1000, b.N-from))
			for i := range rows {
				rows[i].Name = agent.Some(fmt.Sprint("Person ", from+i))
			}
			if _, err := f.Default().ImportContacts(b.Context(), rows, store.DuplicateError); err != nil {
				b.Fatal(err)
			}
		}
		b.ResetTimer()
		return f
	}
	report := func(b *testing.B) { b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s") }
	b.Run("read", func(b *testing.B) {
		f := write(b)
		for range 2 {
			for seq := int64(0); ; {
				events, err := f.Default().Events(b.Context(), seq, batchSize)
				if err != nil {
					b.Fatal(err)
				}
				if len(events) == 0 {
					break
				}
				seq = events[len(events)-1].Seq
			}
		}
		report(b)
	})
	b.Run("dispatch", func(b *testing.B) {
		f := write(b)
		done := make(chan int, b.N)
		handle := func(_ context.Context, _ *store.DB, events []agent.Event) (int, error) {
			done <- len(events)
			return len(events), nil
		}
		d := New(f, quiet, Consumer{Name: "one", Handle: handle}, Consumer{Name: "two", Handle: handle})
		begin(b, d)
		for n := 0; n < 2*b.N; {
			n += <-done
		}
		report(b)
	})
}
