package gateways

import (
	"net/netip"
	"testing"
	"time"

	"satchel/agent"
)

// TestNetworkSharesUploads: the visitors of one network leave room for the uploads of
// others.
func TestNetworkSharesUploads(t *testing.T) {
	vs := newVisitors([]byte("k"))
	one, other := netip.MustParsePrefix("192.0.2.1/32"), netip.MustParsePrefix("192.0.2.2/32")
	began := 0
	for _, thread := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		if vs.beginUpload(visitKey{"agent", "gateway", thread}, one) {
			began++
		}
	}
	if began != maxNetworkUploads || !vs.beginUpload(visitKey{"agent", "gateway", "z"}, other) {
		t.Errorf("%d uploads of one network, or none of another", began)
	}
	for _, thread := range []string{"a", "b", "c", "d"} {
		vs.endUpload(visitKey{"agent", "gateway", thread}, one)
	}
	vs.endUpload(visitKey{"agent", "gateway", "z"}, other)
	if len(vs.uploads) != 0 {
		t.Errorf("counted after their end: %v", vs.uploads)
	}
}

// TestNetworkSharesDay: what a network has sent counts for one day, and what was not stored
// does not count.
func TestNetworkSharesDay(t *testing.T) {
	r := newHookFixture(t, nil)
	w, _ := r.openWidget(t, agent.WidgetConfigChange{})
	v := Visitor{ID: "v", Network: netip.MustParsePrefix("192.0.2.1/32")}
	const share = agent.MaxWidgetFileBytes / networkShare
	if err := w.takeBytes(&v, share); err != nil {
		t.Fatal(err)
	}
	if err := w.takeBytes(&v, 1); agent.ErrorCode(err) != agent.CodeRateLimited {
		t.Errorf("over the share: %v", err)
	}
	elsewhere := Visitor{ID: "w", Network: netip.MustParsePrefix("192.0.2.2/32")}
	if err := w.takeBytes(&elsewhere, 1); err != nil {
		t.Errorf("another network: %v", err)
	}
	r.visitors.refund(w.sender(&v), sent{bytes: 1})
	if err := w.takeBytes(&v, 1); err != nil {
		t.Errorf("after a byte was given back: %v", err)
	}
	r.clock.pass(24 * time.Hour)
	if err := w.takeBytes(&v, share); err != nil {
		t.Errorf("the next day: %v", err)
	}
	if len(r.visitors.sent) != 1 {
		t.Errorf("%d networks are kept from the day before", len(r.visitors.sent))
	}
}
