package agent

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

const dailyAtNine = `"start_time":"2026-03-01T09:00:00Z","recurrence":"daily"`

func startsOf(t *testing.T, task Task) string {
	t.Helper()
	var got []string
	for _, o := range task.Occurrences(mustTime(t, "2026-02-20"), mustTime(t, "2026-03-07"), 100) {
		got = append(got, o.StartTime.Format("02 15:04"))
	}
	return strings.Join(got, ", ")
}

func TestExceptions(t *testing.T) {
	for _, tc := range []struct{ name, task, want, next string }{
		{
			"cancelled",
			dailyAtNine +
				`,"recurrence_count":3,"exceptions":[{"original_start":"2026-03-02T09:00:00Z","cancelled":true}]`,
			"01 09:00, 03 09:00",
			"01 09:00",
		},
		{
			"the first cancelled",
			dailyAtNine +
				`,"recurrence_count":3,"exceptions":[{"original_start":"2026-03-01T09:00:00Z","cancelled":true}]`,
			"02 09:00, 03 09:00",
			"02 09:00",
		},
		{
			"moved after another",
			dailyAtNine + `,"recurrence_count":3,"exceptions":[{"original_start":"2026-03-01T09:00:00Z",` +
				`"start_time":"2026-03-02T12:00:00Z"}]`,
			"02 09:00, 02 12:00, 03 09:00",
			"02 09:00",
		},
		{
			"moved to before the first",
			dailyAtNine + `,"recurrence_count":2,"exceptions":[{"original_start":"2026-03-02T09:00:00Z",` +
				`"start_time":"2026-02-28T12:00:00Z"}]`,
			"28 12:00, 01 09:00",
			"28 12:00",
		},
		{
			"moved after the last",
			dailyAtNine + `,"recurrence_count":2,"exceptions":[{"original_start":"2026-03-02T09:00:00Z",` +
				`"start_time":"2026-03-05T12:00:00Z"}]`,
			"01 09:00, 05 12:00",
			"01 09:00",
		},
		{
			"moved out of the range",
			dailyAtNine + `,"recurrence_count":2,"exceptions":[{"original_start":"2026-03-02T09:00:00Z",` +
				`"start_time":"2027-03-05T12:00:00Z"}]`,
			"01 09:00",
			"01 09:00",
		},
		{
			"named differently",
			dailyAtNine + `,"recurrence_count":2,"exceptions":[{"original_start":"2026-03-02T09:00:00Z","title":"x"}]`,
			"01 09:00, 02 09:00",
			"01 09:00",
		},
		{
			"in any order",
			dailyAtNine + `,"recurrence_count":3,"exceptions":[{"original_start":"2026-03-02T09:00:00Z",` +
				`"cancelled":true},{"original_start":"2026-03-01T09:00:00Z","cancelled":true}]`,
			"03 09:00",
			"03 09:00",
		},
		{
			"all cancelled",
			dailyAtNine +
				`,"recurrence_count":1,"exceptions":[{"original_start":"2026-03-01T09:00:00Z","cancelled":true}]`,
			"",
			"",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			task, err := taskOf(t, `{"title":"t",`+tc.task+`}`)
			if err == nil {
				err = task.Plan(nil, mustTime(t, "2026-02-20"))
			}
			if err != nil {
				t.Fatal(err)
			}
			next := ""
			if !task.NextRun.IsZero() {
				next = task.NextRun.Format("02 15:04")
			}
			if got := startsOf(t, task); got != tc.want || next != tc.next {
				t.Errorf("got %s, next %s", got, next)
			}
		})
	}
}

func TestExceptionsValidate(t *testing.T) {
	for exceptions, field := range map[string]string{
		`{"cancelled":true}`: "exceptions[0].original_start",
		`{"original_start":"2026-03-02T09:00:00Z","cancelled":true},` +
			`{"original_start":"2026-03-02T09:00:00Z","title":"x"}`: "exceptions[1].original_start",
		`{"original_start":"2026-03-02T09:30:00Z","cancelled":true}`:          "exceptions[0].original_start",
		`{"original_start":"2026-02-02T09:00:00Z","cancelled":true}`:          "exceptions[0].original_start",
		`{"original_start":"2026-03-02T09:00:00Z","start_time":"2300-01-01"}`: "exceptions[0].start_time",
		`{"original_start":"2026-03-02T09:00:00Z","start_time":"2026-03-02T10:00:00Z",` +
			`"end_time":"2026-03-02T09:00:00Z"}`: "exceptions[0].end_time",
		`{"original_start":"2026-03-02T09:00:00Z","title":"` + strings.Repeat("x", 201) +
			`"}`: "exceptions[0].title",
		strings.TrimSuffix(
			strings.Repeat(`{"original_start":"2026-03-02T09:00:00Z","cancelled":true},`, maxExceptions+1),
			",",
		): "exceptions",
	} {
		task, err := taskOf(t, `{"title":"t",`+dailyAtNine+`,"exceptions":[`+exceptions+`]}`)
		if err == nil {
			err = task.Plan(nil, mustTime(t, "2026-02-20"))
		}
		var e *Error
		if !errors.As(err, &e) || e.Details["field"] != field {
			t.Errorf("%.200s: %v, want an error about %s", exceptions, err, field)
		}
	}
	broken := Task{
		Title:      "t",
		StartTime:  mustTime(t, "2026-03-01"),
		EndTime:    mustTime(t, "2026-03-01"),
		Timezone:   "UTC",
		Recurrence: RecurDaily,
		Status:     TaskPending,
		Exceptions: DecodeExceptions([]byte(`[7]`)),
	}
	broken.Fill("UTC")
	broken.AlignExceptions()
	if err := broken.Validate(); ErrorCode(err) != CodeValidation {
		t.Errorf("an invalid row of SQL is accepted: %v", err)
	}
}

