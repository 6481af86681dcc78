package cluster

import (
	"context"
	"errors"
	"net"
	"net/url"
	"syscall"
	"time"

	"satchel/agent/egress"
)

// A server that has ended is distinguished from a slow one by its address: if
// the machine refuses connections there, a shorter time without heartbeats is
// enough.
const (
	refusedAfter = 3 * time.Second // without a beat
	probeTime    = time.Second
)

// prober reaches the addresses of the cluster's servers, which are the operator's.
var prober = egress.New(egress.Policy{AllowPrivate: true, DialTimeout: probeTime})

// probe checks whether a server refuses connections, and if so makes the loop
// poll the database. The caller holds mu.
func (c *Cluster) probe(n *observed) {
	if n.probed == n.beat {
		return
	}
	n.probed = n.beat
	session, beat, address := n.Session, n.beat, n.URL
	c.parts.Go(func() {
		if !refuses(address) {
			return
		}
		c.mu.Lock()
		if n := c.nodes[session]; n != nil && n.beat == beat {
			n.refused = true
		}
		c.mu.Unlock()
		c.notify()
	})
}

// refuses reports whether nothing listens at the address of a URL.
func refuses(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		return false
	}
	port := u.Port()
	if port == "" {
		port = u.Scheme
	}
	ctx, cancel := context.WithTimeout(context.Background(), probeTime)
	defer cancel()
	conn, err := prober.DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err == nil {
		_ = conn.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}
