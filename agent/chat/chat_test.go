package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"satchel/agent"
	"satchel/agent/llm"
	"satchel/agent/openapi"
	"satchel/store"
	"satchel/vector"
	"satchel/vector/document"
)

// TestMain is also the entry point of the child process that reads documents and
// descriptions of APIs.
func TestMain(m *testing.M) {
	if document.RunChild(os.Args[1:]) || openapi.RunChild(os.Args[1:]) {
		return
	}
	os.Exit(m.Run())
}

// chatFixture is an agent with a fake model.
type chatFixture struct {
	chat *Chat
	db   *store.DB
	mu   sync.Mutex
	seen []map[string]any

	// refuse answers the nth request in place of say, if it returns true.
	refuse func(n int, w http.ResponseWriter, r *http.Request) bool
}

// newChatFixture creates an agent with these tools. say returns the message of the
// nth reply as JSON.
func newChatFixture(tb testing.TB, tools []Tool, say func(n int, request map[string]any) string) *chatFixture {
	tb.Helper()
	s := &chatFixture{}
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body map[string]any
		_ = json.NewDecoder(r.Body).Decode(&body)
		s.mu.Lock()
		s.seen = append(s.seen, body)
		n := len(s.seen)
		s.mu.Unlock()
		if s.refuse != nil && s.refuse(n, w, r) {
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(
			w,
			`{"choices":[{"index":0,"finish_reason":"stop","message":%s}],`+
				`"usage":{"prompt_tokens":1,"completion_tokens":1}}`,
			say(n, body),
		)
	}))
	tb.Cleanup(provider.Close)
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	folder, err := store.Open(store.Options{Path: tb.TempDir(), Log: quiet})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = folder.Close() })
	s.db = folder.Default()
	if _, err := s.db.UpdateSettings(context.Background(), agent.SettingsChange{
		LLMProvider: agent.Some("openai-compatible"),
		LLMModel:    agent.Some("m"),
		LLMBaseURL:  agent.Some(provider.URL + "/v1"),
	}); err != nil {
		tb.Fatal(err)
	}
	s.chat = New(Options{
		Model: llm.New(llm.Options{HTTP: provider.Client()}),
		Index: vector.New(folder, vector.Local(), quiet),
		Log:   quiet,
		Tools: func(context.Context, *store.DB, Choice) ([]Tool, error) { return tools, nil },
	})
	return s
}

func textAnswer(text string) string {
	raw, _ := json.Marshal(text)
	return `{"role":"assistant","content":` + string(raw) + `}`
}

func toolCallsAnswer(pairs ...string) string {
	var list []string
	for i := 0; i < len(pairs); i += 2 {
		raw, _ := json.Marshal(pairs[i+1])
		list = append(
			list,
			fmt.Sprintf(`{"id":"c%d","type":"function","function":{"name":%q,"arguments":%s}}`, i/2, pairs[i], raw),
		)
	}
	return `{"role":"assistant","content":null,"tool_calls":[` + strings.Join(list, ",") + `]}`
}

func tool(name string, call func(context.Context, json.RawMessage) (any, error)) Tool {
	return Tool{Tool: llm.Tool{Name: name, Parameters: json.RawMessage(`{"type":"object"}`)}, Call: call}
}

