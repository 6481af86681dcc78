package egress

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"
)

// quiet is a log for servers whose clients disconnect on purpose.
func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

func TestResponseLimit(t *testing.T) {
	server := serveOn(t, openedIP, "0", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		size, _ := strconv.Atoi(r.URL.Query().Get("size"))
		body := strings.Repeat("x", size)
		switch r.URL.Path {
		case "/length":
			w.Header().Set("Content-Length", strconv.Itoa(size))
		case "/chunked":
			w.(http.Flusher).Flush()
		case "/gzip":
			w.Header().Set("Content-Encoding", "gzip")
			zipped := gzip.NewWriter(w)
			defer zipped.Close()
			_, _ = io.WriteString(zipped, body)
			return
		}
		_, _ = io.WriteString(w, body)
	}))
	cases := []struct {
		name  string
		limit int64
		size  int
		want  int
		err   error
	}{
		{"under", 1000, 999, 999, nil},
		{"exactly", 1000, 1000, 1000, nil},
		{"one over", 1000, 1001, 1000, ErrTooLarge},
		{"far over", 1000, 5 << 20, 1000, ErrTooLarge},
		{"empty", 1000, 0, 0, nil},
		{"no limit", -1, 1 << 20, 1 << 20, nil},
		{"the default", 0, DefaultMaxResponse + 1, DefaultMaxResponse, ErrTooLarge},
	}
	for _, tc := range cases {
		c := client(t, Policy{Allow: openedRange, MaxResponse: tc.limit})
		for _, path := range []string{"/length", "/chunked", "/gzip"} {
			body, err := get(t, c.Do, server.URL+path+"?size="+strconv.Itoa(tc.size), nil)
			if len(body) != tc.want || !errors.Is(err, tc.err) {
				t.Errorf("%s, %s: %d bytes, %v; want %d, %v", tc.name, path, len(body), err, tc.want, tc.err)
			}
		}
	}
}

// The limit holds however the bytes arrive and are read.
func TestLimitedBody(t *testing.T) {
	for size := range 7 {
		for _, slow := range []bool{false, true} {
			var source io.Reader = strings.NewReader("abcdef"[:size])
			if slow {
				source = iotest.OneByteReader(source)
			}
			body := &limitedBody{ReadCloser: io.NopCloser(source), host: "h.test", limit: 3, remaining: 3}
			got, err := io.ReadAll(iotest.HalfReader(body))
			want, tooLarge := "abcdef"[:min(size, 3)], size > 3
			if string(got) != want || errors.Is(err, ErrTooLarge) != tooLarge {
				t.Errorf("%d bytes, slow %v: %q, %v", size, slow, got, err)
			}
			if n, again := body.Read(make([]byte, 1)); n != 0 ||
				(tooLarge && !errors.Is(again, err)) ||
				(!tooLarge && !errors.Is(again, io.EOF)) {
				t.Errorf("%d bytes: after the end %d, %v", size, n, again)
			}
		}
	}
}

func TestHeaderLimit(t *testing.T) {
	server := serveOn(t, openedIP, "0", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		size, _ := strconv.Atoi(r.URL.Query().Get("size"))
		w.Header().Set("X-Big", strings.Repeat("x", size))
	}))
	c := client(t, Policy{Allow: openedRange})
	if _, err := get(t, c.Do, server.URL+"?size=1000", nil); err != nil {
		t.Error(err)
	}
	if _, err := get(t, c.Do, server.URL+"?size="+strconv.Itoa(maxHeader), nil); err == nil {
		t.Error("a header over the limit was accepted")
	}
}

// A server sends one byte and then nothing; the context ends the wait.
func TestContextEndsSlowResponse(t *testing.T) {
	server := serveOn(t, openedIP, "0", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "x")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, _ := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
	resp, err := client(t, Policy{Allow: openedRange}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.ReadFull(resp.Body, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := resp.Body.Read(make([]byte, 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want context.Canceled", err)
	}
}

func TestHeaderTimeout(t *testing.T) {
	server := serveOn(
		t,
		openedIP,
		"0",
		http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }),
	)
	_, err := get(t, client(t, Policy{Allow: openedRange, HeaderTimeout: 20 * time.Millisecond}).Do, server.URL, nil)
	var timeout net.Error
	if !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("%v, want a timeout", err)
	}
}

// A DNS server that never responds counts against the dial timeout: the
// resolver, whose own timeout is longer, does not retry.
func TestDialTimeoutCoversDNS(t *testing.T) {
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	var questions atomic.Int64
	silent := names(func(string) []string {
		questions.Add(1)
		<-release
		return nil
	})
	_, err := get(
		t,
		client(t, Policy{DialTimeout: 20 * time.Millisecond, Resolver: silent.resolver()}).Do,
		"http://slow.test/",
		nil,
	)
	var timeout net.Error
	if !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("%v, want a timeout", err)
	}
	if n := questions.Load(); n > 2 {
		t.Errorf("%d queries, want one for IPv4 and one for IPv6", n)
	}
}
