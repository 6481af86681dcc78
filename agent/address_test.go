package agent

import (
	"net/netip"
	"testing"
)

func TestAddressRanges(t *testing.T) {
	for text, want := range map[string]string{
		"10.0.0.0/8": "10.0.0.0/8", "127.0.0.1": "127.0.0.1/32", "::1": "::1/128",
		"127.0.0.1:1234": "127.0.0.1:1234", "[::1]:1234": "[::1]:1234",
		"10.1.2.3/8": "", "127.0.0.1:0": "", "127.0.0.1:99999": "", "localhost:1234": "", "10.0.0.0/8:80": "",
		"::ffff:10.0.0.1": "", "[::ffff:10.0.0.1]:80": "", "fe80::1%eth0": "", "[fe80::1%eth0]:80": "",
		"": "", ":80": "",
	} {
		got, err := ParseAddressRange(text)
		if want == "" && err == nil || want != "" && (err != nil || got.String() != want) {
			t.Errorf("%q is %s, %v", text, got, err)
		}
	}
	r := MustAddressRanges("127.0.0.1:1234")[0]
	here, other := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2")
	if !r.Has(here, 1234) || r.Has(here, 1235) || r.Has(other, 1234) {
		t.Error("a range with a port has another address or port")
	}
}
