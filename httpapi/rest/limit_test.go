package rest

import (
	"net/netip"
	"testing"
	"time"
)

// TestLimiterIsBounded floods the limiter with addresses.
func TestLimiterIsBounded(t *testing.T) {
	l := NewLimiter(map[string]int{"general": 10}, nil, time.Now)
	base := netip.MustParseAddr("2001:db8::1").As16()
	for i := range 3 * maxClients {
		base[5], base[6], base[7] = byte(i>>16), byte(i>>8), byte(i)
		l.take(General, client{prefix: network(netip.AddrFrom16(base))})
	}
	if len(l.counts) > maxClients+4096 {
		t.Errorf("%d clients are kept", len(l.counts))
	}
	a, b := netip.MustParseAddr("2001:db8:1:1::1"), netip.MustParseAddr("2001:db8:1:1:ffff::2")
	if network(a) != network(b) {
		t.Error("one IPv6 network counts as two clients")
	}
}

// TestWindowBelongsToClient checks that a client's window begins with its first request,
// whatever the time of day and the windows of others.
func TestWindowBelongsToClient(t *testing.T) {
	start := time.Unix(1_800_000_059, 900_000_000) // one second before a full minute
	now := start
	l := NewLimiter(map[string]int{"general": 2}, nil, func() time.Time { return now })
	a, b := client{name: "a"}, client{name: "b"}
	for _, step := range []struct {
		after time.Duration
		who   client
		left  int
		reset time.Duration
	}{
		{0, a, 1, 60 * time.Second},
		{time.Second, a, 0, 60 * time.Second},
		{30 * time.Second, b, 1, 90 * time.Second},
		{59 * time.Second, a, -1, 60 * time.Second},
		{60 * time.Second, a, 1, 120 * time.Second},
		{89 * time.Second, b, 0, 90 * time.Second},
		{90 * time.Second, b, 1, 150 * time.Second},
		{-time.Hour, b, 1, -time.Hour + 60*time.Second}, // the clock is set back
	} {
		now = start.Add(step.after)
		_, left, reset := l.take(General, step.who)
		if want := start.Add(step.reset).Truncate(time.Second); left != step.left || !reset.Equal(want) {
			t.Errorf(
				"%s after %s: %d left until %s, want %d until %s",
				step.who.name, step.after, left, reset, step.left, want,
			)
		}
	}
	now = start.Add(time.Hour)
	l.take(General, client{name: "c"})
	if len(l.counts) != 1 {
		t.Errorf("%d counts are kept after their windows", len(l.counts))
	}
}
