package child

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func init() {
	roles["test-parent"] = parent
	roles["test-nice-parent"] = niceParent
	roles["test-limited"] = func() {
		limitTest()
		LowerPriority(5)
		hang()
	}
}

// parent starts a child that hangs, prints its process id, and waits.
func parent() {
	p, err := Start("test-hang")
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(p.PID())
	fmt.Println(p.Err())
}

// niceParent lowers its priority below the one of most children, starts a child, and
// prints the child's process id once that has lowered its own.
func niceParent() {
	LowerPriority(8)
	p, err := Start("test-limited")
	if err == nil {
		_, err = bufio.NewReader(p.Stdout).ReadString('\n')
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(p.PID())
	fmt.Println(p.Err())
}

// The kernel kills a child whose parent was killed.
func TestChildDiesWithItsParent(t *testing.T) {
	parent := start(t, "test-parent")
	output, err := bufio.NewReader(parent.Stdout).ReadString('\n')
	pid, parseErr := strconv.Atoi(strings.TrimSpace(output))
	if err != nil || parseErr != nil {
		t.Fatalf("the parent printed %q, %v", output, err)
	}
	child, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(child)
	parent.Kill()
	_ = parent.Err()
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

// A descriptor opened without Go's close-on-exec flag is not inherited either.
func TestChildInheritsNothing(t *testing.T) {
	open, err := unix.Open(os.Args[0], unix.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(open)
	markOpenFiles()
	p := start(t, "test-limited")
	if _, err := bufio.NewReader(p.Stdout).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join("/proc", strconv.Itoa(p.PID()), "fd")
	files, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		to, err := os.Readlink(filepath.Join(folder, f.Name()))
		if err == nil && !ownFile(to) {
			t.Errorf("file %s is %s", f.Name(), to)
		}
	}
}

// ownFile reports whether a child, or the Go runtime in it, opens this file
// itself.
func ownFile(name string) bool {
	return strings.HasPrefix(name, "pipe:") || strings.HasPrefix(name, "anon_inode:") ||
		strings.HasPrefix(name, "/sys/fs/cgroup/") || strings.HasSuffix(name, "/statm")
}

func TestKernelLimits(t *testing.T) {
	p := start(t, "test-limited")
	if _, err := bufio.NewReader(p.Stdout).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	want := map[int]uint64{unix.RLIMIT_CPU: 10, unix.RLIMIT_CORE: 0, unix.RLIMIT_FSIZE: 0}
	for resource, most := range want {
		var limit unix.Rlimit
		if err := unix.Prlimit(p.PID(), resource, nil, &limit); err != nil || limit.Max != most {
			t.Errorf("limit %d is %d, %v; want %d", resource, limit.Max, err, most)
		}
	}
	var space unix.Rlimit
	if err := unix.Prlimit(p.PID(), unix.RLIMIT_AS, nil, &space); err != nil ||
		raceMemory == 0 && space.Max == unix.RLIM_INFINITY {
		t.Errorf("the address space is not limited: %v", err)
	}
	if nice, want := niceOf(t, p.PID()), min(currentNice()+5, 19); nice != want {
		t.Errorf("the child's nice is %d, want %d", nice, want)
	}
}

func niceOf(t *testing.T, pid int) int {
	t.Helper()
	priority, err := syscall.Getpriority(syscall.PRIO_PROCESS, pid)
	if err != nil {
		t.Fatal(err)
	}
	return 20 - priority
}

// A child of a program that runs with a low priority has a lower one.
func TestPriorityIsRelative(t *testing.T) {
	parent := start(t, "test-nice-parent")
	output, err := bufio.NewReader(parent.Stdout).ReadString('\n')
	pid, parseErr := strconv.Atoi(strings.TrimSpace(output))
	if err != nil || parseErr != nil {
		t.Fatalf("the parent printed %q, %v", output, err)
	}
	if nice, want := niceOf(t, pid), min(niceOf(t, parent.PID())+5, 19); nice != want {
		t.Errorf("the child's nice is %d, want %d", nice, want)
	}
}

// A program whose file was replaced while it is running still starts itself.
func TestExecutableIsThisOne(t *testing.T) {
	out, err := exec.Command(executable(), "-test.list", "^TestExecutableIsThisOne$").Output()
	if err != nil || !strings.Contains(string(out), "TestExecutableIsThisOne") {
		t.Errorf("got %s, %v", out, err)
	}
}
