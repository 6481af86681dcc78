package gateways

import (
	"context"
	"time"

	"satchel/agent"
)

// web is the platform of the widget on websites, which is this program itself:
// visitors write to it, and their streams read the conversation from the
// agent's file. So a message is out as soon as it is stored.
type web struct{}

// WebInfo is what verifying returns of a widget.
type WebInfo struct {
	AllowedOrigins []string `json:"allowedOrigins"`
}

func (web) missing(agent.GatewayConfig) []string { return nil }

// verify calls nobody.
func (web) verify(_ context.Context, _ *Gateways, c agent.GatewayConfig) (any, error) {
	return WebInfo{c.WithDefaults().AllowedOrigins}, nil
}

// send has nothing to send: see sendNext, which wakes the visitor's streams.
func (web) send(_ context.Context, _ *Gateways, _ agent.GatewayConfig, m Message) (Sent, error) {
	return Sent{Channel: m.To, Parts: 1}, nil
}

func (web) recipient(thread string) (to, within string) { return thread, "" }

// dedupWindow is without end: a message stands in the conversation once,
// however often it is tried.
func (web) dedupWindow(Message) time.Duration { return 100 * 365 * 24 * time.Hour }
