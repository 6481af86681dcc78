package feed

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"satchel/agent"
	"satchel/agent/egress"
)

// fetch asks for a page until it comes, a few times.
func (c *Client) fetch(ctx context.Context, p *plan, target *url.URL) ([]byte, error) {
	for try := 1; ; try++ {
		body, wait, err := c.once(ctx, p, target)
		if err == nil || wait < 0 || try == tries || ctx.Err() != nil {
			return body, err
		}
		if wait == 0 {
			wait = firstWait << (try - 1)
		}
		if slept := c.sleep(ctx, min(wait, maxWait)); slept != nil {
			return nil, slept
		}
	}
}

// once makes one request. wait tells what may help after an error: below 0
// nothing, 0 another try, above 0 another try after that time.
func (c *Client) once(ctx context.Context, p *plan, target *url.URL) (body []byte, wait time.Duration, err error) {
	limited, cancel := context.WithTimeout(ctx, pageTime)
	defer cancel()
	req, err := p.request(limited, target)
	if err != nil {
		return nil, -1, err
	}
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", c.userAgent)
	}
	client := c.egress.HTTP()
	client.CheckRedirect = p.redirect
	resp, err := client.Do(req)
	if err != nil {
		return failed(ctx, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode < 200 || resp.StatusCode >= 300 {
		wait = -1
		if resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode >= 500 {
			wait = egress.RetryAfter(resp.Header.Get("Retry-After"), time.Now())
		}
		return nil, wait, explainStatus(resp.StatusCode)
	}
	if body, err = io.ReadAll(resp.Body); err != nil {
		return failed(ctx, err)
	}
	return body, 0, nil
}

func (p *plan) request(ctx context.Context, target *url.URL) (*http.Request, error) {
	var body io.Reader
	media := ""
	if p.Method == http.MethodPost && len(p.Body) > 0 && string(p.Body) != "null" {
		raw := []byte(p.Body)
		media = "application/json"
		var text string
		if json.Unmarshal(raw, &text) == nil {
			raw, media = []byte(text), "text/plain; charset=utf-8"
		}
		body = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, p.Method, target.String(), body)
	if err != nil {
		return nil, agent.Invalid("config.url", "cannot be fetched").Because(err)
	}
	req.Header.Set("Accept", "application/json")
	if media != "" {
		req.Header.Set("Content-Type", media)
	}
	for name, value := range p.Headers {
		req.Header.Set(name, value)
	}
	switch a := p.Auth; a.Type {
	case "bearer":
		req.Header.Set("Authorization", "Bearer "+a.Token)
	case "basic":
		req.SetBasicAuth(a.Username, a.Password)
	case "header":
		req.Header.Set(a.Name, a.Value)
	}
	return req, nil
}

// redirect lets a request follow a redirect. Once it leaves the host nothing
// goes along that the config says: no header and no body.
func (p *plan) redirect(req *http.Request, via []*http.Request) error {
	first := via[0].URL
	stayed := func(u *url.URL) bool { return u.Scheme == first.Scheme && strings.EqualFold(u.Host, first.Host) }
	if stayed(req.URL) && !slices.ContainsFunc(via, func(r *http.Request) bool { return !stayed(r.URL) }) {
		return nil
	}
	if req.Body != nil || req.Method != http.MethodGet {
		return agent.Errorf(CodeLeft, "the API redirects to another host, where the body is not sent")
	}
	for name := range p.Headers {
		req.Header.Del(name)
	}
	req.Header.Del("Authorization")
	if p.Auth.Type == "header" {
		req.Header.Del(p.Auth.Name)
	}
	return nil
}

// failed is once for a request that got no whole answer.
func failed(ctx context.Context, err error) ([]byte, time.Duration, error) {
	if ctx.Err() != nil {
		return nil, -1, ctx.Err()
	}
	known := egress.Explain(err)
	if egress.IsPermanent(err) || known.Code == CodeLeft {
		return nil, -1, known
	}
	return nil, 0, known
}
