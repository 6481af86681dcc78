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

func (cluster *Cluster) beginShipment(s *shipment) {
	cluster.mu.Lock()
	defer cluster.mu.Unlock()
	cluster.lags.waiting[s] = true
}

// endShipmentLocked records the outcome of a commit. The caller holds mu.
func (cluster *Cluster) endShipmentLocked(s *shipment, err error) {
	delete(cluster.lags.waiting, s)
	cluster.lags.longest = max(cluster.lags.longest, time.Since(s.startedAt))
	if errors.Is(err, ErrNotOwner) {
		cluster.stats.Fences++
	}
}

func (cluster *Cluster) countError() {
	cluster.mu.Lock()
	defer cluster.mu.Unlock()
	cluster.stats.Errors++
}

// lagLocked returns how long commits have waited since the last heartbeat. The caller
// holds mu.
func (cluster *Cluster) lagLocked() time.Duration {
	lag := cluster.lags.longest
	for s := range cluster.lags.waiting {
		lag = max(lag, time.Since(s.startedAt))
	}
	return lag
}

// takeLag returns the lag to report in a heartbeat, and resets it.
func (cluster *Cluster) takeLag() time.Duration {
	cluster.mu.Lock()
	defer cluster.mu.Unlock()
	cluster.lags.reported, cluster.lags.longest = cluster.lagLocked(), 0
	return cluster.lags.reported
}

// Stats implements Directory.
func (cluster *Cluster) Stats() Stats {
	cluster.mu.Lock()
	defer cluster.mu.Unlock()
	s := cluster.stats
	s.Lag = max(cluster.lags.reported, cluster.lagLocked())
	s.Owned = cluster.owned[cluster.self.Session]
	return s
}

// clockTolerance is by how much a server's clock may differ from the database's.
const clockTolerance = 2 * time.Second

// compareClock records by how much this server's clock is ahead of the database's, going
// by the response to a poll and allowing for the time that it took. The times of
// schedules and of signatures depend on it.
func (cluster *Cluster) compareClock(result pollResult, now time.Time) {
	ahead := time.Duration(0)
	if after := result.startedAt.Sub(result.asOf); after > 0 {
		ahead = after
	} else if before := now.Sub(result.asOf); before < 0 {
		ahead = before
	}
	cluster.mu.Lock()
	before := cluster.stats.Ahead
	cluster.stats.Ahead = ahead
	cluster.mu.Unlock()
	if wrong := ahead.Abs() > clockTolerance; wrong && before.Abs() <= clockTolerance {
		cluster.Log.Warn(
			"the clocks of this server and of the cluster's database differ: schedules on this "+
				"server run at the wrong times",
			"ahead",
			ahead,
		)
	}
}
