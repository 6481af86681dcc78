package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// edits are values for each field of each file of a definition, one for each round.
var edits = map[string]map[string][]any{
	"agent.json": {"description": {"Cakes", nil, ""}, "name": {"bakery"}, "settings": nil},
	"apis/shop.json": {
		"name":       {"shops", "SHOPS", "shop"},
		"server":     {"https://shop.example.com/v3/", nil},
		"credential": {"@credentials/crm", "crm", nil},
		"url":        {"SERVER/again"},
	},
	"mcp/tickets.json": {
		"name":       {"Issues", "Bugs"},
		"url":        {"SERVER/mcp"},
		"command":    {nil, ""},
		"credential": {"@credentials/crm", nil},
	},
	"tools/weather.json": {
		"name":        {"rain", "Rain", "snow"},
		"description": {"Rain", nil},
		"type":        {"api"},
		"enabled":     {false, true, nil},
		"config": {
			map[string]any{
				"url":        "https://example.com/x",
				"method":     "",
				"timeout_ms": 2000,
				"query":      map[string]any{"id": json.Number("9007199254740993")},
			},
			map[string]any{
				"url":     "https://example.com/x",
				"method":  "GET",
				"headers": map[string]any{"X-A": "b"},
				"auth":    map[string]any{"type": "bearer", "token": "new"},
			},
			map[string]any{
				"url":        "https://example.com/y",
				"auth":       nil,
				"parameters": map[string]any{"type": "object", "properties": map[string]any{}},
			},
		},
	},
	"gateways/shop.json": {"name": {"Store", "Kiosk"}, "type": {"webhook"}, "is_default": {true, nil, false}},
	"tables/orders.json": {
		"name": {"sales", "deals"},
		"columns": {
			[]any{map[string]any{"name": "item", "from": "product", "type": "text", "required": false}},
			[]any{
				map[string]any{"name": "item", "type": "choice", "options": []any{"b", "a"}, "unique": true},
				map[string]any{"name": "n", "type": "number"},
			},
		},
	},
	"workflows/welcome.json": {
		"name":        {"Hello", "Hi", "Welcome"},
		"description": {"New", nil},
		"status":      {"active", "paused", "archived", "active"},
		"nodes": {[]any{
			map[string]any{"id": "t", "type": "trigger", "mine": 1.50, "position": map[string]any{"x": 10, "y": 0}},
			map[string]any{
				"id":   "u",
				"type": "set",
				"data": map[string]any{"values": map[string]any{"n": json.Number("12345678901234567890")}},
			},
		}},
		"edges": {
			[]any{map[string]any{"source": "t", "target": "u"}},
			nil,
			[]any{map[string]any{"id": "e", "source": "t", "target": "u", "label": "x"}},
		},
		"settings": {
			map[string]any{"concurrency": 3},
			nil,
			map[string]any{"on_conflict": "queue", "concurrency": nil},
		},
	},
	"schedules/daily.json": {
		"name":            {"Nightly", " Weekly "},
		"type":            {"cron"},
		"cron_expression": {"0 8 * * *", " 0 7 * * MON "},
		"callback_type":   {"workflow", nil},
		"callback_id":     {"@workflows/welcome"},
		"payload":         {map[string]any{"b": 1, "a": json.Number("9007199254740993")}, nil},
		"timezone":        {"Europe/Berlin", nil},
		"misfire_policy":  {"skip", nil},
		"overlap":         {"queue", ""},
		"status":          {"paused", "active", nil},
		"delay_seconds":   {json.Number("5"), nil},
	},
	"calendar/weekly-review.json": {
		"title":            {"Review", " Look back "},
		"description":      {"Numbers", nil},
		"start_time":       {"2026-01-06T10:00:00+02:00", "2026-01-05T09:00:00Z"},
		"end_time":         {"2026-01-06T12:00:00+01:00", "2026-01-06T13:00:00Z", nil},
		"timezone":         {"Europe/Berlin", nil},
		"recurrence":       {"daily", "weekly"},
		"recurrence_days":  {nil, []any{7, 1, 1}, []any{}},
		"recurrence_count": {nil, 500, 0},
		"recurrence_end":   {"2099-01-31", nil},
		"exceptions": {
			nil,
			[]any{map[string]any{"original_start": "2026-12-28T10:00:00+01:00", "title": "Last"}},
			[]any{},
		},
		"workflow_id": {nil, "@workflows/welcome", ""},
	},
	"replies/hi.json": {
		"shortcut": {"hello", "!Hello", "hey"},
		"text":     {"Good morning", " spaced "},
	},
	"webhooks/https-example-com-events.json": {
		"url":    {"https://example.com/other", "https://example.com/third"},
		"events": {[]any{"message.received", "workflow.*"}, []any{"*"}},
		"active": {false, nil, true},
	},
}

