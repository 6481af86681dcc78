package child

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"satchel/agent/testenv"
)

// The roles in which the test binary can be started.
var roles = map[string]func(){
	"test-environment": func() { fmt.Print(strings.Join(os.Environ(), "\n")) },
	"test-echo":        func() { _, _ = io.Copy(os.Stdout, os.Stdin) },
	"test-fail": func() {
		fmt.Fprintln(os.Stderr, "no luck")
		os.Exit(1)
	},
	"test-panic": func() { panic("no luck") },
	"test-recurse": func() {
		debug.SetMaxStack(1 << 20)
		fmt.Print(recurse(0))
	},
	"test-eat": allocate,
	"test-gulp": func() {
		limitTest()
		allocated = append(allocated, make([]byte, 64<<30))
	},
	"test-hang": hang,
}

var testLimits = Limits{Memory: 64 << 20, CPU: 10 * time.Second}

var allocated [][]byte

func limitTest() {
	if err := testLimits.Apply(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func recurse(depth int) int {
	if depth < 0 {
		return 0
	}
	return recurse(depth+1) + 1
}

func allocate() {
	limitTest()
	most := Memory() + testLimits.Memory
	go WatchMemory(func() uint64 { return most })
	for {
		allocated = append(allocated, []byte(strings.Repeat("x", 1<<20)))
	}
}

func hang() {
	fmt.Println("hanging")
	for {
		runtime.Gosched()
	}
}

func TestMain(m *testing.M) {
	if RunChild(os.Args[1:]) {
		return
	}
	if len(os.Args) == 2 {
		if run, ok := roles[os.Args[1]]; ok {
			run()
			return
		}
	}
	os.Exit(testenv.Run(m))
}

// start starts the test binary in a role. The child ends with the test.
func start(t testing.TB, role string) *Process {
	t.Helper()
	runtime.LockOSThread()
	p, err := Start(role)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Close()
		runtime.UnlockOSThread()
	})
	return p
}

func TestChildHasNoEnvironment(t *testing.T) {
	t.Setenv("SATCHEL_SECRET", "x")
	p := start(t, "test-environment")
	output, err := io.ReadAll(p.Stdout)
	given := string(output) != ""
	if runtime.GOOS == "windows" { // which adds variables of its own, such as SystemRoot
		given = strings.Contains(string(output), "SATCHEL")
	}
	if err != nil || given {
		t.Errorf("the child printed %q, %v", output, err)
	}
	if err := p.Err(); err != nil {
		t.Error(err)
	}
}

func TestChildReadsAndWritesPipes(t *testing.T) {
	p := start(t, "test-echo")
	if _, err := io.WriteString(p.Stdin, "hello\n"); err != nil {
		t.Fatal(err)
	}
	if output, err := bufio.NewReader(p.Stdout).ReadString('\n'); err != nil || output != "hello\n" {
		t.Errorf("got %q, %v", output, err)
	}
	if !p.Alive() {
		t.Error("a running child is not alive")
	}
	p.Close()
	if p.Alive() {
		t.Error("a closed child is alive")
	}
	p.Kill()
	p.Close()
	if _, err := p.Stdin.Write([]byte("x")); !errors.Is(err, os.ErrClosed) {
		t.Errorf("the input of a closed child: %v", err)
	}
}

func TestChildFails(t *testing.T) {
	cases := []struct {
		role        string
		message     string
		outOfMemory bool
	}{
		{"test-fail", "no luck", false},
		{"test-panic", "no luck", false},
		{"test-recurse", "stack exceeds", true},
		{"test-eat", "", true},
		{"test-gulp", "out of memory", true},
	}
	for _, c := range cases {
		t.Run(c.role, func(t *testing.T) {
			if c.role == "test-gulp" && (runtime.GOOS != "linux" || raceMemory > 0) {
				t.Skip("the address space is not limited here")
			}
			p := start(t, c.role)
			var status *exec.ExitError
			if err := p.Err(); !errors.As(err, &status) || !strings.Contains(err.Error(), c.message) {
				t.Errorf("got %v", err)
			}
			if p.OutOfMemory() != c.outOfMemory {
				t.Errorf("out of memory: %v", p.OutOfMemory())
			}
		})
	}
}

// A program that does not check its role would start itself endlessly.
func TestStartRefusesItself(t *testing.T) {
	args := os.Args
	t.Cleanup(func() { os.Args = args })
	os.Args = []string{"satchel", "test-echo"}
	if p, err := Start("test-echo"); err == nil {
		p.Close()
		t.Error("a child starts a child in the same role")
	}
}

func TestStderrIsBounded(t *testing.T) {
	var h head
	for range 100 {
		if n, err := h.Write(make([]byte, 999)); n != 999 || err != nil {
			t.Fatal(n, err)
		}
	}
	if n := len(h.bytes()); n != maxHead {
		t.Errorf("%d bytes of stderr are kept", n)
	}
}

func TestHasRole(t *testing.T) {
	for _, args := range [][]string{nil, {"serve"}, {"role", "x"}, {"x", "role"}} {
		if HasRole("role", args) {
			t.Errorf("%q has a role", args)
		}
	}
	if !HasRole("role", []string{"role"}) {
		t.Error("the role of a child is not recognized")
	}
}

func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		p := start(b, "test-environment")
		if err := p.Err(); err != nil {
			b.Fatal(err)
		}
	}
}
