package n8n_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"satchel/agent"
	"satchel/agent/egress"
	"satchel/agent/script"
	"satchel/flow"
	"satchel/flow/n8n"
	"satchel/store"
)

// TestMain is also the entry point of the child process that runs scripts.
func TestMain(m *testing.M) {
	if script.RunChild(os.Args[1:]) {
		return
	}
	os.Exit(m.Run())
}

// open opens a data folder with an engine that may reach loopback.
func open(t *testing.T) (*store.DB, *flow.Engine) {
	t.Helper()
	folder, err := store.Open(store.Options{Path: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	loopback := agent.MustAddressRanges("127.0.0.0/8")
	scripts := script.New(script.Options{Fetch: egress.New(egress.Policy{Allow: loopback}).Do})
	e := flow.New(flow.Options{
		Env:     store.Env{Folder: folder, Allow: loopback, Version: "test", Log: slog.New(slog.DiscardHandler)},
		Scripts: scripts,
	})
	e.Register(map[string]*flow.Kind{
		"chat": {Run: func(_ context.Context, c *flow.Call) (flow.Outcome, error) {
			out := map[string]any{"text": "answer to " + c.Text("prompt"), "json": nil}
			if c.Data["output_schema"] != nil {
				out["json"] = map[string]any{"city": "Paris"}
			}
			return flow.Outcome{Output: out}, nil
		}},
		"team_chat": {Run: func(_ context.Context, c *flow.Call) (flow.Outcome, error) {
			return flow.Outcome{
				Output: map[string]any{"channel": c.Text("channel"), "ts": "1", "message": c.Text("message")},
			}, nil
		}},
	})
	if err := errors.Join(scripts.Start(context.Background()), e.Start(context.Background())); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		e.Stop()
		scripts.Stop()
		if err := folder.Close(); err != nil {
			t.Error(err)
		}
	})
	return folder.Default(), e
}

// issuesOf returns the problems that an engine finds in a draft.
func issuesOf(e *flow.Engine) n8n.Check {
	return func(nodes []agent.RawNode, edges []agent.RawEdge) (all []agent.Issue) {
		for _, is := range e.Validate(nodes, edges, agent.WorkflowDraft) {
			if is.Severity == "error" {
				all = append(all, is.Issue)
			}
		}
		return all
	}
}

