package clock

import (
	"errors"
	"sync"
	"time"
)

// zones caches loaded time zones. There are some 600 of them.
var zones sync.Map

var errZone = errors.New("must be an IANA time zone such as Europe/Berlin")

// Zone returns a time zone by its IANA name.
func Zone(name string) (*time.Location, error) {
	if z, ok := zones.Load(name); ok {
		return z.(*time.Location), nil
	}
	if name == "" || name == "Local" || len(name) > 64 {
		return nil, errZone
	}
	z, err := time.LoadLocation(name)
	if err != nil {
		return nil, errZone
	}
	zones.Store(name, z)
	return z, nil
}

// Wall clock times (date and time of day without a zone) are represented as
// times in UTC. No zone is further from UTC than these offsets.
const (
	furthestEast = 15 * time.Hour
	furthestWest = 13 * time.Hour
)

// Offset returns how far a zone's wall clock is ahead of UTC at a time.
func Offset(at time.Time, zone *time.Location) time.Duration {
	_, seconds := at.In(zone).Zone()
	return time.Duration(seconds) * time.Second
}

// ToInstant returns the instant of a wall clock time in a zone. A skipped time,
// as clocks go forward, is shifted by the gap; of a repeated time it returns
// the first. No later wall clock time is before earliest. plain reports that
// the zone's clocks do not change around that time.
func ToInstant(wall time.Time, zone *time.Location) (at, earliest time.Time, plain bool) {
	before, after := Offset(wall.Add(-furthestEast), zone), Offset(wall.Add(furthestWest), zone)
	at = wall.Add(-before)
	if before == after {
		return at, at, true
	}
	earliest = wall.Add(-max(before, after))
	if Offset(at, zone) != before {
		if later := wall.Add(-after); Offset(later, zone) == after {
			at = later
		}
	}
	return at, earliest, false
}

// wallBefore returns a wall clock time shown at or before an instant, such that
// every later instant shows a later one.
func wallBefore(at time.Time, zone *time.Location) time.Time {
	least := min(
		Offset(at, zone),
		Offset(at.Add(-25*time.Hour), zone),
		Offset(at.Add(25*time.Hour), zone),
	)
	return at.UTC().Add(least)
}
