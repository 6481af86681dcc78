package client

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// line runs a command line against a fake server and returns its output and the times
// that it waited.
func line(t *testing.T, server http.Handler, args ...string) (out, notes string, waits []time.Duration, err error) {
	t.Helper()
	s := httptest.NewServer(server)
	defer s.Close()
	return lineWith(t, map[string]string{"SATCHEL_SERVER": s.URL}, args...)
}

// lineWith is line with an environment, which names the server.
func lineWith(
	t *testing.T,
	env map[string]string,
	args ...string,
) (out, notes string, waits []time.Duration, err error) {
	t.Helper()
	var printed, noted bytes.Buffer
	o := Options{
		Getenv: func(name string) string { return env[name] },
		In:     strings.NewReader(""),
		Out:    &printed,
		Notes:  &noted,
	}
	root := &cobra.Command{Use: "satchel", SilenceUsage: true, SilenceErrors: true}
	root.AddGroup(&cobra.Group{ID: Group})
	instant := func(_ context.Context, d time.Duration) error {
		waits = append(waits, d)
		return nil
	}
	root.AddCommand(commands(&session{Options: o, wait: instant})...)
	root.AddCommand(clusterCommands(&session{Options: o, wait: instant})...)
	root.SetArgs(args)
	root.SetOut(&printed)
	err = root.ExecuteContext(t.Context())
	return printed.String(), noted.String(), waits, err
}

const tooMany = `{"error":{"code":"RATE_LIMIT_EXCEEDED","message":"too many requests","details":{}}}`

// TestUploadsWaitAfter429 uploads a file to a server that first returns 429: the whole
// file is sent again after the requested time.
func TestUploadsWaitAfter429(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a.txt")
	if err := os.WriteFile(name, []byte("all of it"), 0o600); err != nil {
		t.Fatal(err)
	}
	posts, got := 0, ""
	_, notes, waits, err := line(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			_, _ = io.WriteString(w, `{"sources":[],"meta":{}}`)
			return
		}
		if posts++; posts < 3 {
			w.Header().Set("Retry-After", "17")
			http.Error(w, tooMany, http.StatusTooManyRequests)
			return
		}
		file, _, err := r.FormFile("file")
		if err != nil {
			t.Error(err)
			return
		}
		raw, _ := io.ReadAll(file)
		got = r.FormValue("name") + ": " + string(raw)
		_, _ = io.WriteString(w, `{"id":"source-1","name":"a.txt"}`)
	}), "sources", "add", name)
	if err != nil ||
		got != "a.txt: all of it" ||
		!slices.Equal(waits, []time.Duration{17 * time.Second, 17 * time.Second}) {
		t.Errorf("%v, the server received %q, waited %v", err, got, waits)
	}
	if !strings.Contains(notes, "waiting 17s") {
		t.Errorf("the output does not mention the wait: %s", notes)
	}
}

func TestOnlyReadsAreRepeated(t *testing.T) {
	for _, tc := range []struct {
		args   []string
		status int
		retry  string
		tries  int
	}{
		{[]string{"workflows"}, 503, "", maxTries},
		{[]string{"workflows"}, 429, "", maxTries},
		{[]string{"workflows"}, 429, "3600", 1}, // too long to wait
		{[]string{"workflows"}, 500, "", 1},
		{[]string{"sql", "DELETE FROM contacts"}, 503, "", 1},
		{[]string{"sql", "DELETE FROM contacts"}, 429, "1", maxTries},
	} {
		tries := 0
		_, _, _, err := line(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			tries++
			if tc.retry != "" {
				w.Header().Set("Retry-After", tc.retry)
			}
			http.Error(w, tooMany, tc.status)
		}), tc.args...)
		if err == nil || tries != tc.tries {
			t.Errorf(
				"%v, status %d, Retry-After %q: %d tries, want %d; %v",
				tc.args, tc.status, tc.retry, tries, tc.tries, err,
			)
		}
	}
}

