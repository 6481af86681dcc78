package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// line runs a command line against the server of s and returns its output.
func (s *service) line(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := run(t.Context(), append(args, "--server", strings.TrimSuffix(s.url, "/api")), &out)
	return out.String(), err
}

// prints runs a command line that succeeds, and checks that its output contains some
// texts.
func (s *service) prints(t *testing.T, args []string, wants ...string) string {
	t.Helper()
	out, err := s.line(t, args...)
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	for _, want := range wants {
		if !strings.Contains(out, want) {
			t.Errorf("%v prints no %q:\n%s", args, want, out)
		}
	}
	return out
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestClientCommands runs the commands of docs/cli.md against a server.
func TestClientCommands(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	s := start(t, "--data", data)
	t.Setenv("SATCHEL_AGENT", "bakery")
	s.prints(t, []string{"agents", "create", "bakery"}, "agent-")
	s.prints(t, []string{"agents"}, "NAME", "bakery", "active")

	folder := t.TempDir()
	write(t, filepath.Join(folder, "handbook.md"), handbook)
	write(t, filepath.Join(folder, "more", "cakes.md"), "# Cakes\nThe plum cake is baked on Thursdays.\n")
	write(t, filepath.Join(folder, ".hidden.md"), "# Not this")
	if out, err := s.line(t, "sources", "add", data); err == nil || !strings.Contains(err.Error(), "its own data") {
		t.Errorf("the data folder: %v\n%s", err, out)
	}
	for range 2 { // a second time adds nothing
		s.prints(t, []string{"sources", "add", folder})
	}
	s.prints(t, []string{"sources"}, "handbook.md", "more/cakes.md", "ready")
	var sources []map[string]any
	if err := json.Unmarshal(
		[]byte(s.prints(t, []string{"sources", "--json"})),
		&sources,
	); err != nil || len(sources) != 2 {
		t.Errorf("%d sources, want 2: %v", len(sources), err)
	}
	s.prints(t, []string{"sources", "add", filepath.Join(folder, "handbook.md"), "--replace"})
	s.prints(t, []string{"sql", "SELECT count(*) AS n FROM sources WHERE name LIKE ?", "%.md"}, "n\n2\n")

	s.prints(t, []string{"ask", "when is plum cake made"}, "[1] more/cakes.md", "Thursdays")
	s.prints(t, []string{"ask", "when is plum cake made", "--json"}, `"conversation_id"`, `"mode": "passages"`)
	s.prints(t, []string{"search", "refund for bread", "-n", "1"}, "handbook.md, ", "money back")
	s.prints(
		t,
		[]string{"sql", "SELECT name, ? AS n FROM sources ORDER BY name", "7", "--csv"},
		"name,n\nhandbook.md,7\n",
	)
	s.prints(t, []string{"conversations"}, "ID")
	s.prints(t, []string{"logs"}, "audit")
	s.prints(t, []string{"api", "contacts", `{"name":"Ada"}`}, `"name": "Ada"`)
	s.prints(t, []string{"api", "contacts?search=ada", "--field", "contacts.0.name"}, "Ada\n")
	s.prints(t, []string{"contacts"}, "CREATED", "  20")
	s.prints(t, []string{"contacts", "show", "Ada"}, "name ", "Ada\n")
	s.prints(t, []string{"contacts", "delete", "Ada"})
	s.prints(t, []string{"agents", "create", "cafe"})
	s.prints(t, []string{"agents", "delete", "cafe"})
	if out := s.prints(t, []string{"agents"}); strings.Contains(out, "cafe") {
		t.Errorf("an agent is not deleted:\n%s", out)
	}
	s.prints(
		t,
		[]string{"api", "PUT", "/agents/bakery", `{"description":"Bread"}`, "--field", "description"},
		"Bread\n",
	)
	for _, args := range [][]string{
		{"contacts", "{"},
		{"https://example.com/x"},
		{"GET"},
		{"contacts", "--field", "nothing"},
		{"contacts/contact-none"},
	} {
		if out, err := s.line(t, append([]string{"api"}, args...)...); err == nil {
			t.Errorf("api %v: %s", args, out)
		}
	}
	if _, err := s.line(t, "sql", "DELETE FROM sources", "--read-only"); err == nil ||
		!strings.Contains(err.Error(), "FORBIDDEN_OPERATION") {
		t.Errorf("a write that is read-only: %v", err)
	}
}

func TestClientRunsWorkflows(t *testing.T) {
	t.Parallel()
	s := start(t, "--data", filepath.Join(t.TempDir(), "data"))
	for name, node := range map[string]map[string]any{
		"Greet": {"id": "n", "type": "set", "data": map[string]any{"values": map[string]any{"hello": "{{name}}"}}},
		"Fail":  {"id": "n", "type": "code", "data": map[string]any{"code": "throw new Error('the oven is cold')"}},
	} {
		s.call(t, "POST", "/agents/default/workflows", map[string]any{
			"name":   name,
			"status": "active",
			"nodes":  []any{map[string]any{"id": "t", "type": "trigger"}, node},
			"edges":  []any{map[string]any{"source": "t", "target": "n"}},
		}, 201)
	}
	s.prints(t, []string{"workflows"}, "Greet", "active")
	s.prints(t, []string{"run", "greet", "--input", `{"name":"Ada"}`}, `"hello": "Ada"`)
	if out, err := s.line(t, "run", "fail"); err == nil ||
		!strings.Contains(err.Error(), "errored") ||
		!strings.Contains(err.Error(), "the oven is cold") {
		t.Errorf("a workflow that fails: %v\n%s", err, out)
	}
	if _, err := s.line(t, "run", "nobody"); err == nil ||
		!strings.Contains(err.Error(), `no workflow is called "nobody"`) {
		t.Errorf("a workflow that does not exist: %v", err)
	}
	s.prints(t, []string{"run", "greet", "--detach"}, "execution-")
	s.prints(t, []string{"executions"}, "complete", "the oven is cold", "Greet", "Fail")
	s.prints(t, []string{"workflows", "show", "greet"}, "NODES", "trigger", "EDGES")
}

// TestClientFollowsLogs reads an entry that is logged while logs --follow runs.
func TestClientFollowsLogs(t *testing.T) {
	t.Parallel()
	s := start(t, "--data", filepath.Join(t.TempDir(), "data"))
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	s.call(t, "PUT", "/agents/default/settings", map[string]any{"retention_days": 20}, 200)
	out := &syncBuffer{lines: make(chan struct{}, 1)}
	ended := make(chan error, 1)
	go func() {
		ended <- run(
			ctx,
			[]string{"logs", "--follow", "--source", "audit", "--server", strings.TrimSuffix(s.url, "/api")},
			out,
		)
	}()
	select {
	case <-out.lines: // the log until now
	case <-ctx.Done():
		t.Fatal("prints nothing")
	}
	s.call(t, "POST", "/agents/default/contacts", map[string]any{"name": "Ada"}, 201)
	for !strings.Contains(out.String(), "contact created") {
		select {
		case <-out.lines:
		case <-ctx.Done():
			t.Fatalf("the new entry is not printed:\n%s", out)
		}
	}
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) { // exit status 130
		t.Errorf("logs ends with %v", err)
	}
}

