package prometheus

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
)

func TestText(t *testing.T) {
	var r Registry
	seconds := r.HistogramVec("took_seconds", "Time taken.", []float64{.001, .25, 30}, "method", "route")
	requests := r.CounterVec("requests_total", `Requests with a \ and`+"\na line.", "route")
	r.Register(func(s *Scrape) {
		s.Gauge("zebras", "Of \"many\".", -1.5)
		s.Counter("bytes_total", "Bytes.", 12345678)
		s.Gauge("agents", "Agents.", 3)
	})
	const plain = `# HELP agents Agents.
# TYPE agents gauge
agents 3
# HELP bytes_total Bytes.
# TYPE bytes_total counter
bytes_total 1.2345678e+07
`
	const zebras = `# HELP zebras Of "many".
# TYPE zebras gauge
zebras -1.5
`
	if got := string(r.Text()); got != plain+zebras {
		t.Errorf("before anything was observed:\n%s", got)
	}
	for _, value := range []float64{.001, .0011, .25, 2, 100} { // a bound is part of its bucket
		seconds.Observe(value, "GET", "/b")
	}
	seconds.Observe(.0005, "GET", "/a")
	requests.Inc(`/"quoted"\` + "\n")
	requests.Inc("/a")
	requests.Inc("/a")
	want := plain + `# HELP requests_total Requests with a \\ and\na line.
# TYPE requests_total counter
requests_total{route="/\"quoted\"\\\n"} 1
requests_total{route="/a"} 2
# HELP took_seconds Time taken.
# TYPE took_seconds histogram
took_seconds_bucket{method="GET",route="/a",le="0.001"} 1
took_seconds_bucket{method="GET",route="/a",le="0.25"} 1
took_seconds_bucket{method="GET",route="/a",le="30"} 1
took_seconds_bucket{method="GET",route="/a",le="+Inf"} 1
took_seconds_sum{method="GET",route="/a"} 0.0005
took_seconds_count{method="GET",route="/a"} 1
took_seconds_bucket{method="GET",route="/b",le="0.001"} 1
took_seconds_bucket{method="GET",route="/b",le="0.25"} 3
took_seconds_bucket{method="GET",route="/b",le="30"} 4
took_seconds_bucket{method="GET",route="/b",le="+Inf"} 5
took_seconds_sum{method="GET",route="/b"} 102.2521
took_seconds_count{method="GET",route="/b"} 5
` + zebras
	if got := string(r.Text()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// No observation is lost, and each scrape is whole, while many goroutines count.
func TestConcurrentObservations(t *testing.T) {
	const goroutines, each = 8, 500
	var r Registry
	requests := r.CounterVec("requests_total", "Requests.", "route")
	seconds := r.HistogramVec("took_seconds", "Time taken.", []float64{1}, "route")
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for i := range each {
				route := strconv.Itoa(i % 5)
				requests.Inc(route)
				seconds.Observe(1, route)
				if i%100 == 0 {
					if bucket, count :=
						value(t, r.Text(), `took_seconds_bucket{route="0",le="+Inf"}`),
						value(t, r.Text(), `took_seconds_count{route="0"}`); bucket > count {
						t.Errorf("%v observations in buckets, later %v", bucket, count)
					}
				}
			}
		})
	}
	wg.Wait()
	for i := range 5 {
		for _, name := range []string{
			"requests_total{route=\"%d\"}",
			"took_seconds_count{route=\"%d\"}", "took_seconds_sum{route=\"%d\"}",
		} {
			if n := value(t, r.Text(), fmt.Sprintf(name, i)); n != goroutines*each/5 {
				t.Errorf("%s is %v", fmt.Sprintf(name, i), n)
			}
		}
	}
}

// value returns the value of a sample, and 0 without it.
func value(t *testing.T, text []byte, sample string) float64 {
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, sample+" "); ok {
			v, err := strconv.ParseFloat(strings.TrimSpace(rest), 64)
			if err != nil {
				t.Errorf("%s: %v", sample, err)
			}
			return v
		}
	}
	return 0
}

func TestProcess(t *testing.T) {
	var r Registry
	r.Register(CollectRuntime)
	r.Register(CollectProcess)
	text := r.Text()
	positive := []string{
		"go_goroutines",
		"go_threads", `go_info{version="` + runtime.Version() + `"}`,
		"go_gc_gogc_percent", "go_gc_gomemlimit_bytes",
		"go_sched_gomaxprocs_threads", "go_memstats_heap_objects",
		"go_memstats_mallocs_total", "process_start_time_seconds",
		"process_open_fds", "process_max_fds",
	}
	if runtime.GOOS != "darwin" {
		positive = append(positive, "process_resident_memory_bytes", "process_virtual_memory_bytes")
	}
	for _, sample := range positive {
		if value(t, text, sample) <= 0 {
			t.Errorf("%s is not positive", sample)
		}
	}
	runtime.GC()
	before := value(t, text, "go_gc_duration_seconds_count")
	if after := value(t, r.Text(), "go_gc_duration_seconds_count"); after <= before {
		t.Errorf("%v garbage collections, and after another one %v", before, after)
	}
}
