package cluster

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Of an agent whose server is killed repeatedly, one unclosed file is kept; files that
// were closed are kept, and so are those of other agents.
func TestOneUnclosedFileIsKept(t *testing.T) {
	c := &Cluster{Options: Options{Path: t.TempDir(), Log: slog.New(slog.DiscardHandler)}}
	for _, path := range []string{c.copiesPath(), c.lostPath()} {
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	move := func(id, text, wal string) {
		path := filepath.Join(c.Path, id+".db")
		for suffix, text := range map[string]string{"": text, "-wal": wal} {
			if err := os.WriteFile(path+suffix, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.clear(id, path, false); err != nil {
			t.Fatal(err)
		}
	}
	move("agent-1", "first", "wal")
	move("agent-2", "other", "wal")
	move("agent-1", "closed", "")
	move("agent-1", "second", "wal")
	move("agent-1", "third", "wal")

	entries, err := os.ReadDir(c.lostPath())
	if err != nil {
		t.Fatal(err)
	}
	var kept []string
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(c.lostPath(), e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if len(text) > 0 && string(text) != "wal" {
			kept = append(kept, string(text))
		}
	}
	if got := strings.Join(kept, " "); got != "closed third other" {
		t.Errorf("kept: %s", got)
	}
}
