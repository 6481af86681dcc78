package gateways

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/textproto"
	"strconv"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"
	gosmtp "github.com/wneessen/go-mail/smtp"

	"satchel/agent"
	"satchel/agent/egress"
	"satchel/agent/mailbox"
)

// smtp sends email with SMTP (RFC 5321).
type smtp struct{}

// SMTPInfo describes a verified mail server.
type SMTPInfo struct {
	Host string `json:"host"`
	Port int    `json:"port"`
	TLS  string `json:"tls" doc:"TLS version, or none."`
}

// Limits of a session with a mail server.
const (
	smtpTimeout  = 30 * time.Second // in total
	maxSMTPBytes = 1 << 20          // from the server
)

func (smtp) missing(c agent.GatewayConfig) []string {
	fields := emptyFields("fromAddress", c.FromAddress, "provider", c.Provider, "smtpHost", c.SMTPHost)
	if c.SMTPUsername != "" && c.SMTPPassword == "" {
		fields = append(fields, "smtpPassword")
	}
	return fields
}

// smtpSession is a session with a mail server, secured and logged in. The
// caller must close it.
type smtpSession struct {
	client    *gomail.Client
	smtp      *gosmtp.Client
	conn      net.Conn
	stopWatch func() bool // stops watching the context
}

func (s *smtpSession) close() {
	s.stopWatch()
	_ = s.conn.Close()
}

// open starts a session.
func (smtp) open(ctx context.Context, gateways *Gateways, gatewayConfig agent.GatewayConfig) (*smtpSession, error) {
	session := &smtpSession{}
	config := &tls.Config{
		ServerName: gatewayConfig.SMTPHost,
		MinVersion: tls.VersionTLS12,
		RootCAs:    gateways.roots,
	}
	dial := func(dialing context.Context, network, address string) (net.Conn, error) {
		conn, err := gateways.guard.DialContext(dialing, network, address)
		if err != nil {
			return nil, err
		}
		session.conn = &boundedConn{
			Conn:      conn,
			end:       time.Now().Add(smtpTimeout),
			remaining: maxSMTPBytes,
		}
		session.stopWatch = context.AfterFunc(ctx, func() { _ = conn.Close() })
		if gatewayConfig.SMTPTLS != "tls" {
			return session.conn, nil
		}
		secure := tls.Client(session.conn, config)
		return secure, secure.HandshakeContext(dialing)
	}
	policy := map[string]gomail.TLSPolicy{"none": gomail.NoTLS, "tls": gomail.TLSOpportunistic}[gatewayConfig.SMTPTLS]
	if gatewayConfig.SMTPTLS == "" || gatewayConfig.SMTPTLS == "starttls" {
		policy = gomail.TLSMandatory
	}
	options := []gomail.Option{
		gomail.WithPort(gatewayConfig.MailPort()),
		gomail.WithTimeout(smtpTimeout),
		gomail.WithTLSConfig(config),
		gomail.WithTLSPolicy(policy),
		gomail.WithDialContextFunc(dial),
		gomail.WithoutRset(),
	}
	if gatewayConfig.SMTPUsername != "" {
		options = append(
			options,
			gomail.WithUsername(gatewayConfig.SMTPUsername),
			gomail.WithPassword(gatewayConfig.SMTPPassword),
			smtpLogin(gatewayConfig),
		)
	}
	var err error
	if session.client, err = gomail.NewClient(gatewayConfig.SMTPHost, options...); err != nil {
		return nil, newClientError("config.smtpHost cannot be used", err)
	}
	if session.smtp, err = session.client.DialToSMTPClientWithContext(ctx); err != nil {
		if session.conn != nil {
			session.close()
		}
		if policy == gomail.TLSMandatory && isSTARTTLSMissing(err) {
			return nil, newClientError("the mail server offers no STARTTLS: set config.smtpTls to tls or none", err)
		}
		return nil, smtpFailure(err)
	}
	return session, nil
}

// isSTARTTLSMissing reports whether the session ended because the mail server
// does not offer STARTTLS. The library has no value for this error, only a
// text.
func isSTARTTLSMissing(err error) bool {
	return smtpStatus(err) == 0 && strings.Contains(err.Error(), "does not support STARTTLS")
}

// smtpLogin selects the authentication methods, best first. If the config
// disables TLS, the password is sent in any way the server supports.
func smtpLogin(config agent.GatewayConfig) gomail.Option {
	if config.SMTPTLS == "none" {
		return gomail.WithOpportunisticSMTPAuth(
			gomail.SMTPAuthSCRAMSHA256,
			gomail.SMTPAuthSCRAMSHA1,
			gomail.SMTPAuthCramMD5,
			gomail.SMTPAuthPlainNoEnc,
			gomail.SMTPAuthLoginNoEnc,
		)
	}
	return gomail.WithOpportunisticSMTPAuth(
		gomail.SMTPAuthPlain,
		gomail.SMTPAuthLogin,
		gomail.SMTPAuthSCRAMSHA256,
		gomail.SMTPAuthSCRAMSHA1,
		gomail.SMTPAuthCramMD5,
	)
}

