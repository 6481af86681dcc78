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

// maxReport limits how much of a server's own text is shown, in characters.
const maxReport = 1000

// Fault is the reason why an MCP server gave no usable response.
type Fault struct {
	Unreachable bool         // it could not be reached, or timed out
	Err         *agent.Error // an UPSTREAM_ERROR that says what is wrong
}

func (f *Fault) Error() string { return f.Err.Error() }
func (f *Fault) Unwrap() error { return f.Err }

// StatusOf returns the status of a server for which Tools returned err.
func StatusOf(err error) agent.MCPStatus {
	var f *Fault
	switch {
	case err == nil:
		return agent.MCPConnected
	case agent.ErrorCode(err) == agent.CodeCredentialLogin:
		return agent.MCPNeedsLogin
	case errors.As(err, &f) && f.Unreachable:
		return agent.MCPDisconnected
	}
	return agent.MCPError
}

func fault(away bool, cause error, format string, args ...any) *Fault {
	return &Fault{Unreachable: away, Err: agent.Errorf(agent.CodeUpstream, format, args...).Because(cause)}
}

// serverFault returns a Fault about something the server sent.
func serverFault(format string, args ...any) *Fault {
	return fault(false, nil, "the MCP server "+format, args...)
}

// rejected is the code with which the SDK reports that a message was not
// accepted; servers do not send it.
const rejected = -32005

var (
	errTooLarge  = errors.New("the server sent too much")
	errOtherHost = errors.New("the server redirects to another host")
)

// explain converts the outcome of an exchange to a Fault. It contains only text
// that the server reports by the protocol, with secrets removed.
func (x *exchange) explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	answered := x.lastResponse()
	var f *Fault
	if errors.As(err, &f) || errors.As(answered.err, &f) {
		return f
	}
	var known *agent.Error
	if errors.As(err, &known) {
		return known
	}
	cause := errors.New(x.quote(err.Error()))
	var wire *jsonrpc.Error
	switch {
	case errors.Is(answered.err, errTooLarge):
		return fault(false, cause, "the MCP server sent more than %d MB", MaxBytes>>20)
	case x.foreign.Load():
		return fault(false, cause, "the MCP server answered a different request than the one it was sent")
	case errors.Is(answered.err, errOtherHost):
		return fault(
			false,
			cause,
			"the MCP server redirects to another host, which is not followed; register that URL instead",
		)
	case egress.IsRefused(answered.err):
		return refusedFault(cause, answered.err, "url")
	case ctx.Err() != nil:
		return fault(true, cause, "the MCP server did not answer in time")
	case answered.err != nil:
		return fault(true, cause, "the MCP server cannot be reached: %s", egress.Explain(answered.err).Message)
	case answered.status == http.StatusUnauthorized && x.server.Auth.Type == agent.MCPAuthLogin:
		return agent.Errorf(
			agent.CodeCredentialLogin,
			"the MCP server asks for a login: a person connects it under MCP servers",
		).Because(cause)
	case answered.status == http.StatusUnauthorized || answered.status == http.StatusForbidden:
		return faultOf(answered.status, cause, "the MCP server rejected the credentials (HTTP %d)")
	case answered.status == http.StatusTooManyRequests || answered.status >= 500:
		return faultOf(answered.status, cause, "the MCP server responded with HTTP %d")
	case errors.As(err, &wire) && wire.Code != rejected:
		f := fault(false, cause, "the MCP server reports: %s (%d)", x.quote(wire.Message), wire.Code)
		f.Err = f.Err.With("code", wire.Code)
		return f
	case answered.status >= 300:
		return faultOf(answered.status, cause, "the MCP server responded with HTTP %d")
	}
	return fault(false, cause, "the MCP server's response is not MCP")
}

// faultOf returns a Fault for an HTTP status, which is in its details.
func faultOf(status int, cause error, format string) *Fault {
	f := fault(false, cause, format, status)
	f.Err = f.Err.With("status", status)
	return f
}

// refusedFault returns a Fault about an address that this server may not reach.
func refusedFault(cause, err error, what string) *Fault {
	refused := egress.Refusal(what, err)
	refused.Code = agent.CodeUpstream
	return &Fault{Unreachable: true, Err: refused.Because(cause)}
}

// quote returns a server's text as it may be shown: short and without secrets.
func (x *exchange) quote(text string) string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return agent.Clip(redact(text, x.secrets), maxReport)
}

// redact replaces secrets in a text, also short ones.
func redact(text string, secrets []string) string {
	for _, secret := range secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "…")
		}
	}
	return egress.NewMasker(secrets).Replace(text)
}
