package store

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"satchel/agent"
)

func init() { children["server"] = serveForTest }

// server is another process that has a data folder open and writes contacts to its
// default agent.
type server struct {
	in  io.WriteCloser
	out *bufio.Scanner
}

func startServer(t testing.TB, folder string) *server {
	t.Helper()
	cmd := child(t, "server", "SERVE_FOLDER="+folder)
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(in.Close(), cmd.Wait()); err != nil && !errors.Is(err, fs.ErrClosed) {
			t.Errorf("the server: %v", err)
		}
	})
	s := &server{in: in, out: bufio.NewScanner(out)}
	s.read(t)
	return s
}

// read returns the server's next line.
func (s *server) read(t testing.TB) string {
	t.Helper()
	if !s.out.Scan() {
		t.Fatalf("the server ended: %v", s.out.Err())
	}
	return s.out.Text()
}

// ask sends a line and returns the answer.
func (s *server) ask(t testing.TB, line string) string {
	t.Helper()
	if _, err := fmt.Fprintln(s.in, line); err != nil {
		t.Fatal(err)
	}
	return s.read(t)
}

// serveForTest creates a contact for each line "write", reloads its folder for each
// "look", and answers with the number of contacts and the agents.
func serveForTest() {
	f, err := Open(Options{Path: os.Getenv("SERVE_FOLDER")})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	defer f.Close()
	contacts := 0
	fmt.Println("ready")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if lines.Text() == "write" {
			if err := try(f.Default(), "INSERT INTO contacts(name) VALUES ('x')"); err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
			contacts++
		} else {
			pollFolder(f, 3)
		}
		var names []string
		for _, db := range f.Agents() {
			names = append(names, db.id+"="+db.Agent().Name+"="+string(db.Agent().Status))
		}
		fmt.Println(contacts, strings.Join(names, " "))
	}
}

func TestBackupFileOfARunningServer(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	s := startServer(t, folder)
	for n := 1; n <= 5; n++ {
		s.ask(t, "write")
		to := filepath.Join(t.TempDir(), "backup.db")
		if err := BackupFile(folder, "default", to); err != nil {
			t.Fatal(err)
		}
		if got := valueIn[int](t, to, "SELECT count(*) FROM contacts"); got != n {
			t.Errorf("the backup has %d contacts of %d", got, n)
		}
		if verdict := valueIn[string](t, to, "PRAGMA integrity_check"); verdict != "ok" {
			t.Error(verdict)
		}
		if files := fileCount(t, to+"*"); files != 1 {
			t.Errorf("%d files, not one", files)
		}
	}
	if got := s.ask(t, "write"); !strings.HasPrefix(got, "6 ") {
		t.Errorf("the server answered %s", got)
	}
}

func TestBackupFileOfAStoppedServer(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	db := createAgent(t, f, "Support")
	createContact(t, db, named("x"))
	closeFolder(t, f)
	dir := t.TempDir()
	for n, name := range []string{db.id, "SUPPORT", "default"} {
		to := filepath.Join(dir, strconv.Itoa(n))
		if err := BackupFile(f.Path(), name, to); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if info, err := os.Stat(to); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: others can read the backup: %v, %v", name, info.Mode(), err)
		}
	}
	if err := BackupFile(f.Path(), "default", filepath.Join(dir, "0")); err == nil {
		t.Error("a backup was overwritten")
	}
	if err := BackupFile(f.Path(), "nobody", filepath.Join(dir, "9")); err == nil {
		t.Error("a backup of an unknown agent")
	}
	if err := BackupFile(
		filepath.Join(dir, "none"),
		"default",
		filepath.Join(dir, "9"),
	); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
	if err := BackupFile(f.Path(), "default", filepath.Join(dir, "none", "x")); err == nil {
		t.Error("a backup into a folder that does not exist")
	}
	if fileCount(t, filepath.Join(dir, "*")) != 3 {
		t.Error("something is left of what failed")
	}
}

