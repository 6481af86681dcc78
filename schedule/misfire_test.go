package schedule

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"satchel/agent"
	"satchel/agent/clock"
)

// TestDowntime covers an hour of downtime under each policy.
func TestDowntime(t *testing.T) {
	for policy, calls := range map[string]int{agent.MisfireRunOnce: 1, agent.MisfireSkip: 0, agent.MisfireRunAll: 60} {
		t.Run(policy, func(t *testing.T) {
			path := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				h := open(t, path)
				s := h.make(t, `{"type":"cron","cron_expression":"* * * * *","misfire_policy":"`+policy+`"}`)
				pass(90 * time.Second)
				want(t, "calls before", h.calls.count(), 1)
				h.close(t)
				time.Sleep(time.Hour)
				h = open(t, path)
				synctest.Wait()
				want(t, "immediate calls", h.calls.count(), calls)
				_, runs := h.get(t, s.ID)
				missed := 0
				for _, r := range runs {
					if strings.HasPrefix(r, "missed") {
						missed++
					}
				}
				want(t, "missed and caught up", missed+calls, 60)
				pass(time.Minute)
				want(t, "calls a minute later", h.calls.count(), calls+1)
				if policy == agent.MisfireRunAll {
					for i := 1; i < 60; i++ {
						if !h.calls.seen[i].ScheduledFor.After(h.calls.seen[i-1].ScheduledFor.Time) {
							t.Fatal("missed runs are not caught up in order")
						}
					}
				}
				events := h.events(t, agent.EventScheduleMissed)
				if (len(events) == 1) != (missed > 0) {
					t.Errorf("%d events of missed runs", len(events))
				}
				for _, e := range events {
					var data struct {
						Schedule agent.Schedule
						Run      agent.Run
						Missed   int
					}
					if err := json.Unmarshal(e.Data, &data); err != nil ||
						data.Schedule.ID != s.ID ||
						data.Run.Status != agent.RunMissed ||
						data.Run.ScheduledFor.IsZero() ||
						data.Missed != missed {
						t.Errorf("the event is %s, %v", e.Data, err)
					}
				}
				h.close(t)
			})
		})
	}
}

func (h *fixture) events(t *testing.T, kind string) (found []agent.Event) {
	t.Helper()
	all, err := h.db.Events(t.Context(), 0, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		if e.Type == kind {
			found = append(found, e)
		}
	}
	return found
}

func TestMissedOnce(t *testing.T) {
	for policy, calls := range map[string]int{agent.MisfireRunOnce: 1, agent.MisfireSkip: 0, agent.MisfireRunAll: 1} {
		path := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			h := open(t, path)
			s := h.make(t, `{"type":"once","next_run":"2000-01-01T00:30:00Z","misfire_policy":"`+policy+`"}`)
			h.close(t)
			time.Sleep(time.Hour)
			h = open(t, path)
			synctest.Wait()
			got, _ := h.get(t, s.ID)
			want(
				t,
				policy+": calls and status",
				[]any{h.calls.count(), got.Status, got.NextRun},
				[]any{calls, "completed", ""},
			)
			h.close(t)
		})
	}
}

func TestOverlap(t *testing.T) {
	for overlap, wanted := range map[string]string{
		agent.OverlapSkip:  "00:01:00 00:04:00",
		agent.OverlapAllow: "00:01:00 00:02:00 00:03:00 00:04:00",
		agent.OverlapQueue: "00:01:00 00:03:30",
	} {
		bubble(t, func(t *testing.T, h *fixture) {
			h.calls.onCall(func(ctx context.Context, c Callback) error {
				return clock.Sleep(ctx, 150*time.Second)
			})
			s := h.make(t, `{"type":"cron","cron_expression":"* * * * *","overlap":"`+overlap+`"}`)
			pass(4*time.Minute + 30*time.Second)
			want(t, overlap, h.calls.times(), wanted)
			_, runs := h.get(t, s.ID)
			if overlap == agent.OverlapSkip {
				want(t, "runs", runs, []string{"running 00:04", "skipped 00:03", "skipped 00:02", "success 00:01"})
			}
			h.put(t, s.ID, `{"status":"paused"}`)
			pass(time.Hour)
			if overlap == agent.OverlapQueue {
				want(t, "all queued runs in turn", h.calls.times(), "00:01:00 00:03:30 00:06:00 00:08:30")
			}
		})
	}
}

// TestInterrupted stops the server during a run: it is started again with the
// same id, and only that one.
func TestInterrupted(t *testing.T) {
	path := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		h := open(t, path)
		h.calls.onCall(func(ctx context.Context, c Callback) error {
			<-ctx.Done()
			return ctx.Err()
		})
		s := h.make(t, `{"type":"once","next_run":"2000-01-01T00:01:00Z"}`)
		pass(2 * time.Minute)
		want(t, "calls", h.calls.count(), 1)
		interrupted := h.calls.seen[0].RunID
		h.close(t)
		time.Sleep(time.Hour)
		h = open(t, path)
		synctest.Wait()
		want(t, "calls of the next server", h.calls.count(), 1)
		want(t, "run", h.calls.seen[0].RunID, interrupted)
		got, runs := h.get(t, s.ID)
		want(t, "status and runs", []any{got.Status, runs}, "[completed [success 00:01]]")
		want(t, "executed events", len(h.events(t, agent.EventScheduleExecuted)), 1)
		h.close(t)
		h = open(t, path)
		pass(time.Hour)
		want(t, "calls of the third server", h.calls.count(), 0)
		h.close(t)
	})
}
