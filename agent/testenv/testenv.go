// Package testenv is for tests that need what a machine may lack: such a test is skipped,
// or fails if SATCHEL_TEST_ALL is set.
package testenv

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
)

var (
	mu      sync.Mutex
	missing = map[string]bool{} // guarded by mu
	skipped = map[string]bool{} // names of tests; guarded by mu
)

// All reports whether every test must run. Tests then install what they can.
func All() bool { return os.Getenv("SATCHEL_TEST_ALL") != "" }

// Need ends a test if what it needs is missing, for the reason err.
func Need(t testing.TB, what string, err error) {
	t.Helper()
	if err == nil {
		return
	}
	if All() {
		t.Fatalf("%s: %v", what, err)
	}
	test, _, _ := strings.Cut(t.Name(), "/")
	mu.Lock()
	missing[what], skipped[test] = true, true
	mu.Unlock()
	t.Skipf("needs %s: %v", what, err)
}

// Program ends a test if a program is missing, which Debian has in a package of the same
// name.
func Program(t testing.TB, name string) {
	t.Helper()
	_, err := exec.LookPath(name)
	if err != nil {
		err = fmt.Errorf("%w; run: sudo apt-get install -y %s", err, name)
	}
	Need(t, name, err)
}

// Run runs the tests of a package, and prints one line about those that were skipped for
// what is missing. It returns the exit status.
func Run(m *testing.M) int {
	code := m.Run()
	if len(skipped) > 0 {
		pkg := "./..."
		if info, ok := debug.ReadBuildInfo(); ok {
			pkg = strings.TrimSuffix(info.Path, ".test")
		}
		report(summary(pkg))
	}
	return code
}

func summary(pkg string) string {
	return fmt.Sprintf(
		"%s: skipped %d tests, which need %s; to install it and run them: SATCHEL_TEST_ALL=1 go test %s\n",
		pkg,
		len(skipped),
		strings.Join(slices.Sorted(maps.Keys(missing)), ", "),
		pkg,
	)
}

// report prints a line. "go test ./..." discards what a package that passes has printed,
// so the line is also written to go's own errors, unless they are a file, in which it
// could overwrite others.
func report(line string) {
	fmt.Fprint(os.Stderr, line)
	if testing.Verbose() {
		return
	}
	terminal := filepath.Join("/proc", fmt.Sprint(os.Getppid()), "fd/2")
	of, err := os.Stat(terminal)
	own, ownErr := os.Stderr.Stat()
	if err != nil ||
		ownErr != nil ||
		os.SameFile(of, own) ||
		of.Mode()&(fs.ModeNamedPipe|fs.ModeCharDevice) == 0 {
		return
	}
	if to, err := os.OpenFile(terminal, os.O_WRONLY, 0); err == nil {
		_, _ = to.WriteString(line)
		_ = to.Close()
	}
}