// settingEdits are edits of the settings in agent.json.
var settingEdits = map[string][]any{
	"llm_provider":             {"ollama", nil},
	"llm_model":                {"m", nil},
	"llm_base_url":             {"https://llm.example.com/v1", nil},
	"llm_temperature":          {json.Number("0.70"), json.Number("1.0"), nil},
	"llm_max_tokens":           {100, nil},
	"system_prompt":            {"Be brief", nil},
	"auto_reply":               {true, nil},
	"chat_browser":             {true, nil},
	"timezone":                 {"Europe/Berlin", nil},
	"retention_days":           {7, nil},
	"embedding_provider":       {"local", nil},
	"embedding_model":          {nil, ""},
	"embedding_base_url":       {nil, ""},
	"embedding_query_prefix":   {"", "q: ", nil},
	"embedding_passage_prefix": {"", "p: ", nil},
}

// TestApplyTwice edits every field of every kind of file, several times, by names too. After
// each round a second apply changes nothing, no record is added, and an export is the folder.
func TestApplyTwice(t *testing.T) {
	t.Parallel()
	s := start(t, "--data", filepath.Join(t.TempDir(), "data"), "--outbound-allow", "127.0.0.1/32")
	described := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, shopAPI)
	}))
	defer described.Close()
	dir := s.exportsOneOfEach(t, described.URL)
	for round := range 4 {
		kept := map[string]string{}
		for path, fields := range edits {
			file := readRecord(t, filepath.Join(dir, path))
			for field := range file {
				if _, ok := fields[field]; !ok &&
					!slices.Contains([]string{"sha256", "auth_type", "configured_fields"}, field) {
					t.Errorf("%s: %s is not edited", path, field)
				}
			}
			edit(file, fields, round, described.URL)
			if settings, ok := file["settings"].(map[string]any); ok && path == "agent.json" {
				for field := range settings {
					if settingEdits[field] == nil {
						t.Errorf("the setting %s is not edited", field)
					}
				}
				edit(settings, settingEdits, round, "")
			}
			kept[path] = writeRecord(t, filepath.Join(dir, path), file)
		}
		if _, err := s.line(t, "apply", dir); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		s.appliesNothing(t, dir)
		for path, text := range kept { // apply changes no file
			if now := writeRecord(t, filepath.Join(dir, path), readRecord(t, filepath.Join(dir, path))); now != text {
				t.Errorf("%s was changed", path)
			}
		}
		s.prints(t, []string{"export", "bakery", dir})
		s.appliesNothing(t, dir)
		for path, fields := range edits {
			got, was := readRecord(t, filepath.Join(dir, path)), map[string]any{}
			_ = json.Unmarshal([]byte(kept[path]), &was)
			for _, field := range []string{"name", "description", "text", "callback_id", "status"} {
				if values := fields[field]; round < len(values) &&
					was[field] != nil &&
					!strings.ContainsAny(was[field].(string), " ") &&
					got[field] != was[field] {
					t.Errorf("round %d: %s is exported with %s %v, want %v", round, path, field, got[field], was[field])
				}
			}
		}
	}
	for kind, list := range map[string]string{
		"apis": "apis", "mcp": "servers", "tools": "tools", "gateways": "gateways", "tables": "tables",
		"workflows": "workflows", "schedules": "schedules", "calendar": "tasks", "replies": "replies",
		"webhooks": "webhooks",
	} {
		if all := s.call(t, "GET", "/agents/bakery/"+kind, nil, 200)[list].([]any); len(all) != 1 {
			t.Errorf("%s: %d records, want 1: %v", kind, len(all), all)
		}
	}
	s.prints(t, []string{"apply", dir, "--agent", "another", "--dry-run"}, "create workflows/welcome.json")
}

func (s *service) appliesNothing(t *testing.T, dir string, args ...string) {
	t.Helper()
	if out := s.prints(t, slices.Concat([]string{"apply", dir}, args)); out != "" {
		t.Fatalf("a second apply changes\n%s", out)
	}
}

