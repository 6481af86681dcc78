package agent

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"satchel/agent/clock"
)

func taskOf(t testing.TB, body string) (Task, error) {
	t.Helper()
	var c TaskChange
	if err := json.Unmarshal([]byte(body), &c); err != nil {
		t.Fatal(err)
	}
	task := Task{ID: "task-1"}
	c.Apply(&task, "UTC")
	return task, task.Validate()
}

func mustTime(t testing.TB, text string) Time {
	t.Helper()
	var at Time
	if err := at.UnmarshalText([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return at
}

func TestOccurrences(t *testing.T) {
	for _, tc := range []struct{ name, task, from, to, want string }{
		{"one", `"start_time":"2026-03-01T09:00:00Z"`, "2026-03-01", "2026-03-02", "01 09:00"},
		{
			"one that ends as the range begins",
			`"start_time":"2026-03-01T09:00:00Z"`,
			"2026-03-01T10:00:00Z",
			"2026-03-02",
			"",
		},
		{
			"one that starts as the range ends",
			`"start_time":"2026-03-01T09:00:00Z"`,
			"2026-02-01",
			"2026-03-01T09:00:00Z",
			"",
		},
		{
			"one that reaches in",
			`"start_time":"2026-03-01T09:00:00Z"`,
			"2026-03-01T09:59:59Z",
			"2026-03-02",
			"01 09:00",
		},
		{
			"a moment",
			`"start_time":"2026-03-01T09:00:00Z","end_time":"2026-03-01T09:00:00Z"`,
			"2026-03-01T09:00:00Z",
			"2026-03-02",
			"01 09:00",
		},
		{
			"daily across a clock change",
			`"start_time":"2026-03-27T09:00:00+01:00","recurrence":"daily","timezone":"Europe/Berlin"`,
			"2026-03-28",
			"2026-03-31",
			"28 08:00, 29 07:00, 30 07:00",
		},
		{
			"daily at a skipped time",
			`"start_time":"2026-03-28T02:30:00+01:00","recurrence":"daily","timezone":"Europe/Berlin"`,
			"2026-03-28",
			"2026-03-31",
			"28 01:30, 29 01:30, 30 00:30",
		},
		{
			"daily at a repeated time",
			`"start_time":"2026-10-24T02:30:00+02:00","recurrence":"daily","timezone":"Europe/Berlin"`,
			"2026-10-24",
			"2026-10-27",
			"24 00:30, 25 00:30, 26 01:30",
		},
		{
			"starting in the repeated hour",
			`"start_time":"2026-10-25T02:30:00+01:00","recurrence":"daily","timezone":"Europe/Berlin"`,
			"2026-10-24",
			"2026-10-27",
			"25 01:30, 26 01:30",
		},
		{
			"weekly on days, the start's own not among them",
			`"start_time":"2026-03-01T09:00:00Z","recurrence":"weekly","recurrence_days":[1,3]`,
			"2026-03-01",
			"2026-03-10",
			"02 09:00, 04 09:00, 09 09:00",
		},
		{
			"weekly on its own day",
			`"start_time":"2026-03-03T09:00:00Z","recurrence":"weekly"`,
			"2026-03-01",
			"2026-03-20",
			"03 09:00, 10 09:00, 17 09:00",
		},
		{
			"Sunday as 7",
			`"start_time":"2026-03-02T09:00:00Z","recurrence":"weekly","recurrence_days":[7,0]`,
			"2026-03-01",
			"2026-03-20",
			"08 09:00, 15 09:00",
		},
		{
			"monthly on the 31st",
			`"start_time":"2026-01-31T09:00:00Z","recurrence":"monthly"`,
			"2026-01-01",
			"2026-06-01",
			"31 09:00, 31 09:00, 31 09:00",
		},
		{
			"monthly on the last",
			`"start_time":"2026-01-31T09:00:00Z","recurrence":"monthly","recurrence_days":[-1]`,
			"2026-01-01",
			"2026-04-01",
			"31 09:00, 28 09:00, 31 09:00",
		},
		{
			"the last named twice",
			`"start_time":"2026-01-01T09:00:00Z","recurrence":"monthly","recurrence_days":[31,-1]`,
			"2026-01-01",
			"2026-03-01",
			"31 09:00, 28 09:00",
		},
		{
			"a count",
			`"start_time":"2026-03-01T09:00:00Z","recurrence":"daily","recurrence_count":3`,
			"2026-03-02",
			"2026-04-01",
			"02 09:00, 03 09:00",
		},
		{
			"an end on a day",
			`"start_time":"2026-03-01T22:00:00Z","recurrence":"daily","recurrence_end":"2026-03-02","timezone":"UTC"`,
			"2026-03-01",
			"2026-04-01",
			"01 22:00, 02 22:00",
		},
		{
			"an end on a day of a zone",
			`"start_time":"2026-03-01T22:00:00Z","recurrence":"daily",` +
				`"recurrence_end":"2026-03-03","timezone":"Asia/Tokyo"`,
			"2026-03-01",
			"2026-04-01",
			"01 22:00, 02 22:00",
		},
		{
			"an end at a moment",
			`"start_time":"2026-03-01T09:00:00Z","recurrence":"daily","recurrence_end":"2026-03-02T09:00:00Z"`,
			"2026-03-01",
			"2026-04-01",
			"01 09:00, 02 09:00",
		},
		{
			"by the day of its zone",
			`"start_time":"2026-03-01T23:30:00Z","recurrence":"weekly","recurrence_days":[1],"timezone":"Asia/Tokyo"`,
			"2026-03-01",
			"2026-03-10",
			"01 23:30, 08 23:30",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			task, err := taskOf(t, `{"title":"t",`+tc.task+`}`)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, o := range task.Occurrences(mustTime(t, tc.from), mustTime(t, tc.to), 100) {
				got = append(got, o.StartTime.Format("02 15:04"))
			}
			if strings.Join(got, ", ") != tc.want {
				t.Errorf("got %v, want %s", got, tc.want)
			}
		})
	}
}

func TestTaskValidate(t *testing.T) {
	const start = `"title":"t","start_time":"2026-03-01T09:00:00Z"`
	for body, field := range map[string]string{
		`{"start_time":"2026-03-01"}`:                                            "title",
		`{"title":"t"}`:                                                          "start_time",
		`{"title":"t","start_time":"1800-01-01"}`:                                "start_time",
		`{"title":"t","start_time":"2300-01-01"}`:                                "start_time",
		`{` + start + `,"end_time":"2026-03-01T08:59:59Z"}`:                      "end_time",
		`{` + start + `,"end_time":"2028-03-01"}`:                                "end_time",
		`{` + start + `,"timezone":"Nowhere/At_All"}`:                            "timezone",
		`{` + start + `,"recurrence":"yearly"}`:                                  "recurrence",
		`{` + start + `,"recurrence":"weekly","recurrence_days":[8]}`:            "recurrence_days[0]",
		`{` + start + `,"recurrence":"weekly","recurrence_days":[1,-1]}`:         "recurrence_days[1]",
		`{` + start + `,"recurrence":"monthly","recurrence_days":[0]}`:           "recurrence_days[0]",
		`{` + start + `,"recurrence":"monthly","recurrence_days":[-2]}`:          "recurrence_days[0]",
		`{` + start + `,"recurrence":"daily","recurrence_days":[1]}`:             "recurrence_days",
		`{` + start + `,"recurrence":"daily","recurrence_end":"2026-02-01"}`:     "recurrence_end",
		`{` + start + `,"recurrence":"daily","recurrence_count":-1}`:             "recurrence_count",
		`{` + start + `,"recurrence":"daily","recurrence_count":1001}`:           "recurrence_count",
		`{` + start + `,"status":"done"}`:                                        "status",
		`{"title":"` + strings.Repeat("x", 201) + `","start_time":"2026-03-01"}`: "title",
	} {
		_, err := taskOf(t, body)
		var e *Error
		if !errors.As(err, &e) || e.Details["field"] != field {
			t.Errorf("%s: %v, want an error about %s", body, err, field)
		}
	}
	task, err := taskOf(t, `{`+start+`}`)
	if err != nil ||
		task.EndTime != mustTime(t, "2026-03-01T10:00:00Z") ||
		task.Recurrence != RecurNone ||
		task.Status != TaskPending {
		t.Errorf("got %+v, %v", task, err)
	}
}

func TestTaskPlan(t *testing.T) {
	now := mustTime(t, "2026-03-01T12:00:00Z")
	task, err := taskOf(t, `{"title":"t","start_time":"2026-03-02T09:00:00Z"}`)
	if err != nil {
		t.Fatal(err)
	}
	step := func(name, body, status, next string) {
		t.Helper()
		was := task
		var c TaskChange
		if err := json.Unmarshal([]byte(body), &c); err != nil {
			t.Fatal(err)
		}
		c.Apply(&task, "UTC")
		if err := task.Plan(&was, now); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if string(task.Status) != status || task.NextRun.String() != next {
			t.Errorf("%s: %s, next %s; want %s, %s", name, task.Status, task.NextRun, status, next)
		}
	}
	if err := task.Plan(nil, now); err != nil || task.NextRun != task.StartTime {
		t.Errorf("%v, next %s", err, task.NextRun)
	}
	step("renamed", `{"title":"x"}`, "pending", "2026-03-02T09:00:00.000Z")
	step("cancelled", `{"status":"cancelled"}`, "cancelled", "")
	step("moved while cancelled", `{"start_time":"2026-03-03T09:00:00Z"}`, "cancelled", "")
	step("pending again", `{"status":"pending"}`, "pending", "2026-03-03T09:00:00.000Z")
	if task.EndTime != mustTime(t, "2026-03-03T10:00:00Z") {
		t.Errorf("the end did not move with the start: %s", task.EndTime)
	}
	task.Status, task.NextRun = TaskCompleted, Time{}
	step("renamed after its end", `{"title":"y"}`, "completed", "")
	step("moved after its end", `{"start_time":"2026-03-04T09:00:00Z"}`, "pending", "2026-03-04T09:00:00.000Z")
	step("moved to the past", `{"start_time":"2026-02-04T09:00:00Z"}`, "pending", "")
	step("recurring", `{"recurrence":"weekly","recurrence_days":[3]}`, "pending", "2026-03-04T09:00:00.000Z")
	step("no longer weekly", `{"recurrence":"daily"}`, "pending", "2026-03-02T09:00:00.000Z")
	task.Status = TaskRunning
	if err := task.Plan(&Task{Status: TaskPending}, now); ErrorCode(err) != CodeValidation {
		t.Errorf("running manually: %v", err)
	}
}

func TestBound(t *testing.T) {
	zone := zoneOf(t, "Europe/Berlin")
	for text, want := range map[string][2]string{
		"2026-03-29":           {"2026-03-28T23:00:00.000Z", "2026-03-29T22:00:00.000Z"},
		"2026-03-29T00:00:00Z": {"2026-03-29T00:00:00.000Z", "2026-03-29T00:00:00.000Z"},
	} {
		var a, b Bound
		if err := errors.Join(
			a.UnmarshalText([]byte(text)),
			json.Unmarshal([]byte(`"`+text+`"`), &b),
		); err != nil || a != b {
			t.Fatalf("%s: %v %v %v", text, a, b, err)
		}
		if a.First(zone).String() != want[0] || a.Past(zone).String() != want[1] {
			t.Errorf("%s: %s to %s, want %v", text, a.First(zone), a.Past(zone), want)
		}
	}
}

func FuzzOccurrences(f *testing.F) {
	f.Add(
		int64(1_774_746_000), uint16(60), uint8(2), []byte{1, 3}, int64(0), uint16(0), "Europe/Berlin",
		int64(1_780_000_000),
	)
	f.Add(
		int64(1_774_746_000), uint16(0), uint8(3), []byte{31, 255}, int64(1_900_000_000), uint16(12), "Pacific/Apia",
		int64(0),
	)
	f.Fuzz(
		func(
			t *testing.T,
			start int64,
			minutes uint16,
			recurrence uint8,
			days []byte,
			end int64,
			count uint16,
			zone string,
			from int64,
		) {
			task := Task{
				ID:              "task-1",
				Title:           "t",
				StartTime:       At(time.Unix(start%8_000_000_000, 0)),
				Timezone:        zone,
				Recurrence:      recurrences[int(recurrence)%len(recurrences)],
				RecurrenceCount: int(count),
			}
			task.EndTime = At(task.StartTime.Add(time.Duration(minutes) * time.Minute))
			for _, day := range days {
				task.RecurrenceDays = append(task.RecurrenceDays, int(int8(day)))
			}
			if end != 0 {
				task.RecurrenceEnd = At(time.Unix(end%8_000_000_000, 0))
			}
			task.Fill("UTC")
			if task.Validate() != nil {
				return
			}
			after := At(time.Unix(from%8_000_000_000, 0))
			list := task.Occurrences(after, Time{}, 50)
			for i, o := range list {
				if o.EndTime.Before(after.Time) ||
					i > 0 && !o.StartTime.After(list[i-1].StartTime.Time) ||
					o.StartTime.Before(task.StartTime.Time) {
					t.Fatalf("%+v: %+v", task, list)
				}
			}
			next := task.NextStart(after)
			for _, o := range list {
				if o.StartTime.After(after.Time) {
					if next != o.StartTime {
						t.Fatalf("%+v: next %s, want %s", task, next, o.StartTime)
					}
					return
				}
			}
			if len(list) < 50 && !next.IsZero() {
				t.Fatalf("%+v: next %s, want none", task, next)
			}
		},
	)
}

func BenchmarkOccurrences(b *testing.B) {
	for name, body := range map[string]string{
		"daily":   `"recurrence":"daily"`,
		"monthly": `"recurrence":"monthly","recurrence_days":[31,-1]`,
		"counted": `"recurrence":"daily","recurrence_count":1000`,
	} {
		b.Run("month/"+name, func(b *testing.B) {
			task, err := taskOf(
				b,
				`{"title":"t","start_time":"2020-01-01T09:00:00Z","timezone":"Europe/Berlin",`+body+`}`,
			)
			if err != nil {
				b.Fatal(err)
			}
			from, to := mustTime(b, "2026-03-01"), mustTime(b, "2026-04-01")
			for b.Loop() {
				task.Occurrences(from, to, 100)
			}
		})
	}
}

func zoneOf(t testing.TB, name string) *time.Location {
	t.Helper()
	z, err := clock.Zone(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}
