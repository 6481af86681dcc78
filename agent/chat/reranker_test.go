package chat

import (
	"strings"
	"testing"

	"satchel/vector/encoder/pretrained/sample"
	"satchel/vector/models"
)

// TestTurnWithInstalledReranker: the model receives the passages that the installed
// reranker rates high enough, in the order of their ratings.
func TestTurnWithInstalledReranker(t *testing.T) {
	s := newChatFixture(t, nil, func(int, map[string]any) string { return textAnswer("It is [1].") })
	texts := []string{"w5 w6 w7", "w5 w90 w91", "w5 w40", "w5 w6 w60 w61 w62", "w5 w6 w33 w34"}
	s.learn(t, texts...)
	const question = "w5 w6"
	ask := func() []Citation {
		t.Helper()
		_, a, err := s.chat.Reply(t.Context(), s.db, Turn{Message: question}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return a.Sources
	}
	plain := ask()
	files := s.chat.index.Models()
	if _, err := files.Add(t.Context(), sample.Of(t, "pair").Build(t, "F32"), "judge"); err != nil {
		t.Fatal(err)
	}
	judge, err := files.Open("judge")
	if err != nil {
		t.Fatal(err)
	}
	found := ask()
	if len(found) == 0 || same(plain, found) {
		t.Fatalf("with a reranker %+v, without %+v", found, plain)
	}
	checkRated(t, judge, question, texts, found)
	system, _ := s.request(s.requests() - 1)
	at := 0
	for _, c := range found {
		next := strings.Index(system[at:], c.Content)
		if next < 0 {
			t.Fatalf("passage %d, %q, is missing or out of order in the prompt %q", c.Number, c.Content, system)
		}
		at += next
	}

	if err := files.Remove("judge"); err != nil {
		t.Fatal(err)
	}
	if again := ask(); !same(plain, again) {
		t.Errorf("after removing the reranker %+v, want %+v", again, plain)
	}
}

// checkRated compares the passages of a turn with a reranker's estimates of all.
func checkRated(t *testing.T, judge *models.Model, question string, texts []string, found []Citation) {
	t.Helper()
	want := 0
	for _, text := range texts {
		score, err := judge.Score(t.Context(), question, text)
		if err != nil {
			t.Fatal(err)
		}
		if score >= weakScore {
			want++
		}
		for i, c := range found {
			if c.Content != text {
				continue
			}
			if c.Score < score-1e-6 || c.Score > score+1e-6 || i > 0 && c.Score > found[i-1].Score {
				t.Errorf("passage %d has score %v, want the reranker's rating %v", c.Number, c.Score, score)
			}
		}
	}
	if len(found) != want {
		t.Errorf("%d passages, want the %d with a rating of at least %v", len(found), want, weakScore)
	}
}

func same(a, b []Citation) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Content != b[i].Content || a[i].Score != b[i].Score {
			return false
		}
	}
	return true
}
