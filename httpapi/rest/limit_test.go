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
