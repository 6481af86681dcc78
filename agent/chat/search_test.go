package chat

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"satchel/agent"
	"satchel/vector"
)

// learn adds sources with these texts to the agent.
func (s *chatFixture) learn(t *testing.T, texts ...string) {
	t.Helper()
	if err := s.chat.index.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.chat.index.Stop)
	for i, text := range texts {
		u, err := s.db.ReceiveFile(t.Context(), fmt.Sprintf("%d.txt", i), "", strings.NewReader(text), int64(len(text)))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.db.CreateFileSource(t.Context(), "Shop", agent.DefaultChunking, u); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.chat.index.Wait(t.Context(), s.db); err != nil {
		t.Fatal(err)
	}
}

// request returns the system prompt and the last message of the nth request.
func (s *chatFixture) request(n int) (system, last string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	messages := s.seen[n]["messages"].([]any)
	text := func(i int) string { return messages[i].(map[string]any)["content"].(string) }
	return text(0), text(len(messages) - 1)
}

func (s *chatFixture) requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.seen)
}

const (
	aboutHours = "The shop in the harbour opens on Saturdays at nine and closes at one. On Sundays it stays closed."
	aboutPhone = "Questions about an order are answered by phone: call the number 0431 5550 and have the receipt ready."
)

// asksForQueries reports whether a request is for search queries, not for the answer.
func asksForQueries(request map[string]any) bool {
	return strings.Contains(fmt.Sprint(request["messages"]), "search queries for a knowledge base")
}

func TestFollowUpsAreResolved(t *testing.T) {
	s := newChatFixture(t, nil, func(_ int, request map[string]any) string {
		if asksForQueries(request) {
			return textAnswer(
				"Here:\n```json\n{\"queries\":[\"phone number for questions about an order\",\" \",\"receipt\"]}\n```",
			)
		}
		return textAnswer("Yes [1].")
	})
	s.learn(t, aboutHours, aboutPhone)
	first, a, err := s.chat.Reply(t.Context(), s.db, Turn{Message: "When does the shop open on Saturdays?"}, nil)
	if err != nil || s.requests() != 1 || a.Queries != nil || len(a.Sources) == 0 {
		t.Fatalf("a plain question took %d requests and found %+v by %q: %v", s.requests(), a.Sources, a.Queries, err)
	}
	m, a, err := s.chat.Reply(
		t.Context(),
		s.db,
		Turn{ConversationID: first.ConversationID, Message: "And how do I reach them?"},
		nil,
	)
	if err != nil {
		t.Fatal(err)
	}
	system, text := s.request(1)
	for _, part := range []string{"English", "one to three"} {
		if !strings.Contains(system, part) {
			t.Errorf("the prompt %q lacks %q", system, part)
		}
	}
	for _, part := range []string{
		"user: When does the shop open on Saturdays?",
		"assistant: Yes [1].", "user: And how do I reach them?",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("the conversation %q lacks %q", text, part)
		}
	}
	if s.seen[1]["max_tokens"] != float64(shortTokens) {
		t.Errorf("the limit of a reply is %v tokens", s.seen[1]["max_tokens"])
	}
	if want := []string{"phone number for questions about an order", "receipt"}; !slices.Equal(a.Queries, want) {
		t.Errorf("queries %q", a.Queries)
	}
	if len(a.Sources) == 0 || a.Sources[0].Content != aboutPhone || a.Usage.Input != 2 {
		t.Errorf("found %+v with %+v", a.Sources, a.Usage)
	}
	if !strings.Contains(string(m.Metadata), `"queries":["phone number`) {
		t.Errorf("stored with %s", m.Metadata)
	}
}

