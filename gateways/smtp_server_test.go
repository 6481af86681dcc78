package gateways

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// mailServer is an SMTP server on loopback that behaves as a test requires.
type mailServer struct {
	host     string
	port     int
	roots    *x509.CertPool
	secure   *tls.Config
	starttls bool              // offer STARTTLS
	implicit bool              // TLS from the first byte
	auth     string            // methods to offer; empty: none
	password string            // the correct password
	answers  map[string]string // by verb, replacing the usual reply
	silent   bool              // do not respond at all

	mu     sync.Mutex
	mails  []received
	logins []string
}

type received struct {
	from string
	to   []string
	data string
	tls  bool
}

func newMailServer(tb testing.TB, set func(*mailServer)) *mailServer {
	tb.Helper()
	borrowed := httptest.NewTLSServer(nil) // for its certificate for 127.0.0.1
	certificate, root := borrowed.TLS.Certificates[0], borrowed.Certificate()
	borrowed.Close()
	s := &mailServer{
		starttls: true,
		auth:     "PLAIN LOGIN",
		password: "right",
		roots:    x509.NewCertPool(),
		secure:   &tls.Config{Certificates: []tls.Certificate{certificate}},
	}
	s.roots.AddCert(root)
	if set != nil {
		set(s)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	host, port, _ := net.SplitHostPort(l.Addr().String())
	s.host = host
	s.port, _ = strconv.Atoi(port)
	var open sync.WaitGroup
	done := make(chan struct{})
	open.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			open.Go(func() {
				closed := make(chan struct{})
				open.Go(func() {
					select {
					case <-done:
						_ = conn.Close()
					case <-closed:
					}
				})
				s.serve(conn)
				close(closed)
			})
		}
	})
	tb.Cleanup(func() {
		close(done)
		_ = l.Close()
		open.Wait()
	})
	return s
}

func (s *mailServer) messages() []received {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]received(nil), s.mails...)
}

func (s *mailServer) serve(conn net.Conn) {
	defer conn.Close()
	if s.silent {
		_, _ = io.Copy(io.Discard, conn)
		return
	}
	secured := s.implicit
	if s.implicit {
		conn = tls.Server(conn, s.secure)
	}
	in := bufio.NewReader(conn)
	say := func(text string) { _, _ = fmt.Fprint(conn, text+"\r\n") }
	read := func() string {
		line, _ := in.ReadString('\n')
		return strings.TrimRight(line, "\r\n")
	}
	say(s.answer("GREETING", "220 mail.test ESMTP"))
	var mail received
	for {
		line := read()
		verb, rest, _ := strings.Cut(line, " ")
		verb = strings.ToUpper(verb)
		if text, ok := s.answers[verb]; ok {
			say(text)
			continue
		}
		switch verb {
		case "":
			return
		case "EHLO":
			lines := []string{"mail.test"}
			if s.starttls && !secured {
				lines = append(lines, "STARTTLS")
			}
			if s.auth != "" {
				lines = append(lines, "AUTH "+s.auth)
			}
			for i, l := range append(lines, "8BITMIME") {
				sep := "-"
				if i == len(lines) {
					sep = " "
				}
				say("250" + sep + l)
			}
		case "STARTTLS":
			say("220 go on")
			conn = tls.Server(conn, s.secure)
			in, secured = bufio.NewReader(conn), true
		case "AUTH":
			say(s.login(rest, read, say))
		case "MAIL":
			mail = received{from: rest, tls: secured}
			say("250 ok")
		case "RCPT":
			mail.to = append(mail.to, rest)
			say("250 ok")
		case "DATA":
			say("354 go on")
			var data strings.Builder
			for line := read(); line != "."; line = read() {
				data.WriteString(line + "\n")
			}
			mail.data = data.String()
			s.mu.Lock()
			s.mails = append(s.mails, mail)
			s.mu.Unlock()
			say(s.answer("TAKEN", "250 taken"))
		case "QUIT":
			say("221 bye")
			return
		default:
			say("250 ok")
		}
	}
}

func (s *mailServer) answer(verb, usual string) string {
	if text, ok := s.answers[verb]; ok {
		return text
	}
	return usual
}

// login checks PLAIN and LOGIN.
func (s *mailServer) login(rest string, read func() string, say func(string)) string {
	method, first, _ := strings.Cut(rest, " ")
	decode := func(text string) string {
		raw, _ := base64.StdEncoding.DecodeString(text)
		return string(raw)
	}
	password := ""
	if method == "PLAIN" {
		parts := strings.Split(decode(first), "\x00")
		password = parts[len(parts)-1]
	} else {
		say("334 VXNlcm5hbWU6")
		read()
		say("334 UGFzc3dvcmQ6")
		password = decode(read())
	}
	s.mu.Lock()
	s.logins = append(s.logins, method)
	s.mu.Unlock()
	if password != s.password {
		return "535 5.7.8 wrong: " + password
	}
	return "235 welcome"
}
