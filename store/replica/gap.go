package replica

import (
	"fmt"
	"time"
)

// gap is a place where an object is missing from a replica, or one that cannot be used.
type gap struct {
	what string // completes a sentence that begins with the agent
	safe int64  // the newest time before it that can be restored, in Unix milliseconds; 0: none
}

// Error says what is wrong and what can be restored instead.
func (g gap) Error() string {
	if g.safe == 0 {
		return g.what + ", and nothing older can be restored"
	}
	safe := time.UnixMilli(g.safe).UTC().Format(time.RFC3339Nano)
	return fmt.Sprintf("%s; restore the newest state before that with --at %s", g.what, safe)
}

// findGap returns what is missing to restore the newest of an agent's states at a time, in
// Unix milliseconds; nil if nothing is. That the newest objects are missing cannot be
// seen: the replica then looks like one of an earlier time.
func findGap(id string, all []object, at int64) *gap {
	best := chain(all, at)
	reached := int64(0)
	if len(best) > 0 {
		reached = best[len(best)-1].at
	}
	for _, generation := range byGeneration(all) {
		for _, o := range generation {
			if o.at > at || o.at <= reached {
				continue
			}
			if g := gapBefore(id, generation, o, at); g != nil {
				g.safe = reached
				return g
			}
		}
	}
	return nil
}

// gapBefore returns what is missing between the snapshot of a generation and an object;
// nil if nothing is. Objects that were merged into one with a later time are not missing.
func gapBefore(id string, generation []object, object object, at int64) *gap {
	objects := chainOf(generation, at)
	if len(objects) == 0 {
		for _, other := range generation {
			if other.level == levelSnapshots {
				return nil
			}
		}
		return &gap{what: fmt.Sprintf("the snapshot %s/%s/%d/… is missing", id, object.generation, levelSnapshots)}
	}
	end := objects[len(objects)-1]
	for _, other := range generation {
		if other.at > at && other.first <= end.last+1 && other.last > end.last {
			return nil
		}
	}
	return &gap{what: fmt.Sprintf(
		"the transactions %d to %d after the object %s/%s are missing",
		end.last+1,
		object.first-1,
		id,
		end.name(),
	)}
}

// damagedObject says that an object cannot be used. all are the objects of its agent.
func damagedObject(id string, all []object, o object, cause error) error {
	g := gap{what: fmt.Sprintf("the object %s/%s is missing or damaged (%v)", id, o.name(), cause)}
	if before := chain(all, o.at-1); len(before) > 0 {
		g.safe = before[len(before)-1].at
	}
	return g
}
