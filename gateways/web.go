package gateways

import (
	"context"
	"time"

	"satchel/agent"
)

// web is the platform of the website widget, which is part of this program:
// visitors send messages to it, and their streams read the conversation from
// the agent's file. So a message is sent as soon as it is stored.
type web struct{}

// WebInfo is the result of verifying a widget.
type WebInfo struct {
	AllowedOrigins []string `json:"allowedOrigins"`
}

func (web) missing(agent.GatewayConfig) []string { return nil }

// verify makes no request.
func (web) verify(_ context.Context, _ *Gateways, c agent.GatewayConfig) (any, error) {
	return WebInfo{c.WithDefaults().AllowedOrigins}, nil
}

// send has nothing to do: sendNext notifies the visitor's streams.
func (web) send(_ context.Context, _ *Gateways, _ agent.GatewayConfig, m Message) (Sent, error) {
	return Sent{Channel: m.To, Parts: 1}, nil
}

func (web) recipient(thread string) (to, within string) { return thread, "" }

// dedupWindow is unlimited: a message is in the conversation once, however
// often it is sent.
func (web) dedupWindow(Message) time.Duration {
	return 100 * 365 * 24 * time.Hour
}
