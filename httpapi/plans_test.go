package httpapi

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestSchedulePreview(t *testing.T) {
	c := newTestClient(t)
	c.must(t, 200, "PUT", "/api/agents/default/settings", `{"timezone":"Europe/Berlin"}`)
	const preview = "/api/agents/default/schedules/preview"
	later := time.Now().Add(time.Hour).UTC().Format("2006-01-02T15:04:05.000Z")
	for _, tc := range []apiCase{
		{
			"cron",
			"GET",
			preview + "?cron_expression=0+9+*+*+MON-FRI",
			``,
			200,
			map[string]any{"words": "Monday to Friday at 09:00", "timezone": "Europe/Berlin"},
		},
		{
			"elsewhere",
			"GET",
			preview + "?cron_expression=0+9+*+*+*&timezone=Asia/Tokyo",
			``,
			200,
			map[string]any{"timezone": "Asia/Tokyo"},
		},
		{
			"a delay",
			"GET",
			preview + "?type=delayed&delay_seconds=5400",
			``,
			200,
			map[string]any{"words": "Once, after 1 hour 30 minutes", "next.1": nil},
		},
		{
			"once",
			"GET",
			preview + "?type=once&next_run=" + later,
			``,
			200,
			map[string]any{"words": "Once", "next.0": later, "next.1": nil},
		},
		{"nothing", "GET", preview, ``, 400, invalid("cron_expression")},
		{"a bad expression", "GET", preview + "?cron_expression=61+*+*+*+*", ``, 400, invalid("cron_expression")},
		{"a bad zone", "GET", preview + "?cron_expression=*+*+*+*+*&timezone=Mars", ``, 400, invalid("timezone")},
		{"no delay", "GET", preview + "?type=delayed", ``, 400, invalid("delay_seconds")},
		{"no time", "GET", preview + "?type=once", ``, 400, invalid("next_run")},
		{"the past", "GET", preview + "?type=once&next_run=2020-01-01T00:00:00Z", ``, 400, invalid("next_run")},
		{"a bad type", "GET", preview + "?type=hourly", ``, 400, invalid("type")},
	} {
		tc.run(t, c)
	}
	next := c.must(t, 200, "GET", preview+"?cron_expression=30+*+*+*+*", "")["next"].([]any)
	for i, at := range next {
		if moment, err := time.Parse(time.RFC3339, at.(string)); err != nil ||
			moment.Minute() != 30 ||
			moment.Before(time.Now()) ||
			i > 0 && at.(string) <= next[i-1].(string) {
			t.Errorf("%v", next)
		}
	}
	if len(next) != 5 {
		t.Errorf("%d runs", len(next))
	}
}