// service is a fake API that echoes requests and lists users.
func service(t *testing.T) *httptest.Server {
	users := []map[string]any{
		{"id": 1, "name": "Ada", "age": 36},
		{"id": 2, "name": "Bob", "age": 17},
		{"id": 3, "name": "Cid", "age": 52},
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Path == "/users":
			_ = json.NewEncoder(w).Encode(users)
		case strings.HasPrefix(r.URL.Path, "/users/"):
			i := int(r.URL.Path[len("/users/")] - '1')
			_ = json.NewEncoder(w).Encode(users[i])
		case r.URL.Path == "/wrapped":
			_ = json.NewEncoder(w).Encode(map[string]any{"data": users, "total": 3})
		case r.URL.Path == "/text":
			w.Header().Set("Content-Type", "text/plain")
			fmt.Fprint(w, "hello")
		case r.URL.Path == "/feed":
			w.Header().Set("Content-Type", "application/rss+xml")
			fmt.Fprint(w, `<rss><channel><title>Feed</title><item><title>First &amp; best</title><link>https://example.com/1</link><pubDate>Sun, 01 Mar 2026 10:30:00 GMT</pubDate></item>
				<item><title><![CDATA[Second]]></title><pubDate>Mon, 02 Mar 2026 10:30:00 GMT</pubDate></item><item><title>Third</title></item></channel></rss>`)
		case r.URL.Path == "/upload":
			_ = json.NewEncoder(w).Encode(uploaded(r))
		case r.URL.Path == "/fails":
			w.WriteHeader(http.StatusInternalServerError)
			fmt.Fprint(w, `{"error":"broken"}`)
		default:
			var body any
			_ = json.NewDecoder(r.Body).Decode(&body)
			query := map[string]any{}
			for name, v := range r.URL.Query() {
				query[name] = v[0]
			}
			_ = json.NewEncoder(w).Encode(map[string]any{
				"method":   r.Method,
				"path":     r.URL.Path,
				"query":    query,
				"body":     body,
				"greeting": r.Header.Get("X-Greeting"),
			})
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// uploaded returns the files and the other fields of a request.
func uploaded(r *http.Request) map[string]any {
	out := map[string]any{}
	if r.ParseMultipartForm(1<<20) != nil {
		raw, _ := io.ReadAll(r.Body)
		return map[string]any{"file": r.Header.Get("Content-Type") + " " + string(raw)}
	}
	for name, values := range r.MultipartForm.Value {
		out[name] = values[0]
	}
	for name, files := range r.MultipartForm.File {
		f, _ := files[0].Open()
		raw, _ := io.ReadAll(f)
		out[name] = files[0].Filename + " " + files[0].Header.Get("Content-Type") + " " + string(raw)
	}
	return out
}

// fixture is a workflow of n8n with the expected output items of its nodes. In
// fixtures whose names begin with recorded, these come from a run of n8n itself.
type fixture struct {
	N8N      string                      `json:"n8n"` // the version that ran it
	Document json.RawMessage             `json:"document"`
	Input    json.RawMessage             `json:"input"`
	Expect   map[string][]map[string]any `json:"expect"` // items by node
	Skipped  []string                    `json:"skipped"`
	Levels   map[string]string           `json:"levels"` // of the nodes that are not exact
	Types    map[string]string           `json:"types"`  // of the resulting nodes
	Data     map[string]map[string]any   `json:"data"`   // parts of the data of the resulting nodes
	Error    string                      `json:"error"`
	Draft    bool                        `json:"draft"` // not executed
}

func fixtures(t *testing.T) map[string]fixture {
	t.Helper()
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) < 40 {
		t.Fatalf("%d fixtures, %v", len(files), err)
	}
	all := map[string]fixture{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var f fixture
		if err := json.Unmarshal(raw, &f); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all[strings.TrimSuffix(filepath.Base(file), ".json")] = f
	}
	return all
}

// TestFixtures imports workflows, executes them, and compares the output items of
// their nodes with those of n8n.
func TestFixtures(t *testing.T) {
	db, e := open(t)
	server := service(t)
	executed := 0
	for name, f := range fixtures(t) {
		t.Run(name, func(t *testing.T) {
			if strings.HasPrefix(name, "recorded-") != (f.N8N != "") {
				t.Error("the version of n8n that ran it is missing")
			}
			document := strings.ReplaceAll(string(f.Document), "SERVER", server.URL)
			read, err := n8n.Read(json.RawMessage(document), issuesOf(e))
			if err != nil {
				t.Fatal(err)
			}
			checkLevels(t, f, read)
			for _, w := range read.Workflows {
				if err := e.Check(w); err != nil {
					t.Fatalf("%v\n%s", err, agent.Clip(graphOf(w), 6000))
				}
				if f.Draft {
					continue
				}
				w.Status = agent.WorkflowActive
				if err := e.Check(w); err != nil {
					t.Fatalf("%v\n%s", err, agent.Clip(graphOf(w), 6000))
				}
			}
			if !f.Draft {
				executed++
				execute(t, db, e, read, f)
			}
		})
	}
	if executed < 25 {
		t.Errorf("only %d fixtures are executed", executed)
	}
}

func graphOf(w agent.Workflow) string {
	var out strings.Builder
	for _, n := range w.Nodes {
		raw, _ := json.Marshal(n)
		fmt.Fprintf(&out, "%s\n", strings.ReplaceAll(string(raw), `\n`, "\n"))
	}
	for _, e := range w.Edges {
		raw, _ := json.Marshal(e)
		fmt.Fprintf(&out, "%s\n", raw)
	}
	return out.String()
}

// checkLevels compares the worst level of each node, and its resulting type and data.
func checkLevels(t *testing.T, f fixture, read *n8n.Import) {
	t.Helper()
	types, data := map[string]string{}, map[string]map[string]any{}
	for _, w := range read.Workflows {
		for _, raw := range w.Nodes {
			var n agent.Node
			if err := json.Unmarshal(raw, &n); err != nil {
				t.Fatal(err)
			}
			types[n.ID], data[n.ID] = n.Type, n.Data
		}
	}
	for _, line := range read.Report {
		if line.Node == "" {
			continue
		}
		if want := cmp.Or(f.Levels[line.Node], n8n.Exact); line.Level != want {
			t.Errorf("%s is %s, want %s: %s %s", line.Node, line.Level, want, line.Code, line.Message)
		}
		for key, want := range f.Data[line.Node] {
			if got := data[line.NodeID][key]; !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %s is %s, want %s", line.Node, key, encode(got), encode(want))
			}
		}
		if want := f.Types[line.Node]; want != "" && types[line.NodeID] != want {
			t.Errorf("%s became %q, want %q", line.Node, types[line.NodeID], want)
		}
	}
}