// shopAPI is a description of an API.
const shopAPI = `{"openapi":"3.0.0","info":{"title":"Shop","version":"1"},"servers":[{"url":"https://shop.example.com/v1"}],
	"paths":{"/orders":{"get":{"operationId":"listOrders","responses":{"200":{"description":"Orders"}}}}}}`

// TestDefinition exports an agent, applies the definition to another one, and changes it.
func TestDefinition(t *testing.T) {
	t.Parallel()
	programs := filepath.Join(t.TempDir(), "programs.json")
	write(t, programs, `{"mcpServers": {"files": {"command": "no-such-program"}}}`)
	s := start(
		t,
		"--data", filepath.Join(t.TempDir(), "data"),
		"--outbound-allow", "127.0.0.1/32",
		"--allow-stdio-mcp", programs,
	)
	s.call(t, "POST", "/agents", map[string]any{"name": "bakery", "description": "Bread"}, 201)
	const of = "/agents/bakery"
	s.call(
		t,
		"PUT",
		of+"/settings",
		map[string]any{"system_prompt": "Be brief", "openai_api_key": "sk-secret-of-mine"},
		200,
	)
	s.call(t, "POST", of+"/tools", map[string]any{
		"name":        "weather",
		"type":        "api",
		"description": "Weather",
		"config": map[string]any{
			"url":  "https://example.com/w",
			"auth": map[string]any{"type": "bearer", "token": "secret-of-mine"},
		},
	}, 201)
	s.call(
		t,
		"POST",
		of+"/gateways",
		map[string]any{
			"type":   "webhook",
			"name":   "Shop",
			"config": map[string]any{"url": "https://example.com/secret-of-mine"},
		},
		201,
	)
	s.call(t, "POST", of+"/replies", map[string]any{"shortcut": "hi", "text": "Hello"}, 201)
	trigger := map[string]any{"id": "t", "type": "trigger"}
	called := s.call(
		t,
		"POST",
		of+"/workflows",
		map[string]any{"name": "Called", "status": "active", "nodes": []any{trigger}},
		201,
	)
	caller := s.call(t, "POST", of+"/workflows", map[string]any{
		"name":   "Ask & Answer",
		"status": "active",
		"nodes": []any{
			trigger,
			map[string]any{"id": "s", "type": "workflow", "data": map[string]any{"workflow_id": called["id"]}},
		},
		"edges": []any{map[string]any{"source": "t", "target": "s"}},
	}, 201)
	credential := s.call(
		t,
		"POST",
		of+"/credentials",
		map[string]any{
			"name":   "crm",
			"type":   "header",
			"hosts":  []string{"crm.example.com"},
			"secret": map[string]any{"X-Key": "secret-of-mine"},
		},
		201,
	)
	s.call(
		t,
		"POST",
		of+"/tools",
		map[string]any{
			"name":        "customers",
			"type":        "api",
			"description": "Customers",
			"config":      map[string]any{"url": "https://crm.example.com/c", "credential": credential["id"]},
		},
		201,
	)
	s.call(t, "POST", of+"/mcp", map[string]any{"name": "Tickets", "url": "https://tickets.example.invalid/mcp"}, 201)
	s.call(t, "POST", of+"/mcp", map[string]any{"name": "Files", "command": "files"}, 201)
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
	s.call(
		t,
		"POST",
		of+"/webhooks",
		map[string]any{"url": "https://example.com/events", "events": []string{"workflow.*"}},
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
			"callback_id":     caller["id"],
		},
		201,
	)

	described := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, shopAPI)
	}))
	defer described.Close()
	shop := s.call(
		t,
		"POST",
		of+"/apis",
		map[string]any{"name": "shop", "url": described.URL, "server": "https://shop.example.com/v2"},
		201,
	)
	s.call(t, "POST", of+"/apis", map[string]any{"name": "sent", "document": shopAPI}, 201)
	s.call(
		t,
		"POST",
		of+"/tools",
		map[string]any{
			"name":        "orders",
			"type":        "operation",
			"description": "Orders",
			"config":      map[string]any{"api_id": shop["id"], "operation": "listOrders"},
		},
		201,
	)
	s.call(
		t,
		"POST",
		of+"/tools",
		map[string]any{
			"name":   "ask",
			"type":   "workflow",
			"config": map[string]any{"workflow_id": caller["id"], "defaults": map[string]any{"by": "tool"}},
		},
		201,
	)
	s.call(t, "POST", of+"/calendar", map[string]any{
		"title":       "Weekly review",
		"start_time":  "2026-01-05T09:00:00Z",
		"recurrence":  "weekly",
		"workflow_id": caller["id"],
		"exceptions":  []any{map[string]any{"original_start": "2099-12-28T09:00:00Z", "cancelled": true}},
	}, 201)
	s.call(t, "POST", of+"/calendar", map[string]any{"title": "Long ago", "start_time": "2020-01-05T09:00:00Z"}, 201)

	dir := filepath.Join(t.TempDir(), "bakery")
	s.prints(t, []string{"export", "bakery", dir})
	text := readAll(t, dir)
	for _, want := range []string{
		`"name": "bakery"`,
		`"system_prompt": "Be brief"`,
		`"callback_id": "@workflows/ask-answer"`,
		`"workflow_id": "@workflows/called"`,
		`"workflow_id": "@workflows/ask-answer"`,
		`"server": "https://shop.example.com/v2"`,
		"apis/sent.json",
		`"api_id": "@apis/shop"`,
		"calendar/weekly-review.json",
		`"cancelled": true`,
		`"configured_fields"`,
		`"credential": "@credentials/crm"`,
		`"name": "orders"`,
		`"url": "https://tickets.example.invalid/mcp"`,
		`"command": "files"`,
		`"workflow.*"`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the definition has no %s:\n%s", want, text)
		}
	}
	if strings.Contains(text, "Long ago") {
		t.Errorf("the definition has a task that has ended:\n%s", text)
	}
	if strings.Contains(text, "secret-of-mine") {
		t.Errorf("the definition has a secret:\n%s", text)
	}
	if out := s.prints(t, []string{"apply", dir}); out != "" {
		t.Errorf("applying what was just exported changes\n%s", out)
	}
	if _, err := s.line(t, "apply", dir, "--agent", "copy"); err == nil ||
		!strings.Contains(err.Error(), "tools/customers.json: the agent lacks @credentials/crm: create that first") {
		t.Errorf("without its credential: %v", err)
	}
	if agents := s.prints(t, []string{"agents"}); strings.Contains(agents, "copy") {
		t.Errorf("an agent was created:\n%s", agents)
	}
	s.call(t, "POST", "/agents", map[string]any{"name": "copy"}, 201)
	s.call(
		t,
		"POST",
		"/agents/copy/credentials",
		map[string]any{
			"name":   "crm",
			"type":   "header",
			"hosts":  []string{"crm.example.com"},
			"secret": map[string]any{"X-Key": "of the copy"},
		},
		201,
	)
	s.call(t, "POST", "/agents/copy/apis", map[string]any{"name": "sent", "document": shopAPI}, 201)
	s.prints(
		t,
		[]string{"apply", dir, "--agent", "copy", "--dry-run"},
		"create workflows/called.json",
		"+   \"name\": \"Daily\"",
	)
	s.prints(t, []string{"apply", dir, "--agent", "copy"})
	if out := s.prints(t, []string{"apply", dir, "--agent", "copy"}); out != "" {
		t.Errorf("applying it a second time changes\n%s", out)
	}
	again := filepath.Join(t.TempDir(), "copy")
	s.prints(t, []string{"export", "copy", again})
	if got := readAll(t, again); got != strings.Replace(
		strings.Replace(text, `"name": "bakery"`, `"name": "copy"`, 1),
		"[\n    \"url\"\n  ]",
		"[]",
		1,
	) {
		t.Errorf("the copy is\n%s\nwant\n%s", got, text)
	}
	s.changesDefinition(t, dir)
}

