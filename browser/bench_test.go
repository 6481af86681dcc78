package browser

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/playwright-community/playwright-go"

	"satchel/agent"
)

// processTree returns the processes of a session's Chromium.
func processTree(t testing.TB, c *chromium) (pids []int) {
	t.Helper()
	root := c.folder.pid(chromiumName)
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	parents := map[int]int{}
	for _, path := range stats {
		raw, err := os.ReadFile(path)
		if err != nil {
			continue // it has just ended
		}
		_, rest, _ := bytes.Cut(raw, []byte(") "))
		fields := strings.Fields(string(rest))
		pid, err := strconv.Atoi(strings.Split(path, "/")[2])
		if err != nil || len(fields) < 2 || fields[0] == "Z" {
			continue
		}
		parents[pid], _ = strconv.Atoi(fields[1])
	}
	for pid := range parents {
		for p := pid; p > 1; p = parents[p] {
			if p == root {
				pids = append(pids, pid)
				break
			}
		}
	}
	return pids
}

// pss returns the proportional set size of processes in MB: memory that they share
// is divided among them.
func pss(t testing.TB, pids []int) float64 {
	t.Helper()
	total := 0
	for _, pid := range pids {
		f, err := os.Open(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		if err != nil {
			continue // it has just ended
		}
		for lines := bufio.NewScanner(f); lines.Scan(); {
			if rest, ok := strings.CutPrefix(lines.Text(), "Pss:"); ok {
				kb, err := strconv.Atoi(strings.Fields(rest)[0])
				if err != nil {
					t.Fatal(err)
				}
				total += kb
			}
		}
		f.Close()
	}
	return float64(total) / 1024
}

// BenchmarkOpen opens more sessions, ready for actions, and closes them. The
// baseline is Playwright alone in the same Chromium: a profile and a tab.
func BenchmarkOpen(b *testing.B) {
	browser, db := newBrowser(b, nil)
	first := openIn(b, browser, db, agent.SessionOptions{})
	times := map[string][]time.Duration{}
	for b.Loop() {
		start := time.Now()
		row, err := browser.Create(b.Context(), db, agent.SessionOptions{})
		if err != nil {
			b.Fatal(err)
		}
		times["session"] = append(times["session"], time.Since(start))
		start = time.Now()
		if _, err := browser.Close(b.Context(), db, row.ID); err != nil {
			b.Fatal(err)
		}
		times["close"] = append(times["close"], time.Since(start))
		start = time.Now()
		bare, err := first.chromium.browser.NewContext(playwright.BrowserNewContextOptions{})
		if err == nil {
			_, err = bare.NewPage()
		}
		if err != nil {
			b.Fatal(err)
		}
		times["bare"] = append(times["bare"], time.Since(start))
		if err := bare.Close(); err != nil {
			b.Fatal(err)
		}
	}
	p50 := func(name string) float64 {
		slices.Sort(times[name])
		return float64(times[name][len(times[name])/2].Microseconds()) / 1000
	}
	b.ReportMetric(p50("session"), "p50-ms")
	b.ReportMetric(p50("close"), "close-p50-ms")
	b.ReportMetric(p50("session")/p50("bare"), "of-bare")
}

// BenchmarkMemory measures the memory of sessions with a page, one and ten in one
// Chromium.
func BenchmarkMemory(b *testing.B) {
	url := serveSite(b, map[string]string{"/": form})
	for _, n := range []int{1, 10} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			browser, db := newBrowser(b, nil)
			var last *Session
			for b.Loop() {
				for _, s := range browser.open() {
					s.end("")
				}
				for range n {
					last = openIn(b, browser, db, agent.SessionOptions{})
					must(b, last, `{"action":"navigate","url":"`+url+`/"}`)
				}
			}
			b.ReportMetric(pss(b, processTree(b, last.chromium))/float64(n), "MB/session")
		})
	}
}