func TestFirstMessagesAreSearchedAsTheyAre(t *testing.T) {
	s := newChatFixture(t, nil, func(_ int, request map[string]any) string {
		if asksForQueries(request) {
			return textAnswer(`{"queries":["phone number for an order"]}`)
		}
		return textAnswer("Yes.")
	})
	ask := func(message string) (requests int) {
		before := s.requests()
		if _, _, err := s.chat.Reply(t.Context(), s.db, Turn{Message: message}, nil); err != nil {
			t.Fatal(err)
		}
		return s.requests() - before
	}
	if n := ask("Wie lautet die Nummer?"); n != 1 {
		t.Errorf("%d requests without knowledge", n)
	}
	s.learn(t, aboutHours, aboutPhone)
	for message, want := range map[string]int{
		"What is the phone number?":                      1,
		"phone":                                          1,
		"Wie lautet die Nummer für Fragen?":              2, // the sources are in English
		"営業時間を教えてください":                                   2,
		strings.Repeat("I bought a lamp from you. ", 20): 2,
	} {
		if n := ask(message); n != want {
			t.Errorf("%q: %d requests, want %d", message, n, want)
		}
	}
}

// badReplies are what models and their providers return instead of an answer.
var badReplies = map[string]func(w http.ResponseWriter, r *http.Request) (message string){
	"not JSON": func(http.ResponseWriter, *http.Request) string { return textAnswer("I would search for lamps.") },
	"cut":      func(http.ResponseWriter, *http.Request) string { return textAnswer(`{"queries":["lam`) },
	"empty":    func(http.ResponseWriter, *http.Request) string { return textAnswer("") },
	"none":     func(http.ResponseWriter, *http.Request) string { return textAnswer(`{"queries":[],"ratings":[]}`) },
	"no string": func(http.ResponseWriter, *http.Request) string {
		return textAnswer(`{"queries":[{}],"ratings":["a"]}`)
	},
	"too long": func(http.ResponseWriter, *http.Request) string {
		return textAnswer(`{"queries":["` + strings.Repeat("lamp ", 100) + `"],"ratings":[101,3]}`)
	},
	"500": func(w http.ResponseWriter, _ *http.Request) string {
		w.Header().Set("Retry-After-Ms", "1")
		http.Error(w, "broken", http.StatusInternalServerError)
		return ""
	},
	"slow": func(_ http.ResponseWriter, r *http.Request) string {
		<-r.Context().Done()
		return ""
	},
}

