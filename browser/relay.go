package browser

import (
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"sync"
	"time"

	"satchel/agent/egress"
)

// relay passes the driver's connection on to a remote Chromium, through agent/egress.
// The driver does not learn the endpoint's address, which its errors would reveal.
type relay struct {
	*egress.Server // its connection ends with the driver

	path string // secret, so that other programs on this machine cannot use it

	mu  sync.Mutex
	err error // why the last connection failed
}

// newRelay listens on loopback.
func newRelay(to endpoint) (r *relay, err error) {
	r = &relay{path: "/" + rand.Text()}
	forward := &httputil.ReverseProxy{
		Transport: remoteClient(-1).Transport(),
		ErrorLog:  log.New(io.Discard, "", 0),
		Rewrite: func(p *httputil.ProxyRequest) {
			target := *to.address
			p.Out.URL, p.Out.Host = &target, to.host
			for name, values := range to.header {
				p.Out.Header[name] = values
			}
		},
		ModifyResponse: func(resp *http.Response) error {
			if resp.StatusCode != http.StatusSwitchingProtocols {
				return fmt.Errorf("it answers with status %d", resp.StatusCode)
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			r.fail(err)
			http.Error(w, http.StatusText(http.StatusBadGateway), http.StatusBadGateway)
		},
	}
	r.Server, err = egress.Serve("127.0.0.1:0", &http.Server{
		Handler:           r.guarded(forward),
		ReadHeaderTimeout: 10 * time.Second,
	})
	return r, err
}

// guarded lets only requests with the secret path through.
func (r *relay) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if subtle.ConstantTimeCompare([]byte(req.URL.Path), []byte(r.path)) != 1 {
			http.NotFound(w, req)
			return
		}
		next.ServeHTTP(w, req)
	})
}

// URL returns the address for the driver.
func (r *relay) URL() string {
	return "ws://" + r.Addr().String() + r.path
}

func (r *relay) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
}

// failure returns why the endpoint could not be reached, or nil.
func (r *relay) failure() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}