// The calls of one round run concurrently, each error is reported to the model
// in its place, and the answer follows.
func TestToolCalls(t *testing.T) {
	var meet sync.WaitGroup
	meet.Add(2)
	together := func(context.Context, json.RawMessage) (any, error) {
		meet.Done()
		meet.Wait()
		return "met", nil
	}
	s := newChatFixture(t, []Tool{
		tool("one", together), tool("two", together),
		tool("refuses", func(context.Context, json.RawMessage) (any, error) {
			return nil, agent.Invalid("city", "is required")
		}),
		tool("fails", func(context.Context, json.RawMessage) (any, error) {
			return nil, errors.New("password=hunter2")
		}),
		tool("long", func(context.Context, json.RawMessage) (any, error) { return strings.Repeat("x", 1<<20), nil }),
	}, func(n int, _ map[string]any) string {
		if n == 1 {
			return toolCallsAnswer(
				"one", "{}", "two", "{}", "refuses", "{}", "fails", "{}", "unknown", "{}", "one", "half {",
				"long", "{}",
			)
		}
		return textAnswer("Done.")
	})
	var toolErrors []string
	m, a, err := s.chat.Reply(t.Context(), s.db, Turn{Message: "Go"}, nil)
	if err != nil || m.Content != "Done." || len(a.ToolCalls) != 7 {
		t.Fatalf("got %+v %+v %v", m, a, err)
	}
	for _, c := range a.ToolCalls {
		toolErrors = append(toolErrors, c.Error)
	}
	want := []string{
		"", "", "city is required", "the tool failed",
		"there is no tool with this name",
		"the arguments are not a JSON object: half {",
		"",
	}
	if fmt.Sprint(toolErrors) != fmt.Sprint(want) {
		t.Errorf("errors %q", toolErrors)
	}
	sent := s.seen[1]["messages"].([]any)
	results := sent[len(sent)-7:]
	if got := results[0].(map[string]any); got["content"] != `"met"` || got["tool_call_id"] != "c0" {
		t.Errorf("the model received %v", got)
	}
	if all := fmt.Sprint(sent); strings.Contains(all, "hunter2") {
		t.Error("an internal error text was sent to the model")
	}
	if text, _ := results[6].(map[string]any)["content"].(string); len(text) > maxResult+8 {
		t.Errorf("a result of %d bytes", len(text))
	}
}

// A model that keeps calling tools is eventually asked to answer without them.
func TestBudgetOfCalls(t *testing.T) {
	executed := 0
	var mu sync.Mutex
	s := newChatFixture(t, []Tool{tool("again", func(context.Context, json.RawMessage) (any, error) {
		mu.Lock()
		defer mu.Unlock()
		executed++
		return executed, nil
	})}, func(n int, request map[string]any) string {
		if request["tools"] == nil {
			return textAnswer("Enough.")
		}
		return toolCallsAnswer("again", "{}", "again", "{}", "again", "{}", "again", "{}", "again", "{}")
	})
	_, a, err := s.chat.Reply(t.Context(), s.db, Turn{Message: "Go"}, nil)
	if err != nil || a.Text != "Enough." || executed != maxCalls || len(s.seen) > MaxRounds+1 {
		t.Errorf("%q after %d calls and %d requests: %v", a.Text, executed, len(s.seen), err)
	}
}

