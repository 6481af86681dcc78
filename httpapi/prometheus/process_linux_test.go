package prometheus

import "testing"

func TestParseNetstat(t *testing.T) {
	const text = `TcpExt: SyncookiesSent SyncookiesRecv
TcpExt: 7 8
IpExt: InNoRoutes InOctets OutOctets InCsumErrors
IpExt: 0 121011536577 116322561963 9
MPTcpExt: MPCapableSYNRX InOctets
MPTcpExt: 1 2
`
	got := parseNetstat(text)
	if got["InOctets"] != 121011536577 || got["OutOctets"] != 116322561963 {
		t.Errorf("got %v", got)
	}
	for _, damaged := range []string{
		"",
		"IpExt:",
		"IpExt: InOctets\n",
		"IpExt: InOctets\nIpExt:\n",
		"IpExt: InOctets\nIpExt: many\n",
	} {
		if got := parseNetstat(damaged)["InOctets"]; got != 0 {
			t.Errorf("%q: %v", damaged, got)
		}
	}
}
