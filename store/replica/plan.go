package replica

import (
	"slices"
	"time"

	"satchel/agent"
)

// The resolution of restores: every second for the last hour, every five minutes for a
// day, then every hour for as long as replicas are kept.
const (
	windowMinutes = 5 * time.Minute
	windowHours   = time.Hour
	keepCommits   = time.Hour
	keepMinutes   = 24 * time.Hour
)

// settled is how long after its end a window is merged.
const settled = time.Minute

// merge is an object to be made by merging others.
type merge struct {
	result object
	parts  []object
}

// plan returns which objects to merge and which to remove, such that every time since
// now-keep can be restored.
func plan(all []object, now time.Time, keep time.Duration) (merges []merge, remove []object) {
	for _, generation := range byGeneration(all) {
		merges = append(merges, mergesOf(generation, levelCommits, windowMinutes, now)...)
		merges = append(merges, mergesOf(generation, levelMinutes, windowHours, now)...)
		remove = append(remove, merged(generation, levelCommits, now.Add(-keepCommits))...)
		remove = append(remove, merged(generation, levelMinutes, now.Add(-keepMinutes))...)
	}
	for _, o := range expired(all, now.Add(-keep)) {
		if !slices.Contains(remove, o) {
			remove = append(remove, o)
		}
	}
	merges = slices.DeleteFunc(merges, func(m merge) bool {
		return slices.ContainsFunc(m.parts, func(o object) bool {
			return slices.Contains(remove, o)
		})
	})
	return merges, remove
}

// mergesOf returns the merges of one level's objects in windows that are over. A window
// waits for the merges of the level below.
func mergesOf(generation []object, level int, window time.Duration, now time.Time) (merges []merge) {
	windows := map[int64][]object{}
	for _, o := range generation {
		if o.level == level && !covered(generation, o) {
			windows[o.at/window.Milliseconds()] = append(windows[o.at/window.Milliseconds()], o)
		}
	}
	for count, parts := range windows {
		end := time.UnixMilli((count + 1) * window.Milliseconds())
		if now.Sub(end) < settled || level > levelCommits && hasUnmerged(generation, level-1, end) {
			continue
		}
		for len(parts) > 0 {
			run := follow(parts, parts[0].first-1)
			merges = append(merges, merge{
				object{
					generation: parts[0].generation,
					level:      level + 1,
					first:      run[0].first,
					last:       run[len(run)-1].last,
					at:         run[len(run)-1].at,
				},
				run,
			})
			last := run[len(run)-1].last
			parts = slices.DeleteFunc(parts, func(o object) bool {
				return o.last <= last
			})
		}
	}
	agent.Sort(merges, func(a, b merge) int {
		return int(a.result.at - b.result.at)
	})
	return merges
}

// covered reports whether an object of the next level covers o.
func covered(generation []object, o object) bool {
	return slices.ContainsFunc(generation, func(p object) bool {
		return p.level == o.level+1 && p.covers(o)
	})
}

// hasUnmerged reports whether objects of a level before a time are not merged yet.
func hasUnmerged(generation []object, level int, before time.Time) bool {
	return slices.ContainsFunc(generation, func(o object) bool {
		return o.level == level && o.at < before.UnixMilli() && !covered(generation, o)
	})
}

// merged returns the objects of a level from before a time that have been merged.
func merged(generation []object, level int, before time.Time) (found []object) {
	for _, o := range generation {
		if o.level == level && o.at < before.UnixMilli() && covered(generation, o) {
			found = append(found, o)
		}
	}
	return found
}

// expired returns the objects that no restore to since or later needs: those older than
// the newest snapshot before since.
func expired(all []object, since time.Time) (found []object) {
	var base object
	newest := map[string]int64{}
	for _, o := range all {
		newest[o.generation] = max(newest[o.generation], o.at)
		if o.level == levelSnapshots && o.at <= since.UnixMilli() && o.at > base.at {
			base = o
		}
	}
	for _, o := range all {
		old := newest[o.generation] < base.at
		if o.generation == base.generation {
			old = o != base && o.last <= base.last
		}
		if old {
			found = append(found, o)
		}
	}
	return found
}
