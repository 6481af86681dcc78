package replica

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"satchel/agent"
)

// Levels of objects; see the package comment.
const (
	levelCommits   = 0
	levelMinutes   = 1
	levelHours     = 2
	levelSnapshots = 9
)

// object is an object that holds the changes of a range of transactions.
type object struct {
	generation string
	level      int
	first      uint64 // transactions
	last       uint64
	at         int64 // Unix milliseconds of the last one
}

// name is the object's key under its agent.
func (o object) name() string {
	return fmt.Sprintf("%s/%d/%016x-%016x-%011x.ltx", o.generation, o.level, o.first, o.last, o.at)
}

var objectName = agent.Pattern(`^([0-9a-f]{21})/([0129])/([0-9a-f]{16})-([0-9a-f]{16})-([0-9a-f]{11})\.ltx$`)

// parseObject parses an object's name. It returns false if the name is not one of ours.
func parseObject(name string) (object, bool) {
	m := objectName().FindStringSubmatch(name)
	if m == nil {
		return object{}, false
	}
	level, _ := strconv.Atoi(m[2])
	first, _ := strconv.ParseUint(m[3], 16, 64)
	last, _ := strconv.ParseUint(m[4], 16, 64)
	at, _ := strconv.ParseInt(m[5], 16, 64)
	return object{
		generation: m[1],
		level:      level,
		first:      first,
		last:       last,
		at:         at,
	}, first >= 1 && first <= last
}

// covers reports whether o has all transactions of p.
func (o object) covers(p object) bool {
	return o.generation == p.generation && o.first <= p.first && o.last >= p.last
}

// byGeneration returns the objects of each generation, oldest generation first.
func byGeneration(all []object) [][]object {
	sorted := slices.SortedFunc(slices.Values(all), func(a, b object) int {
		return cmp.Or(
			strings.Compare(a.generation, b.generation),
			cmp.Compare(a.first, b.first),
			cmp.Compare(a.last, b.last),
		)
	})
	var groups [][]object
	for i, o := range sorted {
		if i == 0 || o.generation != sorted[i-1].generation {
			groups = append(groups, nil)
		}
		groups[len(groups)-1] = append(groups[len(groups)-1], o)
	}
	return groups
}

// chain returns, in order, the objects from which the file is restored as it was at a
// time, in Unix milliseconds; none if nothing is that old.
func chain(all []object, at int64) []object {
	var best []object
	for _, generation := range byGeneration(all) {
		c := chainOf(generation, at)
		if len(c) > 0 && (len(best) == 0 || c[len(c)-1].at >= best[len(best)-1].at) {
			best = c
		}
	}
	return best
}

// chainOf is chain within one generation, whose objects are sorted.
func chainOf(generation []object, at int64) []object {
	var snapshot object
	var rest []object
	for _, o := range generation {
		switch {
		case o.at > at:
		case o.level != levelSnapshots:
			rest = append(rest, o)
		case o.last > snapshot.last:
			snapshot = o
		}
	}
	if snapshot.last == 0 {
		return nil
	}
	return append([]object{snapshot}, follow(rest, snapshot.last)...)
}

// follow returns the fewest of the sorted objects that continue after a transaction.
func follow(sorted []object, last uint64) (found []object) {
	var next object
	for {
		for len(sorted) > 0 && sorted[0].first <= last+1 {
			if sorted[0].last > next.last {
				next = sorted[0]
			}
			sorted = sorted[1:]
		}
		if next.last <= last {
			return found
		}
		found, last = append(found, next), next.last
	}
}
