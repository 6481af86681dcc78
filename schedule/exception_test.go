package schedule

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"satchel/agent"
)

func at(t *testing.T, text string) agent.Time {
	t.Helper()
	var at agent.Time
	if err := at.UnmarshalText([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return at
}

func changeOf(t *testing.T, body string) (c agent.TaskChange) {
	t.Helper()
	if err := json.Unmarshal([]byte(body), &c); err != nil {
		t.Fatal(err)
	}
	return c
}

const dailyAtTen = `{"start_time":"2000-01-01T10:00:00Z","recurrence":"daily","recurrence_count":4}`

// TestChangedOccurrences has a task with one occurrence that is cancelled, one that is
// moved, and one that is moved and moved back.
func TestChangedOccurrences(t *testing.T) {
	bubble(t, func(t *testing.T, h *fixture) {
		task := h.task(t, dailyAtTen)
		if err := h.db.CancelOccurrence(t.Context(), task.ID, at(t, "2000-01-01T10:00:00Z")); err != nil {
			t.Fatal(err)
		}
		for _, change := range []struct{ start, body string }{
			{"2000-01-02T10:00:00Z", `{"start_time":"2000-01-03T15:00:00Z","title":"moved"}`},
			{"2000-01-04T10:00:00Z", `{"start_time":"2000-01-01T05:00:00Z"}`},
			{"2000-01-04T10:00:00Z", `{"start_time":null}`},
		} {
			if _, err := h.db.UpdateOccurrence(
				t.Context(),
				task.ID,
				at(t, change.start),
				changeOf(t, change.body),
			); err != nil {
				t.Fatal(err)
			}
		}
		_, next := h.status(t, task.ID)
		want(t, "next", next, "2000-01-03T10:00:00.000Z")
		pass(240 * time.Hour)
		want(t, "calls", h.calls.times(), "10:00:00 15:00:00 10:00:00")
		moved := h.calls.tasks[1]
		want(
			t,
			"the moved occurrence",
			[]any{moved.RunID, moved.Task.Title, moved.Occurrence.OriginalStart, len(moved.Task.Exceptions)},
			"["+task.ID+"@20000102T100000Z moved 2000-01-02T10:00:00.000Z 0]",
		)
		want(t, "due events", len(h.events(t, agent.EventCalendarDue)), 3)

		_, err := h.db.UpdateOccurrence(
			t.Context(),
			task.ID,
			at(t, "2000-01-03T10:00:00Z"),
			changeOf(t, `{"start_time":"2000-02-01T10:00:00Z"}`),
		)
		want(t, "moving an occurrence that has run", agent.ErrorCode(err), agent.CodeConflict)
		if _, err := h.db.UpdateOccurrence(
			t.Context(),
			task.ID,
			at(t, "2000-01-03T10:00:00Z"),
			changeOf(t, `{"title":"x"}`),
		); err != nil {
			t.Errorf("renaming an occurrence that has run: %v", err)
		}
		if err := h.db.CancelOccurrence(t.Context(), task.ID, at(t, "2000-01-03T10:00:00Z")); err != nil {
			t.Errorf("cancelling an occurrence that has run: %v", err)
		}
		pass(48 * time.Hour)
		want(t, "calls", len(h.calls.times()), len("10:00:00 15:00:00 10:00:00"))
	})
}

// TestMovedOccurrenceOfLastMinute moves an occurrence to the current time: it starts,
// and those that have started do not start again.
func TestMovedOccurrenceOfLastMinute(t *testing.T) {
	bubble(t, func(t *testing.T, h *fixture) {
		task := h.task(t, `{"start_time":"2000-01-01T10:00:00Z","recurrence":"daily","workflow_id":""}`)
		pass(10*time.Hour + 20*time.Second)
		want(t, "due events", len(h.events(t, agent.EventCalendarDue)), 1)
		if _, err := h.db.UpdateOccurrence(
			t.Context(),
			task.ID,
			at(t, "2000-01-01T10:00:00Z"),
			changeOf(t, `{"title":"x"}`),
		); err != nil {
			t.Fatal(err)
		}
		if _, err := h.db.UpdateOccurrence(
			t.Context(),
			task.ID,
			at(t, "2000-01-02T10:00:00Z"),
			changeOf(t, `{"start_time":"2000-01-01T10:00:15Z"}`),
		); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		want(t, "due events", len(h.events(t, agent.EventCalendarDue)), 2)
		_, next := h.status(t, task.ID)
		want(t, "next", next, "2000-01-03T10:00:00.000Z")
	})
}

// TestInterruptedMovedOccurrence stops the server before a moved occurrence and
// while it runs.
func TestInterruptedMovedOccurrence(t *testing.T) {
	path := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		h := open(t, path)
		task := h.task(t, dailyAtTen)
		if _, err := h.db.UpdateOccurrence(
			t.Context(),
			task.ID,
			at(t, "2000-01-01T10:00:00Z"),
			changeOf(t, `{"start_time":"2000-01-01T12:00:00Z","end_time":"2000-01-01T14:00:00Z"}`),
		); err != nil {
			t.Fatal(err)
		}
		h.close(t)
		h = open(t, path)
		h.calls.onCall(func(ctx context.Context, _ Callback) error {
			<-ctx.Done()
			return ctx.Err()
		})
		pass(12*time.Hour + time.Second)
		want(t, "calls", h.calls.times(), "12:00:00")
		h.close(t)
		h = open(t, path)
		synctest.Wait()
		want(t, "calls of the next server", len(h.calls.tasks), 1)
		want(t, "occurrence", h.calls.tasks[0].Occurrence, agent.Occurrence{
			ID:            task.ID + "@20000101T100000Z",
			OriginalStart: at(t, "2000-01-01T10:00:00Z"),
			StartTime:     at(t, "2000-01-01T12:00:00Z"),
			EndTime:       at(t, "2000-01-01T14:00:00Z"),
		})
		pass(2 * time.Hour)
		want(t, "calls", len(h.calls.tasks), 1)
		h.close(t)
	})
}

