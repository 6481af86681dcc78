package agent

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// AddressRange is a range of addresses that the operator opened, IPv4 ranges written as
// IPv4.
type AddressRange struct {
	Prefix netip.Prefix
	Port   uint16 // 0: all ports
}

// ParseAddressRange parses a CIDR, an address, or ADDRESS:PORT, such as 10.0.0.0/8, ::1,
// 127.0.0.1:1234 and [::1]:1234.
func ParseAddressRange(text string) (AddressRange, error) {
	if to, err := netip.ParseAddrPort(text); err == nil {
		if to.Port() == 0 {
			return AddressRange{}, fmt.Errorf("%q has no port", Clip(text, 61))
		}
		r, err := ParseAddressRange(to.Addr().String())
		r.Port = to.Port()
		return r, err
	}
	prefix, err := netip.ParsePrefix(text)
	if !strings.Contains(text, "/") {
		var addr netip.Addr
		if addr, err = netip.ParseAddr(text); err == nil {
			prefix = netip.PrefixFrom(addr, addr.BitLen())
		}
	}
	switch {
	case err != nil || strings.Contains(text, "%"): // PrefixFrom would drop the zone
		return AddressRange{}, fmt.Errorf("%q is not a CIDR like 10.0.0.0/8", Clip(text, 61))
	case prefix.Addr().Is4In6():
		return AddressRange{}, fmt.Errorf("%q is IPv4 written as IPv6, write it as IPv4", Clip(text, 61))
	case prefix != prefix.Masked():
		// 10.1.2.3/8 may mean the one address or the whole range.
		return AddressRange{}, fmt.Errorf(
			"%q has bits after its length, the range is %s",
			Clip(text, 61),
			prefix.Masked(),
		)
	}
	return AddressRange{Prefix: prefix}, nil
}

// MustAddressRanges is ParseAddressRange of each text, for constants. It panics if one is
// not valid.
func MustAddressRanges(texts ...string) []AddressRange {
	var all []AddressRange
	for _, text := range texts {
		r, err := ParseAddressRange(text)
		if err != nil {
			panic(err)
		}
		all = append(all, r)
	}
	return all
}

// Has reports whether the range has an address and port.
func (r AddressRange) Has(addr netip.Addr, port uint16) bool {
	return (r.Port == 0 || r.Port == port) && r.Prefix.Contains(addr)
}

// String returns the range as ParseAddressRange reads it.
func (r AddressRange) String() string {
	if r.Port == 0 {
		return r.Prefix.String()
	}
	if r.Prefix.IsSingleIP() {
		return netip.AddrPortFrom(r.Prefix.Addr(), r.Port).String()
	}
	return r.Prefix.String() + ":" + strconv.Itoa(int(r.Port))
}