// BenchmarkAction measures an action through session, driver and page. The baseline
// is the same query through Playwright alone.
func BenchmarkAction(b *testing.B) {
	s := open(b, agent.SessionOptions{})
	url := serveSite(b, map[string]string{"/": form})
	must(b, s, `{"action":"navigate","url":"`+url+`/"}`)
	page := s.ActivePage().page
	b.Run("extract", func(b *testing.B) {
		for b.Loop() {
			must(b, s, `{"action":"extract","selector":".line"}`)
		}
	})
	b.Run("bare", func(b *testing.B) {
		for b.Loop() {
			if _, err := page.Locator(".line").First().InnerText(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkManySessions measures the latency of actions in one session and in ten,
// each of which performs ten actions a second, evenly staggered.
func BenchmarkManySessions(b *testing.B) {
	url := serveSite(b, map[string]string{"/": form})
	for _, n := range []int{1, 10} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			sessions := make([]*Session, n)
			for i := range sessions {
				sessions[i] = open(b, agent.SessionOptions{})
				must(b, sessions[i], `{"action":"navigate","url":"`+url+`/"}`)
			}
			var mu sync.Mutex
			var latencies []time.Duration
			var acting sync.WaitGroup
			for i, s := range sessions {
				acting.Go(func() {
					<-time.After(time.Duration(i) * 100 * time.Millisecond / time.Duration(n))
					tick := time.NewTicker(100 * time.Millisecond)
					defer tick.Stop()
					for range b.N {
						<-tick.C
						start := time.Now()
						if _, err := s.Do(context.Background(), agent.Action{
							Action:   "extract",
							Selector: ".line",
						}); err != nil {
							b.Error(err)
							return
						}
						mu.Lock()
						latencies = append(latencies, time.Since(start))
						mu.Unlock()
					}
				})
			}
			acting.Wait()
			slices.Sort(latencies)
			b.ReportMetric(float64(latencies[len(latencies)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(latencies[len(latencies)*99/100].Microseconds())/1000, "p99-ms")
		})
	}
}

// TestSessionsDoNotLeak opens and closes sessions, SATCHEL_BROWSER_ROUNDS times, and
// compares goroutines, processes, memory and files before and after.
func TestSessionsDoNotLeak(t *testing.T) {
	rounds := 8
	if n, err := strconv.Atoi(os.Getenv("SATCHEL_BROWSER_ROUNDS")); err == nil {
		rounds = n
	}
	b, db := newBrowser(t, nil)
	url := serveSite(t, map[string]string{"/": form})
	permanent := openIn(t, b, db, agent.SessionOptions{})
	round := func() {
		s := openIn(t, b, db, agent.SessionOptions{})
		must(t, s, `{"action":"navigate","url":"`+url+`/"}`)
		must(t, s, `{"action":"snapshot"}`)
		if err := b.Delete(t.Context(), db, s.ID()); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		round()
	}
	goroutines, before := runtime.NumGoroutine(), pss(t, processTree(t, permanent.chromium))
	driver := func() float64 { return pss(t, []int{permanent.chromium.folder.pid(driverName)}) }
	driverBefore := driver()
	for i := range rounds {
		round()
		if i%50 == 49 {
			t.Logf(
				"%d rounds: the driver uses %.0f MB, Chromium %.0f MB",
				i+1,
				driver(),
				pss(t, processTree(t, permanent.chromium)),
			)
		}
	}
	// Goroutines and processes of closed sessions end a moment later.
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for runtime.NumGoroutine() > goroutines+2 || len(processTree(t, permanent.chromium)) > 12 {
		if permanent.chromium.sendHeartbeat(ctx) != nil {
			t.Fatalf(
				"%d goroutines, %d before; %d processes",
				runtime.NumGoroutine(),
				goroutines,
				len(processTree(t, permanent.chromium)),
			)
		}
	}
	after := pss(t, processTree(t, permanent.chromium))
	t.Logf("%d rounds: %.0f MB before, %.0f MB after", rounds, before, after)
	if after > before*1.5+50 {
		t.Errorf("Chromium uses %.0f MB, %.0f before", after, before)
	}
	if now := driver(); now > driverBefore+100 {
		t.Errorf("the driver uses %.0f MB, %.0f before", now, driverBefore)
	}
	if n := len(permanent.chromium.browser.Contexts()); n != 1 {
		t.Errorf("%d profiles remain", n)
	}
	files, err := os.ReadDir(permanent.chromium.folder.in("temp"))
	if err != nil || len(files) > 8 {
		t.Errorf("temporary files: %v, %v", files, err)
	}
}
