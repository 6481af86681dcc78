package httpapi

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// inboundSerial numbers posts across all rounds of the benchmark.
var inboundSerial atomic.Int64

// BenchmarkInbound posts to one gateway while a workflow runs for each message: as fast
// as possible, compared with echo returning a constant, and at 500 a second, where the
// time counts from when a post was due.
func BenchmarkInbound(b *testing.B) {
	c := newOwnClient(b)
	_, path, platform := c.hooked(b, "default")
	secret := platform.header.Get("X-Webhook-Secret")
	c.must(
		b,
		201,
		"POST",
		"/api/agents/default/workflows",
		`{"name":"each","status":"active","nodes":[{"id":"t","type":"trigger","data":{"event":"message.received"}},`+
			`{"id":"s","type":"set","data":{"values":{"text":"{{message.content}}"}}}],"edges":[{"id":"e",`+
			`"source":"t","target":"s"}],"settings":{"on_conflict":"queue","concurrency":16}}`,
	)
	body := func(int) string {
		n := inboundSerial.Add(1)
		return fmt.Sprintf(`{"id":"m%d","from":"person-%d","text":"Hello there, where is my order?"}`, n, n%200)
	}
	b.Run("echo", func(b *testing.B) {
		perSecond, p99 := fire(b, bareEcho(b), b.N, 200, func(int) []byte { return get("/hello") })
		b.ReportMetric(perSecond, "req/s")
		b.ReportMetric(float64(p99.Microseconds())/1000, "p99-ms")
	})
	b.Run("most", func(b *testing.B) {
		perSecond, p99 := fire(b, strings.TrimPrefix(c.url, "http://"), b.N, 200, func(i int) []byte {
			text := body(i)
			return fmt.Appendf(
				nil,
				"POST %s HTTP/1.1\r\nHost: localhost\r\nX-Webhook-Secret: %s\r\nContent-Type: application/json\r\n"+
					"Content-Length: %d\r\n\r\n%s",
				path,
				secret,
				len(text),
				text,
			)
		})
		b.ReportMetric(perSecond, "req/s")
		b.ReportMetric(float64(p99.Microseconds())/1000, "p99-ms")
	})
	b.Run("paced", func(b *testing.B) {
		const pace = 2 * time.Millisecond
		type due struct {
			at   time.Time
			body string
		}
		posts, took := make(chan due, b.N), make([]time.Duration, 0, b.N)
		var mu sync.Mutex
		var running sync.WaitGroup
		for range connections {
			running.Go(func() {
				for d := range posts {
					req, _ := http.NewRequestWithContext(b.Context(), "POST", c.url+path, strings.NewReader(d.body))
					req.Header.Set("X-Webhook-Secret", secret)
					resp, err := http.DefaultTransport.RoundTrip(req)
					if err != nil || resp.StatusCode != 200 {
						b.Errorf("%v, %v", resp, err)
						continue
					}
					_ = resp.Body.Close()
					mu.Lock()
					took = append(took, time.Since(d.at))
					mu.Unlock()
				}
			})
		}
		began := time.Now()
		tick := time.NewTicker(pace)
		defer tick.Stop()
		for i := 0; i < b.N; {
			<-tick.C
			for ; i < b.N && time.Since(began) >= time.Duration(i)*pace; i++ {
				posts <- due{began.Add(time.Duration(i) * pace), body(i)}
			}
		}
		close(posts)
		running.Wait()
		slices.Sort(took)
		b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "req/s")
		b.ReportMetric(quantile(took, 0.5), "p50-ms")
		b.ReportMetric(quantile(took, 0.99), "p99-ms")
	})
}