// TestUnverifiedServers holds that a server whose certificate is not valid is tried
// once.
func TestUnverifiedServers(t *testing.T) {
	s := httptest.NewTLSServer(http.NotFoundHandler())
	defer s.Close()
	_, notes, waits, err := lineWith(t, map[string]string{"SATCHEL_SERVER": s.URL}, "workflows")
	if err == nil ||
		!strings.Contains(err.Error(), "the server's certificate is not valid") ||
		len(waits) > 0 ||
		notes != "" {
		t.Errorf("%v, after %v: %s", err, waits, notes)
	}
}

func TestLimits(t *testing.T) {
	for _, command := range []string{"workflows", "agents", "sources", "logs"} {
		_, _, _, err := line(t, http.NotFoundHandler(), command, "--limit", "0")
		if err == nil || !strings.Contains(err.Error(), "--limit must be at least 1") {
			t.Errorf("%s: %v", command, err)
		}
	}
}

// TestApplyToTheAgentOfTheFolder holds that SATCHEL_AGENT, which is for the other
// commands, does not send a definition to another agent than its own.
func TestApplyToTheAgentOfTheFolder(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "agent.json"), []byte(`{"name":"bakery"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		args []string
		want string
	}{{nil, "/api/agents/bakery"}, {[]string{"--agent", "staging"}, "/api/agents/staging"}} {
		asked := ""
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if asked == "" {
				asked = r.URL.Path
			}
			http.Error(w, `{"error":{"code":"NOT_FOUND","message":"agent not found"}}`, http.StatusNotFound)
		}))
		_, _, _, err := lineWith(
			t,
			map[string]string{"SATCHEL_SERVER": s.URL, "SATCHEL_AGENT": "shop"},
			append([]string{"apply", dir, "--dry-run"}, tc.args...)...,
		)
		s.Close()
		if err != nil || !strings.HasPrefix(asked, tc.want) {
			t.Errorf("%v: reads %s, want %s; %v", tc.args, asked, tc.want, err)
		}
	}
}

func TestCompletion(t *testing.T) {
	server := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api/agents":
			_, _ = io.WriteString(w, `{"agents":[{"name":"bakery"},{"name":"shop"}]}`)
		case "/api/agents/shop/workflows":
			_, _ = io.WriteString(w, `{"workflows":[{"name":"New orders"}]}`)
		default:
			http.NotFound(w, r)
		}
	})
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"ask", "When?", "--agent", ""}, "bakery\nshop\n:4\n"},
		{[]string{"export", ""}, "bakery\nshop\n:4\n"},
		{[]string{"export", "shop", ""}, ":0\n"}, // a folder
		{[]string{"run", "--agent", "shop", ""}, "New orders\n:4\n"},
		{[]string{"run", "--agent", "nowhere", ""}, ":4\n"},
	} {
		out, notes, _, err := line(t, server, append([]string{"__complete"}, tc.args...)...)
		if err != nil || out != tc.want || notes != "" {
			t.Errorf("%v: %q, want %q; %v %s", tc.args, out, tc.want, err, notes)
		}
	}
}

// TestAskStreams holds what people see: the text, what it cites and nothing that
// steers the terminal.
func TestAskStreams(t *testing.T) {
	out, notes, _, err := line(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(
			w,
			": hello\n\nevent: tool_call\ndata: {\"name\":\"weather\",\"arguments\":{\"city\":\"Kiel\"}}\n\n"+
				"event: delta\ndata: {\"text\":\"On \\u001b[31mThursdays\"}\n\nevent: delta\n"+
				"data: {\"text\":\" [2].\\nBye\"}\n\n"+
				"event: done\ndata: {\"conversation_id\":\"conversation-1\",\"message\":{\"content\":\"On Thursdays "+
				"[2].\"},\"sources\":[{\"number\":1,\"metadata\":{\"source_name\":\"other.md\"}},"+
				"{\"number\":2,\"metadata\":{\"source_name\":\"cakes.md\",\"place\":\"page 3 · Plum\"}}]}\n\n",
		)
	}), "ask", "When?")
	if want := "On [31mThursdays [2].\nBye\n\n[2] cakes.md, page 3 · Plum\n"; err != nil || out != want {
		t.Errorf("prints %q, want %q; %v", out, want, err)
	}
	if !strings.Contains(notes, `calls weather {"city":"Kiel"}`) ||
		!strings.Contains(notes, "--conversation conversation-1") {
		t.Errorf("notes: %s", notes)
	}
}

func TestStreamsThatFail(t *testing.T) {
	for body, want := range map[string]string{
		"event: delta\n" +
			"data: {\"text\":\"On\"}\n\n": "connection to the server ended",
		"event: error\ndata: {\"error\":{\"code\":\"UPSTREAM\",\"message\":\"no model\"}}\n\n": "no model (UPSTREAM)",
	} {
		_, _, _, err := line(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, body)
		}), "ask", "When?")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", body, err, want)
		}
	}
}

// TestLogsFollowARestart follows a log while connections break, and ends when the
// server returns an error.
func TestLogsFollowARestart(t *testing.T) {
	var requests atomic.Int64
	out, notes, _, err := line(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		switch n := requests.Add(1); {
		case n == 1:
			_, _ = io.WriteString(w, `{"logs":[{"id":"1","message":"before"}]}`)
		case n < 3*maxTries:
			panic(http.ErrAbortHandler)
		case n == 3*maxTries:
			_, _ = io.WriteString(w, `{"logs":[{"id":"1","message":"before"},{"id":"2","message":"after"}]}`)
		default:
			http.Error(w, `{"error":{"code":"NOT_FOUND","message":"agent not found"}}`, http.StatusNotFound)
		}
	}), "logs", "--follow")
	if err == nil || !strings.Contains(err.Error(), "agent not found") {
		t.Error(err)
	}
	if strings.Count(out, "before") != 1 ||
		strings.Count(out, "after") != 1 ||
		strings.Count(notes, "trying again") != 1 {
		t.Errorf("prints %q, notes %q", out, notes)
	}
}

// TestEmptyCells: empty lists are empty cells, and errors mention the key only if
// another one would help.
func TestEmptyCells(t *testing.T) {
	out, _, _, err := line(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"workflows":[{"id":"workflow-1","name":"x","triggers":[],"version":1}]}`)
	}), "workflows")
	if err != nil || strings.Contains(out, "[]") {
		t.Errorf("got %q, %v", out, err)
	}
	for _, tc := range []struct {
		failure Failure
		hint    bool
	}{
		{Failure{Status: http.StatusForbidden, Code: "FORBIDDEN_OPERATION"}, false},
		{
			Failure{Status: http.StatusForbidden, Code: "FORBIDDEN", Message: "the default agent cannot be deleted"},
			false,
		},
		{Failure{Status: http.StatusForbidden, Code: "FORBIDDEN", Details: map[string]any{"role": "admin"}}, true},
		{Failure{Status: http.StatusUnauthorized, Code: "UNAUTHORIZED"}, true},
	} {
		if text := tc.failure.Error(); strings.Contains(text, "--key-file") != tc.hint {
			t.Error(text)
		}
	}
}

