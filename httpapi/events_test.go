package httpapi

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// event is an event of a stream; comments have the name ":".
type event struct {
	name, id string
	data     map[string]any
}

// eventStream is an open stream of events.
type eventStream struct {
	tb    testing.TB
	resp  *http.Response
	lines *bufio.Scanner
}

// openEvents opens a stream; last is the id of the last event that was received.
func openEvents(tb testing.TB, c *testClient, path, last string) *eventStream {
	tb.Helper()
	req, err := http.NewRequestWithContext(tb.Context(), "GET", c.url+path, nil)
	if err != nil {
		tb.Fatal(err)
	}
	req.Header = c.header.Clone()
	if last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = resp.Body.Close() })
	s := &eventStream{tb, resp, bufio.NewScanner(resp.Body)}
	s.lines.Buffer(nil, 1<<20)
	return s
}

func (s *eventStream) close() { _ = s.resp.Body.Close() }

// next reads one event; ok is false at the end.
func (s *eventStream) next() (e event, ok bool) {
	for s.lines.Scan() {
		name, value, _ := strings.Cut(s.lines.Text(), ": ")
		switch name {
		case "":
			if e.name != "" {
				return e, true
			}
			e.name = ":"
		case "event":
			e.name = value
		case "id":
			e.id = value
		case "data":
			if err := json.Unmarshal([]byte(value), &e.data); err != nil {
				s.tb.Errorf("data %s: %v", value, err)
			}
		}
	}
	return e, false
}

// until reads events up to the first that is wanted, and returns it.
func (s *eventStream) until(wanted func(event) bool) event {
	s.tb.Helper()
	for {
		e, ok := s.next()
		if !ok {
			s.tb.Fatalf("the stream ended: %v", s.lines.Err())
		}
		if wanted(e) {
			return e
		}
	}
}
