package prometheus

import "testing"

// BenchmarkObserve counts one response as the server does.
func BenchmarkObserve(b *testing.B) {
	var r Registry
	requests := r.CounterVec("requests_total", "Requests.", "method", "route", "status")
	seconds := r.HistogramVec(
		"request_seconds",
		"Time.", []float64{.001, .0025, .005, .01, .025, .05, .1, .25, 1, 5, 30},
		"method", "route",
	)
	b.ReportAllocs()
	for b.Loop() {
		requests.Inc("GET", "/agents/{agentId}/conversations/{conversationId}/messages", "200")
		seconds.Observe(.003, "GET", "/agents/{agentId}/conversations/{conversationId}/messages")
	}
}
