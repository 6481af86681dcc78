package mcp

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"satchel/agent"
	"satchel/agent/egress"
)

// maxReport bounds, in characters, what is shown of a server's own words.
const maxReport = 1000

// Fault is why an MCP server gave no usable answer.
type Fault struct {
	Away bool         // it was not reached, or did not answer in time
	Err  *agent.Error // an UPSTREAM_ERROR that says what is wrong
}

func (f *Fault) Error() string { return f.Err.Error() }
func (f *Fault) Unwrap() error { return f.Err }

// StatusOf is the state of a server of which Tools returned err.
func StatusOf(err error) agent.MCPStatus {
	var f *Fault
	switch {
	case err == nil:
		return agent.MCPConnected
	case errors.As(err, &f) && f.Away:
		return agent.MCPDisconnected
	}
	return agent.MCPError
}

func fault(away bool, cause error, format string, args ...any) *Fault {
	return &Fault{Away: away, Err: agent.Errorf(agent.CodeUpstream, format, args...).Because(cause)}
}

// lies is a Fault about what a server says.
func lies(format string, args ...any) *Fault {
	return fault(false, nil, "the MCP server "+format, args...)
}

// rejected is the code by which the SDK says that a message was not taken; no
// server sends it.
const rejected = -32005

var (
	errTooLarge  = errors.New("the server sends too much")
	errElsewhere = errors.New("the server leads to another host")
)

// explain turns the outcome of an exchange into a Fault. Of the server's text
// only what it reports by the protocol is in it, with no secret.
func (x *exchange) explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	a := x.seen()
	var f *Fault
	if errors.As(err, &f) || errors.As(a.err, &f) {
		return f
	}
	var known *agent.Error
	if errors.As(err, &known) {
		return known
	}
	cause := errors.New(x.quote(err.Error()))
	var wire *jsonrpc.Error
	switch {
	case errors.Is(a.err, errTooLarge):
		return fault(false, cause, "the MCP server sends more than %d MB", MaxBytes>>20)
	case x.foreign.Load():
		return fault(false, cause, "the MCP server answers another request than the one that it was sent")
	case errors.Is(a.err, errElsewhere):
		return fault(false, cause, "the MCP server leads to another host, which is not followed; register the address it leads to")
	case egress.IsRefused(a.err):
		return fault(true, cause, "url names an address that this server does not call; the operator opens private ones with SATCHEL_OUTBOUND_ALLOW")
	case ctx.Err() != nil:
		return fault(true, cause, "the MCP server did not answer in time")
	case a.err != nil:
		return fault(true, cause, "the MCP server cannot be reached: %s", egress.Explain(a.err).Message)
	case a.status == http.StatusUnauthorized || a.status == http.StatusForbidden:
		return faultOf(a.status, cause, "the MCP server refuses the credentials (HTTP %d)")
	case a.status == http.StatusTooManyRequests || a.status >= 500:
		return faultOf(a.status, cause, "the MCP server answers with HTTP %d")
	case errors.As(err, &wire) && wire.Code != rejected:
		f := fault(false, cause, "the MCP server reports: %s (%d)", x.quote(wire.Message), wire.Code)
		f.Err = f.Err.With("code", wire.Code)
		return f
	case a.status >= 300:
		return faultOf(a.status, cause, "the MCP server answers with HTTP %d")
	}
	return fault(false, cause, "the MCP server's answer is no MCP")
}

// faultOf is a Fault by an HTTP status, which is in its details.
func faultOf(status int, cause error, format string) *Fault {
	f := fault(false, cause, format, status)
	f.Err = f.Err.With("status", status)
	return f
}

// quote is a foreign text as it may be shown: short and with no secret.
func (x *exchange) quote(text string) string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return agent.Clip(without(text, x.secrets), maxReport)
}

// without removes secrets from a text.
func without(text string, secrets []string) string {
	for _, secret := range secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "…")
		}
	}
	return text
}
