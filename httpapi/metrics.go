package httpapi

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"satchel/httpapi/rest"
	"satchel/store"
	"satchel/store/cluster"
	"satchel/store/replica"
)

// metrics are the metrics of /metrics, in a registry of their own.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
}

func newMetrics(folder *store.Folder) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "satchel_http_requests_total", Help: "Requests by route, method and status."}, []string{"route", "method", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "satchel_http_request_seconds", Help: "Time to answer, by route and method.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, 1, 5, 30}}, []string{"route", "method"}),
	}
	m.registry.MustRegister(m.requests, m.seconds, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "satchel_agents", Help: "Agents in the catalog."},
			func() float64 { return float64(len(folder.Agents())) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "satchel_open_agents", Help: "Agents whose files are open."},
			func() float64 { return float64(folder.OpenCount()) }))
	return m
}

// replication adds the metrics of replicas.
func (m *metrics) replication(r *replica.Replicator) {
	m.registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "satchel_replication_behind_seconds", Help: "Age of the oldest commit that is not in a replica yet."},
			func() float64 { return r.Status().Behind.Seconds() }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "satchel_replication_snapshots", Help: "Agents that wait for a snapshot of their own."},
			func() float64 { return float64(r.Status().Snapshots) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "satchel_replication_failing", Help: "1 while uploads fail."},
			func() float64 {
				if r.Status().Failure != nil {
					return 1
				}
				return 0
			}))
}

// cluster adds the metrics of a server's part in a cluster.
func (m *metrics) cluster(d cluster.Directory) {
	counter := func(name, help string, of func(cluster.Stats) int64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "satchel_cluster_" + name, Help: help},
			func() float64 { return float64(of(d.Stats())) })
	}
	m.registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "satchel_cluster_agents", Help: "Agents that this server owns."},
			func() float64 { return float64(d.Stats().Owned) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "satchel_cluster_lag_seconds", Help: "The longest that a commit of about the last second has waited for the database."},
			func() float64 { return d.Stats().Lag.Seconds() }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "satchel_cluster_clock_ahead_seconds", Help: "By how much this server's clock is ahead of the database's."},
			func() float64 { return d.Stats().Ahead.Seconds() }),
		counter("claims_total", "Agents that this server took over from servers that left.", func(s cluster.Stats) int64 { return s.Claims }),
		counter("fences_total", "Commits that were refused, since another server had the agent.", func(s cluster.Stats) int64 { return s.Fences }),
		counter("ship_errors_total", "Statements with commits that the database did not answer.", func(s cluster.Stats) int64 { return s.Errors }))
}

// observe counts one response. All paths without a route count as one.
func (m *metrics) observe(r *rest.Route, status int, took time.Duration) {
	path, method := "none", "any"
	if r != nil {
		path, method = r.Path, r.Method
	}
	m.requests.WithLabelValues(path, method, strconv.Itoa(status)).Inc()
	m.seconds.WithLabelValues(path, method).Observe(took.Seconds())
}
