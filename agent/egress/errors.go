package egress

import (
	"fmt"
	"net/netip"

	"satchel/agent"
)

// Codes of Error.
const (
	CodeBlocked   agent.Code = "BLOCKED_ADDRESS"
	CodeURL       agent.Code = "INVALID_URL"
	CodeScheme    agent.Code = "UNSUPPORTED_SCHEME"
	CodeRedirects agent.Code = "TOO_MANY_REDIRECTS"
	CodeTooLarge  agent.Code = "RESPONSE_TOO_LARGE"
)

// CodeTimeout is the code that Explain gives to what took too long.
const CodeTimeout agent.Code = "TIMEOUT"

// Kinds of failure, to be matched with errors.Is. errors.As with *Error gives
// the host and the reason.
var (
	// ErrBlocked: the address, or the way it is written, is not allowed.
	ErrBlocked = &Error{Code: CodeBlocked}
	// ErrURL: not a URL that can be fetched (malformed, no host, credentials in it).
	ErrURL = &Error{Code: CodeURL}
	// ErrScheme: neither http nor https.
	ErrScheme = &Error{Code: CodeScheme}
	// ErrRedirects: more than MaxRedirects redirects.
	ErrRedirects = &Error{Code: CodeRedirects}
	// ErrTooLarge: the response body is longer than Policy.MaxResponse. It comes
	// from Read on the body, after the allowed bytes were delivered.
	ErrTooLarge = &Error{Code: CodeTooLarge}
)

// Error is a refusal by this package. Nothing in it comes from the user
// information, path or query of a URL, so it may be logged and shown.
type Error struct {
	Code   agent.Code // one of the Code constants
	Host   string     // the host as it was asked for; empty when it was unreadable
	Addr   netip.Addr // the address behind Host that was refused; for logs, not for clients
	Reason string     // what is wrong, in a few words, without any address
}

var headlines = map[agent.Code]string{
	CodeBlocked:   "address not allowed",
	CodeURL:       "URL not usable",
	CodeScheme:    "scheme not allowed",
	CodeRedirects: "too many redirects",
	CodeTooLarge:  "response too large",
}

// Error gives one line without Addr, which would show an outsider what an
// internal name resolves to.
func (e *Error) Error() string {
	text := headlines[e.Code]
	if e.Host != "" {
		text += ": " + e.Host
	}
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	return text
}

// Is reports whether target is an Error of the same code, so that the Err
// variables match every error of their kind.
func (e *Error) Is(target error) bool {
	other, ok := target.(*Error)
	return ok && other.Code == e.Code
}

// Refused reports whether the call was not made because of where it was to go.
func (e *Error) Refused() bool { return e.Code != CodeTooLarge && e.Code != CodeRedirects }

// TooLarge is the Error of a response from host that is longer than limit bytes.
func TooLarge(host string, limit int64) *Error {
	reason := fmt.Sprintf("more than %d bytes", limit)
	if limit >= 1<<20 {
		reason = fmt.Sprintf("more than %d MB", limit>>20)
	}
	return &Error{Code: CodeTooLarge, Host: host, Reason: reason}
}
