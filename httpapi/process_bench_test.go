package httpapi

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"satchel/agent"
	"satchel/store"
)

// process is the product as users run it: a binary of its own.
type process struct {
	cmd *exec.Cmd
	url string
}

// build compiles the program once.
func build(b *testing.B) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), "satchel")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path, "satchel")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	return path
}

// spawn starts the server and returns once it prints its address.
func spawn(b *testing.B, binary, data string, more ...string) *process {
	b.Helper()
	cmd := exec.Command(
		binary,
		append([]string{"serve", "--addr", "127.0.0.1:0", "--data", data, "--rate-limits", "off"}, more...)...,
	)
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	return &process{cmd, regexp.MustCompile(`http://\S+`).FindString(line)}
}

func (p *process) stop(b *testing.B) {
	b.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		b.Fatal(err)
	}
	if err := p.cmd.Wait(); err != nil {
		b.Fatal(err)
	}
}

func (p *process) get(b *testing.B, path string) string {
	b.Helper()
	resp, err := http.Get(p.url + path)
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		b.Fatalf("%s: %d %v %s", path, resp.StatusCode, err, text)
	}
	return string(text)
}

// resident returns the resident memory of the process, in MB; Linux only.
func (p *process) resident(b *testing.B) float64 {
	b.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kb / 1024
		}
	}
	return 0
}

// settledMemory waits until the process has released memory, and returns what it keeps.
func (p *process) settledMemory(b *testing.B) float64 {
	b.Helper()
	before := p.resident(b)
	for tick, n := time.Tick(100*time.Millisecond), 0; n < 100; n++ {
		<-tick
		if now := p.resident(b); now < before*0.8 {
			return now
		}
	}
	return p.resident(b)
}

func makeAgents(b *testing.B, data string, n int) {
	b.Helper()
	folder, err := store.Open(store.Options{Path: data})
	if err != nil {
		b.Fatal(err)
	}
	for i := range n {
		if _, err := folder.CreateAgent(b.Context(), agent.Agent{Name: fmt.Sprintf("agent-%d", i)}, ""); err != nil {
			b.Fatal(err)
		}
	}
	if err := folder.Close(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkStart measures the time from the start of the process to its first response,
// with many agents on disk: after a clean stop, and without the cache.
func BenchmarkStart(b *testing.B) {
	binary := build(b)
	for _, n := range []int{100, 1000, 10_000} {
		data := filepath.Join(b.TempDir(), "data")
		makeAgents(b, data, n)
		for name, forget := range map[string]bool{"remembered": false, "forgotten": true} {
			b.Run(fmt.Sprintf("%s-%d", name, n), func(b *testing.B) {
				var resident, idle float64
				for b.Loop() {
					if forget {
						_ = os.Remove(filepath.Join(data, "catalog.json"))
					}
					p := spawn(b, binary, data)
					p.get(b, fmt.Sprintf("/api/agents/agent-%d", n/2))
					b.StopTimer()
					resident = p.resident(b)
					idle = p.settledMemory(b)
					p.stop(b)
					b.StartTimer()
				}
				b.ReportMetric(resident, "MB")
				b.ReportMetric(idle, "MB-idle")
			})
		}
	}
}

// BenchmarkThousandAgents creates 1,000 agents and writes to each, then waits until their
// files are closed, and reports the memory at each point.
func BenchmarkThousandAgents(b *testing.B) {
	if b.N > 1 {
		return // one round is enough
	}
	p := spawn(b, build(b), filepath.Join(b.TempDir(), "data"))
	defer p.stop(b)
	empty := p.resident(b)
	for i := range 1000 {
		p.post(b, "/api/agents", fmt.Sprintf(`{"name":"a%d"}`, i))
		p.post(b, fmt.Sprintf("/api/agents/a%d/contacts", i), `{"name":"Ada"}`)
	}
	busy := p.resident(b)
	open := p.openAgents(b)
	ctx, cancel := context.WithTimeout(b.Context(), 3*time.Minute)
	defer cancel()
	for tick := time.Tick(time.Second); p.openAgents(b) > 1; {
		select {
		case <-tick:
		case <-ctx.Done():
			b.Fatal("files stay open")
		}
	}
	b.ReportMetric((busy-empty)/open, "MB/open-agent")
	b.ReportMetric(busy, "MB-busy")
	b.ReportMetric(p.resident(b), "MB-idle")
}

func (p *process) post(b *testing.B, path, body string) {
	b.Helper()
	resp, err := http.Post(p.url+path, "application/json", strings.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	if text, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusCreated {
		b.Fatalf("%s: %d %v %s", path, resp.StatusCode, err, text)
	}
}

func (p *process) openAgents(b *testing.B) float64 {
	b.Helper()
	m := regexp.MustCompile(`(?m)^satchel_open_agents (\S+)$`).FindStringSubmatch(p.get(b, "/metrics"))
	if m == nil {
		b.Fatal("no satchel_open_agents")
	}
	n, _ := strconv.ParseFloat(m[1], 64)
	return n
}
