package agent

import (
	"sync"
	"time"
)

// zones keeps the time zones that were loaded; there are some 600 of them.
var zones sync.Map

// Zone finds a time zone by its IANA name.
func Zone(name string) (*time.Location, error) {
	if z, ok := zones.Load(name); ok {
		return z.(*time.Location), nil
	}
	if name == "" || name == "Local" || len(name) > 64 {
		return nil, Invalid("timezone", "must be an IANA time zone such as Europe/Berlin")
	}
	z, err := time.LoadLocation(name)
	if err != nil {
		return nil, Invalid("timezone", "must be an IANA time zone such as Europe/Berlin")
	}
	zones.Store(name, z)
	return z, nil
}

// Wall times (date and time of day without a zone) are written as times in
// UTC. No zone is further from UTC than these.
const (
	furthestEast = 15 * time.Hour
	furthestWest = 13 * time.Hour
)

// offset is how far a zone's clocks are ahead of UTC at a moment.
func offset(at time.Time, zone *time.Location) time.Duration {
	_, seconds := at.In(zone).Zone()
	return time.Duration(seconds) * time.Second
}

// onClock returns when a zone's clocks show a wall time. One that the zone
// skips, as clocks go forward, is moved by what is skipped; of one that comes
// twice the first is meant. No later wall time comes before earliest. plain
// says that the zone's clocks are not changed around that time.
func onClock(wall time.Time, zone *time.Location) (at, earliest time.Time, plain bool) {
	before, after := offset(wall.Add(-furthestEast), zone), offset(wall.Add(furthestWest), zone)
	at = wall.Add(-before)
	if before == after {
		return at, at, true
	}
	earliest = wall.Add(-max(before, after))
	if offset(at, zone) != before {
		if later := wall.Add(-after); offset(later, zone) == after {
			at = later
		}
	}
	return at, earliest, false
}

// wallBefore returns a wall time that the clocks show, or have shown, at a
// moment, such that whatever comes later is shown later.
func wallBefore(at time.Time, zone *time.Location) time.Time {
	least := min(offset(at, zone), offset(at.Add(-25*time.Hour), zone), offset(at.Add(25*time.Hour), zone))
	return at.UTC().Add(least)
}