// TestTables: tables are for people. They name what a record refers to, and lists are text.
func TestTables(t *testing.T) {
	server := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api/agents/default/workflows":
			_, _ = io.WriteString(
				w,
				`{"workflows":[{"id":"workflow-1","name":"Welcome","triggers":["message.received","manual"]}]}`,
			)
		case "/api/agents/default/workflows/workflow-1":
			_, _ = io.WriteString(w, `{"id":"workflow-1","name":"Welcome","description":"","settings":{"concurrency":3},
				"nodes":[{"id":"t","type":"trigger","data":{"event":"x"}},{"id":"n","type":"set","label":"Greet"}],"edges":[{"source":"t","target":"n"}],"tags":[]}`)
		case "/api/agents/default/workflows/executions":
			_, _ = io.WriteString(
				w,
				`{"executions":[{"id":"execution-1","workflow_id":"workflow-1"},{"id":"execution-2",`+
					`"workflow_id":"workflow-gone"}]}`,
			)
		case "/api/agents/default/workflows/executions/execution-1":
			_, _ = io.WriteString(
				w,
				`{"id":"execution-1","workflow_id":"workflow-1","error":{"message":"the oven\nis `+
					strings.Repeat("very ", 20)+`cold"}}`,
			)
		case "/api/agents/default/contacts":
			_, _ = io.WriteString(w, `{"contacts":[{"id":"contact-1","name":"Ada"},{"id":"contact-2","name":"ada"}]}`)
		default:
			http.NotFound(w, r)
		}
	})
	for _, tc := range []struct {
		args  string
		wants []string
	}{
		{"workflows", []string{"message.received, manual"}},
		{"executions", []string{"WORKFLOW ", "Welcome", "workflow-gone"}},
		{
			"workflows show welcome",
			[]string{
				"id                    workflow-1\n",
				"settings.concurrency  3\n",
				"\nNODES\nID  LABEL  TYPE\nt          trigger\nn   Greet  set\n",
				"\nEDGES\nSOURCE  TARGET\nt       n\n",
			},
		},
		{"workflows show welcome --json", []string{`"settings": {`}},
		{"executions show execution-1", []string{"Welcome", "the oven is very", "cold\n"}},
		{"executions --json", []string{`"workflow_id": "workflow-1"`}},
	} {
		out, notes, _, err := line(t, server, strings.Fields(tc.args)...)
		for _, want := range tc.wants {
			if err != nil || !strings.Contains(out, want) {
				t.Errorf("%s prints no %q: %v\n%s%s", tc.args, want, err, out, notes)
			}
		}
	}
	for args, want := range map[string]string{
		"workflows show nothing": `no workflow is called "nothing"`,
		"contacts delete Ada":    "2 contacts are called",
	} {
		if _, _, _, err := line(t, server, strings.Fields(args)...); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}