// changesDefinition changes a text and deletes a file, as a person would.
func (s *service) changesDefinition(t *testing.T, dir string) {
	t.Helper()
	name := filepath.Join(dir, "replies", "hi.json")
	write(t, name, `{"shortcut": "hi", "text": "Good morning"}`)
	if err := os.Remove(filepath.Join(dir, "schedules", "daily.json")); err != nil {
		t.Fatal(err)
	}
	s.prints(
		t,
		[]string{"apply", dir, "--dry-run"},
		"update replies/hi.json",
		"-   \"text\": \"Hello\"",
		"+   \"text\": \"Good morning\"",
	)
	s.prints(t, []string{"apply", dir, "--prune"}, "delete schedules/daily.json")
	if all := s.call(t, "GET", "/agents/bakery/schedules", nil, 200)["schedules"].([]any); len(all) != 0 {
		t.Errorf("left: %v", all)
	}
	s.prints(t, []string{"sql", "SELECT text FROM canned_replies", "--agent", "bakery"}, "Good morning")
	if fields := s.call(
		t,
		"GET",
		"/agents/bakery/settings",
		nil,
		200,
	)["configured_credentials"].([]any); len(fields) != 1 {
		t.Errorf("the credentials are %v", fields)
	}
	write(t, name, `{"shortcut": "hi", "text": "@workflows/nowhere"}`)
	if _, err := s.line(t, "apply", dir); err == nil ||
		!strings.Contains(err.Error(), "replies/hi.json: @workflows/nowhere is in neither") {
		t.Errorf("a reference to an unknown workflow: %v", err)
	}
}

