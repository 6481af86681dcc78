package flow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"satchel/agent"
	"satchel/agent/egress"
	"satchel/agent/script"
	"satchel/agent/testenv"
	"satchel/browser"
	"satchel/store"
)

// TestMain is also the entry point of the child process that runs scripts, and
// of the process that the kill tests kill.
func TestMain(m *testing.M) {
	if browser.RunChild(os.Args) || script.RunChild(os.Args[1:]) {
		return
	}
	if folder := os.Getenv(childFolder); folder != "" {
		if err := runInChild(folder); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(testenv.Run(m))
}

// loopback is the address range that http-request nodes may reach in tests.
var loopback = agent.MustAddressRanges("127.0.0.0/8")

// openAt opens a data folder with an engine that runs until the test ends.
func openAt(tb testing.TB, path string) (*store.Folder, *Engine) {
	tb.Helper()
	folder, err := store.Open(store.Options{Path: path, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		tb.Fatal(err)
	}
	scripts := script.New(script.Options{Fetch: egress.New(egress.Policy{Allow: loopback}).Do})
	e := New(Options{
		Env:     store.Env{Folder: folder, Allow: loopback, Version: "test", Log: slog.New(slog.DiscardHandler)},
		Scripts: scripts,
	})
	e.Register(testKinds)
	if err := errors.Join(scripts.Start(context.Background()), e.Start(context.Background())); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		e.Stop()
		scripts.Stop()
		if err := folder.Close(); err != nil {
			tb.Error(err)
		}
	})
	return folder, e
}

func open(tb testing.TB) (*store.DB, *Engine) {
	tb.Helper()
	folder, e := openAt(tb, tb.TempDir())
	return folder.Default(), e
}

// testKinds are node types with side effects that only tests have.
var testKinds = map[string]*Kind{
	// "chat" fails its first fails attempts in each execution, then returns
	// text.
	"chat": {Run: func(ctx context.Context, c *Call) (Outcome, error) {
		if c.Text("prompt") == "hang" {
			<-ctx.Done()
			return Outcome{}, ctx.Err()
		}
		if strings.HasPrefix(c.Text("prompt"), "fail") {
			return Outcome{}, agent.Errorf(agent.CodeUpstream, "said to %s", c.Text("prompt"))
		}
		return Outcome{Output: map[string]any{"text": c.Text("prompt"), "key": c.Key}}, nil
	}},
}

// parseGraph parses a graph in a short notation: one node per line, "id type
// {data}", then edges "a -> b" or "a:handle -> b".
func parseGraph(text string) (nodes []agent.RawNode, edges []agent.RawEdge) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if from, to, ok := strings.Cut(line, " -> "); ok && !strings.Contains(line, "{") {
			source, handle, _ := strings.Cut(from, ":")
			edges = append(
				edges,
				agent.RawEdge(mustJSON(map[string]any{
					"id":           fmt.Sprintf("e%d", len(edges)),
					"source":       source,
					"target":       to,
					"sourceHandle": handle,
				})),
			)
			continue
		}
		parts := strings.SplitN(line, " ", 3)
		if len(parts) < 2 {
			continue
		}
		node := map[string]any{"id": parts[0], "type": parts[1], "position": map[string]any{"x": 0, "y": 0}}
		if len(parts) == 3 {
			var data map[string]any
			if err := json.Unmarshal([]byte(parts[2]), &data); err != nil {
				panic(fmt.Sprintf("%s: %v", line, err))
			}
			node["data"] = data
		}
		nodes = append(nodes, agent.RawNode(mustJSON(node)))
	}
	return nodes, edges
}

func mustJSON(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}

// createWorkflow creates an active workflow.
func createWorkflow(tb testing.TB, db *store.DB, e *Engine, text string) agent.Workflow {
	tb.Helper()
	return createWorkflowWith(tb, db, e, text, agent.DefaultWorkflowSettings())
}

func createWorkflowWith(
	tb testing.TB,
	db *store.DB,
	e *Engine,
	text string,
	settings agent.WorkflowSettings,
) agent.Workflow {
	tb.Helper()
	w := agent.Workflow{Name: "Test", Status: agent.WorkflowActive, Settings: settings}
	w.Nodes, w.Edges = parseGraph(text)
	if err := e.Check(w); err != nil {
		tb.Fatalf("%v\n%s", err, text)
	}
	w, err := db.CreateWorkflow(tb.Context(), w)
	if err != nil {
		tb.Fatal(err)
	}
	return w
}

// execute executes a workflow and waits for it to end.
func execute(tb testing.TB, db *store.DB, e *Engine, w agent.Workflow, input string) Started {
	tb.Helper()
	s, err := e.Execute(tb.Context(), db, Request{
		WorkflowID: w.ID,
		Input:      json.RawMessage(input),
		Trigger:    "manual",
		Wait:       time.Minute,
	})
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// summarize lists an execution's results as "id=status" in the order in which
// they ended, with "@path" in loops.
func summarize(results []agent.NodeResult) string {
	var words []string
	for _, r := range results {
		word := r.NodeID
		if at := r.FullPath(); at != "" {
			word += "@" + at
		}
		words = append(words, word+"="+string(r.Status))
	}
	return strings.Join(words, " ")
}
