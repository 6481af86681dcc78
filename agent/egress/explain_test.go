package egress

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"satchel/agent"
)

// TestExplain explains real failures where loopback can produce them.
func TestExplain(t *testing.T) {
	local := agent.MustAddressRanges("127.0.0.0/8")
	get := func(address string, policy Policy) error {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			t.Fatal(err)
		}
		client := New(policy)
		defer client.CloseIdleConnections()
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		_, err = io.ReadAll(resp.Body)
		return err
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/cut":
			panic(http.ErrAbortHandler)
		case "/short":
			w.Header().Set("Content-Length", "10")
			_, _ = io.WriteString(w, "short")
		case "/large":
			_, _ = io.WriteString(w, strings.Repeat("x", 100))
		case "/again":
			http.Redirect(w, r, "/again", http.StatusFound)
		case "/slow":
			<-r.Context().Done()
		}
	}))
	server.Config.ErrorLog = quiet()
	server.Start()
	defer server.Close()
	secure := httptest.NewUnstartedServer(nil)
	secure.Config.ErrorLog = quiet()
	secure.StartTLS()
	defer secure.Close()
	closed := httptest.NewServer(nil)
	closed.Close()

	open := Policy{Allow: local}
	type is struct{ refused, timeout, unsent, permanent bool }
	for name, c := range map[string]struct {
		err  error
		code agent.Code
		text string
		is   is
	}{
		"refused": {get(closed.URL, open), agent.CodeUpstream, "the connection was refused", is{unsent: true}},
		"blocked": {
			get(server.URL, Policy{}),
			CodeBlocked,
			"address not allowed: 127.0.0.1: loopback address",
			is{refused: true, unsent: true, permanent: true},
		},
		"scheme": {
			get("ftp://example.com/", open),
			CodeScheme,
			"scheme not allowed: only http and https",
			is{refused: true, unsent: true, permanent: true},
		},
		"connection lost": {get(server.URL+"/cut", open), agent.CodeUpstream, "the connection was closed early", is{}},
		"lost in the body": {
			get(server.URL+"/short", open),
			agent.CodeUpstream,
			"the connection was closed early",
			is{},
		},
		"too large": {
			get(server.URL+"/large", Policy{Allow: local, MaxResponse: 99}),
			CodeTooLarge,
			"response too large: 127.0.0.1: more than 99 bytes",
			is{permanent: true},
		},
		"redirects": {
			get(server.URL+"/again", open),
			CodeRedirects,
			"too many redirects: 127.0.0.1",
			is{permanent: true},
		},
		"slow": {
			get(server.URL+"/slow", Policy{Allow: local, HeaderTimeout: 10 * time.Millisecond}),
			CodeTimeout,
			"the server did not answer in time",
			is{timeout: true},
		},
		"certificate": {
			get(secure.URL, open),
			agent.CodeUpstream,
			"the server's certificate is not valid",
			is{unsent: true},
		},
		"no TLS": {
			get(strings.Replace(server.URL, "http:", "https:", 1), open),
			agent.CodeUpstream,
			"the TLS handshake failed",
			is{unsent: true},
		},
		"no such host": {
			&net.OpError{Op: "dial", Err: &net.DNSError{Name: "secret.test", IsNotFound: true}},
			agent.CodeUpstream,
			"the host name does not exist",
			is{unsent: true},
		},
		"DNS failed": {
			&net.DNSError{Name: "secret.test", Server: "10.0.0.53:53"},
			agent.CodeUpstream,
			"the host name could not be resolved",
			is{unsent: true},
		},
		"DNS too slow": {
			&net.DNSError{Name: "secret.test", IsTimeout: true},
			CodeTimeout,
			"the server did not answer in time",
			is{timeout: true, unsent: true},
		},
		"no route": {
			&net.OpError{Op: "dial", Err: syscall.EHOSTUNREACH},
			agent.CodeUpstream,
			"the server could not be reached",
			is{unsent: true},
		},
		"reset": {
			&net.OpError{Op: "read", Err: connectionReset},
			agent.CodeUpstream,
			"the connection was closed early",
			is{},
		},
		"deadline": {
			context.DeadlineExceeded,
			CodeTimeout,
			"the server did not answer in time",
			is{timeout: true},
		},
		"cancelled":        {context.Canceled, agent.CodeUpstream, "the request was cancelled", is{}},
		"anything else":    {errors.New("token=secret at 10.0.0.1"), agent.CodeUpstream, "the connection failed", is{}},
		"explained before": {agent.Errorf(agent.CodeExecution, "ours"), agent.CodeExecution, "ours", is{}},
	} {
		t.Run(name, func(t *testing.T) {
			// How the operator opens the address has a test of its own.
			got := Explain(c.err)
			message, _, _ := strings.Cut(got.Message, "; the operator")
			if got.Code != c.code || message != c.text {
				t.Errorf("%v: %s %q", c.err, got.Code, got.Message)
			}
			if got := (is{IsRefused(c.err), IsTimeout(c.err), IsUnsent(c.err), IsPermanent(c.err)}); got != c.is {
				t.Errorf("%v: %+v, want %+v", c.err, got, c.is)
			}
		})
	}
}