// exportsOneOfEach exports an agent with a record of each kind.
func (s *service) exportsOneOfEach(t *testing.T, described string) string {
	t.Helper()
	const of = "/agents/bakery"
	s.call(t, "POST", "/agents", map[string]any{"name": "bakery"}, 201)
	s.call(
		t,
		"POST",
		of+"/credentials",
		map[string]any{
			"name":   "crm",
			"type":   "header",
			"hosts":  []string{"127.0.0.1", "shop.example.com"},
			"secret": map[string]any{"X-Key": "s"},
		},
		201,
	)
	s.call(t, "POST", of+"/apis", map[string]any{"name": "shop", "url": described}, 201)
	s.call(t, "POST", of+"/mcp", map[string]any{"name": "Tickets", "url": described + "/tickets"}, 201)
	s.call(
		t,
		"POST",
		of+"/tools",
		map[string]any{"name": "weather", "type": "api", "config": map[string]any{"url": "https://example.com/w"}},
		201,
	)
	s.call(t, "POST", of+"/gateways", map[string]any{"type": "webhook", "name": "Shop"}, 201)
	s.call(
		t,
		"POST",
		of+"/tables",
		map[string]any{
			"name":    "orders",
			"columns": []any{map[string]any{"name": "product", "type": "text", "required": true}},
		},
		201,
	)
	flow := s.call(
		t,
		"POST",
		of+"/workflows",
		map[string]any{"name": "Welcome", "nodes": []any{map[string]any{"id": "t", "type": "trigger"}}},
		201,
	)
	s.call(
		t,
		"POST",
		of+"/schedules",
		map[string]any{
			"name":            "Daily",
			"type":            "cron",
			"cron_expression": "0 9 * * *",
			"callback_type":   "workflow",
			"callback_id":     flow["id"],
		},
		201,
	)
	s.call(
		t,
		"POST",
		of+"/calendar",
		map[string]any{
			"title":          "Weekly review",
			"start_time":     "2026-01-05T09:00:00Z",
			"recurrence":     "weekly",
			"recurrence_end": "2099-02-01",
		},
		201,
	)
	s.call(t, "POST", of+"/replies", map[string]any{"shortcut": "hi", "text": "Hello"}, 201)
	s.call(
		t,
		"POST",
		of+"/webhooks",
		map[string]any{"url": "https://example.com/events", "events": []string{"workflow.*"}},
		201,
	)
	dir := filepath.Join(t.TempDir(), "bakery")
	s.prints(t, []string{"export", "bakery", dir})
	return dir
}

func edit(file map[string]any, fields map[string][]any, round int, server string) {
	for field, values := range fields {
		if round < len(values) {
			file[field] = values[round]
			if text, ok := values[round].(string); ok {
				file[field] = strings.Replace(text, "SERVER", server, 1)
			}
		}
	}
}

