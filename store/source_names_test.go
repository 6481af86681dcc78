package store

import (
	"strings"
	"testing"

	"satchel/agent"
)

// TestSourceNames creates sources of the same name, which get different ones, and renames
// one to the name of another, which is refused.
func TestSourceNames(t *testing.T) {
	f := openFolder(t)
	db := f.Default()
	long := strings.Repeat("ä", agent.MaxSourceName)
	feed := func(name string) agent.Source {
		s, err := db.CreateFeedSource(t.Context(), agent.SourceAPI, name, map[string]any{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for _, c := range [][2]string{{"100%_a", "100%_a"}, {"100%_A", "100%_A (2)"}, {"100xxa (9)", "100xxa (9)"}, {"100%_a", "100%_a (3)"},
		{"b (2)", "b (2)"}, {"b", "b"}, {"b", "b (3)"}, {long, long}} {
		if got := feed(c[0]).Name; got != c[1] {
			t.Errorf("%s became %s, want %s", c[0], got, c[1])
		}
	}
	if err := agent.CheckSourceName(feed(long).Name); err != nil {
		t.Error(err)
	}
	last := feed("c")
	for name, refused := range map[string]bool{"B": true, "c": false, "C": false, "free": false} {
		_, err := db.UpdateSource(t.Context(), last.ID, SourceChange{Name: &name})
		if (agent.ErrorCode(err) == agent.CodeValidation) != refused || !refused && err != nil {
			t.Errorf("renamed to %s: %v", name, err)
		}
	}
}
