package httpapi

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestCalendarInput(t *testing.T) {
	c := newTestClient(t)
	const list = "/api/agents/default/calendar"
	once := c.must(
		t, 201, "POST", list,
		`{"title":"Once","description":"text","start_time":"2027-03-05T09:00:00+01:00"}`,
	)
	if once["end_time"] != "2027-03-05T09:00:00.000Z" ||
		once["start_time"] != "2027-03-05T08:00:00.000Z" ||
		once["status"] != "pending" ||
		once["next_run"] != once["start_time"] {
		t.Errorf("%v", once)
	}
	c.must(t, 200, "PUT", "/api/agents/default/settings", `{"timezone":"Europe/Berlin"}`)
	weekly := c.must(
		t, 201, "POST", list,
		`{"title":"Weekly","start_time":"2027-03-01T09:00:00+01:00","recurrence":"weekly",`+
			`"recurrence_days":[1,2,3,4,5]}`,
	)
	one, other := list+"/"+once["id"].(string), list+"/"+weekly["id"].(string)
	for _, tc := range []apiCase{
		{"no body", "POST", list, ``, 400, invalid("title")},
		{"no start", "POST", list, `{"title":"t"}`, 400, invalid("start_time")},
		{"bad start", "POST", list, `{"title":"t","start_time":"soon"}`, 400, invalid("start_time")},
		{
			"end before start",
			"POST",
			list,
			`{"title":"t","start_time":"2027-01-02","end_time":"2027-01-01"}`,
			400,
			invalid("end_time"),
		},
		{
			"bad recurrence",
			"POST",
			list,
			`{"title":"t","start_time":"2027-01-02","recurrence":"yearly"}`,
			400,
			invalid("recurrence"),
		},
		{
			"bad day",
			"POST",
			list,
			`{"title":"t","start_time":"2027-01-02","recurrence":"weekly","recurrence_days":[9]}`,
			400,
			invalid("recurrence_days[0]"),
		},
		{
			"days of text",
			"POST",
			list,
			`{"title":"t","start_time":"2027-01-02","recurrence":"weekly","recurrence_days":["MO"]}`,
			400,
			invalid("recurrence_days"),
		},
		{
			"running set by a client",
			"POST",
			list,
			`{"title":"t","start_time":"2027-01-02","status":"running"}`,
			400,
			invalid("status"),
		},
		{
			"unknown workflow",
			"POST",
			list,
			`{"title":"t","start_time":"2027-01-02","workflow_id":"workflow-x"}`,
			400,
			invalid("workflow_id"),
		},
		{
			"stored tasks", "GET", list, ``, 200,
			map[string]any{
				"meta.total":            "2",
				"tasks.0.title":         "Weekly",
				"tasks.0.recurrence":    "weekly",
				"tasks.0.timezone":      "Europe/Berlin",
				"tasks.0.occurrence_id": nil,
			},
		},
		{
			"backwards",
			"GET",
			list + "?sort=start_time&order=desc&limit=1",
			``,
			200,
			map[string]any{"meta.total": "2", "meta.limit": "1", "tasks.0.title": "Once"},
		},
		{"a week", "GET", list + "?start=2027-03-01&end=2027-03-05", ``, 200, map[string]any{
			"meta.total":            "6",
			"tasks.0.start_time":    "2027-03-01T08:00:00.000Z",
			"tasks.0.occurrence_id": weekly["id"].(string) + "@20270301T080000Z",
			"tasks.0.status":        "pending",
			"tasks.0.id":            weekly["id"],
		}},
		{
			"after a change of the clock",
			"GET",
			list + "?start=2027-03-29&end=2027-03-29",
			``,
			200,
			map[string]any{"meta.total": "1", "tasks.0.start_time": "2027-03-29T07:00:00.000Z"},
		},
		{
			"a task that ends when the range begins",
			"GET",
			list + "?start=2027-03-05T09:00:00Z&end=2027-03-05T10:00:00Z",
			``,
			200,
			map[string]any{"meta.total": "0"},
		},
		{
			"a task that overlaps the range",
			"GET",
			list + "?start=2027-03-05T08:59:00Z&end=2027-03-05T10:00:00Z&search=onc",
			``,
			200,
			map[string]any{"meta.total": "1", "tasks.0.description": "text"},
		},
		{"a range without a start", "GET", list + "?end=2027-03-02", ``, 200, map[string]any{"meta.total": "2"}},
		{
			"a range without an end",
			"GET",
			list + "?start=2027-03-02&limit=1",
			``,
			200,
			map[string]any{"meta.limit": "1", "meta.offset": "0"},
		},
		{"end before start of a range", "GET", list + "?start=2027-03-02&end=2027-02-01", ``, 400, invalid("end")},
		{"invalid start of a range", "GET", list + "?start=soon", ``, 400, invalid("start")},
		{"a range in another order", "GET", list + "?start=2027-03-02&sort=title", ``, 400, invalid("sort")},
		{"bad status", "GET", list + "?status=done", ``, 400, invalid("status")},
		{"read", "GET", one, ``, 200, map[string]any{"title": "Once"}},
		{"unknown", "GET", list + "/task-x", ``, 404, code("NOT_FOUND")},
		{"change of an unknown task", "PUT", list + "/task-x", `{}`, 404, code("NOT_FOUND")},
		{"deletion of an unknown task", "DELETE", list + "/task-x", ``, 404, code("NOT_FOUND")},
		{
			"moved",
			"PUT",
			one,
			`{"start_time":"2027-03-06T09:00:00Z"}`,
			200,
			map[string]any{"end_time": "2027-03-06T10:00:00.000Z", "next_run": "2027-03-06T09:00:00.000Z"},
		},
		{"cancelled", "PUT", other, `{"status":"cancelled"}`, 200, map[string]any{"next_run": nil}},
		{
			"its occurrences too",
			"GET",
			list + "?start=2027-03-01&end=2027-03-01",
			``,
			200,
			map[string]any{"tasks.0.status": "cancelled"},
		},
		{
			"a last day",
			"PUT",
			other,
			`{"recurrence_end":"2027-03-02"}`,
			200,
			map[string]any{"recurrence_end": "2027-03-02T22:59:59.999Z"},
		},
		{
			"no occurrences after it",
			"GET",
			list + "?start=2027-03-01&end=2027-03-05",
			``,
			200,
			map[string]any{"meta.total": "2"},
		},
	} {
		tc.run(t, c)
	}
	whole := c.send(t, "GET", other, "").text
	if again := c.send(
		t, "PUT", other, whole,
	).text; strings.Split(again, `"updated_at"`)[0] != strings.Split(whole, `"updated_at"`)[0] {
		t.Errorf("writing back what was read changes\n%s\n%s", whole, again)
	}
	feed := c.send(t, "GET", "/api/agents/default/calendar.ics", "")
	if feed.StatusCode != 200 ||
		!strings.HasPrefix(feed.Header.Get("Content-Type"), "text/calendar") ||
		!strings.Contains(feed.text, "RRULE:FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;UNTIL=20270302T225959Z") ||
		!strings.Contains(feed.text, "DTSTART;TZID=Europe/Berlin:20270301T090000") {
		t.Errorf("%d %s\n%s", feed.StatusCode, feed.Header.Get("Content-Type"), feed.text)
	}
	if a := c.send(t, "DELETE", one, ""); a.StatusCode != 204 {
		t.Errorf("DELETE: %d", a.StatusCode)
	}
}