// TestEveryListShowsOne: each command that lists records also shows one.
func TestEveryListShowsOne(t *testing.T) {
	for _, c := range Commands(Options{Getenv: func(string) string { return "" }}) {
		if c.Flags().Lookup("limit") == nil || c.Name() == "search" || c.Name() == "logs" {
			continue
		}
		if show, _, err := c.Find([]string{"show"}); err != nil || show.Name() != "show" {
			t.Errorf("%s has no show", c.Name())
		}
	}
}

// TestNullDevice: programs that run without a terminal are not asked.
func TestNullDevice(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if IsTerminal(null) {
		t.Error("the null device is taken for a terminal")
	}
}

// TestLongNumbers: numbers keep their digits on the way in and out.
func TestLongNumbers(t *testing.T) {
	const id = "9007199254740993"
	var sent []byte
	server := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			sent, _ = io.ReadAll(r.Body)
		}
		_, _ = io.WriteString(w, `{"rows":[{"id":`+id+`}],"workflows":[{"id":"workflow-1","name":"x"}]}`)
	})
	if out, _, _, err := line(
		t, server, "api", "/agents/default/x", "--field", "rows.0",
	); err != nil || !strings.Contains(out, id) {
		t.Errorf("%q, %v", out, err)
	}
	if _, _, _, err := line(
		t,
		server,
		"run",
		"x", "--detach",
		"--input", `{"order":`+id+`}`,
	); !strings.Contains(string(sent), id) {
		t.Errorf("sent %s, %v", sent, err)
	}
}

// TestDeletes: an agent, a workflow and the like are deleted by id or name, and sources stopped.
func TestDeletes(t *testing.T) {
	for args, want := range map[string]string{
		"agents delete bakery":        "/api/agents/bakery",
		"agents delete bakery --yes":  "/api/agents/bakery",
		"workflows delete Welcome":    "/api/agents/default/workflows/workflow-1",
		"sources delete source-1":     "/api/agents/default/sources/source-1",
		"conversations delete a/b":    "/api/agents/default/conversations/a%2Fb",
		"schedules delete schedule-1": "/api/agents/default/schedules/schedule-1",
		"sources stop handbook.md":    "/api/agents/default/sources/source-1/stop",
	} {
		deleted := ""
		_, _, _, err := line(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet {
				deleted = r.URL.EscapedPath()
			}
			_, _ = io.WriteString(
				w,
				`{"workflows":[{"id":"workflow-1","name":"Welcome"}],`+
					`"sources":[{"id":"source-1","name":"handbook.md"}]}`,
			)
		}), strings.Fields(args)...)
		if err != nil || deleted != want {
			t.Errorf("%s calls %q, want %q; %v", args, deleted, want, err)
		}
	}
	if _, _, _, err := line(t, http.NotFoundHandler(), "agents", "delete", ""); err == nil ||
		!strings.Contains(err.Error(), "empty") {
		t.Errorf("without a name: %v", err)
	}
}

