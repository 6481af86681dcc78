package httpapi

import (
	"testing"
	"time"
)

func TestSecondsLeft(t *testing.T) {
	t.Parallel()
	// Each step is a second in which pages are done and found.
	for _, c := range []struct {
		name        string
		done, found int
		total       int
		seconds     int
		least, most int
	}{
		{"steady", 2, 0, 400, 20, 175, 190},
		{"too early", 2, 0, 400, 5, 0, 0},
		{"too little was done", 0, 0, 400, 30, 0, 0},
		{"nothing left", 2, 0, 38, 20, 0, 0},
		{"much is found", 2, 2, 400, 20, 0, 0},
		{"some is found", 4, 1, 400, 20, 110, 120},
		{"an hour", 1, 0, 5000, 90, 4900, 5000},
	} {
		var samples []progressSample
		now, done, total := time.Unix(0, 0), 0, c.total
		for range 4 * c.seconds { // more often than samples are kept
			samples = addSample(samples, progressSample{now, done, total})
			if now = now.Add(250 * time.Millisecond); now.Nanosecond() == 0 {
				done, total = done+c.done, total+c.found
			}
		}
		if got := secondsLeft(samples); got < c.least || got > c.most {
			t.Errorf("%s: %d s are left, want %d to %d", c.name, got, c.least, c.most)
		}
		if len(samples) > 63 {
			t.Errorf("%s: %d samples are kept", c.name, len(samples))
		}
	}
}
