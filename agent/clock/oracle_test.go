package clock

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/robfig/cron/v3"
)

// randomField returns a field of a cron expression that both parsers support.
func randomField(r *rand.Rand, low, high int) string {
	between := func() (int, int) {
		a, b := low+r.IntN(high-low+1), low+r.IntN(high-low+1)
		return min(a, b), max(a, b)
	}
	var parts []string
	for range 1 + r.IntN(3) {
		a, b := between()
		switch r.IntN(6) {
		case 0, 1:
			return "*"
		case 2:
			parts = append(parts, fmt.Sprintf("*/%d", 1+r.IntN(high)))
		case 3:
			parts = append(parts, fmt.Sprintf("%d-%d", a, b))
		case 4:
			parts = append(parts, fmt.Sprintf("%d-%d/%d", a, b, 1+r.IntN(high)))
		default:
			parts = append(parts, fmt.Sprint(a))
		}
	}
	return strings.Join(parts, ",")
}

// TestCronMatchesReference compares runs with another implementation, in UTC,
// where clocks do not change.
func TestCronMatchesReference(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	compared := 0
	for range 3000 {
		expression := strings.Join(
			[]string{
				randomField(r, 0, 59),
				randomField(r, 0, 23),
				randomField(r, 1, 31),
				randomField(r, 1, 12),
				randomField(r, 0, 6),
			},
			" ",
		)
		ours, err := ParseCron(expression)
		theirs, other := cron.ParseStandard(expression)
		if other != nil {
			t.Fatalf("%s: %v", expression, other)
		}
		after := time.Date(
			2000+r.IntN(60),
			time.Month(1+r.IntN(12)),
			1+r.IntN(28),
			r.IntN(24),
			r.IntN(60),
			r.IntN(60),
			0,
			time.UTC,
		)
		if err != nil {
			if next := theirs.Next(after); !next.IsZero() {
				t.Fatalf("%s: %v, and the other implementation finds %s", expression, err, next)
			}
			continue
		}
		compared++
		for range 5 {
			want := theirs.Next(after)
			if want.IsZero() {
				break // the other implementation only looks five years ahead
			}
			if got := ours.Next(after, time.UTC); !got.Equal(want) {
				t.Fatalf("%s after %s: %s, want %s", expression, after, got, want)
			}
			after = want
		}
	}
	if compared < 2000 {
		t.Errorf("only %d expressions were compared", compared)
	}
}
