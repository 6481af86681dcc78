package document

import (
	"bytes"
	"cmp"
	"context"
	"math"
	"mime"
	"net/url"
	"path"
	"strings"

	"golang.org/x/net/html/atom"

	"satchel/agent"
)

// maxPageText limits the text of one crawled page, in bytes.
const maxPageText = 4 << 20

// ReadPage extracts the text and the links of a page fetched from address;
// contentType is the header. If no character set is declared, it is guessed.
// From HTML it keeps the main content and drops what the site repeats on every
// page. In a PDF it marks where each page starts, for ParsePage. A page without
// text is not an error; errors are those of Read, and keep the links found so
// far.
//
// HTML is parsed in this process: time and memory are proportional to the page,
// whatever its content, and parsing stops with ctx. A PDF is parsed in a child.
func ReadPage(ctx context.Context, address, contentType string, data []byte) (agent.PageContent, error) {
	limits := Limits{Text: maxPageText}.orDefaults()
	media, _, _ := mime.ParseMediaType(contentType)
	format := byMedia[media]
	if format != FormatPDF {
		in := input{
			media:    contentType,
			data:     data,
			limits:   Limits{Text: math.MaxInt32},
			fallback: guess,
		}
		var err error
		if data, err = in.decode(format); err != nil || len(bytes.TrimSpace(data)) == 0 {
			return agent.PageContent{}, err
		}
	}
	if format == FormatHTML {
		timed, cancel := context.WithTimeout(ctx, limits.Time)
		defer cancel()
		base, invalid := url.Parse(address)
		if invalid != nil {
			base = &url.URL{}
		}
		page, err := readHTML(timed, base, data, htmlLimits{text: limits.Text, nodes: maxNodes})
		if err != nil && ctx.Err() == nil && timed.Err() != nil {
			err = agent.Errorf(CodeTimeout, "reading the page took longer than %s", limits.Time)
		}
		return page, err
	}
	doc, err := Read(ctx, nameForMedia(address, media), "", data, limits)
	if err != nil {
		return agent.PageContent{}, err
	}
	return agent.PageContent{Title: doc.Title, Text: paged(doc)}, nil
}

// nameForMedia returns a file name for the format of a media type, since the end
// of a URL says little about its content.
func nameForMedia(address, media string) string {
	switch media {
	case "application/pdf":
		return "page.pdf"
	case "text/markdown", "text/x-markdown":
		return "page.md"
	}
	if u, err := url.Parse(address); err == nil && byExtension[strings.ToLower(path.Ext(u.Path))] == FormatMarkdown {
		return "page.md" // servers send Markdown as plain text
	}
	return "page.txt"
}

// maxFileNodes limits the tree of an uploaded file, which is built in a child.
const maxFileNodes = 4_000_000

// extractHTML reads an uploaded file like ReadPage reads a page, except that it
// has no URL: relative links become their text unless the file sets a base.
func extractHTML(in input, out *sink) error {
	data, err := in.decode(FormatHTML)
	if err != nil {
		return err
	}
	page, err := readHTML(context.Background(), &url.URL{}, data, htmlLimits{text: in.limits.Text, nodes: maxFileNodes})
	if err != nil {
		return err
	}
	out.title = page.Title
	return out.write(0, page.Text)
}

// htmlLimits limit what reading HTML may cost.
type htmlLimits struct {
	text  int // bytes of Markdown
	nodes int // elements and texts
}

// firstLine is how long a block may be, in bytes, before its buffer grows.
const firstLine = 4096

// readHTML returns the title of a page, its main content as Markdown and its
// links. base is the URL of the page. Its errors are TOO_COMPLEX and ctx's.
func readHTML(ctx context.Context, base *url.URL, data []byte, limits htmlLimits) (agent.PageContent, error) {
	tree, err := readTree(ctx, base, data, limits.nodes)
	page := agent.PageContent{
		Links:     tree.links.hrefs,
		Base:      tree.base.String(),
		Canonical: tree.links.canonical,
		Frames:    tree.links.frames,
		Refresh:   cmp.Or(tree.links.refresh, tree.links.scripted),
	}
	if err != nil {
		return page, err
	}
	root := tree.chooseMain()
	w := pageWriter{
		tree:  tree,
		limit: limits.text,
		line:  make([]byte, 0, min(len(tree.bytes), firstLine)),
	}
	w.out.Grow(min(len(tree.bytes), limits.text))
	if w.blocks(root); w.out.Len() > limits.text {
		return page, tooMuchText(limits.text)
	}
	page.Title, page.Text = tree.pageTitle(root), withoutFormFeeds(clean(w.text()))
	return page, nil
}

// pageTitle returns the title of a page. If the title is the headline plus the
// site's name, only the headline is returned.
func (t *tree) pageTitle(root int32) string {
	title := clipTitle(t.title)
	headline := ""
	for i := root; i < t.end(root) && headline == ""; i++ {
		if t.nodes[i].tag == atom.H1 && !t.boilerplate[i] {
			w := pageWriter{tree: t, limit: 4 * maxTitle}
			headline = clipTitle(w.inline(i))
		}
	}
	if title == "" || headline != "" && includesHeadline(title, headline) {
		return headline
	}
	return title
}

// includesHeadline reports whether a title starts or ends with a headline that is
// separated from the rest.
func includesHeadline(title, headline string) bool {
	title, headline = strings.ToLower(title), strings.ToLower(strings.ReplaceAll(headline, "`", ""))
	if rest, ok := strings.CutPrefix(title, headline); ok {
		rest = strings.TrimLeft(rest, " ")
		return rest == "" || strings.IndexAny(rest, "-–—|·•:»«/(<") == 0
	}
	if rest, ok := strings.CutSuffix(title, headline); ok {
		rest = strings.TrimRight(rest, " ")
		return strings.LastIndexAny(rest, "-–—|·•:»«/>.") >= len(rest)-len("—")
	}
	return false
}
