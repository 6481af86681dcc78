package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"satchel/agent"
	"satchel/agent/testenv"
)

func TestNothingLeaks(t *testing.T) {
	path := t.TempDir()
	cycle := func() {
		f := openAt(t, path)
		if err := f.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		var running sync.WaitGroup
		for range 10 {
			running.Go(func() {
				createContact(t, f.Default(), named("x"))
				if _, _, err := f.Default().Contacts(t.Context(), nil, Page{Limit: 1}); err != nil {
					t.Error(err)
				}
			})
		}
		running.Wait()
		closeFolder(t, f)
	}
	cycle()
	goroutines, descriptors := runtime.NumGoroutine(), openDescriptors(t)
	for range 5 {
		cycle()
	}
	// The scheduler may still be ending goroutines that have finished their work.
	for range 1000 {
		if runtime.NumGoroutine() <= goroutines {
			break
		}
		runtime.Gosched()
	}
	if now := runtime.NumGoroutine(); now > goroutines {
		stacks := make([]byte, 1<<16)
		t.Errorf("%d goroutines, %d before\n%s", now, goroutines, stacks[:runtime.Stack(stacks, true)])
	}
	if now := openDescriptors(t); now > descriptors {
		t.Errorf("%d descriptors, %d before", now, descriptors)
	}
}

func openDescriptors(t testing.TB) int {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(open)
}

// asNobody runs fn with the rights of a user who owns nothing. It changes the thread
// only, see setfsuid(2), and the thread ends afterwards.
func asNobody(t *testing.T, fn func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked, so that the thread ends here
		if os.Getuid() == 0 {
			if err := syscall.Setfsuid(65534); err != nil {
				t.Error(err)
				return
			}
		}
		fn()
	}()
	<-done
}

func TestReadOnlyFolder(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "data")
	f := openAt(t, path)
	closeFolder(t, f)
	for _, p := range []string{filepath.Dir(path), path, filepath.Join(path, "agents")} {
		if err := os.Chmod(p, 0o555); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(p, 0o700) })
	}
	for _, p := range []string{"master.key", "satchel.lock"} {
		if err := os.Chmod(filepath.Join(path, p), 0o444); err != nil {
			t.Fatal(err)
		}
	}
	openPath(t, path)
	asNobody(t, func() {
		f, err := Open(Options{Path: path})
		if err == nil {
			t.Error("a folder that cannot be written was opened")
			_ = f.Close()
		} else if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), path) {
			t.Errorf("the error does not help: %v", err)
		}
	})
}

// A backup may be on a medium that cannot be written.
func TestRestoreFileFromAReadOnlyPlace(t *testing.T) {
	t.Parallel()
	file := template(t, "Support")
	dir := filepath.Join(t.TempDir(), "medium")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	medium := filepath.Join(dir, "backup.db")
	copyClosed(t, medium, file)
	if err := errors.Join(os.Chmod(medium, 0o444), os.Chmod(dir, 0o555)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(dir, 0o755) })
	folder := filepath.Join(t.TempDir(), "data")
	for _, d := range []string{folder, filepath.Join(folder, "agents")} {
		if err := errors.Join(os.Mkdir(d, 0o777), os.Chmod(d, 0o777)); err != nil {
			t.Fatal(err)
		}
	}
	openPath(t, dir, folder)
	asNobody(t, func() {
		if _, err := RestoreFile(t.Context(), folder, medium); err != nil {
			t.Error(err)
		}
	})
	if fileCount(t, medium+"*") != 1 || fileCount(t, folder+"/agents/*.db") != 1 {
		t.Error("not restored, or something is left next to the backup")
	}
}

// TestUnreadableFiles: who may not open a file reads that, whatever opens it.
func TestUnreadableFiles(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "data")
	f := openAt(t, path)
	closeFolder(t, f)
	file := filepath.Join(path, "agents", "default.db")
	for _, p := range []string{path, filepath.Join(path, "agents")} {
		if err := os.Chmod(p, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	openPath(t, file)
	for _, mode := range []os.FileMode{0o444, 0} {
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		asNobody(t, func() {
			findings, err := Doctor(path, [][]byte{make([]byte, 32)})
			i := slices.IndexFunc(findings, func(f agent.Finding) bool { return f.Subject == "default.db" })
			if err != nil ||
				i < 0 ||
				findings[i].OK ||
				!strings.Contains(findings[i].Message, "may not read and write") {
				t.Errorf("mode %o: doctor finds %+v, %v", mode, findings, err)
			}
			if mode != 0 {
				return
			}
			if _, err := RestoreFile(t.Context(), path, file); !errors.Is(err, fs.ErrPermission) {
				t.Errorf("restore: %v", err)
			}
			if err := BackupFile(path, "default", filepath.Join(path, "b.db")); !errors.Is(err, fs.ErrPermission) ||
				strings.Contains(err.Error(), "\n") {
				t.Errorf("backup: %v", err)
			}
		})
	}
}

// openPath lets everyone enter the folders, up to that of temporary files.
func openPath(t *testing.T, paths ...string) {
	t.Helper()
	temporary := filepath.Clean(os.TempDir())
	for _, path := range paths {
		for d := filepath.Dir(path); d != "/"; d = filepath.Dir(d) {
			info, err := os.Stat(d)
			if err != nil || info.Mode().Perm()&0o005 == 0o005 || os.Getuid() != 0 {
				continue
			}
			if !strings.HasPrefix(d, temporary+"/") {
				testenv.Need(t, "a TMPDIR that every user may enter", errors.New(d+" may not be entered"))
			}
			if err := os.Chmod(d, info.Mode().Perm()|0o055); err != nil {
				t.Fatal(err)
			}
		}
	}
}
