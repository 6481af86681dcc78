package script

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"

	"satchel/agent"
	"satchel/agent/egress"
)

// fetcher makes an HTTP request, with the credential that is named.
type fetcher func(req *http.Request, credential string) (*http.Response, error)

// fetcher returns the function that makes the script's requests.
func (c Call) fetcher(fetch func(*http.Request) (*http.Response, error)) fetcher {
	if fetch == nil {
		return nil
	}
	return func(request *http.Request, ref string) (*http.Response, error) {
		if c.BeforeFetch != nil {
			if err := c.BeforeFetch(request.Context()); err != nil {
				return nil, err
			}
		}
		if ref == "" {
			return fetch(request)
		}
		if c.Credential == nil {
			return nil, agent.NotFound("credential", ref)
		}
		credential, err := c.Credential(request.Context(), ref)
		if err != nil {
			return nil, err
		}
		return fetch(request.WithContext(egress.WithCredential(request.Context(), credential)))
	}
}

// fetchServer holds the requests of one script in the parent.
type fetchServer struct {
	fetch fetcher
	to    *frameWriter
	total int
	work  sync.WaitGroup
}

// start makes a request for the child. It rejects requests that the child
// should not have sent.
func (s *fetchServer) start(ctx context.Context, payload []byte) error {
	var request fetchRequest
	if err := readJSON(payload, &request); err != nil {
		return err
	}
	if s.total++; s.total > MaxFetches || s.fetch == nil {
		return errors.New("script: a child asks for more than it may")
	}
	s.work.Go(func() {
		// The parent notices elsewhere that a child is gone and reads nothing.
		_ = s.to.sendJSON(
			frameFetched,
			fetchHead{ID: request.ID, Problem: s.serve(ctx, request)},
			0,
			nil,
		)
	})
	return nil
}

// serve makes a request and forwards the response in pieces, so that the parent
// never holds more than one of them.
func (s *fetchServer) serve(ctx context.Context, request fetchRequest) (problem string) {
	req, err := newRequest(ctx, request)
	if err != nil {
		return "the URL, the method or a header of a request is not valid"
	}
	resp, err := s.fetch(req.WithContext(egress.WithQuerySecrets(ctx, req.URL)), request.Credential)
	if err != nil {
		return "fetch failed: " + egress.Explain(err).Message
	}
	defer resp.Body.Close()
	if err := s.to.sendJSON(frameHead, headOf(request.ID, resp), 0, nil); err != nil {
		return "the script has ended"
	}
	piece := make([]byte, 32<<10)
	id := binary.BigEndian.AppendUint32(nil, uint32(request.ID))
	for total := 0; ; {
		n, err := resp.Body.Read(piece)
		if total += n; total > MaxFetchResponse {
			return "the response is larger than 5 MB"
		}
		if n > 0 {
			if s.to.send(frameBody, id, piece[:n]) != nil {
				return "the script has ended"
			}
		}
		if err == io.EOF {
			return ""
		}
		if err != nil {
			return "fetch failed: " + egress.Explain(err).Message
		}
	}
}

// notForScripts are headers that belong to the connection.
var notForScripts = map[string]bool{
	"Host": true, "Connection": true, "Content-Length": true, "Transfer-Encoding": true, "Upgrade": true,
	"Te": true, "Trailer": true, "Keep-Alive": true, "Proxy-Connection": true,
}

func newRequest(ctx context.Context, r fetchRequest) (*http.Request, error) {
	var body io.Reader
	if r.Body != "" {
		body = strings.NewReader(r.Body)
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, r.URL, body)
	if err != nil {
		return nil, err
	}
	for _, h := range r.Headers {
		if !notForScripts[http.CanonicalHeaderKey(h[0])] {
			req.Header.Add(h[0], h[1])
		}
	}
	return req, nil
}

// headOf describes a response, with as many of its headers as fit.
func headOf(id int, resp *http.Response) fetchHead {
	h := fetchHead{
		ID:         id,
		Status:     resp.StatusCode,
		StatusText: http.StatusText(resp.StatusCode),
		URL:        resp.Request.URL.Redacted(),
	}
	room := maxHead
	for name, values := range resp.Header {
		value := strings.Join(values, ", ")
		if room -= len(name) + len(value); room > 0 {
			h.Headers = append(h.Headers, [2]string{strings.ToLower(name), value})
		}
	}
	return h
}
