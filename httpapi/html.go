package httpapi

import (
	"bytes"

	"github.com/labstack/echo/v4"
	"golang.org/x/net/html"
)

// htmlPage is a page for people outside the console. It is built from elements instead of
// a template: a template calls methods by name, which would make the linker keep the
// methods of all types.
type htmlPage struct {
	Title, Style string // Style is the address of the style sheet
	Body         []*html.Node
}

// write sends the page as the response, with a content security policy. No other page may
// frame it, and it is not cached.
func (p htmlPage) write(c echo.Context, status int, policy string) error {
	root := &html.Node{Type: html.DocumentNode}
	root.AppendChild(&html.Node{Type: html.DoctypeNode, Data: "html"})
	root.AppendChild(element(
		"html",
		attributes("lang", "en"),
		element(
			"head",
			nil,
			element("meta", attributes("charset", "utf-8")),
			element("meta", attributes("name", "viewport", "content", "width=device-width, initial-scale=1")),
			element("meta", attributes("name", "robots", "content", "noindex")),
			element("title", nil, textNode(p.Title)),
			element("link", attributes("rel", "stylesheet", "href", p.Style)),
		),
		element("body", nil, element("main", nil, p.Body...)),
	))
	var out bytes.Buffer
	if err := html.Render(&out, root); err != nil {
		return err
	}
	h := c.Response().Header()
	h.Set(echo.HeaderContentSecurityPolicy, policy)
	h.Set(echo.HeaderXFrameOptions, "DENY")
	h.Set(echo.HeaderCacheControl, "no-store")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	return c.HTMLBlob(status, out.Bytes())
}

// element returns an HTML element with the children that are not nil.
func element(name string, attributes []html.Attribute, children ...*html.Node) *html.Node {
	n := &html.Node{Type: html.ElementNode, Data: name, Attr: attributes}
	for _, child := range children {
		if child != nil {
			n.AppendChild(child)
		}
	}
	return n
}

// textNode returns text, which is escaped when it is written.
func textNode(s string) *html.Node {
	return &html.Node{Type: html.TextNode, Data: s}
}

// foreign returns text from users, isolated so that it keeps its own writing direction.
func foreign(s string) *html.Node {
	return element("bdi", nil, textNode(s))
}

// attributes returns attributes from alternating names and values. Values are escaped
// when they are written; URLs must be on this server.
func attributes(pairs ...string) (all []html.Attribute) {
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, html.Attribute{Key: pairs[i], Val: pairs[i+1]})
	}
	return all
}
