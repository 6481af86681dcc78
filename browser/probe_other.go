//go:build !linux

package browser

// probe: other systems do not show their processes so simply, so all are taken
// for busy, and only the time counts that an answer takes.
type probe struct{}

func newProbe(_, _ int) *probe { return &probe{} }

func (*probe) busy() bool { return true }
