package schedule

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/emersion/go-ical"

	"satchel/agent"
)

func taskOf(t testing.TB, id, body string) agent.Task {
	t.Helper()
	var c agent.TaskChange
	if err := json.Unmarshal([]byte(body), &c); err != nil {
		t.Fatal(err)
	}
	task := agent.Task{ID: id, UpdatedAt: agent.At(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))}
	c.Apply(&task, "UTC")
	if err := task.Validate(); err != nil {
		t.Fatal(err)
	}
	return task
}

func feed(t testing.TB, tasks ...agent.Task) string {
	t.Helper()
	var out bytes.Buffer
	f := NewFeed(&out, "my, agent", time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	for _, task := range tasks {
		f.Add(task)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestFeedIsReadByGoICal parses the feed with another library, which must find the
// same occurrences.
func TestFeedIsReadByGoICal(t *testing.T) {
	tasks := map[string]agent.Task{}
	var list []agent.Task
	for id, body := range map[string]string{
		"once": `{"title":"Once; with, signs\nand lines","description":"` + strings.Repeat("long ünïcode ", 40) +
			`","start_time":"2026-03-05T09:00:00Z","end_time":"2026-03-05T09:45:00Z"}`,
		"daily": `{"title":"Daily","start_time":"2026-03-20T09:00:00+01:00","timezone":"Europe/Berlin",` +
			`"recurrence":"daily","recurrence_end":"2026-04-10"}`,
		"weekdays": `{"title":"Weekdays","start_time":"2026-03-01T09:00:00-05:00","timezone":"America/New_York",` +
			`"recurrence":"weekly","recurrence_days":[1,2,3,4,5]}`,
		"own day": `{"title":"Own day","start_time":"2026-03-03T09:00:00Z","recurrence":"weekly","recurrence_count":6}`,
		"last": `{"title":"Last","start_time":"2026-01-31T17:00:00Z","recurrence":"monthly",` +
			`"recurrence_days":[-1,15]}`,
		"the 31st": `{"title":"31st","start_time":"2026-01-31T08:00:00+09:00","timezone":"Asia/Tokyo",` +
			`"recurrence":"monthly","recurrence_count":9,"recurrence_end":"2026-09-01"}`,
		"dropped": `{"title":"Dropped","start_time":"2026-03-09T09:00:00Z","status":"cancelled"}`,
	} {
		tasks[id] = taskOf(t, id, body)
		list = append(list, tasks[id])
	}
	text := feed(t, list...)
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\r\n"), "\r\n") {
		if len(line) > 75 || !utf8.ValidString(line) || strings.ContainsAny(line, "\r\n") {
			t.Errorf("a line is not folded correctly: %q", line)
		}
	}
	calendar, err := ical.NewDecoder(strings.NewReader(text)).Decode()
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	events := calendar.Events()
	if len(events) != len(tasks) {
		t.Fatalf("%d events of %d tasks", len(events), len(tasks))
	}
	from, to := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 12, 31, 0, 0, 0, 0, time.UTC)
	for _, e := range events {
		id := strings.TrimSuffix(e.Props.Get("UID").Value, "@satchel")
		task := tasks[id]
		if title, err := e.Props.Text("SUMMARY"); err != nil || title != task.Title {
			t.Errorf("%s: %q, %v", id, title, err)
		}
		if text, _ := e.Props.Text("DESCRIPTION"); text != task.Description {
			t.Errorf("%s: %q, want %q", id, text, task.Description)
		}
		start, err := e.DateTimeStart(time.UTC)
		if err != nil {
			t.Fatal(err)
		}
		starts := []time.Time{start}
		if set, err := e.RecurrenceSet(time.UTC); err != nil {
			t.Fatal(err)
		} else if set != nil {
			starts = set.Between(from, to, true)
		}
		ours := task.Occurrences(agent.At(from), agent.At(to), 1000)
		if len(starts) != len(ours) {
			t.Errorf("%s: the library finds %d occurrences, want %d", id, len(starts), len(ours))
			continue
		}
		for i := range ours {
			if !starts[i].Equal(ours[i].StartTime.Time) {
				t.Errorf("%s: the library finds %s, want %s", id, starts[i], ours[i].StartTime)
			}
		}
	}
}

// TestFeedHasExceptions reads cancelled and changed occurrences with another library.
func TestFeedHasExceptions(t *testing.T) {
	text := feed(t, taskOf(t, "a", `{"title":"Daily","start_time":"2026-03-20T09:00:00+01:00","timezone":"Europe/Berlin","recurrence":"daily","recurrence_count":5,"exceptions":[
		{"original_start":"2026-03-20T08:00:00Z","cancelled":true},{"original_start":"2026-03-22T08:00:00Z","start_time":"2026-03-23T12:00:00Z","title":"Later, once"}]}`))
	calendar, err := ical.NewDecoder(strings.NewReader(text)).Decode()
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	events := calendar.Events()
	if len(events) != 2 {
		t.Fatalf("%d events\n%s", len(events), text)
	}
	set, err := events[0].RecurrenceSet(time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	if all := set.All(); len(all) != 4 || !all[0].Equal(time.Date(2026, 3, 21, 8, 0, 0, 0, time.UTC)) {
		t.Errorf("the occurrences are %v", all)
	}
	start, err := events[1].DateTimeStart(time.UTC)
	original, err2 := events[1].Props.DateTime("RECURRENCE-ID", time.UTC)
	title, _ := events[1].Props.Text("SUMMARY")
	if err != nil ||
		err2 != nil ||
		!start.Equal(time.Date(2026, 3, 23, 12, 0, 0, 0, time.UTC)) ||
		!original.Equal(time.Date(2026, 3, 22, 8, 0, 0, 0, time.UTC)) ||
		title != "Later, once" {
		t.Errorf("%v %v, %s of %s, %q", err, err2, start, original, title)
	}
	if uid := events[1].Props.Get("UID").Value; uid != "a@satchel" ||
		strings.Contains(text, "RRULE") && events[1].Props.Get("RRULE") != nil {
		t.Errorf("%s\n%s", uid, text)
	}
}

// TestFeedDescribesZones compares the zones of a feed with the machine's own.
func TestFeedDescribesZones(t *testing.T) {
	text := feed(
		t,
		taskOf(t, "a", `{"title":"t","start_time":"2026-07-01T09:00:00Z","timezone":"Europe/Berlin"}`),
		taskOf(t, "b", `{"title":"t","start_time":"2026-07-01T09:00:00Z","timezone":"Europe/Berlin"}`),
		taskOf(t, "c", `{"title":"t","start_time":"2026-07-01T09:00:00Z","timezone":"Asia/Kathmandu"}`),
		taskOf(t, "d", `{"title":"t","start_time":"2026-07-01T09:00:00Z","timezone":"UTC"}`),
	)
	if strings.Count(text, "BEGIN:VTIMEZONE") != 2 || strings.Count(text, "TZID:Europe/Berlin") != 1 {
		t.Errorf("zones:\n%s", text)
	}
	for _, part := range []string{
		"BEGIN:DAYLIGHT\r\nDTSTART:20260329T020000\r\nTZOFFSETFROM:+0100\r\nTZOFFSETTO:+0200\r\n" +
			"TZNAME:CEST\r\nEND:DAYLIGHT",
		"BEGIN:STANDARD\r\nDTSTART:20261025T030000\r\nTZOFFSETFROM:+0200\r\nTZOFFSETTO:+0100\r\n" +
			"TZNAME:CET\r\nEND:STANDARD",
		"TZOFFSETTO:+0545", "DTSTART;TZID=Europe/Berlin:20260701T110000", "DTSTART:20260701T090000Z",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing in\n%s", part, text)
		}
	}
}
