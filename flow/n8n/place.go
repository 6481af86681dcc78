package n8n

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"satchel/agent"
)

// The sizes of nodes differ: here a column is wider.
const (
	columnWidth = 280
	stretch     = 1.3
	sameColumn  = 100 // positions of n8n that are less apart
)

// place keeps the relative positions of nodes and makes room for units that became
// several nodes.
func (converter *converter) place() {
	count := map[*unit]int{}
	for _, m := range converter.nodes {
		count[m.unit]++
	}
	units := slices.SortedStableFunc(maps.Keys(count), func(a, b *unit) int {
		return cmp.Or(cmp.Compare(a.x, b.x), cmp.Compare(a.id, b.id))
	})
	at := map[*unit]float64{}
	shift, widest, column := 0.0, 0, math.Inf(-1)
	for _, u := range units {
		if u.x-column > sameColumn {
			shift += float64(max(widest-1, 0)) * columnWidth
			column, widest = u.x, 0
		}
		widest = max(widest, count[u])
		at[u] = u.x*stretch + shift
	}
	used := map[*unit]int{}
	left, top := math.Inf(1), math.Inf(1)
	for _, u := range units {
		left, top = min(left, at[u]), min(top, u.y)
	}
	for i := range converter.nodes {
		m := &converter.nodes[i]
		m.node.Position = &agent.Position{
			X: roundCoordinate(at[m.unit] - left + float64(used[m.unit])*columnWidth),
			Y: roundCoordinate(m.unit.y - top),
		}
		used[m.unit]++
	}
}

// roundCoordinate rounds a coordinate, and keeps it within what a canvas can show.
func roundCoordinate(f float64) float64 {
	return math.Round(min(max(f, -1e6), 1e6))
}
