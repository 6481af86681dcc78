package crawl

import "net/url"

// Limits of the links stored for one page.
const (
	maxLinks     = 1000
	maxLinkBytes = 256 << 10
)

// Page is the result of Options.Extract.
type Page struct {
	Title, Text string // Text is Markdown

	// URLs in an HTML page, as written.
	Links     []string // each once, in order, without fragments
	Base      string   // the absolute URL that links are relative to
	Canonical string   // the page's canonical URL, "" if it has none
}

// normalized returns the links of a page and its canonical URL, or "", as
// normalize returns them. Each link is returned once.
func (p *Page) normalized() (links []string, canonical string) {
	base, err := url.Parse(p.Base)
	if err != nil {
		return nil, ""
	}
	listed, size := map[string]bool{}, 0
	for _, href := range p.Links {
		if len(links) == maxLinks || size >= maxLinkBytes {
			break
		}
		if link, ok := resolve(base, href); ok && !listed[link] {
			listed[link] = true
			size += len(link)
			links = append(links, link)
		}
	}
	canonical, _ = resolve(base, p.Canonical)
	return links, canonical
}