// bad makes all requests fail except those for an answer.
func (s *chatFixture) bad(reply func(http.ResponseWriter, *http.Request) string) {
	s.refuse = func(n int, w http.ResponseWriter, r *http.Request) bool {
		if system, _ := s.request(n - 1); !strings.Contains(system, "JSON alone") {
			return false
		}
		if message := reply(w, r); message != "" {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"choices":[{"index":0,"message":%s}]}`, message)
		}
		return true
	}
	s.chat.calls.queries, s.chat.calls.ratings = 200*time.Millisecond, 200*time.Millisecond
}

// A turn or a search succeeds even if the model returns no usable queries, and the
// model is not called again for a while.
func TestSearchWithoutUsableQueries(t *testing.T) {
	s := newChatFixture(t, nil, func(int, map[string]any) string { return textAnswer("Yes.") })
	s.learn(t, aboutHours, aboutPhone)
	plain, err := s.chat.index.Ask(t.Context(), s.db, vector.Query{Text: "phone number"})
	if err != nil || len(plain.Results) != 2 {
		t.Fatalf("got %+v %v", plain, err)
	}
	for name, reply := range badReplies {
		t.Run(name, func(t *testing.T) {
			s.bad(reply)
			s.chat.calls.backoffUntil = nil
			_, a, err := s.chat.Reply(t.Context(), s.db, Turn{Message: "Wie ist die phone number von der Firma?"}, nil)
			if err != nil || a.Text != "Yes." || a.Queries != nil {
				t.Errorf("got %+v %v", a, err)
			}
			for _, how := range []Assist{{Expand: true}, {Rerank: true}, {Expand: true, Rerank: true}} {
				s.chat.calls.backoffUntil = nil
				f, err := s.chat.Search(t.Context(), s.db, vector.Query{Text: "phone number"}, how)
				if err != nil || fmt.Sprint(f.Results) != fmt.Sprint(plain.Results) || f.Queries != nil || f.Reranked {
					t.Errorf("%+v: %+v %v", how, f, err)
				}
				if strings.Contains(f.Notice, "expand") != how.Expand ||
					strings.Contains(f.Notice, "rate") != how.Rerank {
					t.Errorf("%+v: notice %q", how, f.Notice)
				}
			}
			before := s.requests()
			if _, err := s.chat.Search(
				t.Context(),
				s.db,
				vector.Query{Text: "phone number"},
				Assist{Rerank: true},
			); err != nil || s.requests() != before {
				t.Errorf("%d more requests, %v", s.requests()-before, err)
			}
		})
	}
}

func TestSearchWithAModel(t *testing.T) {
	s := newChatFixture(t, nil, func(_ int, request map[string]any) string {
		if strings.Contains(fmt.Sprint(request["messages"]), "rate the results") {
			return textAnswer(`{"ratings":[12,97.5]}`)
		}
		return textAnswer(`{"queries":["telephone number"]}`)
	})
	s.learn(t, aboutHours, aboutPhone)
	q := vector.Query{Text: "When is the shop closed?", MinScore: 0.5}
	f, err := s.chat.Search(t.Context(), s.db, q, Assist{Expand: true, Rerank: true})
	if err != nil || !f.Reranked || f.Notice != "" || !slices.Equal(f.Queries, []string{q.Text, "telephone number"}) {
		t.Fatalf("got %+v %v", f, err)
	}
	if len(f.Results) != 1 || f.Results[0].Content != aboutPhone || f.Results[0].Score != 0.975 {
		t.Errorf("found %+v", f.Results)
	}
	system, text := s.request(1)
	if !strings.Contains(system, "in percent") || !strings.Contains(text, "Question: When is the shop closed?") ||
		strings.Index(text, "Passage 1 ():\nThe shop") > strings.Index(text, "Passage 2 ():\nQuestions") {
		t.Errorf("prompt %q, %q", system, text)
	}
	if system, text := s.request(0); !strings.Contains(system, "in other words") ||
		!strings.Contains(system, "English") ||
		text != q.Text {
		t.Errorf("prompt %q, %q", system, text)
	}
}

func TestSearchWithoutAModel(t *testing.T) {
	s := newChatFixture(t, nil, func(int, map[string]any) string { return textAnswer("Yes.") })
	s.learn(t, aboutHours)
	if _, err := s.db.UpdateSettings(t.Context(), agent.SettingsChange{LLMProvider: agent.Some("")}); err != nil {
		t.Fatal(err)
	}
	f, err := s.chat.Search(t.Context(), s.db, vector.Query{Text: "opening hours"}, Assist{Rerank: true})
	if err != nil || len(f.Results) != 1 || !strings.Contains(f.Notice, "no language model") || f.Reranked {
		t.Errorf("got %+v %v", f, err)
	}
	if _, err := s.chat.Search(
		t.Context(),
		s.db,
		vector.Query{},
		Assist{Expand: true},
	); agent.ErrorCode(err) != agent.CodeValidation {
		t.Errorf("an empty query: %v", err)
	}
}

func TestMergedResults(t *testing.T) {
	r := func(id string, score float64, chunks ...string) vector.Result {
		return vector.Result{ID: id, Score: score, Metadata: vector.ResultMetadata{ChunkIDs: chunks}}
	}
	var got []string
	for _, found := range merge([][]vector.Result{
		{r("a", .9, "a", "b"), r("c", .2)},
		{r("b", .5), r("c", .8), r("d", .1)},
	}) {
		got = append(got, fmt.Sprint(found.ID, found.Score))
	}
	if want := "a0.9 c0.8 d0.1"; strings.Join(got, " ") != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
