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
	// CodeCredentialHost: the request names a credential that is not for its
	// host.
	CodeCredentialHost agent.Code = "CREDENTIAL_HOST"
)

// CodeTimeout is the code that Explain returns for timeouts.
const CodeTimeout agent.Code = "TIMEOUT"

// Kinds of failure, for errors.Is. Use errors.As with *Error for the host and
// the reason.
var (
	// ErrBlocked: the address, or its notation, is not allowed.
	ErrBlocked = &Error{Code: CodeBlocked}
	// ErrURL: the URL cannot be fetched (malformed, no host, credentials in
	// it).
	ErrURL = &Error{Code: CodeURL}
	// ErrScheme: neither http nor https.
	ErrScheme = &Error{Code: CodeScheme}
	// ErrRedirects: more than MaxRedirects redirects.
	ErrRedirects = &Error{Code: CodeRedirects}
	// ErrTooLarge: the response body is longer than Policy.MaxResponse. Read on
	// the body returns it after delivering the allowed bytes.
	ErrTooLarge = &Error{Code: CodeTooLarge}
)

// Error is a refusal by this package. It contains nothing from the user
// information, path or query of a URL, so it may be logged and shown.
type Error struct {
	Code   agent.Code // one of the Code constants
	Host   string     // the requested host; empty if it could not be parsed
	Addr   netip.Addr // the refused address of Host; for logs, not for clients
	Port   uint16     // the refused port; 0 if no address was refused
	Reason string     // what is wrong, in a few words, without any address
}

var headlines = map[agent.Code]string{
	CodeBlocked:   "address not allowed",
	CodeURL:       "URL not usable",
	CodeScheme:    "scheme not allowed",
	CodeRedirects: "too many redirects",
	CodeTooLarge:  "response too large",

	CodeCredentialHost: "the credential is not for this host",
}

// Error returns one line without Addr, which would reveal what an internal name
// resolves to.
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

// Is reports whether target is an Error with the same code, so that the Err
// variables match every error of their kind.
func (e *Error) Is(target error) bool {
	other, ok := target.(*Error)
	return ok && other.Code == e.Code
}

// Refused reports whether the request was not made because of its destination.
func (e *Error) Refused() bool {
	return e.Code != CodeTooLarge && e.Code != CodeRedirects
}

// TooLarge returns the Error for a response from host longer than limit bytes.
func TooLarge(host string, limit int64) *Error {
	reason := fmt.Sprintf("more than %d bytes", limit)
	if limit >= 1<<20 {
		reason = fmt.Sprintf("more than %d MB", limit>>20)
	}
	return &Error{Code: CodeTooLarge, Host: host, Reason: reason}
}
