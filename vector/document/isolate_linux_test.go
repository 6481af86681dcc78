package document

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
	"satchel/agent"
)

// intermediateArg makes the test binary start a child, print its process id,
// and wait.
const intermediateArg = "test-intermediate"

func init() {
	if len(os.Args) != 2 || os.Args[1] != intermediateArg {
		return
	}
	cmd := exec.Command(childExecutable(), childArg)
	cmd.Env = []string{}
	cmd.Stdin = os.Stdin
	cmd.SysProcAttr = childAttributes()
	if err := cmd.Start(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(cmd.Process.Pid)
	_ = cmd.Wait()
	os.Exit(0)
}

// The kernel kills a child whose parent was killed, even though the test keeps
// the child's input open.
func TestChildDiesWithItsParent(t *testing.T) {
	parent := exec.Command(childExecutable(), intermediateArg)
	input, stdin, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	parent.Stdin = input
	stdout, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	input.Close()
	buf := make([]byte, 100)
	n, _ := stdout.Read(buf)
	pid, err := strconv.Atoi(strings.TrimSpace(string(buf[:n])))
	if err != nil {
		t.Fatalf("the parent says %q", buf[:n])
	}
	child, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(child)
	writeTask(t, stdin, testHang)
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
			t.Fatalf("the child lives on: %v", err)
		}
		return
	}
}

// One allocation too large for the watchdog to see it coming fails at once.
func TestAddressSpaceIsBounded(t *testing.T) {
	in := input{data: []byte("x"), limits: Limits{}.orDefaults()}
	_, err := isolated(testGulp, wholeMarkdown)(context.Background(), in)
	if agent.ErrorCode(err) != CodeBrokenFile {
		t.Errorf("got %v", err)
	}
}
