package browser

import (
	"errors"
	"testing"
	"time"
)

// What is seen while an answer is owed is taken for a hang soon when it is one,
// and never on a machine that is only slow.
func TestSilence(t *testing.T) {
	times := func(n int, v vitals) []vitals {
		out := make([]vitals, n)
		for i := range out {
			out[i] = v
		}
		return out
	}
	join := func(parts ...[]vitals) (all []vitals) {
		for _, p := range parts {
			all = append(all, p...)
		}
		return all
	}
	idle, busy := vitals{known: true}, vitals{known: true, busy: true}
	stopped, owed := vitals{known: true, stopped: true}, vitals{known: true, own: true}
	var turns []vitals
	for range owedLooks / 12 {
		turns = append(turns, join(times(9, idle), times(1, busy))...)
	}
	for name, c := range map[string]struct {
		seen []vitals
		want error
		at   int // looks until then
	}{
		"stopped":                         {times(20, stopped), errIsStopped, stoppedLooks},
		"stopped while others work":       {times(20, vitals{known: true, stopped: true, busy: true, own: true}), errIsStopped, stoppedLooks},
		"stopped for a moment":            {join(times(3, stopped), times(3, busy), times(3, stopped), times(3, busy)), nil, 0},
		"asleep":                          {times(20, idle), errStands, idleLooks},
		"asleep after some work":          {join(times(7, busy), times(20, idle)), errStands, 7 + idleLooks},
		"asleep while we work":            {times(200, owed), errStands, blindLooks},
		"asleep while we work, mostly":    {join(times(15, owed), times(1, idle)), errStands, 16},
		"at work now and then":            {turns, nil, 0},
		"kept waiting":                    {times(owedLooks-1, busy), nil, 0},
		"kept waiting without end":        {times(owedLooks, busy), errOwes, owedLooks},
		"at work without end":             {join(times(50, busy), times(1, vitals{known: true, busy: true, used: spins})), errSpins, 51},
		"nothing to be seen":              {times(blindLooks, vitals{}), errOwes, blindLooks},
		"nothing to be seen for a moment": {times(blindLooks-1, vitals{}), nil, 0},
	} {
		var s silence
		var got error
		looks := 0
		for _, v := range c.seen {
			looks++
			if got = s.add(v); got != nil {
				break
			}
		}
		if !errors.Is(got, c.want) || got != nil && looks != c.at {
			t.Errorf("%s: %v after %d looks, want %v after %d", name, got, looks, c.want, c.at)
		}
	}
	if most := askEvery + idleLooks*lookEvery; most > 1600*time.Millisecond {
		t.Errorf("a hang is noticed after up to %v", most)
	}
}
