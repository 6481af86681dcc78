package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"satchel/agent"
	"satchel/agent/egress"
)

// roleVariable makes the test binary run as a program of these tests.
const roleVariable = "TEST_PROGRAM"

func init() {
	switch os.Getenv(roleVariable) {
	case "":
		return
	case "server":
		runTestServer()
	case "silent":
		_, _ = bufio.NewReader(os.Stdin).ReadString(0)
	case "stubborn": // ignores the end of its input
		select {}
	case "crash":
		fmt.Fprintln(os.Stderr, "cannot open the vault with swordfish-4711")
		os.Exit(3)
	case "noise":
		fmt.Println(strings.Repeat("x", MaxBytes+1))
		select {}
	}
	os.Exit(0)
}

func runTestServer() {
	s := sdk.NewServer(&sdk.Implementation{Name: "program", Version: "1"}, nil)
	add := func(name string, run func(arguments map[string]any) string) {
		s.AddTool(
			&sdk.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)},
			func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				var arguments map[string]any
				_ = json.Unmarshal(r.Params.Arguments, &arguments)
				return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: run(arguments)}}}, nil
			},
		)
	}
	add("pid", func(map[string]any) string { return fmt.Sprint(os.Getpid()) })
	add("environment", func(map[string]any) string { return strings.Join(os.Environ(), "\n") })
	add("folder", func(map[string]any) string {
		dir, _ := os.Getwd()
		return dir
	})
	add("exit", func(map[string]any) string {
		fmt.Fprintln(os.Stderr, "out of paper")
		os.Exit(7)
		return ""
	})
	add("helper", func(map[string]any) string { // another process, which ends only when it is killed
		cmd := exec.Command(os.Args[0])
		cmd.Env = []string{roleVariable + "=stubborn"}
		if err := cmd.Start(); err != nil {
			return err.Error()
		}
		return fmt.Sprint(cmd.Process.Pid)
	})
	var held [][]byte
	add("grow", func(arguments map[string]any) string {
		block := make([]byte, int(arguments["mb"].(float64))<<20)
		for i := range block {
			block[i] = 1
		}
		held = append(held, block)
		return "grown"
	})
	if err := s.Run(context.Background(), &sdk.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// newPrograms returns a running client of programs that are the test binary in a
// role, and the Programs.
func newPrograms(t *testing.T, change func(*Programs)) (*Client, *Programs) {
	t.Helper()
	commands := map[string]Command{}
	for _, role := range []string{"server", "silent", "stubborn", "crash", "noise"} {
		commands[role] = Command{
			Command: os.Args[0],
			Args:    []string{"-test.run=^$"},
			Env:     map[string]string{roleVariable: role, "FROM_FILE": "yes"},
		}
	}
	commands["missing"] = Command{Command: "no-such-program-4711"}
	ps := NewPrograms(ProgramOptions{
		Commands: commands,
		Folder:   t.TempDir(),
		Environment: []string{
			"PATH=" + os.Getenv("PATH"),
			"LANG=C.UTF-8",
			"SATCHEL_MASTER_KEY=k",
			"HTTPS_PROXY=http://proxy",
			"NODE_OPTIONS=--x", "LD_PRELOAD=x.so", "HOME=/root", "AWS_SECRET=s",
		},
	})
	ps.limits.grace, ps.limits.restart = 2*time.Second, time.Hour
	if change != nil {
		change(ps)
	}
	c := New(Options{Programs: ps, Version: "test"})
	ps.Start(t.Context())
	t.Cleanup(ps.Stop)
	return c, ps
}

func programServer(command string) Server {
	return Server{
		Program: &Program{
			Agent:   "default",
			Server:  "mcp-" + command,
			Command: command,
			Env:     map[string]string{"VAULT_TOKEN": "swordfish-4711"},
		},
	}
}

func callProgram(t *testing.T, c *Client, tool, arguments string) string {
	t.Helper()
	got, err := c.Call(t.Context(), programServer("server"), tool, json.RawMessage(arguments))
	if err != nil {
		t.Fatal(tool, err)
	}
	return got.(string)
}

// TestProgram: a program is started once for all calls, with only the necessary part
// of this process's environment, and ends with Stop. A secret that it repeats is
// masked.
func TestProgram(t *testing.T) {
	c, ps := newPrograms(t, nil)
	var first string
	var calls sync.WaitGroup
	pids := make([]string, 5)
	for i := range pids {
		calls.Go(func() { pids[i] = callProgram(t, c, "pid", `{}`) })
	}
	calls.Wait()
	if first = pids[0]; len(slices.Compact(pids)) != 1 {
		t.Errorf("several processes: %v", pids)
	}
	tools, err := c.Tools(t.Context(), programServer("server"))
	if err != nil || len(tools) != 6 {
		t.Errorf("got %v, %v", tools, err)
	}
	env := callProgram(t, c, "environment", `{}`)
	for _, want := range []string{
		"PATH=" + os.Getenv("PATH"),
		"LANG=C.UTF-8",
		"VAULT_TOKEN=********",
		"FROM_FILE=yes",
		"HOME=" + ps.options.Folder,
	} {
		if !strings.Contains(env, want) {
			t.Errorf("the environment has no %s:\n%s", want, env)
		}
	}
	for _, never := range []string{"SATCHEL_", "PROXY", "NODE_OPTIONS", "LD_", "AWS_", "HOME=/root", "swordfish-4711"} {
		if strings.Contains(env, never) {
			t.Errorf("the environment has %s", never)
		}
	}
	if dir := callProgram(t, c, "folder", `{}`); dir != filepath.Join(ps.options.Folder, "default", "mcp-server") {
		t.Errorf("the program runs in %s", dir)
	}
	other := programServer("server")
	other.Program.Agent = "agent-2"
	if got, err := c.Call(t.Context(), other, "pid", nil); err != nil || got == first {
		t.Errorf("another agent's program: %v, %v", got, err)
	}
	changed := programServer("server")
	changed.Program.Env = map[string]string{"VAULT_TOKEN": "other"}
	if got, err := c.Call(t.Context(), changed, "pid", nil); err != nil || got == first {
		t.Errorf("with another environment: %v, %v", got, err)
	}
	ps.Stop()
	if _, err := c.Tools(t.Context(), programServer("server")); StatusOf(err) != agent.MCPDisconnected {
		t.Errorf("after Stop: %v", err)
	}
}

// TestMaskedResult: secrets are masked anywhere in a JSON result, except short ones,
// which may occur by chance.
func TestMaskedResult(t *testing.T) {
	var result any
	if err := json.Unmarshal([]byte(`{"env": [{"value": "a swordfish-4711, a short"}], "n": 1}`), &result); err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(maskResult(result, egress.NewMasker([]string{"swordfish-4711", "short"})))
	if want := `{"env":[{"value":"a ********, a short"}],"n":1}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v", got, err)
	}
}

// TestProgramFails: the error of a failed program has its output without its secrets,
// and the program is not restarted immediately.
func TestProgramFails(t *testing.T) {
	now := time.Now()
	var mu sync.Mutex
	later := func(d time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(d)
	}
	c, ps := newPrograms(t, func(ps *Programs) {
		ps.limits.restart = minRestart
		ps.limits.now = func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return now
		}
	})
	for role, want := range map[string]string{
		"crash": "the MCP server's program failed: it ended: exit status 3\ncannot open the vault with …",
		"noise": "the MCP server's program failed: it did not speak MCP",
		"missing": "the MCP server cannot be started: exec: \"no-such-program-4711\": " +
			"executable file not found in $PATH",
		"unknown": "the operator's file has no command \"unknown\", see --allow-stdio-mcp",
	} {
		for range 2 { // the second call does not start the program
			if _, err := c.Tools(t.Context(), programServer(role)); StatusOf(err) != agent.MCPDisconnected ||
				!strings.HasPrefix(agent.Explain(err), want) ||
				strings.Contains(agent.Explain(err), "swordfish") {
				t.Errorf("%s: %v", role, err)
			}
		}
	}
	waits := func(role string) time.Duration {
		ps.mu.Lock()
		defer ps.mu.Unlock()
		return ps.failed[programKey{"default", "mcp-" + role}].until.Sub(now)
	}
	for _, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		if got := waits("crash"); got != want {
			t.Errorf("the program is restarted after %s, want %s", got, want)
		}
		later(want)
		_, _ = c.Tools(t.Context(), programServer("crash"))
	}
	first := callProgram(t, c, "pid", `{}`)
	later(2 * stableAfter)
	_, err := c.Call(t.Context(), programServer("server"), "exit", nil)
	if got := agent.Explain(err); StatusOf(err) != agent.MCPDisconnected ||
		!strings.Contains(got, "exit status 7\nout of paper") {
		t.Errorf("the program ended during a call: %v", err)
	}
	if got := waits("server"); got != time.Second {
		t.Errorf("a program that ran for a long time is restarted after %s", got)
	}
	later(time.Second)
	if second := callProgram(t, c, "pid", `{}`); second == first {
		t.Error("the program was not restarted")
	}
}

// TestProgramTimesOut: a call to a program that does not respond ends at its timeout.
func TestProgramTimesOut(t *testing.T) {
	c, _ := newPrograms(t, nil)
	c.options.ListTimeout = 50 * time.Millisecond
	if _, err := c.Tools(t.Context(), programServer("silent")); StatusOf(err) != agent.MCPDisconnected ||
		agent.Explain(err) != "the MCP server is still starting" {
		t.Errorf("got error %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Tools(ctx, programServer("silent")); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestReadCommands(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mcp.json")
	for text, want := range map[string]string{
		`{"mcpServers":{"files":{"command":"npx","args":["-y","x"],"env":{"A":"b"},"alwaysAllow":[]}}}`: "",
		`{"mcpServers":{}}`: "must have 1 to 100 servers",
		`{"mcpServers":`:    "unexpected end",
		`{"mcpServers":{"remote":{"url":"https://mcp.example.com"}}}`: "command is required",
		`{"mcpServers":{"files":{"command":"npx",` +
			`"env":{"NODE_OPTIONS":"--require x"}}}}`: "env.NODE_OPTIONS cannot be set",
		`{"mcpServers":{"files":{"command":"npx","env":{"satchel_data":"x"}}}}`: "env.satchel_data cannot be set",
		`{"mcpServers":{"a\u0000b":{"command":"npx"}}}`:                         "the name must have",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		commands, err := readCommands(path)
		if want == "" && (err != nil || commands["files"].Args[1] != "x") ||
			want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, %v", text, commands, err)
		}
	}
	if _, err := readCommands(path + "x"); !os.IsNotExist(err) {
		t.Errorf("a missing file: %v", err)
	}
}
