// Package prometheus keeps metrics and writes them in Prometheus's text format, version
// 0.0.4 (https://prometheus.io/docs/instrumenting/exposition_formats/).
package prometheus

import (
	"slices"
	"strconv"
	"strings"
	"sync"
)

// ContentType is the media type of Registry.Text.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// A Registry has the functions that collect a server's metrics. Its zero value has none.
type Registry struct {
	mu         sync.Mutex // guards collectors
	collectors []func(*Scrape)
}

// Register adds a function that is called for each scrape, even at the same time as for
// another.
func (r *Registry) Register(collect func(*Scrape)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.collectors = append(r.collectors, collect)
}

// Text returns all metrics, sorted by name.
func (r *Registry) Text() []byte {
	r.mu.Lock()
	collectors := slices.Clone(r.collectors)
	r.mu.Unlock()
	var s Scrape
	for _, collect := range collectors {
		collect(&s)
	}
	slices.SortFunc(s.families, func(a, b *family) int {
		return strings.Compare(a.name, b.name)
	})
	var out []byte
	for _, f := range s.families {
		out = append(out, f.text...)
	}
	return out
}

// A Scrape collects the present values of metrics. A name may be added once.
type Scrape struct {
	families []*family
}

// family is the text of all samples of a metric.
type family struct {
	name string
	text []byte
}

// Gauge adds a value that rises and falls.
func (s *Scrape) Gauge(name, help string, value float64) {
	s.family(name, help, "gauge").sample("", "", value)
}

// Counter adds a value that only rises.
func (s *Scrape) Counter(name, help string, value float64) {
	s.family(name, help, "counter").sample("", "", value)
}

// family begins a metric of a type.
func (s *Scrape) family(name, help, kind string) *family {
	f := &family{name: name}
	f.text = append(append(append(f.text, "# HELP "...), name...), ' ')
	f.text = append(escape(f.text, help, false), "\n# TYPE "...)
	f.text = append(append(append(append(f.text, name...), ' '), kind...), '\n')
	s.families = append(s.families, f)
	return f
}

// sample adds a line: the name with a suffix, its labels as appendLabel writes them, and
// the value.
func (f *family) sample(suffix, labels string, value float64) {
	f.text = append(append(f.text, f.name...), suffix...)
	if labels != "" {
		f.text = append(append(append(f.text, '{'), labels...), '}')
	}
	f.text = append(appendFloat(append(f.text, ' '), value), '\n')
}

// appendLabel appends a label to others.
func appendLabel(labels []byte, name, value string) []byte {
	if len(labels) > 0 {
		labels = append(labels, ',')
	}
	labels = append(append(labels, name...), `="`...)
	return append(escape(labels, value, true), '"')
}

// escape appends a text of one line, or one in quotes.
func escape(dst []byte, text string, quoted bool) []byte {
	start := 0
	for i := range len(text) {
		if c := text[i]; c == '\n' {
			dst, start = append(append(dst, text[start:i]...), `\n`...), i+1
		} else if c == '\\' || c == '"' && quoted {
			dst, start = append(append(dst, text[start:i]...), '\\'), i
		}
	}
	return append(dst, text[start:]...)
}

func appendFloat(dst []byte, value float64) []byte {
	return strconv.AppendFloat(dst, value, 'g', -1, 64)
}
