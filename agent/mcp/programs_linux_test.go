package mcp

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"satchel/agent"
)

// TestProgramIsBounded: a program that is idle or uses too much memory is ended with
// all processes that it started, and so is the longest unused one when there are too
// many.
func TestProgramIsBounded(t *testing.T) {
	c, ps := newPrograms(t, func(ps *Programs) { ps.limits.memory, ps.limits.sweep = 200<<20, 20*time.Millisecond })
	helper := callProgram(t, c, "helper", `{}`)
	ps.mu.Lock()
	p := ps.running[programKey{"default", "mcp-server"}]
	ps.mu.Unlock()
	if used := p.memory(); used < 10<<20 || used > 200<<20 {
		t.Errorf("the program uses %d bytes", used)
	}
	// the program may be ended during the call
	_, _ = c.Call(t.Context(), programServer("server"), "grow", json.RawMessage(`{"mb":256}`))
	<-p.ended
	waitEnded(t, helper)
	_, err := c.Tools(t.Context(), programServer("server"))
	if got := agent.Explain(err); !strings.Contains(got, "it used more than 200 MB of memory") {
		t.Errorf("got error %v", err)
	}

	ps.mu.Lock()
	clear(ps.failed)
	ps.limits.idle = 0
	ps.mu.Unlock()
	callProgram(t, c, "pid", `{}`)
	ps.mu.Lock()
	p = ps.running[programKey{"default", "mcp-server"}]
	ps.mu.Unlock()
	if p != nil {
		<-p.ended
	}
	ps.mu.Lock()
	if len(ps.failed) > 0 || len(ps.running) > 0 {
		t.Errorf("an idle program: %v, %v", ps.failed, ps.running)
	}
	for i := range maxPrograms {
		ps.running[programKey{"x", fmt.Sprint(i)}] = &process{
			programs: ps,
			key:      programKey{"x", fmt.Sprint(i)},
			users:    1,
			ready:    make(chan struct{}),
			ended:    make(chan struct{}),
		}
	}
	_, _, err = func() (*process, bool, error) {
		ps.mu.Unlock()
		return ps.find(*programServer("server").Program)
	}()
	if got := agent.Explain(err); !strings.Contains(got, "20 MCP servers run as programs already") {
		t.Errorf("too many programs: %v", err)
	}
	ps.mu.Lock()
	ps.running[programKey{"x", "3"}].users = 0
	ps.mu.Unlock()
	if _, begin, err := ps.find(*programServer("server").Program); err != nil || !begin {
		t.Errorf("in place of an unused program: %v", err)
	}
	ps.mu.Lock()
	clear(ps.running)
	ps.mu.Unlock()
}

// waitEnded waits until a process has ended.
func waitEnded(t *testing.T, pid string) {
	t.Helper()
	id, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.PidfdOpen(id, 0)
	if errors.Is(err, unix.ESRCH) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 20_000)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if n != 1 || err != nil {
			t.Errorf("process %s is still running: %v", pid, err)
		}
		return
	}
}

// TestProgramsDieWithThisProcess kills a process that runs a program.
func TestProgramsDieWithThisProcess(t *testing.T) {
	if os.Getenv("TEST_PARENT") != "" {
		c, _ := newPrograms(t, nil)
		fmt.Println("PID", callProgram(t, c, "pid", `{}`))
		select {}
	}
	parent := exec.Command(os.Args[0], "-test.run=^TestProgramsDieWithThisProcess$")
	parent.Env = append(os.Environ(), "TEST_PARENT=1", "TMPDIR="+t.TempDir()) // which it cannot clear
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	var pid string
	for lines := bufio.NewScanner(out); pid == "" && lines.Scan(); {
		pid, _ = strings.CutPrefix(lines.Text(), "PID ")
		if !strings.HasPrefix(lines.Text(), "PID ") {
			pid = ""
		}
	}
	_ = parent.Process.Kill()
	_ = parent.Wait()
	waitEnded(t, pid)
}
