package callbacks

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"satchel/agent"
	"satchel/agent/chat"
	"satchel/agent/egress"
	"satchel/agent/llm"
	"satchel/schedule"
	"satchel/store"
	"satchel/vector"
)

// Environment variables: a test sets the first to make the test binary a server
// on a data folder; the second sets a higher number of kills than the default.
const (
	childFolder = "SATCHEL_TEST_FOLDER"
	killRounds  = "SATCHEL_KILL_ROUNDS"
)

var quiet = slog.New(slog.DiscardHandler)

func TestMain(m *testing.M) {
	if path := os.Getenv(childFolder); path != "" {
		if err := serveChild(path); err != nil {
			fmt.Println("failed:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func newCallbacks(folder *store.Folder) Callbacks {
	out := egress.New(egress.Policy{Allow: agent.MustAddressRanges("127.0.0.0/8")})
	toolbox := chat.NewToolbox(chat.ToolOptions{HTTP: out, Version: "test", Log: quiet})
	return Callbacks{Toolbox: toolbox, Chat: chat.New(chat.Options{
		Model: llm.New(llm.Options{HTTP: out.HTTP()}),
		Index: vector.New(folder, vector.Local(), quiet),
		Tools: toolbox.Tools,
		Log:   quiet,
	})}
}

// serveChild runs what is due until all schedules are completed. It prints each call
// that has ended, and waits for a line on standard input before the end of the run is
// written.
func serveChild(path string) error {
	folder, err := store.Open(store.Options{Path: path, Log: quiet})
	if err != nil {
		return err
	}
	var one sync.Mutex
	stdin := bufio.NewReader(os.Stdin)
	runners := newCallbacks(folder).Runners()
	for name, call := range runners {
		runners[name] = func(ctx context.Context, db *store.DB, c schedule.Callback) (string, error) {
			id, err := call(ctx, db, c)
			one.Lock()
			defer one.Unlock()
			fmt.Println("ended", c.RunID, c.Schedule.Name)
			if _, e := stdin.ReadString('\n'); e != nil {
				os.Exit(1) // the parent has exited
			}
			return id, err
		}
	}
	changed := make(chan struct{}, 1)
	changed <- struct{}{}
	folder.OnPending(func(*store.DB, store.Pending) { // the end of a run is an event
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	s := schedule.New(schedule.Options{Env: store.Env{Folder: folder, Log: quiet}, Runners: runners})
	if err := s.Start(context.Background()); err != nil {
		return err
	}
	for left := 1; left > 0; {
		<-changed
		if _, left, err = folder.Default().Schedules(
			context.Background(),
			store.ScheduleFilter{Statuses: []string{"active"}},
			store.Page{Limit: 1},
		); err != nil {
			return err
		}
	}
	s.Stop()
	return folder.Close()
}

// fakeServices fakes the services that the server calls: a language model that calls a
// tool once per prompt and then answers, and the API behind that tool. It kills the
// server in the middle of requests.
type fakeServices struct {
	*httptest.Server
	mu     sync.Mutex
	server *os.Process // nil while no server is running or it is being killed
	plan   []string    // where to kill the server, one start after another
	spared int         // how often to pass that point before the kill
	kills  int

	ended    map[string]string          // runs whose call has ended, by the schedule's name
	requests map[string]int             // requests to the model, by the schedule's name
	late     []string                   // schedules that called the model after their call had ended
	keys     map[string]map[string]bool // Idempotency-Keys of tool calls, by the schedule's name
}

func newFakeServices(t *testing.T, kills int) *fakeServices {
	w := &fakeServices{ended: map[string]string{}, requests: map[string]int{}, keys: map[string]map[string]bool{}}
	for i := range kills {
		w.plan = append(w.plan, points[i%len(points)])
	}
	rand.Shuffle(kills, func(i, j int) { w.plan[i], w.plan[j] = w.plan[j], w.plan[i] })
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", w.model)
	mux.HandleFunc("POST /record/{name}", w.tool)
	w.Server = httptest.NewServer(mux)
	t.Cleanup(w.Close)
	return w
}

// points are the points at which the server is killed.
var points = []string{"model called", "model answered", "tool called", "tool answered", "call ended"}

// reached kills the server if this is the right point and time. It reports whether
// there is no longer a running server.
func (w *fakeServices) reached(point string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.server == nil || len(w.plan) == 0 || w.plan[0] != point {
		return w.server == nil
	}
	if w.spared--; w.spared >= 0 {
		return false
	}
	w.plan, w.spared = w.plan[1:], rand.IntN(3)
	w.kills++
	_ = w.server.Kill()
	w.server = nil
	return true
}

func (w *fakeServices) model(out http.ResponseWriter, r *http.Request) {
	var requests struct {
		Messages []struct{ Role, Content string }
	}
	raw, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(raw, &requests)
	last := requests.Messages[len(requests.Messages)-1]
	// Prompts without an answer between them are one message.
	at := strings.LastIndex(last.Content, "prompt ")
	name, found := strings.CutPrefix(last.Content[max(at, 0):], "prompt ")
	if last.Role == "tool" {
		_ = json.Unmarshal([]byte(last.Content), &name)
	}
	w.mu.Lock()
	w.requests[name]++
	if w.ended[name] != "" {
		w.late = append(w.late, name)
	}
	w.mu.Unlock()
	if w.reached("model called") {
		return
	}
	message := `{"role":"assistant","content":"Answer to ` + name + `"}`
	if found {
		arguments, _ := json.Marshal(`{"name":"` + name + `"}`)
		message = `{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function",` +
			`"function":{"name":"record","arguments":` + string(arguments) + `}}]}`
	}
	out.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(
		out,
		`{"choices":[{"index":0,"finish_reason":"stop","message":%s}],`+
			`"usage":{"prompt_tokens":1,"completion_tokens":1}}`,
		message,
	)
	_ = http.NewResponseController(out).Flush()
	w.reached("model answered")
}

func (w *fakeServices) tool(out http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	w.mu.Lock()
	if w.keys[name] == nil {
		w.keys[name] = map[string]bool{}
	}
	w.keys[name][r.Header.Get("Idempotency-Key")] = true
	w.mu.Unlock()
	if w.reached("tool called") {
		return
	}
	_, _ = io.WriteString(out, strconv.Quote(name))
	_ = http.NewResponseController(out).Flush()
	w.reached("tool answered")
}

// serve runs a server until it has ended. It returns true if the server ended
// on its own.
func (w *fakeServices) serve(t *testing.T, path string) bool {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), childFolder+"="+path)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	w.mu.Lock()
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	w.server = child.Process
	w.mu.Unlock()
	for lines := bufio.NewScanner(out); lines.Scan(); {
		got := strings.Fields(lines.Text())
		if len(got) != 3 || got[0] != "ended" {
			t.Fatalf("the server printed %q", lines.Text())
		}
		w.mu.Lock()
		w.ended[got[2]] = got[1]
		w.mu.Unlock()
		if !w.reached("call ended") {
			fmt.Fprintln(in)
		}
	}
	err = child.Wait()
	w.mu.Lock()
	w.server = nil
	w.mu.Unlock()
	return err == nil
}

// TestKillNine kills a server with SIGKILL while schedules prompt the agent,
// whose model calls a tool, and call that tool themselves. Prompts and answers
// are stored once, answered prompts are not sent again, and each repeated tool
// call has the same Idempotency-Key.
func TestKillNine(t *testing.T) {
	if testing.Short() {
		t.Skip("slow, and tests a child process")
	}
	kills := 8
	if n, err := strconv.Atoi(os.Getenv(killRounds)); err == nil {
		kills = n
	}
	each := 10 + 2*kills // schedules of each kind: more than can finish before the last kill
	path, w := t.TempDir(), newFakeServices(t, kills)
	shared := prepare(t, path, w.URL, each)
	for !w.serve(t, path) {
	}
	repeats := -2 * 2 * each // each prompt takes two requests
	for _, n := range w.requests {
		repeats += n
	}
	t.Logf("killed %d times; %d repeated requests to the model for %d prompts", w.kills, repeats, 2*each)
	if len(w.plan) > 0 || len(w.late) > 0 {
		t.Errorf(
			"the server ended before the kills %q; schedules that called the model after their end: %v",
			w.plan, w.late,
		)
	}
	folder, err := store.Open(store.Options{Path: path, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	db := folder.Default()
	list, _, err := db.Schedules(t.Context(), store.ScheduleFilter{}, store.Page{Limit: 3*each + 1})
	if err != nil || len(list) != 3*each {
		t.Fatalf("%d schedules, %v", len(list), err)
	}
	for _, s := range list {
		_, runs, err := db.Schedule(t.Context(), s.ID, 10)
		if err != nil || len(runs) != 1 || runs[0].Status != agent.RunSuccess || runs[0].ID != w.ended[s.Name] {
			t.Fatalf("%s: %+v, %v", s.Name, runs, err)
		}
		keys := w.keys[s.Name]
		if len(keys) != 1 || keys[""] || s.CallbackType == agent.CallbackTool && !keys[runs[0].ID] {
			t.Errorf("%s, run %s: the tool was called with the keys %v", s.Name, runs[0].ID, keys)
		}
		if s.CallbackType == agent.CallbackAgent {
			checkConversation(t, db, shared, each, s, runs[0].ID)
		}
	}
	if _, n, err := db.Conversations(
		t.Context(),
		store.ConversationFilter{},
		store.Page{Limit: 1},
	); err != nil || n != each+1 {
		t.Errorf("%d conversations, %v", n, err)
	}
}

// prepare creates an agent with due schedules: prompts in separate
// conversations, prompts in a shared one, and tool calls. It returns the shared
// conversation.
func prepare(t *testing.T, path, address string, each int) string {
	t.Helper()
	folder, err := store.Open(store.Options{Path: path, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	db := folder.Default()
	if _, err := db.UpdateSettings(t.Context(), agent.SettingsChange{
		LLMProvider: agent.Some("openai-compatible"),
		LLMModel:    agent.Some("m"),
		LLMBaseURL:  agent.Some(address + "/v1"),
	}); err != nil {
		t.Fatal(err)
	}
	record, err := db.CreateTool(t.Context(), read[agent.ToolChange](t, `{"name":"record","type":"api","config":{"method":"POST","url":"`+address+`/record/{{name}}",
		"parameters":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	shared, err := db.CreateConversation(t.Context(), agent.ConversationChange{})
	if err != nil {
		t.Fatal(err)
	}
	changed := make(chan struct{}, 1)
	changed <- struct{}{}
	folder.OnPending(func(*store.DB, store.Pending) { // the end of a run is an event
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	s := schedule.New(schedule.Options{
		Env:     store.Env{Folder: folder, Log: quiet},
		Runners: newCallbacks(folder).Runners(),
	})
	for i := range each {
		for name, what := range map[string]string{
			"own": `"callback_type":"agent","payload":{"prompt":"prompt NAME"}`,
			"shared": `"callback_type":"agent","payload":{"prompt":"prompt NAME","conversation_id":"` +
				shared.ID + `"}`,
			"tool": `"callback_type":"tool","callback_id":"` + record.ID + `","payload":{"name":"NAME"}`,
		} {
			name := fmt.Sprint(name, i)
			c := read[agent.ScheduleChange](
				t,
				`{"name":"`+name+`","type":"once",`+strings.ReplaceAll(what, "NAME", name)+`}`,
			)
			c.NextRun = agent.Some(agent.At(time.Now()))
			if _, _, err := s.Create(t.Context(), db, c); err != nil {
				t.Fatal(err)
			}
		}
	}
	return shared.ID
}

func read[T any](t *testing.T, body string) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// checkConversation checks the messages of a run in its conversation.
func checkConversation(t *testing.T, db *store.DB, shared string, each int, s agent.Schedule, runID string) {
	t.Helper()
	id, want := shared, 2*each
	if strings.HasPrefix(s.Name, "own") {
		list, _, err := db.Conversations(t.Context(), store.ConversationFilter{}, store.Page{Limit: each + 1})
		at := slices.IndexFunc(list, func(c agent.ConversationSummary) bool {
			return strings.Contains(string(c.Metadata), runID)
		})
		if err != nil || at < 0 {
			t.Fatalf("%s has no conversation, %v", s.Name, err)
		}
		id, want = list[at].ID, 2
	}
	_, messages, err := db.Conversation(t.Context(), id, want+1)
	if err != nil || len(messages) != want {
		t.Fatalf("%s: %d messages, %v", s.Name, len(messages), err)
	}
	var got []string
	for _, m := range messages {
		if strings.Contains(string(m.Metadata), runID) {
			got = append(got, string(m.Role)+": "+m.Content)
		}
	}
	if want := []string{"user: prompt " + s.Name, "assistant: Answer to " + s.Name}; !slices.Equal(got, want) {
		t.Errorf("%s: the conversation has %q", s.Name, got)
	}
}