func readRecord(t *testing.T, name string) (r map[string]any) {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err == nil {
		d := json.NewDecoder(strings.NewReader(string(raw)))
		d.UseNumber()
		err = d.Decode(&r)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func writeRecord(t *testing.T, name string, r map[string]any) string {
	t.Helper()
	raw, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	write(t, name, string(raw))
	return string(raw)
}

// TestApplyRefuses applies folders with mistakes, which change nothing.
func TestApplyRefuses(t *testing.T) {
	t.Parallel()
	s := start(t, "--data", filepath.Join(t.TempDir(), "data"))
	dir := filepath.Join(t.TempDir(), "bakery")
	for name, text := range map[string]string{
		"agent.json":         `{"name": "bakery", "settings": {"retention_days": 9007199254740993}}`,
		"replies/hi.json":    `{"shortcut": "hi", "text": "Hello"}`,
		"workflows/a.json":   `{"name": "Same"}`,
		"workflows/b.json":   `{"name": "Same", "description": "another"}`,
		"gateways/one.json":  `{"name": "One", "type": "webhook", "is_default": true}`,
		"tables/orders.json": `{"name": "orders", "columns": [{"name": "n", "type": "number"}]}`,
		"schedules/past.json": `{"name": "Past", "type": "once", "next_run": "2020-01-01T00:00:00Z", ` +
			`"callback_id": "@workflows/a"}`,
		"tools/again.json":      `{"name": "again", "type": "function", "config": {"code": "return 1"}}`,
		"webhooks/one.json":     `{"url": "https://example.com/one", "events": ["*"]}`,
		"calendar/meeting.json": `{"title": "Meeting", "start_time": "2020-01-05T09:00:00Z"}`,
	} {
		write(t, filepath.Join(dir, name), text)
	}
	if _, err := s.line(t, "apply", dir); err == nil || !strings.Contains(err.Error(), "retention_days") {
		t.Errorf("a setting that the server refuses: %v", err)
	}
	write(t, filepath.Join(dir, "agent.json"), `{"name": "bakery", "settings": {"retention_days": 20}}`)
	write(t, filepath.Join(dir, "webhooks/one.json"), `{"url": "https://example.com/one", "events": ["nothing"]}`)
	if _, err := s.line(t, "apply", dir); err == nil || !strings.Contains(err.Error(), "webhooks/one.json: ") {
		t.Errorf("the last record is refused: %v", err) // after the others were created
	}
	write(t, filepath.Join(dir, "webhooks/one.json"), `{"url": "https://example.com/one", "events": ["*"]}`)
	if out := s.prints(t, []string{"apply", dir}); strings.Count(out, "create ") != 1 ||
		strings.Contains(out, "update ") {
		t.Errorf("after a failure half way it changes\n%s", out)
	}
	s.appliesNothing(t, dir)
	for _, c := range []struct{ file, text, want string }{
		{
			"agent.json",
			`{"name": "bakery", "settings": {"llm_modle": "m"}}`,
			"agent.json: there is no field llm_modle; did you mean llm_model?",
		},
		{"agent.json", `{"name": "bakery", "setings": {}}`, "did you mean settings?"},
		{"agent.json", `{"name": "bakery", "settings": {"openai_api_key": "sk-x"}}`, "openai_api_key is a credential"},
		{
			"workflows/a.json",
			`{"name": "Same", "settings": {"concurency": 2}}`,
			"there is no field settings.concurency; did you mean settings.concurrency?",
		},
		{"workflows/a.json", `{"name": "Same", "stauts": "active"}`, "did you mean status?"},
		{"workflows/a.json", `{"name": ["Same"]}`, "workflows/a.json: name is not of the right type"},
		{
			"tools/again.json",
			`{"name": "again", "config": {"code": "return 2", "timeout": 5}}`,
			"there is no field config.timeout; did you mean config.timeout_ms?",
		},
		{
			"tools/copy.json",
			`{"name": "Again", "type": "function", "config": {"code": "return 1"}}`,
			`"Again" is the name in tools/again.json too`,
		},
		{
			"tables/orders.json",
			`{"name": "orders", "columns": [{"name": "n", "type": "number", "requird": true}]}`,
			"did you mean columns[0].required?",
		},
		{
			"gateways/two.json",
			`{"name": "Two", "type": "webhook", "is_default": true}`,
			"is_default is true in gateways/one.json too",
		},
	} {
		name := filepath.Join(dir, c.file)
		before, _ := os.ReadFile(name)
		write(t, name, c.text)
		if out, err := s.line(t, "apply", dir); err == nil || !strings.Contains(err.Error(), c.want) || out != "" {
			t.Errorf("%s: %v, want %s\n%s", c.text, err, c.want, out)
		}
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
		if before != nil {
			write(t, name, string(before))
		}
	}
	s.appliesNothing(t, dir)
	s.keepsIdentity(t, dir)
}

// keepsIdentity renames a record twice, deletes one on the server, and applies the folder to
// another agent and back.
func (s *service) keepsIdentity(t *testing.T, dir string) {
	t.Helper()
	s.prints(t, []string{"apply", dir, "--agent", "staging"})
	for _, name := range []string{"First", "Second", "Third"} {
		write(t, filepath.Join(dir, "workflows/a.json"), `{"name": "`+name+`"}`)
		for _, at := range []string{"bakery", "staging"} {
			if out := s.prints(
				t,
				[]string{"apply", dir, "--agent", at},
				"update workflows/a.json",
				`+   "name": "`+name,
			); strings.Contains(out, `-   "description"`) {
				t.Errorf("a field that is kept is shown as removed:\n%s", out)
			}
			s.appliesNothing(t, dir, "--agent", at)
		}
	}
	all := s.call(t, "GET", "/agents/bakery/workflows", nil, 200)["workflows"].([]any)
	if len(all) != 2 {
		t.Errorf("%d workflows, want 2", len(all))
	}
	for _, w := range all {
		if w := w.(map[string]any); w["name"] == "Third" {
			s.call(t, "DELETE", "/agents/bakery/workflows/"+w["id"].(string), nil, 200)
		}
	}
	s.prints(t, []string{"apply", dir, "--agent", "bakery"}, "create workflows/a.json")
	s.appliesNothing(t, dir, "--agent", "bakery")
	s.appliesNothing(t, dir, "--agent", "staging")
	for _, name := range []string{
		"workflows/a.json", "tools/again.json", "replies/hi.json", "gateways/one.json", "webhooks/one.json",
		"calendar/meeting.json",
	} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	s.appliesNothing(t, dir, "--agent", "bakery")
	s.prints(
		t,
		[]string{"apply", dir, "--agent", "bakery", "--prune"},
		"delete workflows/third.json",
		"delete webhooks/https-example-com-one.json",
	)
	s.appliesNothing(t, dir, "--agent", "bakery", "--prune")
}