// TestExceptionsFollowTheTask changes a whole task: exceptions keep their dates.
func TestExceptionsFollowTheTask(t *testing.T) {
	task, err := taskOf(t, `{"title":"t",`+dailyAtNine+`,"recurrence_end":"2026-03-04","exceptions":[{"original_start":"2026-03-01T09:00:00Z","cancelled":true},
		{"original_start":"2026-03-03T09:00:00Z","start_time":"2026-03-03T15:00:00Z","title":"x"}]}`)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct{ change, want string }{
		{`{"title":"y"}`, "02 09:00, 03 15:00, 04 09:00"},
		{`{"start_time":"2026-03-01T10:00:00Z"}`, "02 10:00, 03 15:00, 04 10:00"},
		{`{"timezone":"Asia/Tokyo"}`, "02 10:00, 03 15:00, 04 10:00"},
		{`{"recurrence":"weekly","recurrence_days":[1,2]}`, "02 10:00, 03 15:00"},
		{`{"recurrence_days":[1]}`, "02 10:00"},
		{`{"recurrence":"daily"}`, "01 10:00, 02 10:00, 03 10:00, 04 10:00"},
		{`{"exceptions":[{"original_start":"2026-03-02T10:00:00Z","cancelled":true}]}`, "01 10:00, 03 10:00, 04 10:00"},
		{`{"recurrence":"none"}`, "01 10:00"},
	} {
		var c TaskChange
		if err := json.Unmarshal([]byte(step.change), &c); err != nil {
			t.Fatal(err)
		}
		c.Apply(&task, "UTC")
		if got := startsOf(t, task); got != step.want || task.Validate() != nil || task.checkOriginals() != nil {
			t.Errorf("%s: %s; %v", step.change, got, task.Validate())
		}
	}
}

func TestChangeOccurrence(t *testing.T) {
	task, err := taskOf(t, `{"title":"t","description":"d",`+dailyAtNine+`,"end_time":"2026-03-01T09:30:00Z"}`)
	if err != nil {
		t.Fatal(err)
	}
	start := mustTime(t, "2026-03-02T09:00:00Z")
	for _, step := range []struct{ change, want string }{
		{
			`{"start_time":"2026-03-02T11:00:00Z"}`,
			`[{"original_start":"2026-03-02T09:00:00.000Z","start_time":"2026-03-02T11:00:00.000Z",` +
				`"end_time":"2026-03-02T11:30:00.000Z"}]`,
		},
		{
			`{"end_time":"2026-03-02T12:00:00Z"}`,
			`[{"original_start":"2026-03-02T09:00:00.000Z","start_time":"2026-03-02T11:00:00.000Z",` +
				`"end_time":"2026-03-02T12:00:00.000Z"}]`,
		},
		{
			`{"title":"x","start_time":null,"end_time":"2026-03-02T09:30:00Z"}`,
			`[{"original_start":"2026-03-02T09:00:00.000Z","title":"x"}]`,
		},
		{`{"title":"t","description":"d"}`, `[]`},
	} {
		var c TaskChange
		if err := json.Unmarshal([]byte(step.change), &c); err != nil {
			t.Fatal(err)
		}
		if err := task.ChangeOccurrence(start, c); err != nil {
			t.Fatal(err)
		}
		if got, _ := json.Marshal(task.Exceptions); string(got) != step.want {
			t.Errorf("%s: %s", step.change, got)
		}
	}
	if err := task.CancelOccurrence(mustTime(t, "2026-03-02T08:00:00Z")); ErrorCode(err) != CodeNotFound {
		t.Errorf("an occurrence that does not exist: %v", err)
	}
	if err := task.CancelOccurrence(start); err != nil ||
		startsOf(t, task) != "01 09:00, 03 09:00, 04 09:00, 05 09:00, 06 09:00" {
		t.Errorf("got %v, %s", err, startsOf(t, task))
	}
	if err := task.ChangeOccurrence(start, TaskChange{
		WorkflowID: Some("workflow-1"),
	}); ErrorCode(err) != CodeValidation {
		t.Errorf("its workflow: %v", err)
	}
	if err := task.ChangeOccurrence(start, TaskChange{}); err != nil || len(task.Exceptions) != 0 {
		t.Errorf("restored: %v, %v", err, task.Exceptions)
	}
}

func TestSplit(t *testing.T) {
	const cancelled = `,"exceptions":[{"original_start":"2026-03-02T09:00:00Z","cancelled":true},` +
		`{"original_start":"2026-03-04T09:00:00Z","cancelled":true}]`
	for _, tc := range []struct{ name, task, before, rest string }{
		{"without an end", cancelled, "01 09:00", "03 09:00, 05 09:00, 06 09:00"},
		{"with an end", cancelled + `,"recurrence_end":"2026-03-05"`, "01 09:00", "03 09:00, 05 09:00"},
		{"with a count", cancelled + `,"recurrence_count":5`, "01 09:00", "03 09:00, 05 09:00"},
	} {
		task, err := taskOf(t, `{"title":"t",`+dailyAtNine+tc.task+`}`)
		if err != nil {
			t.Fatal(err)
		}
		rest, whole, err := task.Split(mustTime(t, "2026-03-03T09:00:00Z"))
		if err != nil || whole || startsOf(t, task) != tc.before || startsOf(t, rest) != tc.rest {
			t.Errorf("%s: %v, %v; %s; %s", tc.name, err, whole, startsOf(t, task), startsOf(t, rest))
		}
		if _, whole, err := rest.Split(mustTime(t, "2026-03-03T09:00:00Z")); err != nil || !whole {
			t.Errorf("%s, from its first: %v, %v", tc.name, err, whole)
		}
	}
}
