package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// soakAgents is the number of agents in the soak test.
const soakAgents = 20

// steadyAfter is how long a run must be for growth to count: at first, files and
// connections are opened for the first time.
const steadyAfter = 15 * time.Minute

// soak puts every kind of work on a server for a long time, kills it now and then, and
// records what it uses.
type soak struct {
	t        *testing.T
	dir      string
	replicas string // where the agents' replicas are
	flags    []string
	server   *exec.Cmd
	url      atomic.Pointer[string]
	hooks    []string // the path of each agent's hook
	started  time.Time

	mu       sync.Mutex
	acked    []int // executions that hooks of each agent acknowledged
	requests int
	took     []time.Duration // since the last sample
	failures []string
	kills    []float64 // seconds
	samples  []sample
}

// sample is the server's usage at one moment.
type sample struct{ Seconds, MB, Files, Goroutines, P99 float64 }

// TestSoak runs for SATCHEL_SOAK, such as 1h. The figures, a chart of them and the
// server's log are in SATCHEL_SOAK_DIR, or in bin/soak.
func TestSoak(t *testing.T) {
	length, err := time.ParseDuration(os.Getenv("SATCHEL_SOAK"))
	if err != nil {
		t.Skip("set SATCHEL_SOAK to a duration such as 1h")
	}
	out := newFakeServices(t)
	out.set(func() { out.says = "Within two days [1]." })
	site := soakSite(t)
	s := &soak{
		t:        t,
		dir:      filepath.Join(t.TempDir(), "data"),
		replicas: filepath.Join(t.TempDir(), "replicas"),
		acked:    make([]int, soakAgents),
		hooks:    make([]string, soakAgents),
		flags:    append(installedBrowser(t), "--outbound-allow", "127.0.0.1/32", "--rate-limits", "off"),
		started:  time.Now(),
	}
	s.flags = append(s.flags, "--replicate", s.replicas)
	s.start()
	defer s.kill()
	for i := range soakAgents {
		s.setUp(i, out.URL+"/model", site)
	}
	s.run(length)
	s.report(t)
	s.settle()
	s.check(length)
}

