//go:build !linux

package browser

// probe treats all processes as busy: other systems do not make them as easy to
// inspect, so only the response time counts.
type probe struct{}

func newProbe(_, _ int) *probe { return &probe{} }

func (*probe) busy() bool { return true }

// endLargePages does nothing: other systems do not make it easy to see which processes are
// those of pages.
func endLargePages(_ int, _ int64) []int { return nil }
