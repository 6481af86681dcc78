package chat

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"satchel/agent"
)

// The model sees where pages start in a passage. An answer, when it is returned and as it
// is stored, cites the page of the sentence that it states.
func TestCitedPage(t *testing.T) {
	text := ""
	s := newChatFixture(t, nil, func(int, map[string]any) string { return textAnswer(text) })
	file, err := os.Open("../../vector/testdata/three_pages.pdf")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	u, err := s.db.ReceiveFile(t.Context(), "guide.pdf", "", file, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.db.CreateFileSource(t.Context(), "guide.pdf", agent.DefaultChunking, u); err != nil {
		t.Fatal(err)
	}
	if err := s.chat.index.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer s.chat.index.Stop()
	if err := s.chat.index.Wait(t.Context(), s.db); err != nil {
		t.Fatal(err)
	}
	const question = "What are the rules for customers and staff of the workshop?"
	for answer, want := range map[string]string{
		"The deposit for a loan bike is sixty euros. [1]":                                      "page 2",
		"Hello!\n\n- The compressor is drained on Friday [1].":                                 "page 3",
		"Parts go back within thirty days [1]. Batteries are stored in the steel cabinet [1].": "pages 1–3",
		"Of course. Gift vouchers are refunded as vouchers [2][1]":                             "page 2",
	} {
		text = answer
		message, a, err := s.chat.Reply(t.Context(), s.db, Turn{Message: question}, nil)
		if err != nil || len(a.Sources) != 1 {
			t.Fatal(a, err)
		}
		var meta struct {
			Sources []struct{ Place string }
		}
		if err := json.Unmarshal(message.Metadata, &meta); err != nil || len(meta.Sources) != 1 {
			t.Fatal(string(message.Metadata), err)
		}
		stored := storedAnswer(&message, false).Sources[0].Metadata
		for _, got := range []string{a.Sources[0].Metadata.Place, meta.Sources[0].Place, stored.Place} {
			if got != want {
				t.Errorf("%s: cites %q, want %q", answer, got, want)
			}
		}
		if m := a.Sources[0].Metadata; stored.Page != m.Page || stored.LastPage != m.LastPage {
			t.Errorf("%s: stored %+v, want %+v", answer, stored, m)
		}
	}
	prompt := s.seen[len(s.seen)-1]["messages"].([]any)[0].(map[string]any)["content"].(string)
	for _, want := range []string{
		` pages="1-3">`,
		"[page 1] Lantern Cycles",
		"[page 2] Money is paid",
		"[page 3] The alarm",
	} {
		if !strings.Contains(prompt, want) {
			t.Errorf("the prompt lacks %s: %s", want, prompt)
		}
	}
}
