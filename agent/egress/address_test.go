package egress

import (
	"net/netip"
	"testing"

	"satchel/agent"
)

func TestClosedPolicy(t *testing.T) {
	cases := []struct {
		addr string
		open bool
	}{
		{"8.8.8.8", true},
		{"1.1.1.1", true},
		{"172.15.255.255", true},
		{"172.32.0.0", true},
		{"100.63.255.255", true},
		{"100.128.0.0", true},
		{"126.255.255.255", true},
		{"128.0.0.1", true},
		{"169.253.255.255", true},
		{"169.255.0.0", true},
		{"192.0.1.0", true},
		{"198.17.255.255", true},
		{"198.20.0.0", true},
		{"223.255.255.255", true},
		{"168.63.129.17", true},
		{"11.0.0.0", true},
		{"2606:4700:4700::1111", true},
		{"2a00:1450::1", true},
		{"2001:4860:4860::8888", true},
		{"2001:200::1", true},
		{"64:ff9b::8.8.8.8", true},
		{"::ffff:8.8.8.8", true},

		{"0.0.0.0", false},
		{"0.1.2.3", false},
		{"127.0.0.1", false},
		{"127.255.255.254", false},
		{"10.0.0.0", false},
		{"10.255.255.255", false},
		{"172.16.0.1", false},
		{"172.31.255.255", false},
		{"192.168.1.1", false},
		{"100.64.0.1", false},
		{"100.127.255.255", false},
		{"100.100.100.200", false},
		{"169.254.1.1", false},
		{"169.254.169.254", false},
		{"169.254.170.2", false},
		{"168.63.129.16", false},
		{"192.0.0.1", false},
		{"192.0.0.192", false},
		{"192.0.2.1", false},
		{"198.51.100.1", false},
		{"203.0.113.1", false},
		{"198.18.0.1", false},
		{"198.19.255.255", false},
		{"192.88.99.1", false},
		{"224.0.0.1", false},
		{"239.255.255.250", false},
		{"240.0.0.1", false},
		{"255.255.255.255", false},
		{"::", false},
		{"::1", false},
		{"::127.0.0.1", false},
		{"::8.8.8.8", false},
		{"::ffff:127.0.0.1", false},
		{"::ffff:10.0.0.1", false},
		{"::ffff:169.254.169.254", false},
		{"::ffff:0.0.0.0", false},
		{"64:ff9b::127.0.0.1", false},
		{"64:ff9b::10.0.0.1", false},
		{"64:ff9b::169.254.169.254", false},
		{"64:ff9b:1::8.8.8.8", false},
		{"64:ff9b:1:ffff::1", false},
		{"64:ff9b:2::1", false},
		{"2002:7f00:1::", false},
		{"2002:a00:1::1", false},
		{"2002:808:808::1", false},
		{"2001:0:7f00:1::", false},
		{"2001::1", false},
		{"2001:2::1", false},
		{"2001:10::1", false},
		{"2001:20::1", false},
		{"2001:db8::1", false},
		{"3fff::1", false},
		{"100::1", false},
		{"5f00::1", false},
		{"4000::1", false},
		{"fc00::1", false},
		{"fd00:ec2::254", false},
		{"fd12:3456::1", false},
		{"fe80::1", false},
		{"fe80::1%eth0", false},
		{"2606:4700::1%eth0", false},
		{"fec0::1", false},
		{"ff02::1", false},
		{"ff0e::1", false},
	}
	for _, c := range cases {
		reason := (&Policy{}).refusal(netip.MustParseAddr(c.addr), 80)
		if (reason == "") != c.open {
			t.Errorf("%s: reason %q, want open %v", c.addr, reason, c.open)
		}
	}
	if (&Policy{}).refusal(netip.Addr{}, 80) == "" {
		t.Error("the invalid address is open")
	}
}

func TestOpenedPolicy(t *testing.T) {
	all := []string{"0.0.0.0/0", "::/0"}
	cases := []struct {
		name    string
		allow   []string
		private bool
		addr    string
		open    bool
	}{
		{"in the range", []string{"10.1.0.0/16"}, false, "10.1.2.3", true},
		{"outside the range", []string{"10.1.0.0/16"}, false, "10.2.0.1", false},
		{"mapped form of an opened address", []string{"10.1.0.0/16"}, false, "::ffff:10.1.2.3", true},
		{"NAT64 form is not in the range", []string{"10.1.0.0/16"}, false, "64:ff9b::10.1.2.3", false},
		{"NAT64 form by its own range", []string{"64:ff9b::/96"}, false, "64:ff9b::10.1.2.3", true},
		{"link-local by range", []string{"169.254.0.0/16"}, false, "169.254.7.7", true},
		{"metadata by range", []string{"169.254.0.0/16"}, false, "169.254.169.254", false},
		{"metadata by everything", all, false, "fd00:ec2::254", false},
		{"metadata by name", []string{"169.254.169.254/32"}, false, "169.254.169.254", true},
		{"zone", []string{"fe80::/10"}, false, "fe80::1%eth0", false},
		{"no zone", []string{"fe80::/10"}, false, "fe80::1", true},
		{"reserved by everything", all, false, "240.1.1.1", true},
		{"unspecified by everything", all, false, "0.0.0.0", false},
		{"unspecified IPv6 by everything", all, false, "::", false},
		{"multicast by everything", all, false, "224.0.0.1", false},
		{"broadcast by everything", all, false, "255.255.255.255", false},

		{"private: loopback", nil, true, "127.0.0.1", true},
		{"private: IPv6 loopback", nil, true, "::1", true},
		{"private: RFC 1918", nil, true, "192.168.1.1", true},
		{"private: shared", nil, true, "100.64.0.1", true},
		{"private: unique local", nil, true, "fd12::1", true},
		{"private: metadata", nil, true, "169.254.169.254", false},
		{"private: metadata in a unique local range", nil, true, "fd00:ec2::254", false},
		{"private: Alibaba's metadata", nil, true, "100.100.100.200", false},
		{"private: link-local", nil, true, "169.254.1.1", false},
		{"private: unspecified", nil, true, "0.0.0.0", false},
		{"private: documentation", nil, true, "192.0.2.1", false},
	}
	for _, c := range cases {
		policy := Policy{AllowPrivate: c.private}
		for _, prefix := range c.allow {
			policy.Allow = append(policy.Allow, agent.AddressRange{Prefix: netip.MustParsePrefix(prefix)})
		}
		reason := policy.refusal(netip.MustParseAddr(c.addr), 80)
		if (reason == "") != c.open {
			t.Errorf("%s (%s): reason %q, want open %v", c.name, c.addr, reason, c.open)
		}
	}
}
