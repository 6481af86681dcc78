package httpapi

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"satchel/agent"
	"satchel/store"
)

// connections is how many clients send at once.
const connections = 16

// serveOn serves a handler on a loopback port during a benchmark.
func serveOn(b *testing.B, handler http.Handler) string {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	server := &http.Server{Handler: handler}
	go func() { _ = server.Serve(l) }()
	b.Cleanup(func() { _ = server.Close() })
	return l.Addr().String()
}

// bareEcho is the upper limit that figures are compared with: echo responding with a
// constant JSON object and doing nothing else.
func bareEcho(b *testing.B) string {
	e := echo.New()
	e.GET("/hello", func(c echo.Context) error {
		return c.JSON(http.StatusOK, map[string]string{"hello": "world"})
	})
	return serveOn(b, e)
}

// fire sends n requests over 16 connections and returns the responses per second and the
// 99th percentile of their times.
func fire(
	b *testing.B,
	addr string,
	n int,
	want int,
	request func(i int) []byte,
) (perSecond float64, p99 time.Duration) {
	b.Helper()
	var next atomic.Int64
	times := make([][]time.Duration, connections)
	var clients sync.WaitGroup
	began := time.Now()
	for c := range connections {
		clients.Go(func() {
			conn, err := net.Dial("tcp", addr)
			if err != nil {
				b.Error(err)
				return
			}
			defer conn.Close()
			in := bufio.NewReaderSize(conn, 64<<10)
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				sent := time.Now()
				if _, err := conn.Write(request(i)); err != nil {
					b.Error(err)
					return
				}
				if err := readAnswer(in, want); err != nil {
					b.Error(err)
					return
				}
				times[c] = append(times[c], time.Since(sent))
			}
		})
	}
	clients.Wait()
	took := time.Since(began)
	all := slices.Concat(times...)
	slices.Sort(all)
	if len(all) == 0 {
		return 0, 0
	}
	return float64(n) / took.Seconds(), all[len(all)*99/100]
}

// readAnswer reads one response with as little work as possible.
func readAnswer(in *bufio.Reader, want int) error {
	length, first := 0, true
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return err
		}
		line = bytes.TrimRight(line, "\r\n")
		if first {
			if got, _ := strconv.Atoi(string(line[9:12])); got != want {
				rest, _ := in.Peek(min(in.Buffered(), 400))
				return fmt.Errorf("status %d, want %d: %s", got, want, rest)
			}
			first = false
		} else if len(line) == 0 {
			_, err := in.Discard(length)
			return err
		} else if rest, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			length, _ = strconv.Atoi(string(rest))
		}
	}
}

func get(path string) []byte {
	return []byte("GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n")
}

func post(path, body string) []byte {
	return []byte("POST " + path +
		" HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: " +
		strconv.Itoa(len(body)) + "\r\n\r\n" + body)
}

func fill(tb testing.TB, db *store.DB, n int) {
	tb.Helper()
	for from := 0; from < n; from += 1000 {
		rows := make([]agent.ContactChange, min(1000, n-from))
		for i := range rows {
			rows[i].Name = agent.Some(fmt.Sprintf("Person %06d", from+i))
			rows[i].Email = agent.Some(fmt.Sprintf("person%06d@example.com", from+i))
			rows[i].Tags = agent.Some([]string{"imported"})
		}
		if _, err := db.ImportContacts(tb.Context(), rows, store.DuplicateError); err != nil {
			tb.Fatal(err)
		}
	}
}

