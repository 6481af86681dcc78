package prometheus

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// CollectRuntime adds the metrics of Go's runtime, with the names and help texts that
// Prometheus's own client for Go gives them.
func CollectRuntime(s *Scrape) {
	s.Gauge("go_goroutines", "Number of goroutines that currently exist.", float64(runtime.NumGoroutine()))
	threads, _ := runtime.ThreadCreateProfile(nil) // false says that no records were returned
	s.Gauge("go_threads", "Number of OS threads created.", float64(threads))
	s.family("go_info", "Information about the Go environment.", "gauge").sample(
		"",
		string(appendLabel(nil, "version", runtime.Version())),
		1,
	)
	collectPauses(s)
	collectSettings(s)
	collectMemory(s)
}

// collectPauses adds how long garbage collections stopped the program.
func collectPauses(scrape *Scrape) {
	stats := debug.GCStats{PauseQuantiles: make([]time.Duration, 5)}
	debug.ReadGCStats(&stats)
	family := scrape.family(
		"go_gc_duration_seconds",
		"A summary of the wall-time pause (stop-the-world) duration in garbage collection cycles.",
		"summary",
	)
	for i, pause := range stats.PauseQuantiles {
		quantile := float64(i) / float64(len(stats.PauseQuantiles)-1)
		family.sample(
			"",
			string(appendLabel(nil, "quantile", string(appendFloat(nil, quantile)))),
			pause.Seconds(),
		)
	}
	family.sample("_sum", "", stats.PauseTotal.Seconds())
	family.sample("_count", "", float64(stats.NumGC))
	scrape.Gauge(
		"go_memstats_last_gc_time_seconds",
		"Number of seconds since 1970 of last garbage collection.",
		float64(stats.LastGC.UnixNano())/1e9,
	)
}

// collectSettings adds the runtime's limits.
func collectSettings(scrape *Scrape) {
	samples := []metrics.Sample{
		{Name: "/gc/gogc:percent"},
		{Name: "/gc/gomemlimit:bytes"},
		{Name: "/sched/gomaxprocs:threads"},
	}
	metrics.Read(samples)
	for index, setting := range []struct{ name, help string }{
		{
			"go_gc_gogc_percent",
			"Heap size target percentage configured by the user, otherwise 100. This value is set by the GOGC " +
				"environment variable, and the runtime/debug.SetGCPercent function. Sourced from /gc/gogc:percent.",
		},
		{
			"go_gc_gomemlimit_bytes",
			"Go runtime memory limit configured by the user, otherwise math.MaxInt64. This value is set by the " +
				"GOMEMLIMIT environment variable, and the runtime/debug.SetMemoryLimit function. " +
				"Sourced from /gc/gomemlimit:bytes.",
		},
		{
			"go_sched_gomaxprocs_threads",
			"The current runtime.GOMAXPROCS setting, or the number of operating system threads that can execute " +
				"user-level Go code simultaneously. Sourced from /sched/gomaxprocs:threads.",
		},
	} {
		if samples[index].Value.Kind() == metrics.KindUint64 { // a version of Go may have it no more
			scrape.Gauge(setting.name, setting.help, float64(samples[index].Value.Uint64()))
		}
	}
}