// TestMissedOccurrenceIsMoved moves an occurrence that was missed during downtime.
func TestMissedOccurrenceIsMoved(t *testing.T) {
	path := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		h := open(t, path)
		task := h.task(t, dailyAtTen)
		h.close(t)
		time.Sleep(20 * time.Hour)
		h = open(t, path)
		synctest.Wait()
		want(t, "occurrences", h.occurrences(t), map[string]agent.TaskStatus{task.ID + "@20000101T100000Z": "failed"})
		if _, err := h.db.UpdateOccurrence(
			t.Context(),
			task.ID,
			at(t, "2000-01-01T10:00:00Z"),
			changeOf(t, `{"start_time":"2000-01-01T22:00:00Z"}`),
		); err != nil {
			t.Fatal(err)
		}
		pass(4 * time.Hour)
		want(t, "calls", h.calls.times(), "22:00:00")
		h.close(t)
	})
}

func TestFollowingOccurrences(t *testing.T) {
	bubble(t, func(t *testing.T, h *fixture) {
		task := h.task(t, dailyAtTen)
		pass(10*time.Hour + 20*time.Second)
		rest, err := h.db.UpdateFollowing(
			t.Context(),
			task.ID,
			at(t, "2000-01-03T10:00:00Z"),
			changeOf(t, `{"start_time":"2000-01-03T12:00:00Z","title":"later"}`),
			h.CheckTask,
		)
		if err != nil || rest.ID == task.ID || rest.RecurrenceCount != 2 {
			t.Fatalf("got %+v, %v", rest, err)
		}
		pass(240 * time.Hour)
		want(t, "calls", h.calls.times(), "10:00:00 10:00:00 12:00:00 12:00:00")

		other := h.task(t, `{"start_time":"2000-02-01T10:00:00Z","recurrence":"daily"}`)
		if err := h.db.DeleteFollowing(t.Context(), other.ID, at(t, "2000-02-02T10:00:00Z")); err != nil {
			t.Fatal(err)
		}
		same, err := h.db.UpdateFollowing(
			t.Context(),
			other.ID,
			at(t, "2000-02-01T10:00:00Z"),
			changeOf(t, `{"title":"whole"}`),
			h.CheckTask,
		)
		want(t, "the whole task", []any{same.ID, same.Title, err}, "["+other.ID+" whole <nil>]")
		if err := h.db.DeleteFollowing(t.Context(), other.ID, at(t, "2000-02-01T10:00:00Z")); err != nil {
			t.Fatal(err)
		}
		_, err = h.db.Task(t.Context(), other.ID)
		want(t, "the deleted task", agent.ErrorCode(err), agent.CodeNotFound)
	})
}

func TestExceptionsBySQL(t *testing.T) {
	bubble(t, func(t *testing.T, h *fixture) {
		task := h.task(t, dailyAtTen)
		h.sql(
			t,
			`UPDATE tasks SET exceptions = '[{"original_start":"2000-01-01T10:00:00Z","cancelled":true},`+
				`{"original_start":"2000-01-02T10:00:00Z","start_time":"2000-01-02T08:00:00Z"}]'`,
		)
		_, next := h.status(t, task.ID)
		want(t, "next", next, "2000-01-02T08:00:00.000Z")
		h.sql(t, `UPDATE tasks SET start_time = '2000-01-01T11:00:00.000Z', end_time = '2000-01-01T12:00:00.000Z'`)
		pass(24 * 3 * time.Hour)
		want(t, "calls", h.calls.times(), "08:00:00 11:00:00")
		h.sql(t, `UPDATE tasks SET exceptions = '["x"]'`)
		status, next := h.status(t, task.ID)
		want(t, "an invalid task", []any{status, next}, "[failed ]")
	})
}
