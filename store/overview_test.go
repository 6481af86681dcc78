package store

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"satchel/agent"
)

// fillPast writes executions and messages, spread evenly over the last days.
func fillPast(tb testing.TB, db *DB, n, days int) {
	tb.Helper()
	input := `{"order":"` + strings.Repeat("x", 300) + `"}`
	step := time.Duration(days) * 24 * time.Hour / time.Duration(n)
	began := time.Now().Add(-time.Duration(days) * 24 * time.Hour)
	err := db.Do(tb.Context(), func(tx *Tx) error {
		for _, statement := range []string{
			"INSERT INTO workflows(id, name) VALUES ('workflow-1', 'w')",
			"INSERT INTO conversations(id) VALUES ('conversation-1')",
		} {
			if _, err := tx.exec(statement); err != nil {
				return err
			}
		}
		for i := range n {
			at := began.Add(time.Duration(i) * step)
			status := []string{"complete", "complete", "complete", "errored", "terminated"}[i%5]
			if _, err := tx.exec(
				"INSERT INTO executions(id, workflow_id, version, status, trigger, input, error, created_at, "+
					"started_at, completed_at) VALUES (?,'workflow-1',1,?,'manual',?,?,?,?,?)",
				agent.FirstID(agent.KindExecution, at),
				status,
				input,
				fmt.Sprintf(`{"code":"X","message":"e%d","node_id":"n"}`, i%7),
				agent.At(at),
				agent.At(at),
				agent.At(at.Add(time.Duration(i%100)*time.Millisecond)),
			); err != nil {
				return err
			}
			if _, err := tx.exec(
				"INSERT INTO messages(conversation_id, role, content, created_at) VALUES ('conversation-1',?,?,?)",
				[]string{"user", "assistant"}[i%2],
				input,
				agent.At(at),
			); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
}

// TestSeries checks that each record counts for its own day only.
func TestSeries(t *testing.T) {
	db := openFolder(t).Default()
	fillPast(t, db, 1000, 10)
	o, err := db.Overview(t.Context(), 14)
	if err != nil {
		t.Fatal(err)
	}
	sum := func(all []int) (n int) {
		for _, v := range all {
			n += v
		}
		return n
	}
	s := o.Series
	if sum(s.Executions.Complete) != 600 ||
		sum(s.Executions.Errored) != 200 ||
		sum(s.Executions.Terminated) != 200 ||
		sum(s.Messages.In) != 500 ||
		sum(s.Messages.Out) != 500 {
		t.Errorf("series: %+v", s)
	}
	for i, n := range s.Executions.Complete[5:13] {
		if n != 60 ||
			s.Messages.In[5+i] != 50 ||
			s.Duration.P95[5+i] < 90 ||
			s.Duration.P50[5+i] < 40 ||
			s.Duration.P50[5+i] > 60 {
			t.Errorf(
				"day %s: %d complete, %d messages in, %d and %d ms",
				s.Days[5+i],
				n,
				s.Messages.In[5+i],
				s.Duration.P50[5+i],
				s.Duration.P95[5+i],
			)
		}
	}
	if len(o.Failures) != 7 || o.Failures[0].Count < 2 || o.Failures[0].NodeID != "n" {
		t.Errorf("failures: %+v", o.Failures)
	}
}

// BenchmarkOverview reads the overview of files of different sizes.
func BenchmarkOverview(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			f, err := Open(Options{Path: b.TempDir()})
			if err != nil {
				b.Fatal(err)
			}
			defer f.Close()
			fillPast(b, f.Default(), n, 14)
			b.Run("overview", func(b *testing.B) {
				for b.Loop() {
					if _, err := f.Default().Overview(b.Context(), 14); err != nil {
						b.Fatal(err)
					}
				}
			})
			b.Run("inbox", func(b *testing.B) {
				for b.Loop() {
					if _, err := f.Default().Inbox(b.Context()); err != nil {
						b.Fatal(err)
					}
				}
			})
			b.Run("attention", func(b *testing.B) {
				for b.Loop() {
					if _, err := f.Default().Attention(b.Context()); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}
