package cluster

import (
	"errors"
	"time"
)

// lags records how long commits wait for the database.
type lags struct {
	waiting  map[*shipment]bool
	longest  time.Duration // of those that ended since the last heartbeat
	reported time.Duration // by the last heartbeat
}

func (c *Cluster) beginShipment(s *shipment) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lags.waiting[s] = true
}

// endShipmentLocked records the outcome of a commit. The caller holds mu.
func (c *Cluster) endShipmentLocked(s *shipment, err error) {
	delete(c.lags.waiting, s)
	c.lags.longest = max(c.lags.longest, time.Since(s.startedAt))
	if errors.Is(err, ErrNotOwner) {
		c.stats.Fences++
	}
}

func (c *Cluster) countError() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Errors++
}

// lagLocked returns how long commits have waited since the last heartbeat. The caller
// holds mu.
func (c *Cluster) lagLocked() time.Duration {
	lag := c.lags.longest
	for s := range c.lags.waiting {
		lag = max(lag, time.Since(s.startedAt))
	}
	return lag
}

// takeLag returns the lag to report in a heartbeat, and resets it.
func (c *Cluster) takeLag() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lags.reported, c.lags.longest = c.lagLocked(), 0
	return c.lags.reported
}

// Stats implements Directory.
func (c *Cluster) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.stats
	s.Lag = max(c.lags.reported, c.lagLocked())
	s.Owned = c.owned[c.self.Session]
	return s
}

// clockTolerance is by how much a server's clock may differ from the database's.
const clockTolerance = 2 * time.Second

// compareClock records by how much this server's clock is ahead of the database's, going
// by the response to a poll and allowing for the time that it took. The times of
// schedules and of signatures depend on it.
func (c *Cluster) compareClock(p pollResult, now time.Time) {
	ahead := time.Duration(0)
	if after := p.startedAt.Sub(p.asOf); after > 0 {
		ahead = after
	} else if before := now.Sub(p.asOf); before < 0 {
		ahead = before
	}
	c.mu.Lock()
	before := c.stats.Ahead
	c.stats.Ahead = ahead
	c.mu.Unlock()
	if wrong := ahead.Abs() > clockTolerance; wrong && before.Abs() <= clockTolerance {
		c.Log.Warn(
			"the clocks of this server and of the cluster's database differ: schedules on this "+
				"server run at the wrong times",
			"ahead",
			ahead,
		)
	}
}