func (m smtp) verify(ctx context.Context, gateways *Gateways, config agent.GatewayConfig) (any, error) {
	session, err := m.open(ctx, gateways, config)
	if err != nil {
		return nil, err
	}
	defer session.close()
	if err := session.smtp.Noop(); err != nil {
		return nil, smtpFailure(err)
	}
	info := SMTPInfo{
		Host: config.SMTPHost,
		Port: config.MailPort(),
		TLS:  "none",
	}
	if state, ok := session.smtp.TLSConnectionState(); ok {
		info.TLS = tls.VersionName(state.Version)
	}
	_ = session.smtp.Quit() // the result does not matter
	return info, nil
}

func (m smtp) send(
	ctx context.Context,
	gateways *Gateways,
	config agent.GatewayConfig,
	messageID string,
	email *Email,
) (string, error) {
	message, err := compose(config, messageID, email)
	if err != nil {
		return "", newClientError("the message cannot be written as an email", err)
	}
	s, err := m.open(ctx, gateways, config)
	if err != nil {
		return "", err
	}
	defer s.close()
	if err := s.client.SendWithSMTPClient(s.smtp, message); err != nil && !message.IsDelivered() {
		return "", smtpFailure(err)
	}
	_ = s.smtp.Quit() // the message has been accepted
	return "<" + messageID + ">", nil
}

// compose returns an email as an RFC 5322 message.
func compose(config agent.GatewayConfig, messageID string, email *Email) (*gomail.Msg, error) {
	message := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	errs := []error{
		message.FromFormat(config.FromName, mailbox.ASCII(config.FromAddress)),
		message.To(email.To...),
		message.Cc(email.CC...),
		message.Bcc(email.BCC...),
	}
	if email.ReplyTo != "" {
		errs = append(errs, message.ReplyTo(email.ReplyTo))
	}
	for name, value := range email.headers() {
		message.SetGenHeader(gomail.Header(name), value)
	}
	message.Subject(email.Subject)
	message.SetDate()
	message.SetMessageIDWithValue(messageID)
	switch {
	case email.HTML == "":
		message.SetBodyString(gomail.TypeTextPlain, email.Text)
	case email.Text == "":
		message.SetBodyString(gomail.TypeTextHTML, email.HTML)
	default:
		message.SetBodyString(gomail.TypeTextPlain, email.Text)
		message.AddAlternativeString(gomail.TypeTextHTML, email.HTML)
	}
	return message, errors.Join(errs...)
}

// smtpFailure converts a mail server's failure to an error for clients.
func smtpFailure(err error) error {
	status := smtpStatus(err)
	if status == 0 {
		switch {
		case errors.Is(err, errTooManyBytes):
			return newClientError("the mail server sent too much data", err)
		case errors.Is(err, gomail.ErrNoSupportedAuthDiscovered), errors.Is(err, gomail.ErrPlainAuthNotSupported):
			return newClientError("the mail server offers no supported authentication method", err)
		}
		return newClientError("the mail server could not be used: "+egress.Explain(err).Message, err)
	}
	code := " (" + strconv.Itoa(status) + ")"
	switch status {
	case 530, 534, 535, 538:
		return newClientError("the mail server refused the login"+code, err)
	case 450, 550, 551, 553:
		return newClientError("the mail server refused an address"+code, err)
	case 552, 554:
		return newClientError("the mail server refused the message"+code, err)
	case 421, 451, 452, 454:
		return newClientError("the mail server is busy; try again later"+code, err)
	}
	return newClientError("the mail server rejected the command"+code, err)
}

// smtpStatus returns the mail server's reply code, or 0 if it did not reply.
func smtpStatus(err error) int {
	var reply *textproto.Error
	var sending *gomail.SendError
	switch {
	case errors.As(err, &reply):
		return reply.Code
	case errors.As(err, &sending):
		return sending.ErrorCode()
	}
	return 0
}

var errTooManyBytes = errors.New("more bytes than the bound")

// boundedConn limits a whole session in time and in received bytes.
type boundedConn struct {
	net.Conn
	end       time.Time
	remaining int
}

// Read counts the received bytes.
func (c *boundedConn) Read(p []byte) (int, error) {
	if c.remaining <= 0 {
		return 0, errTooManyBytes
	}
	n, err := c.Conn.Read(p[:min(len(p), c.remaining)])
	if c.remaining -= n; errors.Is(err, io.EOF) && n > 0 {
		err = nil
	}
	return n, err
}

// SetDeadline never exceeds the end of the session.
func (c *boundedConn) SetDeadline(t time.Time) error {
	if t.IsZero() || t.After(c.end) {
		t = c.end
	}
	return c.Conn.SetDeadline(t)
}