// TestScheduleDays requests what schedules did today and will do on the next days, which
// are days of the agent's time zone.
func TestScheduleDays(t *testing.T) {
	c := newTestClient(t)
	c.must(t, 200, "PUT", "/api/agents/default/settings", `{"timezone":"Asia/Tokyo"}`)
	const list = "/api/agents/default/schedules"
	made := func(name, cron string) string {
		return list + "/" +
			c.must(
				t, 201, "POST", list,
				`{"name":"`+name+`","type":"cron","cron_expression":"`+cron+
					`","callback_type":"agent","payload":{"prompt":"x"}}`,
			)["id"].(string)
	}
	daily := made("Daily", "0 9 * * *")
	made("Dense", "* * * * *")
	today := time.Now().In(time.FixedZone("", 9*3600))
	day := func(n int) string { return today.AddDate(0, 0, n).Format(time.DateOnly) }
	summary := func(from, to string) string {
		var out []string
		for _, d := range c.must(t, 200, "GET", list+"/days?start="+from+"&end="+to, "")["days"].([]any) {
			first, err := time.Parse(time.RFC3339, at(d, "first").(string))
			if err != nil {
				t.Fatal(err)
			}
			out = append(
				out,
				fmt.Sprintf(
					"%v %v: %v planned, from %s",
					at(d, "date"),
					at(d, "name"),
					at(d, "planned"),
					first.In(today.Location()).Format("15:04"),
				),
			)
		}
		return strings.Join(out, "\n")
	}
	want := fmt.Sprintf(
		"%[1]s Dense: 50 planned, from 00:00\n%[1]s Daily: 1 planned, from 09:00\n%[2]s Dense: 50 planned, "+
			"from 00:00\n%[2]s Daily: 1 planned, from 09:00",
		day(2),
		day(3),
	)
	if got := summary(day(2), day(3)); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	c.must(t, 200, "POST", daily+"/run", "")
	c.waitRun(t, daily) // without a model
	failed := 0
	for _, d := range c.must(t, 200, "GET", list+"/days?start="+day(0)+"&end="+day(1), "")["days"].([]any) {
		if at(d, "failed") == json.Number("1") && at(d, "runs") == json.Number("1") && at(d, "name") == "Daily" {
			failed++
		}
	}
	if newest := at(
		c.must(t, 200, "GET", list+"?sort=name", ""),
		"schedules.0.newest_run.status",
	); failed != 1 || newest != "error" {
		t.Errorf("%d failed runs today, the newest is %v", failed, newest)
	}
	for _, tc := range []apiCase{
		{"no start", "GET", list + "/days?end=2027-01-01", ``, 400, invalid("start")},
		{"a moment", "GET", list + "/days?start=2027-01-01T00:00:00Z&end=2027-01-01", ``, 400, invalid("start")},
		{"too long", "GET", list + "/days?start=2027-01-01&end=2027-03-04", ``, 400, invalid("end")},
		{"as long as allowed", "GET", list + "/days?start=2027-01-01&end=2027-03-03", ``, 200, nil},
		{"backwards", "GET", list + "/days?start=2027-01-02&end=2027-01-01", ``, 400, invalid("end")},
	} {
		tc.run(t, c)
	}
}

func TestContactBatches(t *testing.T) {
	c := newTestClient(t)
	const list = "/api/agents/default/contacts"
	made := func(name, tags string) string {
		return c.must(
			t, 201, "POST", list,
			`{"name":"`+name+`","tags":`+tags+`,"metadata":{"plan":"pro"}}`,
		)["id"].(string)
	}
	ada, bob := made("Ada", `["vip"]`), made("Bob", `["lead","old"]`)
	both := `"ids":["` + ada + `","` + bob + `","contact-x"]`
	for _, tc := range []apiCase{
		{
			"tagged",
			"POST",
			list + "/batch",
			`{` + both + `,"add_tags":["vip"]}`,
			200,
			map[string]any{"changed.0": bob, "changed.1": nil},
		},
		{
			"one removed, one added",
			"POST",
			list + "/batch",
			`{` + both + `,"remove_tags":["old"],"add_tags":["new"]}`,
			200,
			map[string]any{"changed.1": bob},
		},
		{
			"now", "GET", list + "/" + bob, ``, 200,
			map[string]any{"tags.0": "lead", "tags.1": "vip", "tags.2": "new", "tags.3": nil},
		},
		{
			"all tags", "GET", list + "/tags", ``, 200,
			map[string]any{"tags.0": "lead", "tags.1": "new", "tags.2": "vip", "tags.3": nil},
		},
		{"some tags", "GET", list + "/tags?prefix=v", ``, 200, map[string]any{"tags.0": "vip", "tags.1": nil}},
		{
			"a long tag",
			"POST",
			list + "/batch",
			`{` + both + `,"add_tags":["` + strings.Repeat("x", 101) + `"]}`,
			400,
			invalid("tags[2]"),
		},
		{"nobody", "POST", list + "/batch", `{"ids":[],"delete":true}`, 400, invalid("ids")},
		{"nothing", "POST", list + "/batch", `{` + both + `}`, 400, invalid("add_tags")},
		{"both", "POST", list + "/batch", `{` + both + `,"delete":true,"add_tags":["x"]}`, 400, invalid("delete")},
		{
			"the plain list", "GET", list + "?sort=name", ``, 200,
			map[string]any{"contacts.0.name": "Ada", "contacts.0.metadata": nil, "contacts.0.updated_at": nil},
		},
		{
			"the full list",
			"GET",
			list + "?sort=name&full=true",
			``,
			200,
			map[string]any{
				"contacts.0.metadata.plan":   "pro",
				"contacts.0.last_message_at": nil,
				"contacts.0.notes":           "",
			},
		},
	} {
		tc.run(t, c)
	}
	talk := c.must(t, 201, "POST", "/api/agents/default/conversations", `{"contact_id":"`+ada+`"}`)["id"].(string)
	said := c.must(
		t,
		201,
		"POST",
		"/api/agents/default/conversations/"+talk+"/messages",
		`{"role":"user","content":"hi"}`,
	)
	if last := at(
		c.must(t, 200, "GET", list+"?sort=name&full=true", ""),
		"contacts.0.last_message_at",
	); last != said["created_at"] || last == nil {
		t.Errorf("last message at %v, was %v", last, said["created_at"])
	}
	apiCase{
		"deleted",
		"POST",
		list + "/batch",
		`{` + both + `,"delete":true}`,
		200,
		map[string]any{"changed.0": ada, "changed.1": bob, "changed.2": nil},
	}.run(t, c)
	apiCase{"nothing left", "GET", list, ``, 200, map[string]any{"meta.total": "0"}}.run(t, c)
}

