package script

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
	"satchel/agent/child"
)

// intermediateArg makes the test binary a server whose child runs an endless script.
// It prints the child's process id and waits.
const intermediateArg = "test-intermediate"

func init() {
	if len(os.Args) != 2 || os.Args[1] != intermediateArg {
		return
	}
	p := New(Options{Size: 1, Warm: 1})
	if err := p.Start(context.Background()); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	if _, err := p.Run(context.Background(), Call{Code: "return 1"}); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(p.children()[0].PID())
	_, err := p.Run(context.Background(), Call{Code: endless, Timeout: MaxTimeout})
	fmt.Println(err)
	os.Exit(1)
}

// After kill -9 of the server its child ends, even if it was busy.
func TestChildDiesWithItsParent(t *testing.T) {
	parent := exec.Command("/proc/self/exe", intermediateArg)
	stdout, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	output, err := bufio.NewReader(stdout).ReadString('\n')
	pid, parseErr := strconv.Atoi(strings.TrimSpace(output))
	if err != nil || parseErr != nil {
		t.Fatalf("the parent printed %q, %v", output, err)
	}
	child, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(child)
	if err := parent.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	ended := []unix.PollFd{{Fd: int32(child), Events: unix.POLLIN}}
	for {
		ready, err := unix.Poll(ended, 20_000)
		if err == unix.EINTR {
			continue
		}
		if ready != 1 {
			t.Fatalf("the child is still running: %v", err)
		}
		return
	}
}

// A child has no environment and no files except the standard three, has lower
// priority, and is confined.
func TestChildHasNoEnvironment(t *testing.T) {
	t.Setenv("SATCHEL_SECRET", "x")
	open, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	p := newPool(t, Options{Size: 1, Warm: 1})
	if _, err := p.Run(t.Context(), Call{Code: "return 1"}); err != nil {
		t.Fatal(err)
	}
	proc := filepath.Join("/proc", strconv.Itoa(p.children()[0].PID()))
	if environ, err := os.ReadFile(filepath.Join(proc, "environ")); err != nil || len(environ) != 0 {
		t.Errorf("environment %q, %v", environ, err)
	}
	files, err := os.ReadDir(filepath.Join(proc, "fd"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		to, err := os.Readlink(filepath.Join(proc, "fd", f.Name()))
		if err == nil &&
			!strings.HasPrefix(to, "pipe:") &&
			!strings.HasPrefix(to, "anon_inode:") &&
			!strings.HasPrefix(to, "/sys/fs/cgroup/") &&
			!strings.HasSuffix(to, "/statm") {
			t.Errorf("file %s is %s", f.Name(), to)
		}
	}
	threads, err := os.ReadDir(filepath.Join(proc, "task"))
	if err != nil {
		t.Fatal(err)
	}
	own, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0) // 20 minus the nice value
	if err != nil {
		t.Fatal(err)
	}
	lower := strconv.Itoa(20 - own + 5)
	for _, thread := range threads {
		stat, err := os.ReadFile(filepath.Join(proc, "task", thread.Name(), "stat"))
		_, after, _ := strings.Cut(string(stat), ") ")
		if fields := strings.Fields(after); err == nil && (len(fields) < 17 || fields[16] != lower) {
			t.Errorf("a thread does not have lower priority: %s", stat)
		}
	}
	status, err := os.ReadFile(filepath.Join(proc, "status"))
	if err != nil {
		t.Fatal(err)
	}
	for name, offered := range map[string]bool{
		"NoNewPrivs:\t1": child.SupportedConfinement().NoNewPrivileges,
		"Seccomp:\t2":    child.SupportedConfinement().Seccomp,
	} {
		if offered != strings.Contains(string(status), "\n"+name+"\n") {
			t.Errorf("%q is not in its status", name)
		}
	}
	var processor unix.Rlimit
	if err := unix.Prlimit(
		p.children()[0].PID(),
		unix.RLIMIT_CPU,
		nil,
		&processor,
	); err != nil || processor.Max == unix.RLIM_INFINITY {
		t.Errorf("the child's processor time is not limited: %v", err)
	}
}
