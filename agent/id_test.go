package agent

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestIDShape(t *testing.T) {
	shape := regexp.MustCompile(`^[a-z]+-[0-9a-v]{20}$`)
	for _, kind := range []string{
		KindAgent, KindAdmin, KindSource, KindChunk, KindContact, KindConversation, KindKey, KindEvent, KindLog,
	} {
		id := NewID(kind)
		if !shape.MatchString(id) || !strings.HasPrefix(id, kind+"-") {
			t.Errorf("NewID(%q) = %q", kind, id)
		}
	}
}

func TestIDsSortByTime(t *testing.T) {
	var made []string
	for range 20_000 { // many within each millisecond
		made = append(made, NewID(KindContact))
	}
	if !slices.IsSorted(made) {
		t.Error("ids of one process do not sort by the time of their creation")
	}
}

func TestTokensSortAcrossMilliseconds(t *testing.T) {
	start := time.Now().Add(time.Hour).UnixMilli() // ahead of every other test's clock
	var before int64
	var tail uint64
	for _, step := range []int64{0, 0, 1, 1, -50, 2} { // -50: the clock was set back
		ms, next := nextToken(start + step)
		if ms < before || ms == before && next <= tail {
			t.Fatalf("step %d: token (%d, %d) does not sort after (%d, %d)", step, ms, next, before, tail)
		}
		before, tail = ms, next
	}
}

func TestIDsAreUniqueUnderConcurrency(t *testing.T) {
	const workers, each = 16, 2_000
	made := make([][]string, workers)
	var running sync.WaitGroup
	for w := range workers {
		running.Go(func() {
			for range each {
				made[w] = append(made[w], NewID(KindLog))
			}
		})
	}
	running.Wait()
	seen := map[string]bool{}
	for _, ids := range made {
		for _, id := range ids {
			if seen[id] {
				t.Fatalf("%s was returned twice", id)
			}
			seen[id] = true
		}
	}
}

func BenchmarkNewID(b *testing.B) {
	for b.Loop() {
		NewID(KindContact)
	}
}
