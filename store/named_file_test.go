package store

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An error about a file outside of the data folder has its path, and advice other than
// "satchel doctor", which does not look there.
func TestErrorsOfNamedFiles(t *testing.T) {
	t.Parallel()
	f := openAt(t, t.TempDir(), fixtureKey)
	sound := f.filePath(createAgent(t, f, "bakery").ID())
	closeFolder(t, f)
	for text, change := range map[string]func(path string) error{
		"is not an agent's file":        func(path string) error { return os.WriteFile(path, []byte("a note"), 0o600) },
		"cannot be used: the schema is": func(path string) error { return rewrite(path, "CREATE TABLE evil (a)") },
		"this program knows up to":      func(path string) error { return rewrite(path, "PRAGMA user_version = 99") },
		"is damaged (":                  overwriteSchema,
	} {
		path := filepath.Join(t.TempDir(), "file.db")
		copyClosed(t, path, sound)
		if err := change(path); err != nil {
			t.Fatal(err)
		}
		_, opened := linked(t, t.TempDir(), path)
		_, restored := Offline{Options: Options{Path: t.TempDir()}}.Restore(t.Context(), path)
		for command, err := range map[string]error{"open": opened, "restore": restored} {
			if err == nil ||
				!strings.HasPrefix(err.Error(), path+" ") ||
				!strings.Contains(err.Error(), text) ||
				strings.Contains(err.Error(), "doctor") {
				t.Errorf("%s, %q: %v", command, text, err)
			}
		}
	}
}

// overwriteSchema damages the first page of a file after its header.
func overwriteSchema(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(bytes.Repeat([]byte("x"), 1900), 100)
	return errors.Join(err, f.Close())
}
