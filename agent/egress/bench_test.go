package egress

import (
	"io"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"testing"
)

// BenchmarkGet compares the guarded client with a plain one, with the same
// server and reused connections.
func BenchmarkGet(b *testing.B) {
	for _, size := range []int{100, 1 << 20} {
		server := serveOn(b, openedIP, "0", text(strings.Repeat("x", size)))
		bare := &http.Client{Transport: &http.Transport{}}
		b.Cleanup(bare.CloseIdleConnections)
		guarded := client(b, Policy{Allow: openedRange})
		for _, arm := range []struct {
			name string
			do   func(*http.Request) (*http.Response, error)
		}{{"bare", bare.Do}, {"guarded", guarded.Do}} {
			b.Run(arm.name+"/"+strconv.Itoa(size), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					fetch(b, arm.do, server.URL)
				}
			})
		}
	}
}

// BenchmarkConnect does the same with a new connection, whose address is checked, for
// each request.
func BenchmarkConnect(b *testing.B) {
	server := serveOn(b, openedIP, "0", text("x"))
	bare := &http.Client{Transport: &http.Transport{}}
	guarded := client(b, Policy{Allow: openedRange})
	for _, arm := range []struct {
		name  string
		do    func(*http.Request) (*http.Response, error)
		close func()
	}{{"bare", bare.Do, bare.CloseIdleConnections}, {"guarded", guarded.Do, guarded.CloseIdleConnections}} {
		b.Run(arm.name, func(b *testing.B) {
			for b.Loop() {
				fetch(b, arm.do, server.URL)
				arm.close()
			}
		})
	}
}

func fetch(b *testing.B, do func(*http.Request) (*http.Response, error), url string) {
	req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, url, nil)
	if err != nil {
		b.Fatal(err)
	}
	resp, err := do(req)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		b.Fatal(err)
	}
	resp.Body.Close()
}

func BenchmarkRefusal(b *testing.B) {
	for _, address := range []string{"8.8.8.8", "169.254.169.254", "2606:4700:4700::1111", "64:ff9b::808:808"} {
		addr := netip.MustParseAddr(address)
		b.Run(address, func(b *testing.B) {
			for b.Loop() {
				(&Policy{}).refusal(addr, 80)
			}
		})
	}
}

func BenchmarkCheckURL(b *testing.B) {
	for _, raw := range []string{"https://example.com/a/b?c=d", "https://bücher.example/"} {
		b.Run(raw, func(b *testing.B) {
			for b.Loop() {
				if _, err := (&Policy{}).checkURL(raw); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