// TestOccurrences changes single occurrences of a task, and all occurrences from one on.
func TestOccurrences(t *testing.T) {
	c := newTestClient(t)
	const list = "/api/agents/default/calendar"
	task := c.must(
		t, 201, "POST", list,
		`{"title":"Stand-up","description":"all","start_time":"2027-03-01T09:00:00Z",`+
			`"recurrence":"daily","recurrence_count":5}`,
	)
	once := c.must(t, 201, "POST", list, `{"title":"Once","start_time":"2027-06-01T09:00:00Z"}`)
	id, _ := task["id"].(string)
	of := list + "/" + id + "/occurrences/"
	const march = list + "?start=2027-03-01&end=2027-03-31"
	for _, tc := range []apiCase{
		{"an occurrence that does not exist", "PUT", of + "20270301T100000Z", `{"title":"x"}`, 404, code("NOT_FOUND")},
		{
			"an occurrence of an unknown task",
			"DELETE",
			list + "/task-x/occurrences/20270301T090000Z",
			``,
			404,
			code("NOT_FOUND"),
		},
		{
			"an occurrence of a task that does not recur",
			"PUT",
			list + "/" + once["id"].(string) + "/occurrences/20270601T090000Z",
			`{"title":"x"}`,
			400,
			invalid("taskId"),
		},
		{"a start that is not a time", "PUT", of + "soon", `{"title":"x"}`, 400, invalid("start")},
		{"a bad scope", "PUT", of + "20270301T090000Z?scope=all", `{"title":"x"}`, 400, invalid("scope")},
		{
			"a field that only a task has",
			"PUT",
			of + "20270301T090000Z",
			`{"recurrence":"weekly"}`,
			400,
			invalid("recurrence"),
		},
		{
			"an end before the start",
			"PUT",
			of + "20270301T090000Z",
			`{"end_time":"2027-03-01T08:00:00Z"}`,
			400,
			invalid("exceptions[0].end_time"),
		},
		{
			"moved",
			"PUT",
			of + "20270302T090000Z",
			`{"start_time":"2027-03-02T12:00:00Z","title":"Late"}`,
			200,
			map[string]any{
				"occurrence_id":  id + "@20270302T090000Z",
				"start_time":     "2027-03-02T12:00:00.000Z",
				"end_time":       "2027-03-02T13:00:00.000Z",
				"original_start": "2027-03-02T09:00:00.000Z",
				"title":          "Late",
				"id":             id,
			},
		},
		{
			"by its time",
			"PUT",
			of + "2027-03-03T09%3A00%3A00Z",
			`{"title":"Third"}`,
			200,
			map[string]any{"start_time": "2027-03-03T09:00:00.000Z", "title": "Third"},
		},
		{"and back", "PUT", of + "20270303T090000Z", `{"title":null}`, 200, map[string]any{"title": "Stand-up"}},
		{"the list", "GET", march, ``, 200, map[string]any{
			"meta.total":             "5",
			"tasks.1.title":          "Late",
			"tasks.1.start_time":     "2027-03-02T12:00:00.000Z",
			"tasks.1.description":    "all",
			"tasks.1.original_start": "2027-03-02T09:00:00.000Z",
			"tasks.2.original_start": "2027-03-03T09:00:00.000Z",
		}},
		{
			"the task", "GET", list + "/" + id, ``, 200,
			map[string]any{"exceptions.0.title": "Late", "exceptions.1": nil},
		},
	} {
		tc.run(t, c)
	}
	for _, start := range []string{"20270301T090000Z", "20270302T090000Z"} {
		if a := c.send(t, "DELETE", of+start, ""); a.StatusCode != 204 {
			t.Errorf("DELETE: %s", a.text)
		}
	}
	rest := c.must(
		t,
		200,
		"PUT",
		of+"20270304T090000Z?scope=following",
		`{"title":"From the fourth on","start_time":"2027-03-04T10:00:00Z"}`,
	)
	for _, tc := range []apiCase{
		{"the list", "GET", march, ``, 200, map[string]any{
			"meta.total":         "3",
			"tasks.0.id":         id,
			"tasks.0.start_time": "2027-03-03T09:00:00.000Z",
			"tasks.1.id":         rest["id"],
			"tasks.1.title":      "From the fourth on",
			"tasks.2.start_time": "2027-03-05T10:00:00.000Z",
		}},
		{
			"the task", "GET", list + "/" + id, ``, 200,
			map[string]any{
				"recurrence_count":       "3",
				"exceptions.0.cancelled": true,
				"next_run":               "2027-03-03T09:00:00.000Z",
			},
		},
		{
			"restored", "PUT", of + "20270301T090000Z", `{}`, 200,
			map[string]any{"start_time": "2027-03-01T09:00:00.000Z"},
		},
		{"the next", "GET", list + "/" + id, ``, 200, map[string]any{"next_run": "2027-03-01T09:00:00.000Z"}},
		{
			"an exception for no occurrence",
			"PUT",
			list + "/" + id,
			`{"exceptions":[{"original_start":"2027-03-01T10:00:00Z","cancelled":true}]}`,
			400,
			invalid("exceptions[0].original_start"),
		},
	} {
		tc.run(t, c)
	}
	if a := c.send(
		t,
		"DELETE",
		list+"/"+rest["id"].(string)+"/occurrences/20270305T100000Z?scope=following",
		"",
	); a.StatusCode != 204 {
		t.Errorf("DELETE: %s", a.text)
	}
	apiCase{"the rest", "GET", march, ``, 200, map[string]any{"meta.total": "3"}}.run(t, c)
	if feed := c.send(t, "GET", list+".ics", ""); !strings.Contains(feed.text, "EXDATE:20270302T090000Z") {
		t.Errorf("%s", feed.text)
	}
}

