package cluster

import (
	"context"
	"net"
	"net/url"
	"time"

	"satchel/agent/egress"
)

// A server that has exited is distinguished from a slow one by its address: if
// connections to it are refused, it is considered dead after a shorter time without
// heartbeats.
const (
	refusedAfter = 3 * time.Second // without a heartbeat
	probeTime    = time.Second
)

// prober connects to the servers of the cluster, whose addresses the operator sets.
var prober = egress.New(egress.Policy{AllowPrivate: true, DialTimeout: probeTime})

// probe checks whether a server refuses connections, and if so makes the loop
// poll the database. The caller holds mu.
func (cluster *Cluster) probe(peer *peer) {
	if peer.probed == peer.beat {
		return
	}
	peer.probed = peer.beat
	session, beat, address := peer.Session, peer.beat, peer.URL
	cluster.parts.Go(func() {
		if !refuses(address) {
			return
		}
		cluster.mu.Lock()
		if n := cluster.nodes[session]; n != nil && n.beat == beat {
			n.refused = true
		}
		cluster.mu.Unlock()
		cluster.notify()
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
	return egress.IsConnectionRefused(err)
}