// TestImportDryRun checks that a dry run returns what the import then does, also for rows
// that repeat others far above them, and stores nothing.
func TestImportDryRun(t *testing.T) {
	c := newTestClient(t)
	const list = "/api/agents/default/contacts"
	c.must(t, 201, "POST", list, `{"name":"Ada","email":"ada@example.com"}`)
	var csv strings.Builder
	csv.WriteString("name,email,phone,chatbot_a\nAda,ADA@example.com,,\nBob,bob@example.com,,\nBad,nobody,,\n" +
		"Phone,,+1 (555) 01,\nHandle,,,@Hans\n")
	for i := range importBatch {
		fmt.Fprintf(&csv, "Contact %d,c%d@example.com,,\n", i, i)
	}
	csv.WriteString("Bob,BOB@example.com,,\nPhone,,1-555-01,\nHandle,,,hans\n")
	for _, on := range []string{"error", "skip", "update"} {
		answer := func(dry string) map[string]any {
			t.Helper()
			a := c.upload(t, list+"/import", "c.csv", csv.String(), map[string]string{
				"on_duplicate": on,
				"dry_run":      dry,
			})
			if a.StatusCode != 200 {
				t.Fatalf("%d %s", a.StatusCode, a.text)
			}
			return a.json
		}
		before := at(c.must(t, 200, "GET", list, ""), "meta.total")
		tried := answer("true")
		if after := at(c.must(t, 200, "GET", list, ""), "meta.total"); after != before {
			t.Fatalf("%s: a dry run created %v contacts of %v", on, after, before)
		}
		if done := answer("false"); fmt.Sprint(done) != fmt.Sprint(tried) {
			t.Errorf("%s: tried %v\ndone %v", on, tried, done)
		}
		ids := []string{}
		for c.must(t, 200, "GET", list, ""); ; {
			page := c.must(t, 200, "GET", list+"?limit=200&sort=created_at&order=desc", "")["contacts"].([]any)
			if len(page) < 2 {
				break
			}
			ids = ids[:0]
			for _, x := range page {
				if at(x, "name") != "Ada" {
					ids = append(ids, quoted(at(x, "id").(string)))
				}
			}
			c.must(t, 200, "POST", list+"/batch", `{"delete":true,"ids":[`+strings.Join(ids, ",")+`]}`)
		}
	}
	if a := c.upload(
		t, list+"/import", "c.csv", "name\nx\n",
		map[string]string{"dry_run": "perhaps"},
	); a.StatusCode != 400 || !strings.Contains(a.text, "dry_run") {
		t.Errorf("%d %s", a.StatusCode, a.text)
	}
}