// readAll returns the files of a folder one after another.
func readAll(t *testing.T, dir string) string {
	t.Helper()
	var out strings.Builder
	err := filepath.WalkDir(dir, func(name string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		raw, err := os.ReadFile(name)
		rel, _ := filepath.Rel(dir, name)
		out.WriteString(rel + "\n" + string(raw))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestClientKeys reads the key from a file and from the environment, and checks the
// advice without one.
func TestClientKeys(t *testing.T) {
	s := start(t, "--data", filepath.Join(t.TempDir(), "data"), "--default-role", "none")
	key := s.call(
		t,
		"POST",
		"/keys",
		map[string]any{"name": "me", "role": "owner", "agents": []string{"*"}},
		201,
	)["key"].(string)
	file := filepath.Join(t.TempDir(), "key")
	write(t, file, key+"\n")
	s.prints(t, []string{"workflows", "--key-file", file})
	t.Setenv("SATCHEL_API_KEY", key)
	s.prints(t, []string{"workflows"})
	t.Setenv("SATCHEL_API_KEY", "wrong")
	if _, err := s.line(t, "workflows"); err == nil ||
		!strings.Contains(err.Error(), "--key-file") ||
		strings.Contains(err.Error(), "wrong") {
		t.Errorf("a wrong key: %v", err)
	}
}

// TestNewKeys uses keys at once that the command creates while the server runs.
func TestNewKeys(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	s := start(t, "--data", data, "--default-role", "none")
	s.call(t, "POST", "/keys", map[string]any{"name": "first", "role": "owner", "agents": []string{"*"}}, 201)
	for _, name := range []string{"second", "third"} {
		var key bytes.Buffer
		if err := run(t.Context(), []string{"key", "create", name, "--data", data}, &key); err != nil {
			t.Fatal(err)
		}
		t.Setenv("SATCHEL_API_KEY", strings.TrimSpace(key.String()))
		s.prints(t, []string{"workflows"})
	}
}

// TestClientIsInterrupted ends a command as Ctrl-C does, while its workflow waits.
func TestClientIsInterrupted(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("a process cannot be interrupted by another one there")
	}
	s := start(t, "--data", filepath.Join(t.TempDir(), "data"))
	s.call(t, "POST", "/agents/default/workflows", map[string]any{
		"name":   "slow",
		"status": "active",
		"nodes": []any{
			map[string]any{"id": "t", "type": "trigger"},
			map[string]any{"id": "w", "type": "wait", "data": map[string]any{"duration": 1, "unit": "hours"}},
		},
		"edges": []any{map[string]any{"source": "t", "target": "w"}},
	}, 201)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "run", "slow", "--server", strings.TrimSuffix(s.url, "/api"))
	cmd.Env = append(os.Environ(), asProgram+"=1")
	notes, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(notes, make([]byte, len("success  t"))); err != nil { // the first step
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	rest, _ := io.ReadAll(notes)
	_ = cmd.Wait()
	text := string(rest)
	if code := cmd.ProcessState.ExitCode(); code != 130 ||
		!strings.Contains(text, "continues on the server") ||
		!strings.HasSuffix(text, "satchel: interrupted\n") {
		t.Errorf("exit status %d, %q", code, text)
	}
}