// BenchmarkHTTP compares the most used routes with a bare echo server, both measured in
// the same run: "of-hello" is the ratio of their requests per second. Run it with
// -benchtime 20000x or more.
func BenchmarkHTTP(b *testing.B) {
	hello := bareEcho(b)
	folder, server := openService(b)
	addr := serveOn(b, server.Handler())
	db := folder.Default()
	fill(b, db, 100_000)
	contact, err := db.CreateContact(b.Context(), agent.ContactChange{
		Name:  agent.Some("Ada"),
		Email: agent.Some("ada@example.com"),
	})
	if err != nil {
		b.Fatal(err)
	}
	base := "/api/agents/default/contacts"
	var made atomic.Int64
	for _, c := range []struct {
		name    string
		want    int
		request func(int) []byte
	}{
		{"create", 201, func(int) []byte {
			n := made.Add(1)
			return post(
				base,
				fmt.Sprintf(`{"name":"New %d","email":"new%d@example.com","phone":"+1 555 %d"}`, n, n, 1_000_000+n),
			)
		}},
		{"get", 200, func(int) []byte { return get(base + "/" + contact.ID) }},
		{
			"list-50-of-100000",
			200,
			func(i int) []byte { return get(base + "?limit=50&offset=" + strconv.Itoa(i%20*50)) },
		},
	} {
		b.Run(c.name, func(b *testing.B) {
			fire(b, hello, 2000, 200, func(int) []byte { return get("/hello") })
			limit, _ := fire(b, hello, 20_000, 200, func(int) []byte { return get("/hello") })
			fire(b, addr, 200, c.want, c.request)
			b.ResetTimer()
			rate, p99 := fire(b, addr, b.N, c.want, c.request)
			b.StopTimer()
			b.ReportMetric(rate, "req/s")
			b.ReportMetric(rate/limit, "of-hello")
			b.ReportMetric(float64(p99.Microseconds())/1000, "p99-ms")
		})
	}
}

// BenchmarkWorkflow starts a workflow of four nodes over HTTP and waits for its end:
// trigger, if-else, set, webhook-response, each committed durably before the response. It
// compares with a bare echo server as BenchmarkHTTP does.
func BenchmarkWorkflow(b *testing.B) {
	hello := bareEcho(b)
	folder, server := openService(b)
	addr := serveOn(b, server.Handler())
	w := agent.Workflow{
		Name:     "Four",
		Status:   agent.WorkflowActive,
		Settings: agent.WorkflowSettings{Concurrency: 100, OnConflict: agent.ConflictQueue},
		Nodes: []agent.RawNode{
			agent.RawNode(`{"id":"t","type":"trigger","position":{"x":0,"y":0},"data":{"event":"webhook"}}`),
			agent.RawNode(`{"id":"if","type":"if-else","position":{"x":200,"y":0},` +
				`"data":{"conditions":[{"left":"{{n}}","operator":"gt","right":5}]}}`),
			agent.RawNode(`{"id":"s","type":"set","position":{"x":400,"y":0},` +
				`"data":{"values":{"hello":"Hello {{name}}","n":"{{n}}"}}}`),
			agent.RawNode(`{"id":"r","type":"webhook-response","position":{"x":600,"y":0},` +
				`"data":{"status":200,"body":"{{nodes.s}}"}}`),
		},
		Edges: []agent.RawEdge{
			agent.RawEdge(`{"id":"1","source":"t","target":"if"}`),
			agent.RawEdge(`{"id":"2","source":"if","target":"s","sourceHandle":"true"}`),
			agent.RawEdge(`{"id":"3","source":"s","target":"r"}`),
		},
	}
	w, err := folder.Default().CreateWorkflow(b.Context(), w)
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		request func(int) []byte
	}{
		{"execute-and-wait", func(int) []byte {
			return post(
				"/api/agents/default/workflows/execute?wait=30",
				`{"workflow_id":"`+w.ID+`","input":{"name":"Ada","n":7}}`,
			)
		}},
		{"hook", func(int) []byte { return post("/api/agents/default/hooks/"+w.ID, `{"name":"Ada","n":7}`) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			fire(b, hello, 2000, 200, func(int) []byte { return get("/hello") })
			limit, _ := fire(b, hello, 20_000, 200, func(int) []byte { return get("/hello") })
			fire(b, addr, 200, 200, c.request)
			b.ResetTimer()
			rate, p99 := fire(b, addr, b.N, 200, c.request)
			b.StopTimer()
			b.ReportMetric(rate, "req/s")
			b.ReportMetric(rate/limit, "of-hello")
			b.ReportMetric(float64(p99.Microseconds())/1000, "p99-ms")
		})
	}
}
