package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"
)

// calendarPlaces are the points at which the server of a calendar is killed: during the
// first and the second call of an occurrence's workflow, and after their responses.
var calendarPlaces = []string{"/first", "/first answered", "/second", "/second answered"}

// calendarEach is the number of occurrences per kill at a place.
const calendarEach = 15

// calendarTarget is the service that occurrences of a task call. It kills the server in
// the middle of requests.
type calendarTarget struct {
	*httptest.Server
	mu     sync.Mutex
	server *os.Process    // nil while there is no server to kill
	owed   map[string]int // kills that are still due at a place
	kills  int

	left     map[string]int            // occurrences that have not reached a place
	done     context.Context           // cancelled when none is left
	finish   context.CancelFunc        // cancels done
	keys     map[string]map[string]int // by place and occurrence: requests by Idempotency-Key
	requests map[string]int            // by place
}

func newCalendarTarget(t *testing.T, occurrences int) *calendarTarget {
	c := &calendarTarget{
		owed:     map[string]int{},
		left:     map[string]int{},
		keys:     map[string]map[string]int{},
		requests: map[string]int{},
	}
	for _, place := range calendarPlaces {
		c.left[place] = occurrences
	}
	c.done, c.finish = context.WithCancel(t.Context())
	c.Server = httptest.NewServer(c)
	t.Cleanup(c.Close)
	return c
}

// reached records that an occurrence has reached a place, kills the server if a kill is
// due there, and reports whether it did.
func (c *calendarTarget) reached(place, occurrence, key string) (killed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	of := place + " " + occurrence
	if c.keys[of] == nil {
		c.keys[of] = map[string]int{}
		if c.left[place]--; c.left[place]%calendarEach == calendarEach-1 {
			c.owed[place]++
		}
	}
	c.keys[of][key]++
	c.requests[place]++
	if c.owed[place] > 0 && c.server != nil {
		c.owed[place]--
		c.kills++
		_ = c.server.Kill()
		c.server, killed = nil, true
	}
	left := 0
	for _, n := range c.left {
		left += n
	}
	if left == 0 {
		c.finish()
	}
	return killed
}

func (c *calendarTarget) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct{ Occurrence string }
	raw, _ := io.ReadAll(r.Body) // a disconnect of the client is noticed only after the body
	if err := json.Unmarshal(raw, &body); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	key := r.Header.Get("Idempotency-Key")
	if c.reached(r.URL.Path, body.Occurrence, key) {
		<-r.Context().Done()
		return
	}
	w.WriteHeader(http.StatusNoContent)
	_ = http.NewResponseController(w).Flush()
	c.reached(r.URL.Path+" answered", body.Occurrence, key)
}

// serve runs the server as a process until it is killed, and kills it once everything is
// done. It is not killed before it listens and prepare has returned.
func (c *calendarTarget) serve(t *testing.T, data string, prepare func(*service)) {
	t.Helper()
	server := exec.CommandContext(
		t.Context(),
		os.Args[0],
		"serve",
		"--addr", "127.0.0.1:0",
		"--rate-limits", "off",
		"--data", data,
	)
	server.Env = append(os.Environ(), asProgram+"=1", "SATCHEL_OUTBOUND_ALLOW=127.0.0.0/8")
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	err = server.Start()
	if err != nil {
		t.Fatal(err)
	}
	stop := context.AfterFunc(c.done, func() { _ = server.Process.Kill() })
	defer stop()
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if m := listens.FindStringSubmatch(lines.Text()); m != nil {
			prepare(&service{url: m[1] + "/api"})
			c.mu.Lock()
			c.server = server.Process
			c.mu.Unlock()
		}
	}
	_ = server.Wait() // killed
	c.mu.Lock()
	c.server = nil
	c.mu.Unlock()
}

// TestCalendarSurvivesKills kills the program with SIGKILL repeatedly while the
// occurrences of a recurring task start a workflow that calls another service. Each
// occurrence is executed once: repeated calls have the same key.
func TestCalendarSurvivesKills(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and the killed process has no race detector")
	}
	t.Parallel()
	const occurrences = 2 * calendarEach
	c, data := newCalendarTarget(t, occurrences), t.TempDir()
	c.serve(t, data, func(s *service) { c.prepare(t, s, occurrences) })
	for c.done.Err() == nil {
		c.serve(t, data, func(*service) {})
	}
	t.Logf("%d kills; requests: %v", c.kills, c.requests)
	if want := len(calendarPlaces) * occurrences / calendarEach; c.kills != want {
		t.Errorf("%d kills, want %d; still due: %v", c.kills, want, c.owed)
	}
	for of, keys := range c.keys {
		if len(keys) != 1 || keys[""] > 0 {
			t.Errorf("%s: requests by key: %v", of, keys)
		}
	}
	if want := len(calendarPlaces) * occurrences; len(c.keys) != want {
		t.Errorf("requests of %d occurrences and places, want %d", len(c.keys), want)
	}
	s := start(t, "--data", data)
	if n := s.call(
		t,
		"GET",
		"/agents/default/workflows/executions?limit=1",
		nil,
		200,
	)["meta"].(map[string]any)["total"]; n != float64(occurrences) {
		t.Errorf("%v executions, want %d", n, occurrences)
	}
}

// prepare creates a daily task whose occurrences are moved to the next seconds. Each
// lasts for a day, so that none has ended when it is late.
func (c *calendarTarget) prepare(t *testing.T, s *service, occurrences int) {
	t.Helper()
	workflow := s.call(t, "POST", "/agents/default/workflows", json.RawMessage(`{"name":"w","status":"active","settings":{"concurrency":3,"on_conflict":"queue"},
		"nodes":[{"id":"t","type":"trigger"},
			{"id":"first","type":"http-request","data":{"method":"POST","url":"`+c.URL+`/first","body":{"occurrence":"{{trigger.occurrence.id}}"}}},
			{"id":"second","type":"http-request","data":{"method":"POST","url":"`+c.URL+`/second","body":{"occurrence":"{{trigger.occurrence.id}}"}}}],
		"edges":[{"source":"t","target":"first"},{"source":"first","target":"second"}]}`), 201)["id"]
	first := time.Now().UTC().Truncate(time.Second).AddDate(0, 0, 7)
	soon := time.Now().UTC().Add(time.Second)
	var moved []map[string]any
	for i := range occurrences {
		moved = append(moved, map[string]any{
			"original_start": first.AddDate(0, 0, i),
			"start_time":     soon.Add(time.Duration(i) * 50 * time.Millisecond),
		})
	}
	s.call(t, "POST", "/agents/default/calendar", map[string]any{
		"title":            "Daily",
		"timezone":         "UTC",
		"start_time":       first,
		"end_time":         first.AddDate(0, 0, 1),
		"recurrence":       "daily",
		"recurrence_count": occurrences,
		"exceptions":       moved,
		"workflow_id":      workflow,
	}, 201)
}
