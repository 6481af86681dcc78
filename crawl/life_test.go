package crawl

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"satchel/agent"
	"satchel/agent/work"
	"satchel/agent/work/worktest"
	"satchel/store"
	"satchel/vector/document"
)

// TestMain is also the entry point of the process that TestKilledCrawlsResume kills,
// and of the one that reads PDF files.
func TestMain(m *testing.M) {
	if document.RunChild(os.Args[1:]) {
		return
	}
	if path := os.Getenv("SATCHEL_TEST_FOLDER"); path != "" {
		if err := crawlUntilKilled(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// killedAt is the number of pages after which TestKilledCrawlsResume kills the program.
const killedAt = 3

// crawlUntilKilled continues the crawls in a folder and prints a line for each page. It
// stops after a few, so that it cannot finish them before a late kill.
func crawlUntilKilled(path string) error {
	ctx := context.Background()
	folder, err := store.Open(store.Options{Path: path})
	if err != nil {
		return err
	}
	c := New(Options{Env: store.Env{Folder: folder, Allow: loopback}, Extract: document.ReadPage, Politeness: noDelays})
	pages := 0
	c.batch, c.onStep = 2, func(name string) {
		fmt.Println(name)
		if pages++; pages > killedAt {
			select {}
		}
	}
	if err := c.Start(ctx); err != nil {
		return err
	}
	for _, db := range folder.Agents() {
		if err := c.Wait(ctx, db); err != nil {
			return err
		}
	}
	return nil
}

// TestKilledCrawlsResume kills the program after every third page (SIGKILL), and wants
// the pages of an uninterrupted crawl, each fetched once, or twice if it was being
// fetched when the program was killed.
func TestKilledCrawlsResume(t *testing.T) {
	if testing.Short() {
		t.Skip("slow, and tests a child process")
	}
	s := newSite(t)
	for i := range 20 {
		s.page(
			fmt.Sprintf("/%d", i),
			fmt.Sprintf("page %d", i),
			fmt.Sprintf("/%d", (2*i+1)%20),
			fmt.Sprintf("/%d", (2*i+2)%20),
		)
	}
	s.page("/", "start", "/0", "/1")
	want := walkSite(t, s, nil)
	if want.PageCount != 21 {
		t.Fatalf("an uninterrupted crawl finds %d pages", want.PageCount)
	}
	before := s.total()
	path := filepath.Join(t.TempDir(), "data")
	folder, err := store.Open(store.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	id := create(t, folder.Default(), planOf(s.URL))
	if err := folder.Close(); err != nil {
		t.Fatal(err)
	}
	kills := 0
	for killAfter(t, path, killedAt) {
		kills++
	}
	if kills < 4 {
		t.Errorf("the crawl was killed only %d times", kills)
	}
	db := openFolder(t, path).Default()
	index(t, db, id)
	got := outcomeOf(t, db, id, s.URL)
	if got.paths() != want.paths() || got.ChangedPages != 21 || got.failures() != "" {
		t.Errorf("after %d kills: %s (changed %d), want %s", kills, got.paths(), got.ChangedPages, want.paths())
	}
	if limit := 21 + kills*(2+readAhead+2); s.total()-before > limit {
		t.Errorf("%d requests, want at most %d", s.total()-before, limit)
	}
}

// killAfter runs a child process and kills it at its nth page. It returns false if the
// child completed before.
func killAfter(t *testing.T, path string, n int) bool {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "SATCHEL_TEST_FOLDER="+path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	killed := false
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if n--; n == 0 && lines.Text() == "page" {
			killed = true
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); err != nil && !killed {
		t.Fatal("the child process failed:", err)
	}
	return killed
}

// gate holds the requests for an address until it is opened.
type gate struct {
	arrived   chan struct{}
	open      chan struct{}
	cancelled chan struct{} // receives when a request is cancelled
	release   func()        // opens the gate
}

func newGate(t *testing.T) *gate {
	g := &gate{arrived: make(chan struct{}, 100), open: make(chan struct{}), cancelled: make(chan struct{}, 100)}
	g.release = sync.OnceFunc(func() { close(g.open) })
	t.Cleanup(g.release)
	return g
}

func (g *gate) hold(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		g.arrived <- struct{}{}
		select {
		case <-g.open:
			next(w, r)
		case <-r.Context().Done():
			g.cancelled <- struct{}{}
		}
	}
}

func TestCrawlsStopImmediately(t *testing.T) {
	for _, tc := range []struct {
		name string
		stop func(t *testing.T, c *Crawler, folder *store.Folder, db *store.DB, id string)
	}{
		{"source deleted", func(t *testing.T, c *Crawler, _ *store.Folder, db *store.DB, id string) {
			if err := db.DeleteSource(context.Background(), id); err != nil {
				t.Fatal(err)
			}
		}},
		{"source stopped", func(t *testing.T, c *Crawler, _ *store.Folder, db *store.DB, id string) {
			if _, err := db.StopSource(context.Background(), id); err != nil {
				t.Fatal(err)
			}
		}},
		{"agent deleted", func(t *testing.T, c *Crawler, folder *store.Folder, db *store.DB, _ string) {
			if err := folder.DeleteAgent(db); err != nil {
				t.Fatal(err)
			}
		}},
		{"agent disabled", func(t *testing.T, c *Crawler, folder *store.Folder, db *store.DB, _ string) {
			status := agent.StatusDisabled
			setStatus(t, folder, db, status)
		}},
		{"server stops", func(_ *testing.T, c *Crawler, _ *store.Folder, _ *store.DB, _ string) { c.Stop() }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, g := newSite(t), newGate(t)
			s.page("/", "start", "/held", "/next")
			s.set("/held", g.hold(htmlPage("held")))
			s.page("/next", "next")
			folder := openFolder(t, t.TempDir())
			c := newCrawler(t, folder, nil)
			db := newAgent(t, folder, "stopped")
			id := create(t, db, planOf(s.URL))
			<-g.arrived
			tc.stop(t, c, folder, db, id)
			<-g.cancelled
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			if tc.name != "server stops" {
				if err := c.Wait(ctx, db); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// TestStoppedCrawlStaysStopped stops a crawl and starts another server on the same
// files, which continues nothing. Started again, the crawl finds all pages, even if the
// interrupted one has not noticed yet.
func TestStoppedCrawlStaysStopped(t *testing.T) {
	ctx := context.Background()
	s, g := newSite(t), newGate(t)
	s.page("/", "start", "/held", "/next")
	s.set("/held", g.hold(htmlPage("held")))
	s.page("/next", "next")
	folder := openFolder(t, t.TempDir())
	stored := make(chan struct{}, 1)
	first := newCrawler(t, folder, nil)
	first.onStep = onStored(stored)
	db := newAgent(t, folder, "stopped")
	id := create(t, db, planOf(s.URL))
	<-stored
	<-g.arrived
	if _, err := db.StopSource(ctx, id); err != nil {
		t.Fatal(err)
	}
	first.Forget(db, id)
	first.Stop()
	index(t, db, id)
	before := s.total()
	second := newCrawler(t, folder, nil)
	if err := second.Wait(ctx, db); err != nil {
		t.Fatal(err)
	}
	if source, err := db.Source(ctx, id); err != nil ||
		s.total() != before ||
		source.Error == nil ||
		source.Error.Code != agent.SourceStopped {
		t.Errorf("%d requests after the stop; the source is %+v, %v", s.total()-before, source, err)
	}
	if o := outcomeOf(t, db, id, s.URL); o.paths() != "/" {
		t.Errorf("stored %s", o.paths())
	}
	restart := func() {
		t.Helper()
		if _, err := db.RestartSource(ctx, id, agent.SourceUpdating); err != nil {
			t.Fatal(err)
		}
	}
	restart()
	<-g.arrived
	if _, err := db.StopSource(ctx, id); err != nil {
		t.Fatal(err)
	}
	if source, err := db.Source(ctx, id); err != nil || source.Progress != nil {
		if _, err := db.StopSource(ctx, id); err != nil {
			t.Fatal(err)
		}
	}
	second.Forget(db, id)
	restart()
	g.release()
	waitIndexed(t, second, db, id)
	if o := outcomeOf(t, db, id, s.URL); o.paths() != "/ /held /next" {
		t.Errorf("after the restart: %s", o.paths())
	}
	if walks := second.walks.Stats(); len(second.hosts.byName) != 0 || walks != (work.Stats{}) {
		t.Errorf("still in memory: %d hosts, %+v", len(second.hosts.byName), walks)
	}
}

func setStatus(t *testing.T, folder *store.Folder, db *store.DB, status agent.Status) {
	t.Helper()
	if _, err := folder.UpdateAgent(context.Background(), db, agent.AgentChange{
		Status: agent.Some(status),
	}); err != nil {
		t.Fatal(err)
	}
}

func TestStoppedAndDisabledCrawlsResume(t *testing.T) {
	s, g := newSite(t), newGate(t)
	s.page("/", "start", "/held")
	s.set("/held", g.hold(htmlPage("held")))
	folder := openFolder(t, t.TempDir())
	stored := make(chan struct{}, 1)
	c := newCrawler(t, folder, nil)
	c.onStep = onStored(stored)
	db := newAgent(t, folder, "again")
	id := create(t, db, planOf(s.URL))
	<-stored
	<-g.arrived
	c.Stop()
	c.Stop()
	if err := c.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	<-g.arrived
	setStatus(t, folder, db, agent.StatusDisabled)
	<-g.cancelled
	<-g.cancelled
	setStatus(t, folder, db, agent.StatusActive)
	g.release()
	waitIndexed(t, c, db, id)
	if o := outcomeOf(t, db, id, s.URL); o.paths() != "/ /held" || s.count("/") != 1 {
		t.Errorf("pages %s; the start was requested %d times", o.paths(), s.count("/"))
	}
}

// TestStartStop starts and stops repeatedly while sources are created.
func TestStartStop(t *testing.T) {
	s := newSite(t)
	s.page("/", "start", "/a", "/b")
	s.page("/a", "first")
	s.page("/b", "second")
	folder := openFolder(t, t.TempDir())
	c, db := newCrawler(t, folder, nil), newAgent(t, folder, "a")
	var ids []string
	worktest.Stress(t, c, 10, func(int) { ids = append(ids, create(t, db, planOf(s.URL))) })
	waitIndexed(t, c, db, ids...)
	for _, id := range ids {
		if o := outcomeOf(t, db, id, s.URL); o.paths() != "/ /a /b" {
			t.Errorf("pages %s", o.paths())
		}
	}
}

func TestManyCrawlsAtOnce(t *testing.T) {
	s := newSite(t)
	for i := range 10 {
		s.page(fmt.Sprintf("/%d", i), fmt.Sprintf("page %d", i), "/", fmt.Sprintf("/%d", (i+1)%10))
	}
	s.page("/", "start", "/0")
	most, now := 0, 0
	var mu sync.Mutex
	inner := s.Config.Handler
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		now++
		if r.URL.Path != "/robots.txt" {
			most = max(most, now)
		}
		mu.Unlock()
		inner.ServeHTTP(w, r)
		mu.Lock()
		now--
		mu.Unlock()
	})
	folder := openFolder(t, t.TempDir())
	c := newCrawler(t, folder, func(o *Options) { o.Politeness.Connections = 1 })
	agents := []*store.DB{newAgent(t, folder, "one"), newAgent(t, folder, "two")}
	ids := map[*store.DB][]string{}
	for range 6 {
		for _, db := range agents {
			plan := planOf(s.URL)
			plan.IgnoreRobots = true
			ids[db] = append(ids[db], create(t, db, plan))
		}
	}
	for _, db := range agents {
		waitIndexed(t, c, db, ids[db]...)
		for _, id := range ids[db] {
			// The ring has ten pages, and the crawl is limited to five links.
			if o := outcomeOf(t, db, id, s.URL); o.paths() != "/ /0 /1 /2 /3 /4" {
				t.Errorf("pages %s", o.paths())
			}
		}
	}
	if most != 1 {
		t.Errorf("%d connections to one host at a time, want 1", most)
	}
	if walks := c.walks.Stats(); len(c.hosts.byName) != 0 || walks != (work.Stats{}) {
		t.Errorf("still in memory: %d hosts, %+v", len(c.hosts.byName), walks)
	}
	c.Stop()
	buf := make([]byte, 1<<20)
	for stack := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if strings.Contains(stack, "satchel/crawl.(*Crawler)") || strings.Contains(stack, "satchel/crawl.(*walk)") {
			t.Errorf("a goroutine is still running:\n%s", stack)
		}
	}
}

// TestBlockedByName crawls a name that resolves to a private address.
func TestBlockedByName(t *testing.T) {
	s := newSite(t)
	s.page("/", "start")
	folder := openFolder(t, t.TempDir())
	c := newCrawler(t, folder, func(o *Options) { o.Allow = nil })
	db := newAgent(t, folder, "blocked")
	plan := planOf(s.URL)
	if err := c.Check(&plan); agent.ErrorCode(err) != agent.CodeValidation {
		t.Errorf("a literal private address: %v", err)
	}
	id := create(t, db, plan) // as if the settings had changed after the check
	waitIndexed(t, c, db)
	if o := outcomeOf(t, db, id, s.URL); o.source.Status != agent.SourceFailed ||
		o.source.Error.Code != "BLOCKED_ADDRESS" ||
		s.total() != 0 {
		t.Errorf("%+v after %d requests", o.source.Error, s.total())
	}
	// The error of the dialer, which checks resolved addresses, has its own code.
	w := &walk{crawler: c, db: db}
	w.fetcher = &fetcher{
		transport:     c.client.Transport(),
		host:          c.hosts.acquire(site{}, c.politeness),
		politeness:    c.politeness,
		checkRedirect: w.checkRedirect,
	}
	_, err := w.fetcher.fetch(context.Background(), s.URL, "", "")
	if problem := explain(err); problem.Code != "BLOCKED_ADDRESS" {
		t.Errorf("the dialer's error is reported as %+v", problem)
	}
}
