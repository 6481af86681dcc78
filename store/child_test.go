package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// child returns a command that plays a child's role in a process of its own.
func child(t testing.TB, role string, env ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(append(os.Environ(), childRole+"="+role), env...)
	cmd.Stderr = os.Stderr
	return cmd
}

func init() { children["copy"] = copyFolder }

// copyByChild copies a folder's files in another process: reading them in this one would
// release SQLite's locks.
func copyByChild(t testing.TB, from, to string) {
	t.Helper()
	if out, err := child(t, "copy", "COPY_FROM="+from, "COPY_TO="+to).Output(); err != nil {
		t.Fatalf("copy: %v\n%s", err, out)
	}
}

func copyFolder() {
	from, to := os.Getenv("COPY_FROM"), os.Getenv("COPY_TO")
	entries, err := os.ReadDir(from)
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), "-shm") {
			continue
		}
		err = errors.Join(err, copyOne(filepath.Join(to, e.Name()), filepath.Join(from, e.Name())))
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func copyOne(to, from string) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, src)
	return errors.Join(err, dst.Close())
}
