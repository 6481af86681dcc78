package crawl

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/temoto/robotstxt"

	"satchel/agent/egress"
)

// maxRobots is how much of a robots.txt is read, in bytes: what RFC 9309,
// section 2.5, asks for at least.
const maxRobots = 512 << 10

// robotsTimeout bounds the fetching of a robots.txt, as PageTimeout does.
const robotsTimeout = 15 * time.Second

// robots knows the rules of a site's robots.txt, of each scheme and twin its
// own. It is safe for concurrent use.
type robots struct {
	fetch    func(ctx context.Context, address string) (status int, body []byte, err error)
	agent    string // the product token that groups are chosen by
	setDelay func(time.Duration)
	limit    time.Duration // for fetching it

	mu    sync.Mutex
	rules map[string]*robotstxt.RobotsData // by scheme and host
}

// allow reports whether an address may be fetched. The file is fetched once; one
// that is not there, or a host that cannot be connected to, forbids nothing
// (what is wrong with the host shows when the page is fetched); a server error
// and an answer that does not come or breaks off forbid all (RFC 9309, section
// 2.3.1).
func (r *robots) allow(ctx context.Context, u *url.URL) bool {
	if r == nil {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	origin := u.Scheme + "://" + u.Host
	rules, known := r.rules[origin]
	if !known {
		rules = r.read(ctx, origin)
		if ctx.Err() != nil {
			return true // the walk has ended
		}
		r.rules[origin] = rules
	}
	return rules == nil || rules.TestAgent(u.RequestURI(), r.agent)
}

func (r *robots) read(ctx context.Context, origin string) *robotstxt.RobotsData {
	ctx, cancel := context.WithTimeout(ctx, r.limit)
	defer cancel()
	status, body, err := r.fetch(ctx, origin+"/robots.txt")
	if egress.IsTimeout(err) {
		status, body, err = http.StatusGatewayTimeout, nil, nil
	}
	if err != nil {
		return nil
	}
	data, err := robotstxt.FromStatusAndBytes(status, body)
	if err != nil {
		return nil
	}
	if group := data.FindGroup(r.agent); group != nil && group.CrawlDelay > 0 {
		r.setDelay(group.CrawlDelay)
	}
	return data
}

// doer is what is needed of an HTTP client.
type doer interface {
	Do(*http.Request) (*http.Response, error)
}

// readRobots fetches a robots.txt by way of a client.
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
		body = body[:bytes.LastIndexByte(body, '\n')+1] // without the rule that is cut
	}
	return resp.StatusCode, body, nil
}
