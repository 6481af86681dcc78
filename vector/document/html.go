package document

import (
	"bytes"
	"net/url"
	"strconv"
	"strings"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/strikethrough"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// extractHTML turns a page into Markdown, without what stands around its text:
// scripts, navigation, headers, footers, asides, forms' controls.
func extractHTML(in input, out *sink) error {
	data, err := decode(in.data, declaredCharset(FormatHTML, in.media, in.data), in.limits.Text)
	if err != nil {
		return err
	}
	text := ""
	// A page that is nothing but header and asides is read with them.
	for _, around := range []map[atom.Atom]bool{surroundings, nil} {
		root, err := html.Parse(bytes.NewReader(data))
		if err != nil {
			return tooComplex("the page's elements are nested too deep")
		}
		out.title = htmlTitle(root)
		page := htmlPage{base: htmlBase(root), surroundings: around}
		page.clean(root, false)
		if text, err = toMarkdown(root); err != nil {
			return err
		}
		if !isBlank(text) {
			break
		}
	}
	return out.write(0, text)
}

func toMarkdown(root *html.Node) (string, error) {
	// Unescaped, snake_case is found and read as it is written. That a line of
	// text may then look like a heading is the lesser evil.
	c := converter.NewConverter(converter.WithEscapeMode(converter.EscapeModeDisabled), converter.WithPlugins(
		base.NewBasePlugin(),
		commonmark.NewCommonmarkPlugin(commonmark.WithListEndComment(false)),
		strikethrough.NewStrikethroughPlugin(),
		table.NewTablePlugin(
			table.WithCellPaddingBehavior(table.CellPaddingBehaviorMinimal),
			table.WithHeaderPromotion(true),
			table.WithSkipEmptyRows(true),
		),
	))
	c.Register.TextTransformer(func(_ converter.Context, text string) string {
		return plainText.Replace(text)
	}, converter.PriorityLate)
	text, err := c.ConvertNode(root)
	if err != nil {
		return "", broken("the page cannot be turned into text")
	}
	return clean(string(text)), nil
}

// plainText undoes an escape that the converter has no option against, and
// keeps text from opening a code fence.
var plainText = strings.NewReplacer("&lt;", "<", "&gt;", ">", "```", "\\`\\`\\`", "~~~", `\~\~\~`)

// htmlTitle returns the text of the first title element that is no part of a
// drawing.
func htmlTitle(n *html.Node) string {
	if n.DataAtom == atom.Title && n.Namespace == "" {
		return clipTitle(textOf(n))
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if title := htmlTitle(c); title != "" {
			return title
		}
	}
	return ""
}

// htmlBase returns the address that the page's links are relative to, nil when
// it does not say.
func htmlBase(n *html.Node) *url.URL {
	if n.DataAtom == atom.Base {
		if u, err := url.Parse(attribute(n, "href")); err == nil && u.IsAbs() {
			return u
		}
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if u := htmlBase(c); u != nil {
			return u
		}
	}
	return nil
}

// htmlPage takes out of a page what is none of its text.
type htmlPage struct {
	base         *url.URL
	surroundings map[atom.Atom]bool // elements to drop beside textless
}

// textless are elements that hold no text for a reader.
var textless = map[atom.Atom]bool{
	atom.Head: true, atom.Script: true, atom.Style: true, atom.Template: true, atom.Noscript: true,
	atom.Iframe: true, atom.Object: true, atom.Embed: true, atom.Svg: true, atom.Canvas: true,
	atom.Audio: true, atom.Video: true, atom.Map: true, atom.Dialog: true, atom.Button: true,
	atom.Input: true, atom.Select: true, atom.Textarea: true, atom.Datalist: true,
}

// surroundings are elements that stand around the text of a page.
var surroundings = map[atom.Atom]bool{
	atom.Nav: true, atom.Header: true, atom.Footer: true, atom.Aside: true,
}

// surroundingRoles are the ARIA names of the same, and of controls.
var surroundingRoles = map[string]bool{
	"navigation": true, "banner": true, "contentinfo": true, "complementary": true, "search": true,
	"dialog": true, "alertdialog": true, "menu": true, "menubar": true, "toolbar": true,
}

// maxSpan bounds colspan and rowspan, for which the converter writes cells.
const maxSpan = 16

// clean drops, beneath n, what is no text, and simplifies links and pictures.
// A header inside an article or the main part holds its headline and stays.
func (p htmlPage) clean(n *html.Node, inArticle bool) {
	for c := n.FirstChild; c != nil; {
		next := c.NextSibling
		article := inArticle || c.DataAtom == atom.Article || c.DataAtom == atom.Main
		switch {
		case c.Type == html.CommentNode, c.Type == html.ElementNode && p.drops(c, inArticle):
			n.RemoveChild(c)
		case c.DataAtom == atom.Img:
			replace(c, attribute(c, "alt"))
		case isPermalink(c):
			n.RemoveChild(c)
		case c.DataAtom == atom.A:
			p.link(c)
			p.clean(c, article)
		default:
			boundSpans(c)
			p.clean(c, article)
		}
		c = next
	}
}

func (p htmlPage) drops(n *html.Node, inArticle bool) bool {
	_, hidden := lookup(n, "hidden")
	if hidden || textless[n.DataAtom] || attribute(n, "aria-hidden") == "true" {
		return true
	}
	if n.DataAtom == atom.Header && inArticle {
		return false
	}
	return p.surroundings != nil && (p.surroundings[n.DataAtom] || surroundingRoles[attribute(n, "role")])
}

// isPermalink recognises the sign beside a heading that links to itself.
func isPermalink(n *html.Node) bool {
	if n.DataAtom != atom.A || !strings.HasPrefix(attribute(n, "href"), "#") {
		return false
	}
	switch strings.TrimSpace(textOf(n)) {
	case "#", "¶", "§", "🔗":
		return true
	}
	return false
}

// link keeps the address of a link to another page, made absolute; any other
// link is its text. Nothing is fetched.
func (p htmlPage) link(a *html.Node) {
	u, err := url.Parse(strings.TrimSpace(attribute(a, "href")))
	if err == nil && !u.IsAbs() && p.base != nil && u.Path != "" {
		u = p.base.ResolveReference(u)
	}
	if err == nil && (u.Scheme == "http" || u.Scheme == "https") && len(u.String()) <= maxTitle {
		a.Attr = []html.Attribute{{Key: "href", Val: u.String()}}
		return
	}
	a.DataAtom, a.Data, a.Attr = atom.Span, "span", nil
}

func boundSpans(n *html.Node) {
	for i, attr := range n.Attr {
		if attr.Key == "colspan" || attr.Key == "rowspan" {
			span, _ := strconv.Atoi(attr.Val)
			n.Attr[i].Val = strconv.Itoa(min(max(span, 1), maxSpan))
		}
	}
}

// replace puts text in an element's place.
func replace(n *html.Node, text string) {
	n.Parent.InsertBefore(&html.Node{Type: html.TextNode, Data: text}, n)
	n.Parent.RemoveChild(n)
}

func lookup(n *html.Node, key string) (string, bool) {
	for _, attr := range n.Attr {
		if attr.Key == key {
			return attr.Val, true
		}
	}
	return "", false
}

func attribute(n *html.Node, key string) string {
	value, _ := lookup(n, key)
	return value
}

// textOf returns the text beneath n, as much of it as a title may hold.
func textOf(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode && b.Len() < 4*maxTitle {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}