func TestRestoreFileForARunningServer(t *testing.T) {
	t.Parallel()
	file := template(t, "Support")
	want := hashOf(t, file)
	folder := t.TempDir()
	s := startServer(t, folder)
	var ids []string
	for range 3 {
		id, err := RestoreFile(t.Context(), folder, file)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	if ids[0] != strings.TrimSuffix(filepath.Base(file), ".db") || ids[1] == ids[0] || ids[2] == ids[1] {
		t.Errorf("ids %v", ids)
	}
	answer := s.ask(t, "look")
	for n, name := range []string{"Support", "Support-2", "Support-3"} {
		if !strings.Contains(answer, ids[n]+"="+name+"=paused") {
			t.Errorf("the server has %s", answer)
		}
	}
	if hashOf(t, file) != want || fileCount(t, file+"*") != 1 || fileCount(t, folder+"/restore*") != 0 {
		t.Error("the backup was changed, or something is left next to it")
	}
}

func TestRestoreFileForAStoppedServer(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	file := template(t, "Support")
	folder := filepath.Join(t.TempDir(), "new")
	id, err := RestoreFile(t.Context(), folder, file)
	if err != nil {
		t.Fatal(err)
	}
	f := openAt(t, folder)
	if db := byName(t, f, "Support"); db.id != id || db.Agent().Status != agent.StatusPaused || db.Problem() != nil {
		t.Errorf("%+v, %v", db.Agent(), db.Problem())
	}
	for name, spoil := range map[string]func(path string) error{
		"missing": os.Remove,
		"garbage": func(p string) error { return os.WriteFile(p, []byte("garbage"), 0o600) },
		"foreign": func(p string) error { return rewrite(p, "PRAGMA application_id = 1") },
		"newer":   func(p string) error { return rewrite(p, "PRAGMA user_version = 99") },
	} {
		bad := filepath.Join(t.TempDir(), "bad.db")
		copyClosed(t, bad, file)
		if err := spoil(bad); err != nil {
			t.Fatal(err)
		}
		if id, err := RestoreFile(t.Context(), folder, bad); err == nil {
			t.Errorf("%s: restored as %s", name, id)
		}
	}
	if fileCount(t, folder+"/restore*") != 0 || fileCount(t, folder+"/agents/*.db") != 2 {
		t.Error("something is left of what failed")
	}
}

// Commands that work on a data folder without its server leave that of a cluster's server
// alone: its files are copies.
func TestCopiesOfAClusterAreLeftAlone(t *testing.T) {
	path, ctx := t.TempDir(), t.Context()
	f, err := Open(Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	file, backup := f.filePath(agent.DefaultID), filepath.Join(t.TempDir(), "backup.db")
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	offline := Offline{Options{Path: path}}
	if err := errors.Join(
		offline.Backup(agent.DefaultID, backup),
		os.Mkdir(filepath.Join(path, clusterFolder), 0o700),
	); err != nil {
		t.Fatal(err)
	}
	second := func(_ any, err error) error { return err }
	for name, err := range map[string]error{
		"doctor":  second(offline.Doctor()),
		"backup":  offline.Backup(agent.DefaultID, backup+"2"),
		"restore": second(offline.Restore(ctx, backup)),
		"put":     PutFile(ctx, path, backup, "agent-x"),
		"key create": second(offline.CreateKey(
			ctx,
			agent.Key{Name: "x", Role: agent.RoleOwner, Agents: []string{"*"}},
			nil,
		)),
		"key list":   second(offline.Keys(ctx)),
		"key revoke": offline.DeleteKey(ctx, "key-x"),
		"key rotate": second(offline.RotateKey()),
		"open":       second(Open(Options{Path: t.TempDir(), Linked: file})),
	} {
		if !errors.Is(err, errClusterFolder) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if files, err := os.ReadDir(filepath.Dir(file)); err != nil || len(files) != 1 {
		t.Errorf("the folder has %v, %v", files, err)
	}
}
