package egress

import (
	"io"
	"log"
	"net"
	"net/http"
)

// Server is an HTTP server for programs that this one uses.
type Server struct {
	listener net.Listener
	server   *http.Server
	served   chan struct{}
}

// Serve begins to serve on an address, host:port. Nothing is logged.
func Serve(address string, server *http.Server) (*Server, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	server.ErrorLog = log.New(io.Discard, "", 0)
	s := &Server{
		listener: listener,
		server:   server,
		served:   make(chan struct{}),
	}
	go func() {
		defer close(s.served)
		_ = server.Serve(listener) // returns after Close
	}()
	return s, nil
}

// Addr returns the address on which the server listens.
func (s *Server) Addr() net.Addr {
	return s.listener.Addr()
}

// Close closes the port and every connection that was not taken over.
func (s *Server) Close() {
	_ = s.server.Close()
	<-s.served
}
