package flow

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"satchel/agent"
	"satchel/agent/chat"
	"satchel/agent/egress"
	"satchel/agent/llm"
	"satchel/agent/testenv"
	"satchel/store"
	"satchel/vector"
)

var loopItems = flag.Int("items", 500, "how many items TestLargeLoop runs over; max_iterations allows 10000")

// everything is a loop in which each item passes through all kinds of scripts, a
// model and a tool.
const everything = `t trigger
	l loop {"items":"{{trigger.items}}","max_iterations":10000,"concurrency":4}
	c code {"code":"return {n: item.n, of: trigger.items.length, same: trigger.items[index].n === item.n}"}
	m chat {"prompt":"item {{item.n}}"}
	f tool {"tool_id":"TOOL","arguments":{"n":"{{nodes.c.n}}"}}
	i if-else {"condition":"nodes.f.result.twice === 2 * item.n && nodes.m.text === 'fine' && trigger.items[index].n === item.n"}
	t -> l
	l:loop -> c
	c -> m
	m -> f
	f -> i
	i:true -> l`

// A loop of many items over the largest payload moves few bytes per item,
// between processes and to the file, and holds the payload in memory about
// once.
func TestLargeLoop(t *testing.T) {
	if testing.Short() {
		t.Skip("slow, and does not test concurrency")
	}
	db, e := open(t)
	var peak atomic.Uint64
	model := modelServer(t, func() { raise(&peak, heapInUse()) })
	withModel(t, db, e, model)
	tool, err := db.CreateTool(t.Context(), agent.ToolChange{
		Name: agent.Some("double"),
		Type: agent.Some(agent.ToolFunction),
		Config: agent.Some(json.RawMessage(
			`{"code":"return {twice: 2 * args.n}","parameters":{"type":"object","properties":{"n":{"type":"number"}}}}`,
		)),
	})
	if err != nil {
		t.Fatal(err)
	}
	n := *loopItems
	input := numbered(n, maxInput/n-40)
	w := createWorkflow(t, db, e, strings.ReplaceAll(everything, "TOOL", tool.ID))
	base, before := heapInUse(), bytesMoved(t)
	x, err := e.Await(t.Context(), db, startWorkflow(t, db, e, w, input))
	if err != nil || x.Status != agent.ExecutionComplete {
		t.Fatal(x.Status, x.Error, err)
	}
	if got := bytes.Count(x.Output, []byte(`{"result":true}`)); got != n {
		t.Errorf("%d of %d items succeeded", got, n)
	}
	moved, grown := (bytesMoved(t)-before)/n, int(peak.Load()-base)>>20
	t.Logf(
		"%d items, a payload of %d bytes: %d bytes moved per item, heap grew by at most %d MB",
		n,
		len(input),
		moved,
		grown,
	)
	if most := 200<<10 + 20*len(input)/n; moved > most {
		t.Errorf("%d bytes moved per item, want at most %d", moved, most)
	}
	if grown > 200 {
		t.Errorf("the heap grew by %d MB", grown)
	}
}

// modelServer is a fake model that answers "fine" and calls sample at every
// hundredth request.
func modelServer(t *testing.T, sample func()) *httptest.Server {
	var calls atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1)%100 == 0 {
			sample()
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(
			w,
			`{"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"fine"}}],`+
				`"usage":{"prompt_tokens":1,"completion_tokens":1}}`,
		)
	}))
	t.Cleanup(s.Close)
	return s
}

// withModel registers the node types chat and tool as the server does.
func withModel(t *testing.T, db *store.DB, e *Engine, model *httptest.Server) {
	t.Helper()
	if _, err := db.UpdateSettings(t.Context(), agent.SettingsChange{
		LLMProvider: agent.Some("openai-compatible"),
		LLMModel:    agent.Some("m"),
		LLMBaseURL:  agent.Some(model.URL + "/v1"),
	}); err != nil {
		t.Fatal(err)
	}
	quiet := slog.New(slog.DiscardHandler)
	out := egress.New(egress.Policy{Allow: loopback})
	toolbox := chat.NewToolbox(chat.ToolOptions{Scripts: e.options.Scripts, HTTP: out, Version: "test", Log: quiet})
	chats := chat.New(chat.Options{
		Model: llm.New(llm.Options{HTTP: out.HTTP()}),
		Index: vector.New(e.folder, vector.Local(), quiet),
		Tools: toolbox.Tools,
		Log:   quiet,
	})
	e.Register(map[string]*Kind{"chat": ChatKind(chats), "tool": ToolKind(toolbox)})
}

// heapInUse returns the reachable bytes of the heap.
func heapInUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func raise(peak *atomic.Uint64, to uint64) {
	for known := peak.Load(); to > known && !peak.CompareAndSwap(known, to); known = peak.Load() {
	}
}

// bytesMoved returns how many bytes this process has read and written,
// including pipes and sockets.
func bytesMoved(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/io")
	testenv.Need(t, "/proc/self/io", err)
	var read, written int
	if _, err := fmt.Sscanf(string(text), "rchar: %d\nwchar: %d", &read, &written); err != nil {
		t.Fatal(err)
	}
	return read + written
}