func TestCalendarRangeIsBounded(t *testing.T) {
	c := newTestClient(t)
	const list = "/api/agents/default/calendar"
	for range 3 {
		c.must(t, 201, "POST", list, `{"title":"t","start_time":"2027-01-01T00:00:00Z","recurrence":"daily"}`)
	}
	apiCase{"ten years of three", "GET", list + "?start=2027-01-01&end=2037-01-01", ``, 400, invalid("end")}.run(t, c)
	got := c.must(t, 200, "GET", list+"?start=2027-01-01&limit=200&offset=1000", "")
	if total, _ := at(got, "meta.total").(json.Number); total != "1098" || len(got["tasks"].([]any)) != 98 {
		t.Errorf("a year of three: %s, %d on the last page", total, len(got["tasks"].([]any)))
	}
}

// TestSchedulesRunWorkflows has a schedule and a task execute a workflow.
func TestSchedulesRunWorkflows(t *testing.T) {
	c := newTestClient(t)
	const agent = "/api/agents/default"
	workflow := c.must(t, 201, "POST", agent+"/workflows", `{"name":"w","status":"active","nodes":[{"id":"t","type":"trigger","position":{"x":0,"y":0},"data":{}},
		{"id":"s","type":"set","position":{"x":0,"y":0},"data":{"values":{"said":"{{greeting}}"}}}],"edges":[{"id":"e","source":"t","target":"s"}]}`)
	made := c.must(
		t, 201, "POST", agent+"/schedules",
		fmt.Sprintf(
			`{"name":"n","type":"cron","cron_expression":"0 0 1 1 *","callback_id":"%s",`+
				`"payload":{"greeting":"hello"}}`,
			workflow["id"],
		),
	)
	run := c.must(t, 200, "POST", agent+"/schedules/"+made["id"].(string)+"/run", "")
	s := c.waitRun(t, agent+"/schedules/"+made["id"].(string))
	execution, _ := at(s, "executions.0.execution_id").(string)
	x := c.must(t, 200, "GET", agent+"/workflows/executions/"+execution, "")
	if at(s, "executions.0.status") != "success" || x["trigger"] != "schedule" || at(x, "output.said") != "hello" ||
		at(x, "input.payload.greeting") != "hello" || at(x, "input.run_id") != run["id"] {
		t.Errorf("%v\n%v", s, x)
	}
	if a := c.send(
		t,
		"POST",
		agent+"/schedules",
		`{"name":"n","type":"cron","cron_expression":"0 0 1 1 *","callback_id":"workflow-x"}`,
	); a.StatusCode != 400 || at(a.json, "error.details.field") != "callback_id" {
		t.Errorf("an unknown workflow: %s", a.text)
	}
}
