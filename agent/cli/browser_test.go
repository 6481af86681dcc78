package cli

import (
	"bytes"
	"strings"
	"testing"
)

func TestRemoteBrowser(t *testing.T) {
	const cdp, proxy = "SATCHEL_BROWSER_CDP", "SATCHEL_BROWSER_PROXY_ADDR"
	for _, tc := range []struct {
		env         map[string]string
		addr, issue string
	}{
		{map[string]string{}, "", ""},
		{map[string]string{cdp: "ws://localhost:3000"}, "127.0.0.1:0", ""},
		{map[string]string{cdp: "http://[::1]:9222"}, "127.0.0.1:0", ""},
		{
			map[string]string{cdp: "wss://u:secret@pool.example/chrome?token=secret", proxy: "10.0.0.1:8790"},
			"10.0.0.1:8790",
			"",
		},
		{map[string]string{cdp: "ws://chromium:3000", proxy: "satchel-1:8790"}, "satchel-1:8790", ""},
		{map[string]string{cdp: "wss://u:secret@pool.example/?token=secret"}, "", "needs browser_proxy_addr"},
		{map[string]string{proxy: "10.0.0.1:8790"}, "", "needs browser_cdp"},
		{map[string]string{cdp: "ws://pool", proxy: ":8790"}, "", "names no address"},
		{map[string]string{cdp: "ws://pool", proxy: "0.0.0.0:8790"}, "", "names no address"},
		{map[string]string{cdp: "ws://pool", proxy: "pool"}, "", "is not host:port"},
		{map[string]string{cdp: "ftp://secret@pool"}, "", "is not a URL of the form"},
		{map[string]string{cdp: "ws://secret:%zz@pool"}, "", "is not a URL"},
		{map[string]string{cdp: "ws://pool:99999?secret"}, "", "port"},
		{map[string]string{cdp: "ws://pool/#secret"}, "", "fragment"},
	} {
		c, err := environment{env: tc.env}.load(t)
		if tc.issue != "" {
			if err == nil || !strings.Contains(err.Error(), tc.issue) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%v: %v, want %q", tc.env, err, tc.issue)
			}
			continue
		}
		if err != nil || c.BrowserProxyAddr != tc.addr {
			t.Errorf("%v: %v, %v", tc.env, c, err)
			continue
		}
		var out bytes.Buffer
		if err := c.Print(&out); err != nil || strings.Contains(out.String(), "secret") {
			t.Errorf("got %v, %s", err, out.String())
		}
	}
}
