package crawl

import (
	"net/url"
	"satchel/agent"
)

// Limits of the links stored for one page.
const (
	maxLinks     = 1000
	maxLinkBytes = 256 << 10
)

// normalized returns the links of a page and its canonical URL, or "", as
// normalize returns them. Each link is returned once.
func normalized(content *agent.PageContent) (links []string, canonical string) {
	base, err := url.Parse(content.Base)
	if err != nil {
		return nil, ""
	}
	listed, size := map[string]bool{}, 0
	for _, href := range content.Links {
		if len(links) == maxLinks || size >= maxLinkBytes {
			break
		}
		if link, ok := resolve(base, href); ok && !listed[link] {
			listed[link] = true
			size += len(link)
			links = append(links, link)
		}
	}
	canonical, _ = resolve(base, content.Canonical)
	return links, canonical
}