// TestOwnDataIsNoSource: folders in which Satchel keeps data and secrets are not added.
func TestOwnDataIsNoSource(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{
		"handbook.md", "data/satchel.lock", "data/master.key", "data/agents/agent-1.db", "copies/satchel-replicas",
		"copies/x.json", "more/data.md", "more/satchel.toml", "key.txt",
	} {
		if err := os.MkdirAll(filepath.Join(folder, filepath.Dir(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("data", filepath.Join(folder, "link")); err != nil {
		t.Fatal(err)
	}
	s := &session{keyFile: filepath.Join(folder, "key.txt")}
	items, err := s.findItems([]string{folder})
	if err != nil || len(items) != 2 || items[0].name != "handbook.md" || items[1].name != "more/data.md" {
		t.Errorf("%v %v", items, err)
	}
	for _, name := range []string{
		"data", "data/agents", "data/master.key", "link/master.key", "copies/x.json", "more/satchel.toml", "key.txt",
	} {
		if _, err := s.findItems([]string{filepath.Join(folder, name)}); err == nil ||
			!strings.Contains(err.Error(), "is not added") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAddresses(t *testing.T) {
	for address, want := range map[string]string{
		"http://127.0.0.1:8787":   "http://127.0.0.1:8787/api",
		"localhost:8787":          "http://localhost:8787/api",
		"agents.example.com":      "https://agents.example.com/api",
		"https://example.com/api": "https://example.com/api",
		"https://example.com/s/":  "https://example.com/s/api",
		"ftp://example.com":       "",
		"https://me:pw@host":      "",
		"":                        "",
	} {
		if got, err := baseURL(address); got != want || (err == nil) != (want != "") {
			t.Errorf("%q is %q, %v", address, got, err)
		}
	}
}

func TestDiff(t *testing.T) {
	before := "{\n  a\n  b\n  c\n  d\n  e\n  f\n}\n"
	after := strings.Replace(before, "  c\n", "  x\n", 1)
	if got, want := diff(before, after), "    a\n    b\n-   c\n+   x\n    d\n    e\n  …\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := diff("null\n", "{\n}\n"); got != "+ {\n+ }\n" {
		t.Errorf("got %q", got)
	}
}

func TestEveryCommandHasAnExample(t *testing.T) {
	for _, c := range Commands(Options{Getenv: func(string) string { return "" }}) {
		for _, c := range append(c.Commands(), c) {
			if path := strings.Fields(c.CommandPath()); !strings.HasPrefix(
				c.Example,
				"  satchel "+strings.Join(path, " "),
			) ||
				strings.Contains(c.Example, "\n") {
				t.Errorf("%v: the example is %q", path, c.Example)
			}
		}
	}
}

// TestImportsWorkflows sends an n8n workflow and prints the nodes that are not exact.
func TestImportsWorkflows(t *testing.T) {
	name := filepath.Join(t.TempDir(), "leads.json")
	if err := os.WriteFile(name, []byte(`{"nodes":[]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	got := ""
	out, notes, _, err := line(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		got = r.URL.Path + " " + string(raw)
		_, _ = io.WriteString(w, `{"workflows":[{"id":"workflow-1","name":"Leads","status":"draft"}],"schedules":[],"tools":[],"credentials":[{"name":"GitHub of Ada","n8n_type":"githubApi","preset":"github"}],
			"report":[{"level":"exact","node":"Start"},{"level":"unsupported","node":"Odd","message":"Replace it."}]}`)
	}), "import", "n8n", name, "--dry-run")
	if err != nil ||
		!strings.Contains(got, `/workflows/import {"document":{"nodes":[]},"dry_run":true,"format":"n8n"}`) {
		t.Errorf("%v, the server received %s", err, got)
	}
	if !strings.Contains(out, "Leads") ||
		strings.Contains(out, "workflow-1") ||
		!strings.Contains(notes, "GitHub of Ada") ||
		!strings.Contains(notes, "Replace it.") ||
		strings.Contains(notes, "Start") {
		t.Errorf("printed %s\n%s", out, notes)
	}
}

// TestDrainWaits drains a server, found by its name, until it has no agents.
func TestDrainWaits(t *testing.T) {
	left, drained := 3, ""
	server := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			drained = r.URL.Path
			_, _ = io.WriteString(w, `{"success":true}`)
			return
		}
		_, _ = fmt.Fprintf(
			w,
			`{"nodes":[{"id":"old","name":"node-2","alive":false,"agents":9},{"id":"new","name":"node-2",`+
				`"alive":true,"leaving":true,"agents":%d,"lag_ms":4}]}`,
			left,
		)
		if drained != "" {
			left--
		}
	})
	out, _, waits, err := line(t, server, "drain", "node-2")
	if err != nil ||
		drained != "/api/cluster/nodes/new/drain" ||
		len(waits) != 3 ||
		out != "node-2 has no agents any more\n" {
		t.Errorf("%v, drained %s, waited %v, printed %s", err, drained, waits, out)
	}
	if _, _, _, err := line(t, server, "drain", "node-3"); err == nil ||
		!strings.Contains(err.Error(), `no server "node-3"; alive are node-2`) {
		t.Errorf("an unknown server: %v", err)
	}
	alike := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			t.Errorf("one of two servers with the same name is drained: %s", r.URL.Path)
		}
		_, _ = io.WriteString(
			w,
			`{"nodes":[{"id":"1","name":"node","alive":true},{"id":"2","name":"node","alive":true},{"id":"3",`+
				`"name":"full","alive":true,"leaving":true,"reason":"disk_full"},{"id":"4","name":"last",`+
				`"alive":true,"leaving":true,"reason":"stopping"}]}`,
		)
	})
	if _, _, _, err := line(t, alike, "drain", "node"); err == nil ||
		!strings.Contains(err.Error(), `2 servers have the name "node"`) {
		t.Errorf("a name of two servers: %v", err)
	}
	if out, _, _, err := line(t, alike, "status"); err != nil ||
		!strings.Contains(out, "disk full") ||
		!strings.Contains(out, "stopping") {
		t.Errorf("%v, printed %s", err, out)
	}
	if out, _, _, err := line(t, server, "status"); err != nil ||
		!strings.Contains(out, "draining") ||
		!strings.Contains(out, "gone") ||
		!strings.Contains(out, "4 ms") {
		t.Errorf("%v, printed %s", err, out)
	}
}

// TestNamesWhatIsMissing: applying definitions names exactly the records that lack a
// secret, which definitions do not contain.
func TestNamesWhatIsMissing(t *testing.T) {
	local := &definition{files: map[string]record{
		"mcp/open.json":      {"name": "open", "url": "https://mcp.example.com", "auth_type": "none"},
		"mcp/plain.json":     {"name": "plain", "url": "https://mcp.example.com"},
		"mcp/token.json":     {"name": "token", "url": "https://mcp.example.com", "auth_type": "bearer"},
		"gateways/shop.json": {"name": "shop", "type": "webhook"},
		"tools/weather.json": {
			"name":   "weather",
			"config": map[string]any{"auth": map[string]any{"token": "********"}},
		},
		"tools/time.json": {"name": "time", "config": map[string]any{}},
	}}
	var notes bytes.Buffer
	s := &session{Options: Options{Notes: &notes}}
	changes, err := s.compare(newDefinition(), local, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range changes {
		s.printNeededCredentials(&c)
	}
	const want = `mcp/token.json: its credentials are still to be set
tools/weather.json: its credentials are still to be set
gateways/shop.json: its config is still to be set
`
	if notes.String() != want {
		t.Errorf("printed\n%swant\n%s", notes.String(), want)
	}
}
