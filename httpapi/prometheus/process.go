package prometheus

import (
	"time"

	"satchel/agent/cputime"
)

// started is when the program began to initialize its packages.
var started = time.Now()

// CollectProcess adds the metrics of this process that its system provides, with the names
// and help texts that Prometheus's own client for Go gives them.
func CollectProcess(s *Scrape) {
	s.Gauge(
		"process_start_time_seconds",
		"Start time of the process since unix epoch in seconds.",
		float64(started.UnixMilli())/1e3,
	)
	if used, err := cputime.Used(); err == nil {
		s.Counter("process_cpu_seconds_total", "Total user and system CPU time spent in seconds.", used.Seconds())
	}
	collectFiles(s)
	collectSystem(s)
}

func (s *Scrape) memory(resident, virtual uint64) {
	s.Gauge("process_resident_memory_bytes", "Resident memory size in bytes.", float64(resident))
	s.Gauge("process_virtual_memory_bytes", "Virtual memory size in bytes.", float64(virtual))
}

func (s *Scrape) files(open, limit uint64) {
	s.Gauge("process_open_fds", "Number of open file descriptors.", float64(open))
	s.Gauge("process_max_fds", "Maximum number of open file descriptors.", float64(limit))
}
