package crawl

import "net/url"

// Bounds of the links that are kept of one page.
const (
	maxLinks     = 1000
	maxLinkBytes = 256 << 10
)

// Page is what Options.Extract reads out of a response.
type Page struct {
	Title, Text string // Text is Markdown

	// Addresses that an HTML page names, as it writes them.
	Links     []string // each once, in order, without fragments
	Base      string   // the absolute address that links are relative to
	Canonical string   // the page's own address, "" when it names none
}

// normalized returns the links of a page and its canonical address, "" for
// none, as normalize spells them. Each link comes once.
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
