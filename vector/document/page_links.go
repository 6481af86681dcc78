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
func (writer *pageWriter) link(index int32) {
	attrs := writer.attrsOf(index)
	if strings.HasPrefix(attrs.href, "#") && writer.isPermalink(index) {
		return
	}
	address := writer.externalURL(attrs.href)
	if writer.inLink || writer.inCode || address == "" {
		writer.children(index)
		return
	}
	writer.inLink = true
	start, written := len(writer.line), writer.out.Len()
	writer.children(index)
	writer.inLink = false
	if writer.out.Len() != written || len(bytes.TrimSpace(writer.line[min(start, len(writer.line)):])) == 0 {
		return // contains blocks, or nothing
	}
	text := string(bytes.TrimSpace(writer.line[start:]))
	space := writer.line[start] == ' '
	writer.line = writer.line[:start]
	if space {
		writer.line = append(writer.line, ' ')
	}
	if text == address {
		writer.line = append(writer.line, text...)
		return
	}
	writer.line = append(writer.line, "["+text+"]("+address+")"...)
}

// isPermalink reports whether a link is the symbol next to a heading that
// links to itself.
func (writer *pageWriter) isPermalink(index int32) bool {
	var text []byte
	for k := index; k < writer.end(index); k++ {
		if writer.nodes[k].text {
			text = append(text, writer.textOf(k)...)
		}
	}
	switch strings.TrimSpace(string(text)) {
	case "", "#", "¶", "§", "🔗", "Link to this heading", "Permalink", "Copy link":
		return true
	}
	parent := writer.nodes[index].parent
	if !headingTags[writer.nodes[parent].tag] ||
		writer.nodes[parent].last == writer.nodes[index].last && parent == index-1 {
		return false // the heading itself is the link
	}
	for word := range strings.FieldsFuncSeq(writer.attrsOf(index).class, func(r rune) bool {
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
func (writer *pageWriter) externalURL(href string) string {
	if href == "" || href[0] == '#' {
		return ""
	}
	u, err := writer.base.Parse(strings.TrimSpace(href))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return ""
	}
	if strings.EqualFold(u.Host, writer.base.Host) && !isDownload[strings.ToLower(path.Ext(u.Path))] {
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
func (writer *pageWriter) code(i int32) {
	if writer.inCode {
		writer.children(i)
		return
	}
	c := pageWriter{tree: writer.tree, limit: writer.limit, inCode: true}
	text := c.inline(i)
	if text == "" {
		return
	}
	mark := strings.Repeat("`", longestRun(text, '`')+1)
	if len(mark) > 1 {
		text = " " + text + " "
	}
	writer.line = append(writer.line, mark+text+mark...)
}