func collectMemory(scrape *Scrape) {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	for _, size := range []struct {
		name, help string
		bytes      uint64
	}{
		{
			"alloc_bytes",
			"Number of bytes allocated in heap and currently in use. Equals to /memory/classes/heap/objects:bytes.",
			stats.Alloc,
		},
		{
			"buck_hash_sys_bytes",
			"Number of bytes used by the profiling bucket hash table. " +
				"Equals to /memory/classes/profiling/buckets:bytes.",
			stats.BuckHashSys,
		},
		{
			"gc_sys_bytes",
			"Number of bytes used for garbage collection system metadata. " +
				"Equals to /memory/classes/metadata/other:bytes.",
			stats.GCSys,
		},
		{
			"heap_alloc_bytes",
			"Number of heap bytes allocated and currently in use, same as go_memstats_alloc_bytes. " +
				"Equals to /memory/classes/heap/objects:bytes.",
			stats.HeapAlloc,
		},
		{
			"heap_idle_bytes",
			"Number of heap bytes waiting to be used. Equals to /memory/classes/heap/released:bytes + " +
				"/memory/classes/heap/free:bytes.",
			stats.HeapIdle,
		},
		{
			"heap_inuse_bytes",
			"Number of heap bytes that are in use. Equals to /memory/classes/heap/objects:bytes + " +
				"/memory/classes/heap/unused:bytes",
			stats.HeapInuse,
		},
		{
			"heap_objects",
			"Number of currently allocated objects. Equals to /gc/heap/objects:objects.",
			stats.HeapObjects,
		},
		{
			"heap_released_bytes",
			"Number of heap bytes released to OS. Equals to /memory/classes/heap/released:bytes.",
			stats.HeapReleased,
		},
		{
			"heap_sys_bytes",
			"Number of heap bytes obtained from system. Equals to /memory/classes/heap/objects:bytes + " +
				"/memory/classes/heap/unused:bytes + /memory/classes/heap/released:bytes + " +
				"/memory/classes/heap/free:bytes.",
			stats.HeapSys,
		},
		{
			"mcache_inuse_bytes",
			"Number of bytes in use by mcache structures. Equals to /memory/classes/metadata/mcache/inuse:bytes.",
			stats.MCacheInuse,
		},
		{
			"mcache_sys_bytes",
			"Number of bytes used for mcache structures obtained from system. " +
				"Equals to /memory/classes/metadata/mcache/inuse:bytes + /memory/classes/metadata/mcache/free:bytes.",
			stats.MCacheSys,
		},
		{
			"mspan_inuse_bytes",
			"Number of bytes in use by mspan structures. Equals to /memory/classes/metadata/mspan/inuse:bytes.",
			stats.MSpanInuse,
		},
		{
			"mspan_sys_bytes",
			"Number of bytes used for mspan structures obtained from system. " +
				"Equals to /memory/classes/metadata/mspan/inuse:bytes + /memory/classes/metadata/mspan/free:bytes.",
			stats.MSpanSys,
		},
		{
			"next_gc_bytes",
			"Number of heap bytes when next garbage collection will take place. Equals to /gc/heap/goal:bytes.",
			stats.NextGC,
		},
		{
			"other_sys_bytes",
			"Number of bytes used for other system allocations. Equals to /memory/classes/other:bytes.",
			stats.OtherSys,
		},
		{
			"stack_inuse_bytes",
			"Number of bytes obtained from system for stack allocator in non-CGO environments. " +
				"Equals to /memory/classes/heap/stacks:bytes.",
			stats.StackInuse,
		},
		{
			"stack_sys_bytes",
			"Number of bytes obtained from system for stack allocator. Equals to /memory/classes/heap/stacks:bytes " +
				"+ /memory/classes/os-stacks:bytes.",
			stats.StackSys,
		},
		{"sys_bytes", "Number of bytes obtained from system. Equals to /memory/classes/total:byte.", stats.Sys},
	} {
		scrape.Gauge("go_memstats_"+size.name, size.help, float64(size.bytes))
	}
	scrape.Counter(
		"go_memstats_alloc_bytes_total",
		"Total number of bytes allocated in heap until now, even if released already. Equals to /gc/heap/allocs:bytes.",
		float64(stats.TotalAlloc),
	)
	scrape.Counter(
		"go_memstats_frees_total",
		"Total number of heap objects frees. Equals to /gc/heap/frees:objects + /gc/heap/tiny/allocs:objects.",
		float64(stats.Frees),
	)
	scrape.Counter(
		"go_memstats_mallocs_total",
		"Total number of heap objects allocated, both live and gc-ed. Semantically a counter version for "+
			"go_memstats_heap_objects gauge. Equals to /gc/heap/allocs:objects + /gc/heap/tiny/allocs:objects.",
		float64(stats.Mallocs),
	)
}
