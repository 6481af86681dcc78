package httpapi

import (
	"strconv"
	"time"

	"satchel/httpapi/prometheus"
	"satchel/httpapi/rest"
	"satchel/store"
	"satchel/store/cluster"
	"satchel/store/replica"
)

// metrics are the metrics of /metrics.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
}

func newMetrics(folder *store.Folder) *metrics {
	registry := new(prometheus.Registry)
	registry.Register(prometheus.CollectRuntime)
	registry.Register(prometheus.CollectProcess)
	registry.Register(func(s *prometheus.Scrape) {
		s.Gauge("satchel_agents", "Agents in the catalog.", float64(len(folder.Agents())))
		s.Gauge("satchel_open_agents", "Agents whose files are open.", float64(folder.OpenCount()))
	})
	return &metrics{
		registry: registry,
		requests: registry.CounterVec(
			"satchel_http_requests_total",
			"Requests by route, method and status.",
			"method",
			"route",
			"status",
		),
		seconds: registry.HistogramVec(
			"satchel_http_request_seconds",
			"Time to answer, by route and method.",
			[]float64{.001, .0025, .005, .01, .025, .05, .1, .25, 1, 5, 30},
			"method",
			"route",
		),
	}
}

// replication adds the metrics of replicas.
func (m *metrics) replication(replicator *replica.Replicator) {
	m.registry.Register(func(scrape *prometheus.Scrape) {
		status, failing := replicator.Status(), 0.0
		if status.Failure != nil {
			failing = 1
		}
		scrape.Gauge(
			"satchel_replication_behind_seconds",
			"Age of the oldest commit that is not in a replica yet.",
			status.Behind.Seconds(),
		)
		scrape.Gauge(
			"satchel_replication_snapshots",
			"Agents that wait for a snapshot of their own.",
			float64(status.Snapshots),
		)
		scrape.Gauge("satchel_replication_failing", "1 while uploads fail.", failing)
	})
}

// cluster adds the metrics of a server's part in a cluster.
func (m *metrics) cluster(directory cluster.Directory) {
	m.registry.Register(func(scrape *prometheus.Scrape) {
		stats := directory.Stats()
		scrape.Gauge("satchel_cluster_agents", "Agents that this server owns.", float64(stats.Owned))
		scrape.Gauge(
			"satchel_cluster_lag_seconds",
			"The longest that a commit of about the last second has waited for the database.",
			stats.Lag.Seconds(),
		)
		scrape.Gauge(
			"satchel_cluster_clock_ahead_seconds",
			"By how much this server's clock is ahead of the database's.",
			stats.Ahead.Seconds(),
		)
		scrape.Counter(
			"satchel_cluster_claims_total",
			"Agents that this server took over from servers that left.",
			float64(stats.Claims),
		)
		scrape.Counter(
			"satchel_cluster_fences_total",
			"Commits that were refused, since another server had the agent.",
			float64(stats.Fences),
		)
		scrape.Counter(
			"satchel_cluster_ship_errors_total",
			"Statements with commits that the database did not answer.",
			float64(stats.Errors),
		)
	})
}

// observe counts one response. All paths without a route count as one.
func (m *metrics) observe(r *rest.Route, status int, took time.Duration) {
	path, method := "none", "any"
	if r != nil {
		path, method = r.Path, r.Method
	}
	m.requests.Inc(method, path, strconv.Itoa(status))
	m.seconds.Observe(took.Seconds(), method, path)
}
