package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"satchel/agent"
)

func masterKeys(t testing.TB, folder string) int {
	t.Helper()
	keys, err := readMasterFile(folder)
	if err != nil {
		t.Fatal(err)
	}
	return len(keys)
}

// sealedFolder is a closed folder with n agents that have a credential each.
func sealedFolder(t testing.TB, n int, keys ...[]byte) string {
	t.Helper()
	f := openAt(t, t.TempDir(), keys...)
	for i := range n {
		setCredential(t, createAgent(t, f, fmt.Sprintf("a%d", i)), fmt.Sprintf("sk-%d", i))
	}
	closeFolder(t, f)
	return f.Path()
}

func wantCredentials(t *testing.T, folder string, n int, keys ...[]byte) {
	t.Helper()
	f := openAt(t, folder, keys...)
	defer closeFolder(t, f)
	for i := range n {
		got, err := byName(t, f, fmt.Sprintf("a%d", i)).SettingsCredential(
			t.Context(),
			"openai_api_key",
			agent.OpenAIAPI,
		)
		if got != fmt.Sprintf("sk-%d", i) || err != nil {
			t.Errorf("credential of a%d: %q, %v", i, got, err)
		}
	}
}

func TestRotateKey(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	folder := sealedFolder(t, 3)
	before, err := readMasterFile(folder)
	if err != nil {
		t.Fatal(err)
	}
	n, err := RotateKey(Options{Path: folder})
	if err != nil || n != 3 {
		t.Fatalf("%d, %v", n, err)
	}
	after, err := readMasterFile(folder)
	if err != nil || len(after) != 1 || string(after[0]) == string(before[0]) {
		t.Errorf("%d keys, %v", len(after), err)
	}
	wantCredentials(t, folder, 3)
	f := openAt(t, folder, before[0])
	_, err = byName(t, f, "a0").SettingsCredential(t.Context(), "openai_api_key", agent.OpenAIAPI)
	wantCode(t, err, agent.CodeConflict)
	if _, err := RotateKey(Options{Path: folder}); !errors.Is(err, ErrLocked) {
		t.Errorf("while a server is running: %v", err)
	}
}

// After a kill between any of its steps, all credentials open, and the rotation can be
// repeated.
func TestRotateKeyIsInterrupted(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	for done := range 4 {
		folder := sealedFolder(t, 3)
		f, err := prepareFolder(Options{Path: folder})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(f.load(), f.addMasterKey()); err != nil {
			t.Fatal(err)
		}
		for i := range done {
			if _, err := f.resealAll(byName(t, f, fmt.Sprintf("a%d", i))); err != nil {
				t.Fatal(err)
			}
		}
		closeFolder(t, f) // interrupted here
		if n := masterKeys(t, folder); n != 2 {
			t.Fatalf("%d keys", n)
		}
		wantCredentials(t, folder, 3)
		if n, err := RotateKey(Options{Path: folder}); err != nil || n != 3 {
			t.Errorf("again: %d, %v", n, err)
		}
		if n := masterKeys(t, folder); n != 1 {
			t.Errorf("%d keys are left", n)
		}
		wantCredentials(t, folder, 3)
	}
}

