package store

import (
	"log/slog"
	"net/netip"

	"satchel/agent/egress"
)

// Env is what every background part of the program is given. Each part's
// Options embed it.
type Env struct {
	Folder  *Folder
	Allow   []netip.Prefix // private ranges that outbound requests may reach
	Own     *egress.Own    // this server's own addresses; may be nil
	Version string         // of the program, for the User-Agent
	Log     *slog.Logger   // nil: slog.Default(), see Logger
}

// Logger returns the log to write to.
func (e Env) Logger() *slog.Logger {
	if e.Log == nil {
		return slog.Default()
	}
	return e.Log
}
