package document

import (
	"bytes"
	"path"
	"strings"

	"satchel/agent"
)

// maxLinks limits the links kept of one page.
const maxLinks = 5000

// linkList collects the links of a page.
type linkList struct {
	listed    map[string]bool
	hrefs     []string
	canonical string
	based     bool // a base element was found
	frames    []string
	refresh   string
	scripted  string // what a script does, as refresh has it
}

// maxFrames limits the frames kept of one page.
const maxFrames = 20

func (l *linkList) addFrame(a headAttrs) {
	if a.src != "" && len(l.frames) < maxFrames {
		l.frames = append(l.frames, a.src)
	}
}

// addRefresh uses the first meta element for refreshing.
func (l *linkList) addRefresh(a headAttrs) {
	if l.refresh == "" && strings.EqualFold(strings.TrimSpace(a.httpEquiv), "refresh") {
		l.refresh = a.content
	}
}

// maxRedirectScript is the longest script that may only redirect, in bytes.
const maxRedirectScript = 1000

// scriptRedirect matches what opens another page: location = "/de", location.replace("/de").
var scriptRedirect = agent.Pattern(`(?:^|[^\w.]|(?:window|document|self|top|parent|` +
	`this)\.)location(?:\.href)?\s*(?:=|\.(?:replace|assign)\s*\()\s*(?:"([^"\n]+)"|'([^'\n]+)')\s*(?:[;)\n}]|$)`)

// addScript notes that a script opens another page, by a delay that counts if the page
// has hardly any text.
func (l *linkList) addScript(text []byte) {
	if len(text) > maxRedirectScript || l.scripted != "" {
		return
	}
	if found := scriptRedirect().FindSubmatch(text); found != nil {
		l.scripted = "2; url=" + string(found[1]) + string(found[2])
	}
}

func (l *linkList) add(href string) {
	href, _, _ = strings.Cut(href, "#")
	if href == "" || l.listed[href] || len(l.hrefs) == maxLinks {
		return
	}
	if l.listed == nil {
		l.listed = map[string]bool{}
	}
	l.listed[href] = true
	l.hrefs = append(l.hrefs, href)
}

// addCanonical uses the URL of the first link element with rel=canonical.
func (l *linkList) addCanonical(a attrs) {
	if l.canonical == "" && strings.EqualFold(strings.TrimSpace(a.rel), "canonical") {
		l.canonical = a.href
	}
}

// setBase uses the URL of the first base element.
func (t *tree) setBase(href string) {
	if u, err := t.base.Parse(strings.TrimSpace(href)); err == nil && href != "" && !t.links.based {
		t.base, t.links.based = u, true
	}
}

// permalinkNames are classes of a heading's link to itself.
var permalinkNames = words("headerlink anchor permalink hash hashlink direct heading copybtn")

// link writes a link as its text, with its URL if it leads to another site or
// to a file.
func (w *pageWriter) link(i int32) {
	a := w.attrsOf(i)
	if strings.HasPrefix(a.href, "#") && w.isPermalink(i) {
		return
	}
	address := w.externalURL(a.href)
	if w.inLink || w.inCode || address == "" {
		w.children(i)
		return
	}
	w.inLink = true
	start, written := len(w.line), w.out.Len()
	w.children(i)
	w.inLink = false
	if w.out.Len() != written || len(bytes.TrimSpace(w.line[min(start, len(w.line)):])) == 0 {
		return // contains blocks, or nothing
	}
	text := string(bytes.TrimSpace(w.line[start:]))
	space := w.line[start] == ' '
	w.line = w.line[:start]
	if space {
		w.line = append(w.line, ' ')
	}
	if text == address {
		w.line = append(w.line, text...)
		return
	}
	w.line = append(w.line, "["+text+"]("+address+")"...)
}

// isPermalink reports whether a link is the symbol next to a heading that
// links to itself.
func (w *pageWriter) isPermalink(i int32) bool {
	var text []byte
	for k := i; k < w.end(i); k++ {
		if w.nodes[k].text {
			text = append(text, w.textOf(k)...)
		}
	}
	switch strings.TrimSpace(string(text)) {
	case "", "#", "¶", "§", "🔗", "Link to this heading", "Permalink", "Copy link":
		return true
	}
	parent := w.nodes[i].parent
	if !headingTags[w.nodes[parent].tag] || w.nodes[parent].last == w.nodes[i].last && parent == i-1 {
		return false // the heading itself is the link
	}
	for word := range strings.FieldsFuncSeq(w.attrsOf(i).class, func(r rune) bool {
		return r == ' ' || r == '-' || r == '_'
	}) {
		if permalinkNames[strings.ToLower(word)] {
			return true
		}
	}
	return false
}

// externalURL returns the absolute URL of a link to another host or to a file, or
// "".
func (w *pageWriter) externalURL(href string) string {
	if href == "" || href[0] == '#' {
		return ""
	}
	u, err := w.base.Parse(strings.TrimSpace(href))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return ""
	}
	if strings.EqualFold(u.Host, w.base.Host) && !isDownload[strings.ToLower(path.Ext(u.Path))] {
		return ""
	}
	if address := u.String(); len(address) <= maxTitle && !strings.ContainsAny(address, "()") {
		return address
	}
	return ""
}

// isDownload are the extensions of files that are downloaded, not displayed.
var isDownload = words(`.zip .gz .tgz .bz2 .xz .zst .7z .exe .msi .dmg .deb .rpm .apk .jar .whl .iso .pdf .doc .docx .xls .xlsx .ppt .pptx
	.odt .ods .epub .csv .json .yaml .yml .xml`)

// code writes inline code.
func (w *pageWriter) code(i int32) {
	if w.inCode {
		w.children(i)
		return
	}
	c := pageWriter{tree: w.tree, limit: w.limit, inCode: true}
	text := c.inline(i)
	if text == "" {
		return
	}
	mark := strings.Repeat("`", longestRun(text, '`')+1)
	if len(mark) > 1 {
		text = " " + text + " "
	}
	w.line = append(w.line, mark+text+mark...)
}
