package crawl

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"satchel/agent/egress"
)

// maxRobots is how much of a robots.txt is read, in bytes: the minimum of RFC
// 9309, section 2.5.
const maxRobots = 512 << 10

// robotsTimeout limits fetching a robots.txt, as does PageTimeout.
const robotsTimeout = 15 * time.Second

// robots holds the rules of a site's robots.txt, separately for each scheme and
// host name. It is safe for concurrent use.
type robots struct {
	fetch    func(ctx context.Context, address string) (status int, body []byte, err error)
	agent    string // the product token that selects groups
	setDelay func(time.Duration)
	limit    time.Duration // for fetching it

	mu    sync.Mutex
	rules map[string]*robotsRules // by scheme and host
}

// allow reports whether a URL may be fetched. The file is fetched once. If it
// is missing, or the host is unreachable, everything is allowed (fetching the
// page shows what is wrong with the host); a server error or an incomplete
// response disallows everything (RFC 9309, section 2.3.1).
func (r *robots) allow(ctx context.Context, address *url.URL) bool {
	if r == nil {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	origin := address.Scheme + "://" + address.Host
	rules, known := r.rules[origin]
	if !known {
		rules = r.read(ctx, origin)
		if ctx.Err() != nil {
			return true // the walk has ended
		}
		r.rules[origin] = rules
	}
	return rules.allow(address.RequestURI())
}

func (r *robots) read(ctx context.Context, origin string) *robotsRules {
	ctx, cancel := context.WithTimeout(ctx, r.limit)
	defer cancel()
	status, body, err := r.fetch(ctx, origin+"/robots.txt")
	if egress.IsTimeout(err) {
		status, body, err = http.StatusGatewayTimeout, nil, nil
	}
	switch {
	case err != nil:
		return nil
	case status >= 500:
		return &robotsRules{none: true}
	case status < 200 || status > 299:
		return nil
	}
	rules := parseRobots(body, r.agent)
	r.setDelay(rules.delay)
	return rules
}

// doer is the required part of an HTTP client.
type doer interface {
	Do(*http.Request) (*http.Response, error)
}

// readRobots fetches a robots.txt with a client.
func readRobots(ctx context.Context, client doer, address, userAgent string) (int, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("User-Agent", userAgent)
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxRobots))
	if err != nil {
		return http.StatusBadGateway, nil, nil
	}
	if len(body) == maxRobots {
		body = body[:bytes.LastIndexAny(body, "\r\n")+1] // drop the truncated rule
	}
	return resp.StatusCode, body, nil
}
