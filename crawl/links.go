package crawl

import (
	"net/url"
	"strings"

	"golang.org/x/net/html/atom"

	"satchel/agent/markup"
)

// Bounds of the links that are kept of one page.
const (
	maxLinks     = 1000
	maxLinkBytes = 256 << 10
)

// pageLinks are the addresses that an HTML page names.
type pageLinks struct {
	links     []string // normalized, each once, in order
	canonical string   // of the page itself, "" when it does not say
}

// readLinks finds links in a page without building its tree, whatever the
// page looks like. address is where the page was found.
func readLinks(address *url.URL, page []byte) pageLinks {
	var found pageLinks
	base, based := address, false
	seen, listed, size := map[string]bool{}, map[string]bool{}, 0
	for r := markup.New(page); ; {
		switch r.Next() {
		case markup.End:
			return found
		case markup.StartTag:
		default:
			continue
		}
		tag := atom.Lookup(r.Name())
		if tag != atom.A && tag != atom.Area && tag != atom.Base && tag != atom.Link {
			continue
		}
		href, rel := hrefAndRel(r)
		switch tag {
		case atom.Base:
			if u, err := address.Parse(strings.TrimSpace(href)); err == nil && href != "" && !based {
				base, based = u, true
			}
		case atom.Link:
			if found.canonical == "" && strings.EqualFold(strings.TrimSpace(rel), "canonical") {
				found.canonical, _ = resolve(base, href)
			}
		default:
			if seen[href] || len(found.links) >= maxLinks || size >= maxLinkBytes {
				continue
			}
			seen[href] = true
			if link, ok := resolve(base, href); ok && !listed[link] {
				listed[link] = true
				size += len(link)
				found.links = append(found.links, link)
			}
		}
	}
}

func hrefAndRel(r *markup.Reader) (href, rel string) {
	for key, value, ok := r.Attr(); ok; key, value, ok = r.Attr() {
		switch string(key) {
		case "href":
			href = string(value)
		case "rel":
			rel = string(value)
		}
	}
	return href, rel
}
