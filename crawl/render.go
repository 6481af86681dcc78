package crawl

import (
	"context"
	"net/http"
	"net/url"

	"satchel/agent"
	"satchel/agent/egress"
)

// render fetches a page with the browser, as politely as fetch, and accepts it
// only if the browser stayed on the site.
func (f *fetcher) render(ctx context.Context, address string) (*response, error) {
	if err := f.host.connect(ctx); err != nil {
		return nil, err
	}
	defer f.host.disconnect()
	if err := f.host.wait(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, f.politeness.PageTimeout)
	defer cancel()
	page, err := f.browser(ctx, address)
	if err != nil {
		return nil, err
	}
	final, err := url.Parse(page.Final)
	if err != nil {
		return nil, agent.Errorf(agent.CodeUpstream, "the browser ended at an invalid URL").Because(err)
	}
	if page.Final != address {
		if err := f.checkRedirect(ctx, final); err != nil {
			return nil, err
		}
	}
	if len(page.HTML) > maxPage {
		return nil, egress.TooLarge(final.Hostname(), maxPage)
	}
	header := http.Header{declaredType: {"text/html; charset=utf-8"}}
	return &response{
		final:  final,
		status: page.Status,
		header: header,
		body:   []byte(page.HTML),
	}, nil
}
