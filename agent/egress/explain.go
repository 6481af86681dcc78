package egress

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"

	"satchel/agent"
)

// Explain returns why a request got no complete response, as an error for users
// with err as its cause. The text contains no address except the requested
// host. A refusal keeps its code; other errors have CodeTimeout or
// agent.CodeUpstream. An *agent.Error in err's chain is returned unchanged.
func Explain(err error) *agent.Error {
	var known *agent.Error
	var refused *Error
	var dns *net.DNSError
	text := "the connection failed"
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &refused):
		return withSetting(agent.Errorf(refused.Code, "%s", agent.Clip(refused.Error(), 200)).Because(err), refused)
	case errors.Is(err, context.Canceled):
		text = "the request was cancelled"
	case IsTimeout(err):
		return agent.Errorf(CodeTimeout, "the server did not answer in time").Because(err)
	case errors.As(err, &dns) && dns.IsNotFound:
		text = "the host name does not exist"
	case errors.As(err, &dns):
		text = "the host name could not be resolved"
	case isCertificate(err):
		text = "the server's certificate is not valid"
	case IsTLS(err):
		text = "the TLS handshake failed"
	case IsConnectionRefused(err):
		text = "the connection was refused"
	case isDial(err):
		text = "the server could not be reached"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, connectionReset),
		errors.Is(err, connectionAborted):
		text = "the connection was closed early"
	}
	return agent.Errorf(agent.CodeUpstream, "%s", text).Because(err)
}

// IsRefused reports whether a request was not made because of its destination.
func IsRefused(err error) bool {
	var refused *Error
	return errors.As(err, &refused) && refused.Refused()
}

// IsConnectionRefused reports whether nothing listens at the address.
func IsConnectionRefused(err error) bool { return errors.Is(err, connectionRefused) }

// IsTimeout reports whether a request timed out.
func IsTimeout(err error) bool {
	var timeout net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}

// IsUnsent reports whether a request certainly did not reach the server: no
// connection was established.
func IsUnsent(err error) bool {
	var dns *net.DNSError
	return IsRefused(err) ||
		errors.As(err, &dns) ||
		isDial(err) ||
		IsTLS(err)
}

// IsPermanent reports whether the same request would fail again: its address is
// refused, or the response is too large.
func IsPermanent(err error) bool {
	var refused *Error
	return errors.As(err, &refused)
}

func isDial(err error) bool {
	var network *net.OpError
	return errors.As(err, &network) && network.Op == "dial"
}

func isCertificate(err error) bool {
	var verify *tls.CertificateVerificationError
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	return errors.As(err, &verify) ||
		errors.As(err, &unknown) ||
		errors.As(err, &host) ||
		errors.As(err, &invalid)
}

// IsTLS reports whether a connection failed because of its certificate or in
// TLS. Such a failure may be fixed within hours, but not within seconds.
func IsTLS(err error) bool {
	var record tls.RecordHeaderError
	var alert tls.AlertError
	return isCertificate(err) ||
		errors.As(err, &record) ||
		errors.As(err, &alert) ||
		errors.Is(err, http.ErrSchemeMismatch)
}