// Turns of one conversation wait for each other.
func TestTurnsOfAConversation(t *testing.T) {
	s := newChatFixture(t, nil, func(n int, request map[string]any) string {
		return textAnswer(fmt.Sprint(len(request["messages"].([]any))))
	})
	first, _, err := s.chat.Reply(t.Context(), s.db, Turn{Message: "0"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	for n := range 8 {
		running.Go(func() {
			if _, _, err := s.chat.Reply(
				t.Context(),
				s.db,
				Turn{Message: fmt.Sprint(n), ConversationID: first.ConversationID},
				nil,
			); err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
	_, messages, err := s.db.Conversation(t.Context(), first.ConversationID, 100)
	if err != nil || len(messages) != 18 {
		t.Fatalf("%d messages, %v", len(messages), err)
	}
	for i, m := range messages {
		if want := []agent.MessageRole{agent.MessageUser, agent.MessageAssistant}[i%2]; m.Role != want {
			t.Errorf("message %d has the role %s", i, m.Role)
		}
	}
	if len(s.chat.turns.waiting) != 0 {
		t.Errorf("%d turns are still in memory", len(s.chat.turns.waiting))
	}
}

// A step in a conversation stores its answer once, however often it is attempted,
// and does not repeat the user's message.
func TestSteps(t *testing.T) {
	s := newChatFixture(t, nil, func(n int, request map[string]any) string {
		return textAnswer(fmt.Sprintf("Answer %d.", n))
	})
	message, _, err := s.db.BeginTurn(
		t.Context(),
		agent.Message{Role: agent.MessageUser, Content: "Hello", Metadata: json.RawMessage("{}")},
		"",
		1,
	)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(key, prompt string) string {
		a, err := s.chat.Step(t.Context(), s.db, message.ConversationID, key, Request{
			Messages: []llm.Message{{Role: agent.MessageUser, Content: prompt}},
		})
		if err != nil {
			t.Fatal(err)
		}
		return a.Text
	}
	if first, again :=
		ask("x:n:", "Hello"), ask("x:n:", "Hello"); first != "Answer 1." || again != first || len(s.seen) != 1 {
		t.Errorf("%q, then %q after %d requests", first, again, len(s.seen))
	}
	if n := len(s.seen[0]["messages"].([]any)); n != 2 { // system and Hello
		t.Errorf("%d messages were sent to the model", n)
	}
	ask("x:m:", "Sum it up.")
	if n := len(s.seen[1]["messages"].([]any)); n != 4 {
		t.Errorf("%d messages were sent to the model", n)
	}
	_, messages, err := s.db.Conversation(t.Context(), message.ConversationID, 10)
	if err != nil || len(messages) != 3 {
		t.Errorf("%d messages stored, %v", len(messages), err)
	}
}

// TestAskOnce repeats a prompt after each point at which it may have been killed:
// prompt and answer are stored once.
func TestAskOnce(t *testing.T) {
	s := newChatFixture(t, nil, func(n int, request map[string]any) string {
		return textAnswer(fmt.Sprintf("Answer %d.", n))
	})
	prompt := agent.Message{Role: agent.MessageUser, Content: "What is new?", Metadata: json.RawMessage("{}")}
	// killed before the answer
	cut, err := s.db.AppendPromptOnce(t.Context(), "run-1", json.RawMessage(`{"run_id":"run-1"}`), prompt)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // repeated, and killed after it
		a, err := s.chat.Ask(t.Context(), s.db, "", "run-1", "What is new?", json.RawMessage(`{"run_id":"run-1"}`))
		if err != nil || a.Text != "Answer 1." {
			t.Fatalf("got %q, %v", a.Text, err)
		}
	}
	_, messages, err := s.db.Conversation(t.Context(), cut.ConversationID, 10)
	if err != nil || len(messages) != 2 || len(s.seen) != 1 {
		t.Errorf("%d messages stored after %d requests, %v", len(messages), len(s.seen), err)
	}
	if _, err := s.chat.Ask(t.Context(), s.db, cut.ConversationID, "run-2", "What is new?", nil); err != nil {
		t.Fatal(err)
	}
	if _, messages, err = s.db.Conversation(t.Context(), cut.ConversationID, 10); err != nil || len(messages) != 4 {
		t.Errorf("%d messages stored after the next run, %v", len(messages), err)
	}
}

func TestHistoryWithinBudget(t *testing.T) {
	say := func(role agent.MessageRole, text string) agent.Message {
		return agent.Message{Role: role, Content: text}
	}
	long := strings.Repeat("word ", 400) // 2000 bytes, about 504 tokens
	history := []agent.Message{
		say("user", long),
		say("assistant", long),
		say("user", long),
		say("assistant", "short"),
		say("tool", "7"),
		say("user", "last"),
	}
	for budget, want := range map[int]int{0: 1, 8: 1, 600: 4, 1100: 5, 5000: 6} {
		kept := newestWithin(history, budget)
		if len(kept) != want || kept[len(kept)-1].Content != "last" {
			t.Errorf("budget %d keeps %d: %v", budget, len(kept), kept)
		}
	}
	if n := tokens("価格はいくらですか"); n < 9 || n > 30 {
		t.Errorf("nine Japanese characters are %d tokens", n)
	}
}

func TestChoice(t *testing.T) {
	for text, want := range map[string]Choice{
		`true`:  {},
		`false`: {None: true},
		`[]`:    {None: true, IDs: []string{}},
		`["a"]`: {IDs: []string{"a"}},
	} {
		var got Choice
		if err := json.Unmarshal([]byte(text), &got); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %+v %v", text, got, err)
		}
	}
}

func TestSchemas(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"array",` +
		`"items":{"type":"integer"}}},"required":["city"]}`)
	for arguments, want := range map[string]string{
		`{"city":"Rome"}`:                  "",
		`{}`:                               "arguments missing property 'city'",
		`{"city":3}`:                       "arguments city: got number, want string",
		`{"city":"Rome","days":[1,"two"]}`: "arguments days.1: got string, want integer",
	} {
		err := CheckArguments(schema, json.RawMessage(arguments))
		var e *agent.Error
		if want == "" && err != nil || want != "" && (!errors.As(err, &e) || e.Message != want) {
			t.Errorf("%s: %v", arguments, err)
		}
	}
	for _, bad := range []string{
		`{"type":"nothing"}`,
		`{"$ref":"http://example.com/x.json"}`,
		`{"$ref":"file:///etc/passwd"}`,
		`{`,
		`{"pattern":"("}`,
	} {
		if err := CheckSchema("parameters", json.RawMessage(bad)); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}

// BenchmarkTurn measures a turn without the model's own time, in a conversation
// with a history.
func BenchmarkTurn(b *testing.B) {
	for _, before := range []int{0, 100, 1000} {
		b.Run(fmt.Sprintf("messages=%d", before), func(b *testing.B) {
			s := newChatFixture(b, nil, func(int, map[string]any) string { return textAnswer("Yes.") })
			first, _, err := s.chat.Reply(b.Context(), s.db, Turn{Message: "Hello"}, nil)
			if err != nil {
				b.Fatal(err)
			}
			for n := range before {
				m := agent.Message{
					ConversationID: first.ConversationID,
					Role:           agent.MessageUser,
					Content:        fmt.Sprintf("This is message %d of a long talk about many things.", n),
					Metadata:       json.RawMessage("{}"),
				}
				if _, err := s.db.AppendReply(b.Context(), m); err != nil {
					b.Fatal(err)
				}
			}
			b.ResetTimer()
			for b.Loop() {
				if _, _, err := s.chat.Reply(
					b.Context(),
					s.db,
					Turn{Message: "Where is my order?", ConversationID: first.ConversationID},
					nil,
				); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// When an old message is answered again, the model does not receive later messages,
// and the metadata of the answer is limited.
func TestRetryOfOldMessage(t *testing.T) {
	s := newChatFixture(t, nil, func(n int, _ map[string]any) string {
		return textAnswer(fmt.Sprintf("Answer %d.", n))
	})
	first, _, err := s.chat.Reply(t.Context(), s.db, Turn{Message: "First"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for n := range maxHistory + 1 {
		if _, err := s.db.AppendMessage(t.Context(), agent.Message{
			ConversationID: first.ConversationID,
			Role:           agent.MessageUser,
			Content:        fmt.Sprint("Later ", n),
		}); err != nil {
			t.Fatal(err)
		}
	}
	again, _, err := s.chat.Reply(t.Context(), s.db, Turn{RetryOf: first.ID}, nil)
	if err != nil || again.ConversationID != first.ConversationID || again.Content != "Answer 2." {
		t.Fatalf("got %+v %v", again, err)
	}
	sent := s.seen[1]["messages"].([]any)
	if last := sent[len(sent)-1].(map[string]any); len(sent) != 2 || last["content"] != "First" {
		t.Errorf("sent %v", sent)
	}
}

func TestStoredAnswersAreBounded(t *testing.T) {
	long := strings.Repeat("ü", 20_000)
	a := Answer{
		Text:      "As [2] says.",
		Sources:   []Citation{{Number: 1}, {Number: 2}},
		ToolCalls: []ToolCall{{Name: "t", Arguments: json.RawMessage(`{"a":"` + long + `"}`)}},
	}
	a.Sources[1].Content = long
	for limit, want := range map[int]struct{ calls, content bool }{
		maxMetadata: {true, true},
		11_000:      {true, false},
		1000:        {false, false},
	} {
		raw, err := answerMetadata{}.metadata(a, limit)
		var got answerMetadata
		if err != nil || json.Unmarshal(raw, &got) != nil || len(raw) > limit || len(got.Sources) != 2 {
			t.Fatalf("limit %d: %d bytes, %v", limit, len(raw), err)
		}
		if calls, content :=
			len(got.ToolCalls) > 0,
			got.Sources[1].Content != ""; calls != want.calls ||
			content != want.content ||
			got.Sources[0].Cited ||
			!got.Sources[1].Cited {
			t.Errorf("limit %d: %+v", limit, got)
		}
		var arguments string
		if want.calls &&
			(json.Unmarshal(got.ToolCalls[0].Arguments, &arguments) != nil || len(arguments) > maxStoredResult) ||
			len(got.Sources[1].Content) > maxStoredPassage {
			t.Errorf(
				"limit %d: %d bytes of arguments, %d of a passage",
				limit,
				len(arguments),
				len(got.Sources[1].Content),
			)
		}
	}
}

// TestNotesStayBetweenPeople: notes are not sent to the model.
func TestNotesStayBetweenPeople(t *testing.T) {
	history := []agent.Message{
		{Role: agent.MessageUser, Content: "Where is it?"},
		{Role: agent.MessageNote, Content: "He never pays"},
		{Role: agent.MessageUser, Content: "Hello?"},
	}
	kept := newestWithin(history, historyTokens)
	if len(kept) != 2 ||
		kept[0].Content != "Where is it?" ||
		kept[1].Content != "Hello?" ||
		history[1].Content != "He never pays" {
		t.Errorf("%+v of %+v", kept, history)
	}
}

// TestUnanswered: if an agent has knowledge and none of it answers the question, the
// prompt says so.
func TestUnanswered(t *testing.T) {
	s := newChatFixture(t, nil, func(int, map[string]any) string { return textAnswer("ok") })
	ask := func() string {
		t.Helper()
		if _, err := s.chat.Ask(
			t.Context(),
			s.db,
			"",
			"",
			"What is the capital of Peru?",
			json.RawMessage(`{}`),
		); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(s.seen[len(s.seen)-1]["messages"])
	}
	if messages := ask(); strings.Contains(messages, "Nothing in your knowledge") {
		t.Errorf("without knowledge: %s", messages)
	}
	const text = "kiln"
	u, err := s.db.ReceiveFile(t.Context(), "a.txt", "", strings.NewReader(text), int64(len(text)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.db.CreateFileSource(t.Context(), "a.txt", agent.DefaultChunking, u); err != nil {
		t.Fatal(err)
	}
	if messages := ask(); !strings.Contains(messages, "Nothing in your knowledge") {
		t.Errorf("with knowledge that does not answer: %s", messages)
	}
}

// TestChatOffersTheBrowser: the browser's tools are offered if the settings allow it,
// and their session ends with the answer.
func TestChatOffersTheBrowser(t *testing.T) {
	own := Tool{Tool: llm.Tool{Name: "browser_click", Description: "own", Parameters: agent.NoParameters}}
	s := newChatFixture(t, []Tool{own}, func(int, map[string]any) string { return textAnswer("Yes.") })
	opened, ended := 0, 0
	s.chat.pages = func(*store.DB) ([]Tool, func()) {
		opened++
		browse := Tool{Tool: llm.Tool{Name: "browser_browse", Parameters: agent.NoParameters}}
		return []Tool{
			{Tool: llm.Tool{Name: "browser_click", Description: "other", Parameters: agent.NoParameters}},
			browse,
		}, func() { ended++ }
	}
	for i, c := range []struct {
		on    bool
		tools Choice
		want  string
	}{
		{false, Choice{}, "browser_click own"},
		{true, Choice{}, "browser_click own browser_browse "},
		{true, Choice{None: true}, ""},
		{true, Choice{IDs: []string{"x"}}, "browser_click own"},
	} {
		if _, err := s.db.UpdateSettings(t.Context(), agent.SettingsChange{ChatBrowser: agent.Some(c.on)}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.chat.Complete(
			t.Context(),
			s.db,
			Request{Messages: []llm.Message{{Role: agent.MessageUser, Content: "?"}}, Tools: c.tools},
			nil,
		); err != nil {
			t.Fatal(err)
		}
		var names []string
		list, _ := s.seen[i]["tools"].([]any)
		for _, one := range list {
			f := one.(map[string]any)["function"].(map[string]any)
			description, _ := f["description"].(string)
			names = append(names, fmt.Sprintf("%v %v", f["name"], description))
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%+v: offered %q", c, got)
		}
	}
	if opened != 1 || ended != 1 {
		t.Errorf("opened %d, ended %d", opened, ended)
	}
}
