package browser

import (
	"errors"
	"slices"
	"testing"
	"time"
)

// Probes without an answer count as a hang soon if the processes are idle, and not
// if the machine is only slow.
func TestHeartbeat(t *testing.T) {
	idle, busy := func(n int) []bool {
		return slices.Repeat([]bool{false}, n)
	}, func(n int) []bool { return slices.Repeat([]bool{true}, n) }
	for name, c := range map[string]struct {
		busy []bool
		want error
		at   int // number of probes until then
	}{
		"idle":            {idle(20), errHung, hungAfter},
		"idle after work": {slices.Concat(busy(7), idle(20)), errHung, 7 + hungAfter},
		"busy now and then": {
			slices.Repeat(slices.Concat(idle(hungAfter-1), busy(1)), timeoutAfter/hungAfter-1),
			nil,
			0,
		},
		"busy for long":       {busy(timeoutAfter - 1), nil, 0},
		"busy without an end": {busy(timeoutAfter), errTimeout, timeoutAfter},
	} {
		var h heartbeat
		var got error
		probes := 0
		for _, busy := range c.busy {
			probes++
			if got = h.missed(busy); got != nil {
				break
			}
		}
		if !errors.Is(got, c.want) || got != nil && probes != c.at {
			t.Errorf("%s: %v after %d probes, want %v after %d", name, got, probes, c.want, c.at)
		}
	}
	if most := heartbeatEvery + hungAfter*probeEvery; most > 2*time.Second {
		t.Errorf("a hang is detected after up to %v", most)
	}
}