func execute(t *testing.T, db *store.DB, e *flow.Engine, read *n8n.Import, f fixture) {
	t.Helper()
	made, _, err := db.CreateImported(t.Context(), store.WorkflowImport{Workflows: read.Workflows})
	if err != nil {
		t.Fatal(err)
	}
	first := made.Workflows[0]
	if f.Input == nil {
		f.Input = json.RawMessage("{}")
	}
	s, err := e.Execute(t.Context(), db, flow.Request{
		WorkflowID: first.ID,
		Input:      f.Input,
		Trigger:    "manual",
		Wait:       time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	var failure string
	if s.Execution.Error != nil {
		failure = s.Execution.Error.Message
	}
	if !strings.Contains(failure, f.Error) || f.Error == "" && failure != "" {
		t.Errorf("the execution ended with %q, want %q", failure, f.Error)
	}
	ids := map[string]string{}
	for _, line := range read.Report {
		if line.Workflow == first.Name {
			ids[line.Node] = line.NodeID
		}
	}
	for name, want := range f.Expect {
		got := itemsOf(t, s.Results, ids[name])
		if !same(got, want) {
			t.Errorf("%s: got %s, want %s", name, encode(got), encode(want))
		}
	}
	if t.Failed() {
		t.Log(agent.Clip(graphOf(first), 3000))
	}
	for _, name := range f.Skipped {
		if slices.ContainsFunc(s.Results, func(r agent.NodeResult) bool {
			return r.NodeID == ids[name] && r.Status == agent.NodeSuccess
		}) {
			t.Errorf("%s ran", name)
		}
	}
}

// TestPollsReturnNewItems runs an imported polling trigger before and after its
// feed has another entry.
func TestPollsReturnNewItems(t *testing.T) {
	db, e := open(t)
	entries := []string{"First", "Second"}
	feed := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "<rss><channel>")
		for _, title := range entries {
			fmt.Fprintf(w, "<item><title>%s</title></item>", title)
		}
		fmt.Fprint(w, "</channel></rss>")
	}))
	t.Cleanup(feed.Close)
	document := strings.ReplaceAll(string(fixtures(t)["feed-trigger"].Document), "SERVER", feed.URL)
	read, err := n8n.Read(json.RawMessage(document), issuesOf(e))
	if err != nil {
		t.Fatal(err)
	}
	made, _, err := db.CreateImported(t.Context(), store.WorkflowImport{Workflows: read.Workflows})
	if err != nil {
		t.Fatal(err)
	}
	for _, run := range []struct{ added, want string }{{"", "[]"}, {"Third", `[{"t":"Third"}]`}, {"", "[]"}} {
		if run.added != "" {
			entries = append(entries, run.added)
		}
		s, err := e.Execute(t.Context(), db, flow.Request{
			WorkflowID: made.Workflows[0].ID,
			Input:      json.RawMessage("{}"),
			Trigger:    "schedule",
			Wait:       time.Minute,
		})
		if err != nil || s.Execution.Error != nil {
			t.Fatalf("got %+v, %v", s.Execution, err)
		}
		if got := encode(itemsOf(t, s.Results, "titles")); got != run.want {
			t.Errorf("output items %s, want %s", got, run.want)
		}
	}
}

// itemsOf returns the output items of a node, in the order of its iterations.
func itemsOf(t *testing.T, results []agent.NodeResult, id string) []map[string]any {
	t.Helper()
	var own []agent.NodeResult
	for _, r := range results {
		if r.NodeID == id && r.Status == agent.NodeSuccess {
			own = append(own, r)
		}
	}
	slices.SortFunc(own, func(a, b agent.NodeResult) int { return cmp.Compare(a.FullPath(), b.FullPath()) })
	items := []map[string]any{}
	for _, r := range own {
		var output map[string]any
		if err := json.Unmarshal(r.Output, &output); err != nil {
			t.Fatalf("%s: %v", id, err)
		}
		v := any(output)
		if body, ok := output["body"]; ok && output["duration_ms"] != nil {
			v = body
		} else if list, ok := output["items"]; ok && len(output) == 1 {
			v = list
		}
		list, isList := v.([]any)
		if !isList {
			list = []any{v}
		}
		for _, one := range list {
			object, _ := one.(map[string]any)
			items = append(items, object)
		}
	}
	return items
}

func same(a, b []map[string]any) bool {
	return len(a) == 0 && len(b) == 0 || reflect.DeepEqual(a, b)
}

func encode(v any) string {
	raw, _ := json.Marshal(v)
	return string(raw)
}

// TestWorkflowTools: tools that call workflows keep their parameters and defaults,
// and are disabled without their workflow.
func TestWorkflowTools(t *testing.T) {
	_, e := open(t)
	read, err := n8n.Read(fixtures(t)["tool-workflow"].Document, issuesOf(e))
	if err != nil {
		t.Fatal(err)
	}
	own := read.Workflows[0].ID
	want := map[string]string{
		"own": `true {"defaults":{"count":3,"route":"mail"},"parameters":{"properties":{"city":{"type":"string"}},` +
			`"required":["city"],"type":"object"},"workflow_id":"` + own + `"}`,
		"mapped": `true {"defaults":{"operation":"list"},"parameters":{"properties":{"rows":{"description":"",` +
			`"type":"number"},"table":{"description":"table to read","type":"string"}},"required":["rows","table"],` +
			`"type":"object"},"workflow_id":"` + own + `"}`,
		"plain": `false {"parameters":{"properties":{"query":{"description":"The input of the workflow.",` +
			`"type":"string"}},"required":["query"],"type":"object"},"workflow_id":""}`,
	}
	for _, tool := range read.Tools {
		if got := fmt.Sprintf("%t %s", tool.Enabled, tool.Config); got != want[tool.Name] {
			t.Errorf("%s: %s, want %s", tool.Name, got, want[tool.Name])
		}
		stored := agent.Tool{Name: tool.Name, Type: tool.Type, Enabled: tool.Enabled, Config: tool.Config}
		if _, err := stored.Validate(); err != nil {
			t.Errorf("%s: %v", tool.Name, err)
		}
	}
	if len(read.Tools) != len(want) {
		t.Errorf("%d tools", len(read.Tools))
	}
}
