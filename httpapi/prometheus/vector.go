package prometheus

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// vector has a series for each combination of label values that occurred.
type vector[T any] struct {
	labels []string
	create func() *T
	mu     sync.RWMutex  // guards series
	series map[string]*T // by labels, as appendLabel writes them
}

func newVector[T any](labels []string, create func() *T) vector[T] {
	return vector[T]{
		labels: labels,
		create: create,
		series: map[string]*T{},
	}
}

// with returns the series with the values of the labels.
func (v *vector[T]) with(values []string) *T {
	var buffer [128]byte // the labels of most series fit
	key := buffer[:0]
	for i, label := range v.labels {
		key = appendLabel(key, label, values[i])
	}
	v.mu.RLock()
	s := v.series[string(key)]
	v.mu.RUnlock()
	if s != nil {
		return s
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if s = v.series[string(key)]; s == nil {
		s = v.create()
		v.series[string(key)] = s
	}
	return s
}

// snapshot returns all series, and their labels in order.
func (v *vector[T]) snapshot() (labels []string, series map[string]*T) {
	v.mu.RLock()
	series = maps.Clone(v.series)
	v.mu.RUnlock()
	return slices.Sorted(maps.Keys(series)), series
}

// A CounterVec counts by labels.
type CounterVec struct {
	name, help string
	vector     vector[atomic.Uint64]
}

// CounterVec registers counters with labels. They are missing while nothing is counted.
func (r *Registry) CounterVec(name, help string, labels ...string) *CounterVec {
	c := &CounterVec{
		name: name,
		help: help,
		vector: newVector(labels, func() *atomic.Uint64 {
			return new(atomic.Uint64)
		}),
	}
	r.Register(c.collect)
	return c
}

// Inc adds one to the counter with the values of the labels, in their order.
func (c *CounterVec) Inc(values ...string) {
	c.vector.with(values).Add(1)
}

func (c *CounterVec) collect(s *Scrape) {
	all, series := c.vector.snapshot()
	if len(all) == 0 {
		return
	}
	f := s.family(c.name, c.help, "counter")
	for _, labels := range all {
		f.sample("", labels, float64(series[labels].Load()))
	}
}

// A HistogramVec counts values by size and labels.
type HistogramVec struct {
	name, help string
	bounds     []float64
	vector     vector[histogram]
}

// histogram is a series of a HistogramVec.
type histogram struct {
	mu     sync.Mutex // guards the rest
	counts []uint64   // of each bucket without the smaller ones; the last is of values above all bounds
	sum    float64
}

// HistogramVec registers histograms with labels, whose buckets have these upper bounds, in
// ascending order. They are missing while nothing is observed.
func (r *Registry) HistogramVec(name, help string, bounds []float64, labels ...string) *HistogramVec {
	h := &HistogramVec{
		name:   name,
		help:   help,
		bounds: bounds,
		vector: newVector(labels, func() *histogram {
			return &histogram{counts: make([]uint64, len(bounds)+1)}
		}),
	}
	r.Register(h.collect)
	return h
}

// Observe adds a value to the histogram with the values of the labels, in their order.
func (h *HistogramVec) Observe(value float64, labels ...string) {
	bucket, _ := slices.BinarySearch(h.bounds, value) // the first whose bound is not below the value
	s := h.vector.with(labels)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[bucket]++
	s.sum += value
}

func (h *HistogramVec) collect(s *Scrape) {
	all, series := h.vector.snapshot()
	if len(all) == 0 {
		return
	}
	f := s.family(h.name, h.help, "histogram")
	for _, labels := range all {
		h.samples(f, labels, series[labels])
	}
}

// samples adds the lines of one series.
func (h *HistogramVec) samples(f *family, labels string, s *histogram) {
	s.mu.Lock()
	counts, sum := slices.Clone(s.counts), s.sum
	s.mu.Unlock()
	total := uint64(0) // a bucket's count includes the smaller ones
	for i, n := range counts {
		bound := "+Inf"
		if i < len(h.bounds) {
			bound = string(appendFloat(nil, h.bounds[i]))
		}
		total += n
		f.sample("_bucket", string(appendLabel([]byte(labels), "le", bound)), float64(total))
	}
	f.sample("_sum", labels, sum)
	f.sample("_count", labels, float64(total))
}
