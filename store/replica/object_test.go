package replica

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

const genA, genB = "018bcfe5687aaaaaaaaaa", "018bcfe5688bbbbbbbbbb"

func TestObjectNames(t *testing.T) {
	o := object{genA, levelMinutes, 2, 300, 1_700_000_000_123}
	if got, ok := parseObject(o.name()); !ok || got != o {
		t.Errorf("%s is read as %+v", o.name(), got)
	}
	for _, name := range []string{
		"",
		"agent.json",
		o.name() + ".partial",
		genA + "/5/" + o.name()[24:],
		"../" + o.name(),
		genA + "/0/0000000000000000-0000000000000001-018bcfe5687.ltx",
		genA + "/0/0000000000000003-0000000000000001-018bcfe5687.ltx",
	} {
		if got, ok := parseObject(name); ok {
			t.Errorf("%q is read as %+v", name, got)
		}
	}
}

func TestChain(t *testing.T) {
	all := []object{
		{genA, levelSnapshots, 1, 1, 100},
		{genA, 0, 2, 3, 110},
		{genA, 0, 4, 4, 120},
		{genA, 1, 2, 4, 120},
		{genA, 0, 5, 5, 130},
		{genA, levelSnapshots, 1, 5, 130},
		{genA, 0, 6, 6, 140},
		{genA, 0, 8, 8, 160}, // 7 is missing
		{genB, 0, 2, 2, 210}, // arrived before its snapshot
		{genB, levelSnapshots, 1, 1, 200},
	}
	for at, want := range map[int64][]object{
		99: nil, 100: all[:1], 115: all[:2], 125: {all[0], all[3]}, 130: {all[5]}, 150: all[5:7], 170: all[5:7],
		205: {all[9]}, 300: {all[9], all[8]},
	} {
		if got := chain(all, at); !slices.Equal(got, want) {
			t.Errorf("at %d: %v, want %v", at, got, want)
		}
	}
}

// Whatever is merged and removed over time, every moment can be restored with the
// precision that is promised for its age.
func TestPlanKeepsThePast(t *testing.T) {
	const keep = 10 * 24 * time.Hour
	random := rand.New(rand.NewPCG(3, 4))
	start := time.UnixMilli(1_700_000_000_000)
	var all, ever []object
	add := func(o object) { all, ever = append(all, o), append(ever, o) }
	add(object{genA, levelSnapshots, 1, 1, start.UnixMilli()})
	generation, next, based := genA, uint64(2), start
	now := start
	for range 900 {
		if random.IntN(3) == 0 {
			now = now.Add(time.Duration(random.IntN(int(2 * time.Hour))))
		} else {
			now = now.Add(time.Second + time.Duration(random.IntN(int(5*time.Minute))))
		}
		last := next + random.Uint64N(5)
		add(object{generation, 0, next, last, now.UnixMilli()})
		next = last + 1
		switch {
		case generation == genA && now.Sub(start) > 8*24*time.Hour: // a kill
			generation, next, based = genB, 2, now
			add(object{generation, levelSnapshots, 1, 1, now.UnixMilli() + 1})
		case now.Sub(based) > 3*24*time.Hour:
			based = now
			add(object{generation, levelSnapshots, 1, last, now.UnixMilli()})
		}
		if random.IntN(10) == 0 {
			all = applied(t, all, now, keep)
			checkPast(t, random, all, ever, now, keep)
		}
	}
	all = applied(t, all, now.Add(2*keep), keep)
	all = applied(t, all, now.Add(2*keep), keep)
	if got, want := chain(all, endOfTime), chain(ever, endOfTime); got[len(got)-1].at != want[len(want)-1].at {
		t.Error("the newest state of an idle agent is lost")
	}
	if len(all) > 100 {
		t.Errorf("%d objects are left", len(all))
	}
}

// applied returns the objects that remain after the merges and removals of a plan.
func applied(t *testing.T, all []object, now time.Time, keep time.Duration) []object {
	t.Helper()
	merges, remove := plan(all, now, keep)
	all = slices.Clone(all)
	for _, m := range merges {
		for i, o := range m.parts[1:] {
			if o.first != m.parts[i].last+1 {
				t.Fatalf("%v does not follow %v", o, m.parts[i])
			}
		}
		all = append(all, m.result)
	}
	return slices.DeleteFunc(all, func(o object) bool { return slices.Contains(remove, o) })
}

// checkPast compares what can be restored with all that was ever uploaded.
func checkPast(t *testing.T, random *rand.Rand, all, ever []object, now time.Time, keep time.Duration) {
	t.Helper()
	for range 20 {
		age := time.Duration(random.Int64N(int64(min(keep, now.Sub(time.UnixMilli(ever[0].at))))))
		step := windowHours
		if age < keepCommits {
			step = 0
		} else if age < keepMinutes {
			step = windowMinutes
		}
		at := now.Add(-age).UnixMilli()
		exact, got := chain(ever, at-step.Milliseconds()), chain(all, at)
		if len(exact) == 0 {
			continue
		}
		if len(got) == 0 || got[len(got)-1].at < exact[len(exact)-1].at {
			t.Fatalf("%v ago: %v, want at least %v", age, got, exact)
		}
	}
}
