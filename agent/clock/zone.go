package clock

import (
	"errors"
	"sync"
	"time"
)

// zones keeps the time zones that were loaded; there are some 600 of them.
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

// Wall times (date and time of day without a zone) are written as times in
// UTC. No zone is further from UTC than these.
const (
	furthestEast = 15 * time.Hour
	furthestWest = 13 * time.Hour
)

// Offset returns how far a zone's clocks are ahead of UTC at a moment.
func Offset(at time.Time, zone *time.Location) time.Duration {
	_, seconds := at.In(zone).Zone()
	return time.Duration(seconds) * time.Second
}

// ToInstant returns when a zone's clocks show a wall time. One that the zone
// skips, as clocks go forward, is moved by what is skipped; of one that comes
// twice the first is meant. No later wall time comes before earliest. plain
// says that the zone's clocks are not changed around that time.
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

// wallBefore returns a wall time that the clocks show, or have shown, at a
// moment, such that whatever comes later is shown later.
func wallBefore(at time.Time, zone *time.Location) time.Time {
	least := min(Offset(at, zone), Offset(at.Add(-25*time.Hour), zone), Offset(at.Add(25*time.Hour), zone))
	return at.UTC().Add(least)
}
