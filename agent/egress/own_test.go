package egress

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"satchel/agent"
)

// The header is sent only to this server, under any of its names, and never with a
// redirect to another.
func TestMark(t *testing.T) {
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header.Get("Satchel-Chain"))
		if to := r.URL.Query().Get("to"); to != "" {
			http.Redirect(w, r, to, http.StatusTemporaryRedirect)
		}
	}))
	defer server.Close()
	c := New(Policy{Allow: agent.MustAddressRanges("127.0.0.0/8")})
	ask := func(own *OwnHosts, url string) {
		t.Helper()
		req, err := http.NewRequestWithContext(own.Mark(t.Context(), "Satchel-Chain", "x"), "GET", url, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if req.Header.Get("Satchel-Chain") != "" {
			t.Error("the caller's request was changed")
		}
	}
	ask(NewOwnHosts("https://satchel.example.com"), server.URL)
	ask(nil, server.URL)
	ask(
		&OwnHosts{hosts: map[string]bool{"localhost": true}},
		strings.Replace(server.URL, "127.0.0.1", "localhost", 1)+"/?to="+server.URL,
	)
	if strings.Join(got, ",") != "x,,x,x" {
		t.Errorf("got %q", got)
	}
}

func TestOwn(t *testing.T) {
	own := NewOwnHosts("https://Satchel.Example.com:8443/base")
	for host, want := range map[string]bool{
		"satchel.example.com": true, "SATCHEL.example.com.": true, "localhost": true, "a.localhost": true,
		"127.0.0.1": true, "127.9.9.9": true, "::1": true, "::ffff:127.0.0.1": true, "0.0.0.0": true,
		"example.com": false, "satchel.example.com.evil.test": false, "192.0.2.1": false, "": false,
	} {
		t.Run(host, func(t *testing.T) {
			if got := own.includes(host); got != want {
				t.Errorf("got %v", got)
			}
		})
	}
}