// soakSite is a site of 40 pages.
func soakSite(t *testing.T) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(
			w,
			"<title>Page %s</title><main><p>This page says what bread number %s is made of, and when "+
				"the oven is hot for it.</p>",
			r.URL.Path,
			r.URL.Path,
		)
		for i := range 40 {
			fmt.Fprintf(w, `<a href="/%d">bread %d</a> `, i, i)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// start starts the server as a process of its own.
func (s *soak) start() {
	self, err := os.Executable()
	if err != nil {
		s.t.Fatal(err)
	}
	out := &syncBuffer{lines: make(chan struct{}, 1)}
	s.server = exec.Command(self, append([]string{"serve", "--addr", "127.0.0.1:0", "--data", s.dir}, s.flags...)...)
	s.server.Env = append(os.Environ(), asProgram+"=1")
	log, err := os.OpenFile(filepath.Join(soakDir(s.t), "server.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close() // the process has its own copy
	s.server.Stdout, s.server.Stderr = out, log
	if err := s.server.Start(); err != nil {
		s.t.Fatal(err)
	}
	limit := time.After(time.Minute)
	for {
		if m := listens.FindStringSubmatch(out.String()); m != nil {
			s.url.Store(&m[1])
			return
		}
		select {
		case <-out.lines:
		case <-limit:
			s.t.Fatalf("the server did not start within a minute: %s", out)
		}
	}
}

func (s *soak) kill() {
	_ = s.server.Process.Kill()
	_ = s.server.Wait()
}

// errDown is the error of a request without a response, because the server was killed.
var errDown = errors.New("the server is down")

// do makes a request and decodes the response. Any response other than a success fails
// the test.
func (s *soak) do(method, path string, body any) (map[string]any, error) {
	raw, _ := json.Marshal(body)
	req, err := http.NewRequestWithContext(s.t.Context(), method, *s.url.Load()+"/api"+path, bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	began := time.Now()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, errDown
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, errDown
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	s.took = append(s.took, time.Since(began))
	if resp.StatusCode >= 300 {
		err = fmt.Errorf("%s %s: %d %.300s", method, path, resp.StatusCode, text)
		s.failures = append(s.failures, err.Error())
		return nil, err
	}
	answer := map[string]any{}
	_ = json.Unmarshal(text, &answer) // a backup is not JSON
	return answer, nil
}

// must is do for a running server.
func (s *soak) must(method, path string, body any) map[string]any {
	s.t.Helper()
	answer, err := s.do(method, path, body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer
}

// setUp creates one agent with a handbook, a site, a hook, a schedule and a model.
func (s *soak) setUp(i int, model, site string) {
	of := fmt.Sprintf("/agents/soak-%d", i)
	s.must("POST", "/agents", map[string]any{"name": fmt.Sprintf("soak-%d", i)})
	s.must("PUT", of+"/settings", map[string]any{
		"llm_provider": "openai-compatible",
		"llm_model":    "m",
		"llm_base_url": model,
	})
	(&service{url: *s.url.Load() + "/api"}).call(
		s.t,
		"POST",
		of+"/sources",
		upload{"handbook.md", handbook, map[string]string{"type": "file", "name": "Handbook"}},
		201,
	)
	s.must("POST", of+"/sources/crawl", map[string]any{"url": site, "name": "Site"})
	workflow := s.must("POST", of+"/workflows", map[string]any{
		"name":   "Count",
		"status": "active",
		"nodes": []any{map[string]any{"id": "t", "type": "trigger", "data": map[string]any{"event": "webhook"}},
			map[string]any{
				"id":   "c",
				"type": "code",
				"data": map[string]any{"code": "return {n: (input.body?.n ?? 0) + 1}"},
			},
			map[string]any{"id": "w", "type": "wait", "data": map[string]any{"duration": 1}},
			map[string]any{"id": "s", "type": "sql", "data": map[string]any{"query": "SELECT count(*) FROM contacts"}}},
		"edges": []any{edge("t", "c"), edge("c", "w"), edge("w", "s")},
	})["id"].(string)
	s.hooks[i] = of + "/hooks/" + workflow
	s.must("POST", of+"/schedules", map[string]any{
		"name":            "Each minute",
		"type":            "cron",
		"cron_expression": "* * * * *",
		"callback_type":   "workflow",
		"callback_id":     workflow,
	})
}

func edge(from, to string) map[string]any { return map[string]any{"source": from, "target": to} }

// run puts the load on the server for a time, and kills it four times in the first half.
func (s *soak) run(length time.Duration) {
	ctx, cancel := context.WithTimeout(s.t.Context(), length)
	defer cancel()
	var workers sync.WaitGroup
	every := func(pause time.Duration, work func(n int, of string)) {
		workers.Go(func() {
			tick := time.NewTicker(pause)
			defer tick.Stop()
			for n := 0; ctx.Err() == nil; n++ {
				work(n, fmt.Sprintf("/agents/soak-%d", rand.IntN(soakAgents)))
				select {
				case <-tick.C:
				case <-ctx.Done():
				}
			}
		})
	}
	every(40*time.Millisecond, s.hook)
	every(50*time.Millisecond, s.records)
	every(200*time.Millisecond, s.ask)
	every(10*time.Second, func(_ int, of string) { _, _ = s.do("POST", of+"/backup", nil) })
	every(15*time.Second, s.crawlAgain)
	every(20*time.Second, s.browseOnce)
	every(length/40, func(n int, _ string) {
		if n > 0 && n <= 20 && n%5 == 0 {
			s.mu.Lock()
			s.kills = append(s.kills, time.Since(s.started).Seconds())
			s.mu.Unlock()
			s.kill()
			s.start()
		}
	})
	every(max(time.Second, length/600), func(int, string) { s.sample() })
	workers.Wait()
}

func (s *soak) hook(n int, _ string) {
	i := n % soakAgents
	if _, err := s.do("POST", s.hooks[i], map[string]any{"n": n}); err == nil {
		s.mu.Lock()
		s.acked[i]++
		s.mu.Unlock()
	}
}

func (s *soak) records(n int, of string) {
	switch n % 4 {
	case 0:
		_, _ = s.do("POST", of+"/contacts", map[string]any{"name": "Person " + strconv.Itoa(n)})
	case 1:
		_, _ = s.do("GET", of+"/contacts?limit=50&search=person", nil)
	case 2:
		_, _ = s.do("GET", of+"/workflows/executions?limit=50", nil)
	case 3:
		_, _ = s.do("POST", of+"/sources/search", map[string]any{"query": "can I bring a loaf back"})
	}
}

func (s *soak) ask(_ int, of string) {
	_, _ = s.do("POST", of+"/chat", map[string]any{"message": "Can I bring a loaf back?"})
}

// crawlAgain crawls the site of an agent again, unless a crawl is in progress.
func (s *soak) crawlAgain(_ int, of string) {
	list, err := s.do("GET", of+"/sources?type=crawl&status=ready", nil)
	if sources, _ := list["sources"].([]any); err == nil && len(sources) > 0 {
		_, _ = s.do("POST", of+"/sources/"+sources[0].(map[string]any)["id"].(string)+"/refresh", nil)
	}
}

func (s *soak) browseOnce(_ int, of string) {
	session, err := s.do("POST", of+"/browser", map[string]any{})
	if err != nil {
		return
	}
	path := of + "/browser/" + session["id"].(string)
	if _, err := s.do(
		"POST",
		path+"/execute",
		map[string]any{
			"actions": []any{
				map[string]any{"action": "evaluate", "script": "document.body.textContent = 'bread'"},
				map[string]any{"action": "screenshot"},
			},
		},
	); err == nil {
		_, _ = s.do("POST", path+"/close", nil)
	}
}

// sample reads the server's own figures.
func (s *soak) sample() {
	resp, err := http.Get(*s.url.Load() + "/metrics")
	if err != nil {
		return
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return
	}
	value := func(name string) float64 {
		for line := range strings.Lines(string(text)) {
			if rest, ok := strings.CutPrefix(line, name+" "); ok {
				v, _ := strconv.ParseFloat(strings.TrimSpace(rest), 64)
				return v
			}
		}
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.Sort(s.took)
	p99 := 0.0
	if len(s.took) > 0 {
		p99 = float64(s.took[len(s.took)*99/100].Microseconds()) / 1000
	}
	s.took = s.took[:0]
	s.samples = append(s.samples, sample{
		time.Since(s.started).Seconds(),
		value("process_resident_memory_bytes") / 1e6,
		value("process_open_fds"),
		value("go_goroutines"),
		p99,
	})
}

// settle waits up to two minutes until no execution that a hook started is left.
func (s *soak) settle() {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for range 120 {
		open := 0
		for i := range soakAgents {
			for _, status := range []string{"queued", "running"} {
				list := s.must(
					"GET",
					fmt.Sprintf("/agents/soak-%d/workflows/executions?limit=1&status=%s", i, status),
					nil,
				)
				open += int(list["meta"].(map[string]any)["total"].(float64))
			}
		}
		if open == 0 {
			return
		}
		<-tick.C
	}
	s.t.Error("some executions do not end")
}

// check checks what must hold afterwards.
func (s *soak) check(length time.Duration) {
	for _, f := range s.failures {
		s.t.Error(f)
	}
	for i, acked := range s.acked {
		list := s.must("GET", fmt.Sprintf("/agents/soak-%d/workflows/executions?limit=1&status=complete", i), nil)
		if got := int(list["meta"].(map[string]any)["total"].(float64)); got < acked {
			s.t.Errorf("agent %d acknowledged %d executions and completed %d", i, acked, got)
		}
	}
	s.kill()
	s.checkReplicas()
	var found bytes.Buffer
	self, _ := os.Executable()
	doctor := exec.Command(self, "doctor", "--data", s.dir)
	doctor.Env, doctor.Stdout = append(os.Environ(), asProgram+"=1"), &found
	_ = doctor.Run() // its exit status also reports on this machine
	for line := range strings.Lines(found.String()) {
		if strings.HasPrefix(line, "!!") && strings.Contains(line, "agent") {
			s.t.Errorf("after a kill: %s", line)
		}
	}
	if length < steadyAfter {
		return
	}
	for name, of := range map[string]func(sample) float64{
		"MB":         func(x sample) float64 { return x.MB },
		"files":      func(x sample) float64 { return x.Files },
		"goroutines": func(x sample) float64 { return x.Goroutines },
	} {
		before, after :=
			s.median(of, .55*length.Seconds(), .65*length.Seconds()),
			s.median(of, .9*length.Seconds(), length.Seconds())
		if after > 1.3*before+20 {
			s.t.Errorf("%s grew from %.0f to %.0f", name, before, after)
		}
	}
}

// checkReplicas restores every agent, which checks the files' integrity.
func (s *soak) checkReplicas() {
	self, _ := os.Executable()
	to := filepath.Join(s.t.TempDir(), "restored")
	restore := exec.Command(self, "restore", "--all", "--from", s.replicas, "--to", to)
	restore.Env = append(os.Environ(), asProgram+"=1")
	out, err := restore.CombinedOutput()
	files, _ := filepath.Glob(filepath.Join(to, "agents", "*.db"))
	if err != nil || len(files) != soakAgents+1 { // with the default agent
		s.t.Errorf("%d agents were restored, %v: %s", len(files), err, out)
	}
}

// median returns the median of a figure between two moments.
func (s *soak) median(of func(sample) float64, from, to float64) float64 {
	var values []float64
	for _, x := range s.samples {
		if x.Seconds >= from && x.Seconds < to {
			values = append(values, of(x))
		}
	}
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[len(values)/2]
}
