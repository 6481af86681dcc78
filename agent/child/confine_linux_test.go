package child

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	kernel "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// trial is the confinement of a child and the targets that it then tries to access.
type trial struct {
	Confinement Confinement
	Targets     targets
}

func init() {
	roles["test-escape"] = func() {
		var given trial
		exitOn(json.NewDecoder(os.Stdin).Decode(&given))
		runtime.GOMAXPROCS(4)
		startThreads()
		exitOn(given.Confinement.apply())
		exitOn(json.NewEncoder(os.Stdout).Encode(attemptOnThreads(given.Targets)))
	}
	roles["test-work"] = work
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// threads runs functions on threads that existed before the confinement.
var threads = make(chan func())

func startThreads() {
	started := make(chan bool)
	for range 3 {
		go func() {
			runtime.LockOSThread()
			started <- true
			for f := range threads {
				f()
			}
		}()
		<-started
	}
}

// attemptOnThreads attempts every escape on the main thread, on a thread that
// existed before the confinement and on a new one.
func attemptOnThreads(p targets) map[string]string {
	escaped := attempt(p)
	for _, run := range []func(func()){func(f func()) { threads <- f }, onNewThread} {
		done := make(chan map[string]string)
		run(func() { done <- attempt(p) })
		for name, how := range <-done {
			escaped[name] = how
		}
	}
	return escaped
}

func onNewThread(f func()) {
	go func() {
		runtime.LockOSThread() // never unlocked, so that the thread ends
		f()
	}()
}

// newTargets creates what the escapes try to access.
func newTargets(t *testing.T) targets {
	t.Helper()
	p := targets{
		Parent:   os.Getpid(),
		Folder:   t.TempDir(),
		Secret:   "the key of all credentials",
		Abstract: "@satchel-" + filepath.Base(t.TempDir()) + fmt.Sprint(os.Getpid()),
	}
	for _, name := range []string{"agent.db", "spare", "master.key"} {
		if err := os.WriteFile(p.file(name), []byte(p.Secret), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(p.file("master.key"), p.file("link")); err != nil {
		t.Fatal(err)
	}
	p.Socket = p.file("socket")
	for _, name := range []string{p.Socket, p.Abstract} {
		closeAfter(t, must(net.Listen("unix", name)))
	}
	tcp := must(net.Listen("tcp", "127.0.0.1:0"))
	closeAfter(t, tcp)
	p.Port = tcp.Addr().(*net.TCPAddr).Port
	closeAfter(t, must(net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})))
	t.Cleanup(func() { os.Remove("/tmp/satchel-escape") })
	return p
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func closeAfter(t *testing.T, c interface{ Close() error }) { t.Cleanup(func() { c.Close() }) }

// escapesOf returns the escapes of a child that the kernel did not prevent.
func escapesOf(t *testing.T, c Confinement) map[string]string {
	t.Helper()
	p := newTargets(t)
	// A descriptor without Go's close-on-exec flag, as the process that starts
	// the server may leave open.
	key, err := unix.Open(p.file("master.key"), unix.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(key)
	markOpenFiles()
	child := start(t, "test-escape")
	if err := json.NewEncoder(child.Stdin).Encode(trial{c, p}); err != nil {
		t.Fatal(err)
	}
	var escaped map[string]string
	if err := json.NewDecoder(child.Stdout).Decode(&escaped); err != nil {
		t.Fatalf("%v: %v", err, child.Err())
	}
	return escaped
}

// The mechanisms that the kernel offers confine a child, each alone and all
// together. On a kernel that offers none the child still runs.
func TestConfinedChildCannotEscape(t *testing.T) {
	offered := SupportedConfinement()
	t.Logf("this kernel offers %s", offered)
	cases := []struct {
		name        string
		confinement Confinement
		holds       func(escape) bool
	}{
		{
			"all that is offered",
			offered,
			func(e escape) bool { return offered.Seccomp || e.landlockStops(offered.Landlock) },
		},
		{
			"a kernel without Landlock",
			Confinement{NoNewPrivileges: true, Seccomp: offered.Seccomp},
			func(escape) bool { return offered.Seccomp },
		},
		{
			"a kernel without seccomp",
			Confinement{NoNewPrivileges: true, Landlock: offered.Landlock},
			func(e escape) bool { return e.landlockStops(offered.Landlock) },
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			escaped := escapesOf(t, c.confinement)
			wanted, got := 0, 0
			for _, e := range escapes {
				if !c.holds(e) {
					continue
				}
				wanted++
				if how, found := escaped[e.name]; found {
					t.Errorf("%s: %s", e.name, how)
					continue
				}
				got++
			}
			t.Logf(
				"%s: %d escapes tried on three threads, %d prevented of %d that must be",
				c.confinement,
				len(escapes),
				got,
				wanted,
			)
		})
	}
}

// landlockStops reports whether some version of Landlock alone prevents the
// escape. On kernels without the fix for signals between threads, the library
// does not restrict signals.
func (e escape) landlockStops(abi int) bool {
	if errata, err := kernel.LandlockGetErrata(); abi >= 6 && (err != nil || errata&2 == 0) {
		abi = 5
	}
	return e.landlock > 0 && e.landlock <= abi
}

// Without confinement most attempts succeed, so their failure in the other tests is
// meaningful.
func TestUnconfinedChildRuns(t *testing.T) {
	escaped := escapesOf(t, Confinement{})
	t.Logf("%d escapes tried, %d succeeded", len(escapes), len(escaped))
	for _, name := range []string{
		"read master.key",
		"read /etc/passwd",
		"connect by TCP",
		"connect to an abstract socket",
		"run /bin/sh",
		"fork",
		"signal the parent",
		"map memory that can be executed",
	} {
		if _, found := escaped[name]; !found {
			t.Errorf("%q is prevented without confinement", name)
		}
	}
	if len(escaped) < len(escapes)/2 {
		t.Errorf("only %d of %d succeeded", len(escaped), len(escapes))
	}
}

const workers = 16 // few enough for the C library's stacks

// work uses what Go programs need, in a confined process.
func work() {
	limitTest()
	done := make(chan int)
	for i := range workers {
		go func() {
			runtime.LockOSThread()
			data := make([]byte, 1<<18)
			data[i] = 1
			done <- int(data[i])
		}()
	}
	sum := 0
	for range workers {
		sum += <-done
	}
	runtime.GC()
	fmt.Println(sum, Memory() > 0, ProcessorTime() > 0)
}

func TestConfinedChildWorks(t *testing.T) {
	p := start(t, "test-work")
	if output, err := io.ReadAll(p.Stdout); err != nil || string(output) != "16 true true\n" {
		t.Errorf("got %q, %v, %v", output, err, p.Err())
	}
}

func TestDoctor(t *testing.T) {
	inForce, err := ActiveConfinement(t.Context())
	if err != nil || inForce != SupportedConfinement() {
		t.Errorf("in force: %s, %v; offered: %s", inForce, err, SupportedConfinement())
	}
	findings := Doctor(t.Context())
	if len(findings) != 1 ||
		!findings[0].OK ||
		!strings.Contains(findings[0].Message, SupportedConfinement().String()) {
		t.Errorf("got %+v", findings)
	}
}
