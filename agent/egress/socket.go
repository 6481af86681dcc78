package egress

import (
	"context"
	"net"
)

// DialSocket connects to a Unix socket of a program that this one has started.
func DialSocket(ctx context.Context, path string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "unix", path)
}