// A kill while the key file is written leaves either the old file or the new one.
func TestKeyFileIsReplacedAtomically(t *testing.T) {
	t.Parallel()
	folder := sealedFolder(t, 1)
	if err := os.WriteFile(masterPath(folder)+".new", []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	wantCredentials(t, folder, 1)
	if _, err := RotateKey(Options{Path: folder}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(masterPath(folder) + ".new"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
	wantCredentials(t, folder, 1)
}

func TestRotateKeyWithGivenKeys(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	first, second := randomKey(), randomKey()
	folder := sealedFolder(t, 2, first)
	if n, err := RotateKey(Options{Path: folder, MasterKeys: [][]byte{second, first}}); err != nil || n != 2 {
		t.Fatalf("%d, %v", n, err)
	}
	wantCredentials(t, folder, 2, second)
	if _, err := os.Stat(masterPath(folder)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a key file was created: %v", err)
	}
}

func TestRotateKeyWithARefusedAgent(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	folder := sealedFolder(t, 2)
	if err := os.WriteFile(filepath.Join(folder, "agents", "bad.db"), []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_, err := RotateKey(Options{Path: folder})
		if agent.ErrorCode(err) != agent.CodeAgentDamaged || !strings.Contains(err.Error(), "bad") {
			t.Errorf("%v", err)
		}
		if n := masterKeys(t, folder); n != 1 {
			t.Errorf("%d keys", n)
		}
	}
	wantCredentials(t, folder, 2)
}

// A credential that none of the given keys opens was locked before, and does not stop the
// others.
func TestRotateKeySkipsLockedCredentials(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	folder := sealedFolder(t, 2)
	copyClosed(t, filepath.Join(folder, "agents", "agent-new.db"), template(t, "Support"))
	if n, err := RotateKey(Options{Path: folder}); err != nil || n != 2 {
		t.Fatalf("%d, %v", n, err)
	}
	wantCredentials(t, folder, 2)
	s, err := byName(t, openAt(t, folder), "Support").Settings(t.Context())
	if err != nil || len(s.Locked) != 1 {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestDoctor(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	f := openFolder(t)
	sound := createAgent(t, f, "Support")
	setCredential(t, sound, "sk-1")
	put := func(name string, data []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(f.agentsPath(), name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	copyClosed(t, f.filePath("copied"), template(t, "Other"))
	unpackFixture(t, fileVersion()-1, f.filePath("older"))
	good, err := os.ReadFile(template(t, "Cut"))
	if err != nil {
		t.Fatal(err)
	}
	put("cut.db", good[:len(good)/2])
	put("empty.db", nil)
	put("text.db", []byte("hello"))
	put("note.txt", []byte("hello"))
	put("odd name.db", good)
	for id, script := range map[string]string{
		"newer":   "PRAGMA user_version = 99",
		"foreign": "PRAGMA application_id = 7",
		"gone":    "DELETE FROM _agent",
	} {
		put(id+".db", good)
		if err := rewrite(f.filePath(id), script); err != nil {
			t.Fatal(err)
		}
	}
	torn := append([]byte(nil), good...)
	copy(torn[len(torn)-4096:], make([]byte, 100))
	for i := 20 * 4096; i < 21*4096; i++ {
		torn[i] = 0xa5
	}
	put("torn.db", torn)
	want := map[string]string{
		f.Path():         "ok in use by a running server",
		"master key":     "ok present",
		sound.id + ".db": fmt.Sprintf(`ok sound, agent "Support", active, file version %d`, fileVersion()),
		"default.db":     `ok sound, agent "default"`,
		"copied.db":      "with another master key: 1",
		"older.db": fmt.Sprintf(
			"file version %d (%d once it is opened), copied here",
			fileVersion()-1,
			fileVersion(),
		),
		"cut.db":      "damaged",
		"empty.db":    "damaged",
		"text.db":     "damaged",
		"newer.db":    "version 99",
		"foreign.db":  "left alone",
		"gone.db":     "damaged",
		"note.txt":    "does not belong",
		"odd name.db": "does not belong",
		"torn.db":     "damaged",
	}
	check := func() {
		t.Helper()
		before := fileStamps(t, f, want)
		findings, err := Doctor(f.Path(), nil)
		if err != nil || len(findings) != len(want) {
			t.Fatalf("%d findings of %d, %v: %+v", len(findings), len(want), err, findings)
		}
		for _, x := range findings {
			text := x.Message
			if x.OK {
				text = "ok " + text
			}
			if w, known := want[x.Subject]; !known || !strings.Contains(text, w) || strings.HasPrefix(w, "ok") != x.OK {
				t.Errorf("%s: %s, want %s", x.Subject, text, w)
			}
		}
		if after := fileStamps(t, f, want); after != before {
			t.Error("the doctor changed something")
		}
	}
	check()
	createContact(t, sound, named("the server works on"))
	closeFolder(t, f)
	want[f.Path()] = "ok no server is running on it"
	check()
	if err := os.Chmod(masterPath(f.Path()), 0o644); err != nil {
		t.Fatal(err)
	}
	want["master key"] = "chmod 600"
	check()
	if err := os.Remove(masterPath(f.Path())); err != nil {
		t.Fatal(err)
	}
	want["master key"], want[sound.id+".db"] = "missing", "with another master key: 1"
	check()
	if findings, err := Doctor(filepath.Join(t.TempDir(), "none"), nil); err != nil ||
		len(findings) != 1 ||
		!findings[0].OK {
		t.Errorf("a folder that is not there: %+v, %v", findings, err)
	}
}

// fileStamps returns the sizes and times of the files, to detect changes.
func fileStamps(t *testing.T, f *Folder, files map[string]string) string {
	t.Helper()
	var all []string
	for name := range files {
		info, err := os.Stat(filepath.Join(f.agentsPath(), name))
		if err == nil {
			all = append(all, name+" "+fileStamp(info))
		}
	}
	slices.Sort(all)
	return fmt.Sprint(all, fileCount(t, f.agentsPath()+"/*"))
}

func TestDoctorThroughALink(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	closeFolder(t, f)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(f.Path(), link); err != nil {
		t.Fatal(err)
	}
	findings, err := Doctor(link, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range findings {
		if !x.OK || strings.Contains(x.Message, "copied") {
			t.Errorf("%+v", x)
		}
	}
}
