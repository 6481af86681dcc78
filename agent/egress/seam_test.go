package egress

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"satchel/agent"
)

// names is a fake DNS: it returns the addresses of a name, or "no such host"
// for unknown names.
type names func(host string) []string

// resolver returns Go's own resolver with names as its only server, so that
// tests use the same lookup code as the product.
func (n names) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go n.serve(server)
		return client, nil
	}}
}

// serve answers length-prefixed DNS messages (RFC 1035, 4.2.2) until the
// resolver disconnects.
func (n names) serve(conn net.Conn) {
	defer conn.Close()
	for {
		var size [2]byte
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			return
		}
		query := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(conn, query); err != nil {
			return
		}
		var message dnsmessage.Message
		if err := message.Unpack(query); err != nil {
			return
		}
		answer, err := n.answer(message)
		if err != nil {
			return
		}
		frame := binary.BigEndian.AppendUint16(nil, uint16(len(answer)))
		if _, err := conn.Write(append(frame, answer...)); err != nil {
			return
		}
	}
}

func (n names) answer(message dnsmessage.Message) ([]byte, error) {
	question := message.Questions[0]
	message.Header = dnsmessage.Header{ID: message.ID, Response: true, RecursionAvailable: true}
	message.Additionals = nil
	addresses := n(strings.TrimSuffix(question.Name.String(), "."))
	if addresses == nil {
		message.RCode = dnsmessage.RCodeNameError
	}
	for _, address := range addresses {
		addr := netip.MustParseAddr(address)
		header := dnsmessage.ResourceHeader{Name: question.Name, Type: question.Type, Class: question.Class}
		switch {
		case addr.Is4() && question.Type == dnsmessage.TypeA:
			message.Answers = append(message.Answers, dnsmessage.Resource{
				Header: header,
				Body:   &dnsmessage.AResource{A: addr.As4()},
			})
		case addr.Is6() && question.Type == dnsmessage.TypeAAAA:
			message.Answers = append(message.Answers, dnsmessage.Resource{
				Header: header,
				Body:   &dnsmessage.AAAAResource{AAAA: addr.As16()},
			})
		}
	}
	return message.Pack()
}

// fixed answers queries from a map.
func fixed(table map[string][]string) names {
	return func(host string) []string { return table[strings.ToLower(host)] }
}

// The two servers of most tests: the policy allows the first, never the second.
const (
	openedIP  = "127.0.0.1"
	blockedIP = "127.0.0.2"
)

var openedRange = agent.MustAddressRanges(openedIP)

// serveOn starts a server on an address of this machine. Port 0 picks one.
func serveOn(t testing.TB, ip, port string, handler http.Handler) *httptest.Server {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(ip, port))
	if err != nil {
		t.Fatal(err)
	}
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: handler}}
	server.Start()
	t.Cleanup(server.Close)
	return server
}

func portOf(t testing.TB, server *httptest.Server) string {
	t.Helper()
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// newServerPair starts a server on the allowed address and one on the blocked address
// with the same port, as a name that resolves differently each time would reach them.
func newServerPair(t *testing.T, handler http.Handler) (opened *httptest.Server, blockedHits *atomic.Int64) {
	t.Helper()
	opened = serveOn(t, openedIP, "0", handler)
	blockedHits = new(atomic.Int64)
	serveOn(t, blockedIP, portOf(t, opened), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		blockedHits.Add(1)
		_, _ = io.WriteString(w, "secret")
	}))
	return opened, blockedHits
}

// client returns a Client whose idle connections are closed with the test.
func client(t testing.TB, policy Policy) *Client {
	t.Helper()
	c := New(policy)
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// get fetches a URL and returns the body. err is from the request or from
// reading.
func get(t testing.TB, do func(*http.Request) (*http.Response, error), url string, header http.Header) (string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range header {
		req.Header[name] = values
	}
	resp, err := do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

func text(s string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, s) }
}
