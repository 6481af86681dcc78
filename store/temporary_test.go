package store

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"satchel/agent"
)

func init() { children["command"] = waitInTemp }

// waitInTemp makes a temporary folder as a command does, and waits to be killed.
func waitInTemp() {
	dir, _, err := MakeTemp(os.Getenv("COMMAND_FOLDER"))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "agent.db"), []byte("x"), 0o600)
	}
	fmt.Println(dir, err)
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
}

// commandAt starts a command in a data folder, and returns its temporary folder and a
// function that kills it.
func commandAt(t *testing.T, folder string) (dir string, kill func()) {
	t.Helper()
	cmd := child(t, "command", "COMMAND_FOLDER="+folder)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	dir, failed, _ := strings.Cut(strings.TrimSpace(line), " ")
	if failed != "<nil>" {
		t.Fatal(line)
	}
	return dir, func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = in.Close()
	}
}

// What a killed command leaves is private, and is removed by the next command or start;
// what a running one has is not.
func TestTemporaryFilesOfCommands(t *testing.T) {
	t.Parallel()
	folder := openFolder(t).Path()
	file := template(t, "Support")
	old := filepath.Join(folder, agent.NewID("restore"))
	for _, path := range []string{old, old + ".clean", old + "-wal"} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	dir, kill := commandAt(t, folder)
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if left, _ := filepath.Glob(old + "*"); len(left) > 0 {
		t.Errorf("an earlier version's %v are left", left)
	}
	if _, err := RestoreFile(t.Context(), folder, file); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Errorf("the folder of a running command was removed: %v", err)
	}
	kill()
	if _, err := RestoreFile(t.Context(), folder, file); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(folder, commandTemp+"*")); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
}

// A start removes what a killed server or command left.
func TestTemporaryFilesAtAStart(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	closeFolder(t, f)
	dir, kill := commandAt(t, f.Path())
	kill()
	left := []string{"catalog.json.new", "master.key.new", "replica.json.new", "tmp/backup-1", "tmp/import-1.clean"}
	if err := os.MkdirAll(filepath.Join(f.Path(), "tmp"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range left {
		if err := os.WriteFile(filepath.Join(f.Path(), name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	openAt(t, f.Path())
	for _, path := range append(left, filepath.Base(dir)) {
		if _, err := os.Stat(filepath.Join(f.Path(), path)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is left: %v", path, err)
		}
	}
}

// madeElsewhere are the files that make temporary files, each with why a kill leaves
// nothing in the data folder.
var madeElsewhere = []string{
	"store/temporary.go",               // the place for commands
	"store/replica/restore.go",         // beside a file in a folder of MakeTemp
	"store/replica/folder.go",          // in the target, which removes them
	"store/replica/tidy.go",            // in DATA/tmp
	"store/replica/upload.go",          // in DATA/tmp
	"store/cluster/recover.go",         // in the system's folder
	"store/cluster/transfer.go",        // in the system's folder
	"store/cluster/pgtest/",            // for tests
	"httpapi/forward_body.go",          // in DATA/tmp, without a name
	"httpapi/console/bundle/",          // a tool
	"browser/folder.go",                // in the system's folder
	"browser/install/",                 // in the browser's folder
	"vector/lab/",                      // tools
	"vector/models/compare/compare.go", // in the system's folder
}

// Temporary files are made where a kill leaves none: a new place uses DATA/tmp or MakeTemp,
// or says here why it needs neither.
func TestTemporaryFilesAreMadeInKnownPlaces(t *testing.T) {
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() && (d.Name() == "node_modules" || d.Name() == ".git") {
			return fs.SkipDir
		}
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(path, "../"))
		if slices.ContainsFunc(madeElsewhere, func(known string) bool { return strings.HasPrefix(name, known) }) {
			return nil
		}
		text, err := os.ReadFile(path)
		for _, call := range []string{"os.CreateTemp(", "os.MkdirTemp("} {
			if strings.Contains(string(text), call) {
				t.Errorf("%s calls %s…)", name, call)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
