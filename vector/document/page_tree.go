package document

import (
	"bytes"
	"context"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/html/atom"

	"satchel/agent/markup"
)

// Limits on a page's tree, which takes about 60 bytes per node in addition to
// the text.
const (
	maxNodes     = 500_000 // of a page that is parsed in this process
	maxTreeDepth = 250     // deeper elements are flattened to this depth
)

// node is an element, or a text if text is set. Nodes are in document order: a
// node's descendants follow it.
type node struct {
	tag          atom.Atom // 0 for an unknown element
	text         bool
	parent, last int32 // last is the last descendant, or the node itself
	start, end   uint32
	textLength   int32 // of a text: bytes without white space
	attr         int32 // index into tree.attrs, 0 for none
}

// attrs are the attributes that show what an element is for.
type attrs struct {
	class, id, role, href, rel, alt string
	columns, rows                   uint16 // that a cell spans; 0 means 1
}

// headAttrs are attributes of elements that are not part of the text.
type headAttrs struct{ src, httpEquiv, content string }

// tree is a page reduced to its text. Unlike the tree of the HTML standard it
// is built in one pass, so that time and size are proportional to the page:
// misnested formatting is not repeated and misplaced content stays in place.
type tree struct {
	base        *url.URL
	links       linkList
	title       string
	nodes       []node // the root is 0
	attrs       []attrs
	bytes       []byte // all texts
	boilerplate []bool // by node; filled by chooseMain
}

// end returns the index after the last descendant of i.
func (t *tree) end(i int32) int32 {
	return t.nodes[i].last + 1
}

func (t *tree) textOf(i int32) []byte {
	return t.bytes[t.nodes[i].start:t.nodes[i].end]
}

func (t *tree) attrsOf(i int32) *attrs {
	return &t.attrs[t.nodes[i].attr]
}

// open is an open element; node is -1 if it and its content are not part of
// the text.
type open struct {
	tag  atom.Atom
	name string // of an element without an atom
	node int32
}

type treeBuilder struct {
	*tree
	stack   []open
	ignored int // open elements beyond maxTreeDepth
	titled  bool
}

// readTree parses a page. Its only errors are TOO_COMPLEX and ctx's; with them
// it returns what it has parsed so far.
func readTree(ctx context.Context, base *url.URL, page []byte, maxNodes int) (*tree, error) {
	builder := treeBuilder{tree: &tree{
		base:  base,
		nodes: make([]node, 1, 64+len(page)/32),
		attrs: make([]attrs, 1, 16),
		bytes: make([]byte, 0, len(page)),
	}}
	builder.stack = append(make([]open, 0, 32), open{})
	reader := markup.New(page)
	for count := 0; ; count++ {
		if count%4096 == 0 && ctx.Err() != nil {
			return builder.tree, ctx.Err()
		}
		switch reader.Next() {
		case markup.End:
			builder.closeTo(1)
			builder.nodes[0].last = int32(len(builder.nodes) - 1)
			return builder.tree, nil
		case markup.Text:
			builder.addText(reader)
		case markup.StartTag:
			builder.startTag(reader)
		case markup.EndTag:
			name := reader.Name()
			builder.endTag(atom.Lookup(name), name)
		}
		if len(builder.nodes) > maxNodes {
			return builder.tree, tooComplex("the page has more than %d elements", maxNodes)
		}
	}
}

func (b *treeBuilder) top() open {
	return b.stack[len(b.stack)-1]
}

func (b *treeBuilder) addText(reader *markup.Reader) {
	top := b.top()
	if top.tag == atom.Title && !b.titled && !b.inside(atom.Svg) {
		b.title = strings.Join(strings.Fields(string(reader.Text())), " ")
		b.titled = b.title != ""
	}
	if top.tag == atom.Script {
		b.links.addScript(reader.Text())
	}
	if top.node < 0 {
		return
	}
	start := len(b.bytes)
	b.bytes = append(b.bytes, reader.Text()...)
	b.nodes = append(b.nodes, node{
		text:       true,
		parent:     top.node,
		last:       int32(len(b.nodes)),
		start:      uint32(start),
		end:        uint32(len(b.bytes)),
		textLength: textLength(b.bytes[start:]),
	})
}

func (b *treeBuilder) inside(tag atom.Atom) bool {
	for _, o := range b.stack {
		if o.tag == tag {
			return true
		}
	}
	return false
}

// withoutText are elements without readable text.
var withoutText = map[atom.Atom]bool{
	atom.Head: true, atom.Script: true, atom.Style: true, atom.Template: true, atom.Noscript: true,
	atom.Iframe: true, atom.Object: true, atom.Embed: true, atom.Svg: true, atom.Canvas: true,
	atom.Audio: true, atom.Video: true, atom.Map: true, atom.Dialog: true, atom.Button: true,
	atom.Input: true, atom.Select: true, atom.Textarea: true, atom.Datalist: true, atom.Noframes: true,
}

// void are the elements that have no content.
var void = map[atom.Atom]bool{
	atom.Area: true, atom.Base: true, atom.Br: true, atom.Col: true, atom.Embed: true, atom.Frame: true, atom.Hr: true,
	atom.Img: true, atom.Input: true, atom.Link: true, atom.Meta: true, atom.Param: true, atom.Source: true,
	atom.Track: true, atom.Wbr: true,
}

func (b *treeBuilder) startTag(reader *markup.Reader) {
	name := reader.Name()
	tag := atom.Lookup(name)
	var unknown string
	if tag == 0 {
		unknown = string(name)
	}
	attrs, head, hidden := readAttrs(reader)
	switch tag {
	case atom.Html, atom.Head, atom.Body:
		return
	case atom.Base:
		b.setBase(attrs.href)
		return
	case atom.Link:
		b.links.addCanonical(attrs)
		return
	case atom.Meta:
		b.links.addRefresh(head)
	case atom.Frame, atom.Iframe:
		b.links.addFrame(head)
	case atom.Area:
		b.links.add(attrs.href)
	case atom.A:
		b.links.add(attrs.href)
		if attrs.href == "" {
			return // a link target
		}
	}
	if b.ignored == 0 {
		b.closeBefore(tag)
	}
	dropped := b.top().node < 0 ||
		withoutText[tag] ||
		tag == atom.Title ||
		hidden && attrs.role != "tabpanel"
	if void[tag] && (dropped || tag != atom.Br && tag != atom.Img && tag != atom.Hr) {
		return
	}
	if len(b.stack) >= maxTreeDepth {
		if !void[tag] {
			b.ignored++
		}
		return
	}
	at := int32(-1)
	if !dropped {
		at = b.addElement(tag, attrs)
	}
	if !void[tag] {
		b.stack = append(b.stack, open{tag, unknown, at})
	}
}

func (b *treeBuilder) addElement(tag atom.Atom, a attrs) int32 {
	at := int32(len(b.nodes))
	n := node{
		tag:    tag,
		parent: b.top().node,
		last:   at,
	}
	if a != (attrs{}) {
		n.attr = int32(len(b.attrs))
		b.attrs = append(b.attrs, a)
	}
	b.nodes = append(b.nodes, n)
	return at
}

// maxAttr limits the attributes kept, in bytes.
const maxAttr = 2000

func readAttrs(reader *markup.Reader) (attrs attrs, head headAttrs, hidden bool) {
	for key, value, ok := reader.Attr(); ok; key, value, ok = reader.Attr() {
		if len(value) > maxAttr {
			continue
		}
		switch string(key) {
		case "class":
			attrs.class = string(value)
		case "id":
			attrs.id = string(value)
		case "role":
			attrs.role = string(value)
		case "href":
			attrs.href = string(value)
		case "rel":
			attrs.rel = string(value)
		case "alt":
			attrs.alt = string(value)
		case "src":
			head.src = string(value)
		case "http-equiv":
			head.httpEquiv = string(value)
		case "content":
			head.content = string(value)
		case "colspan":
			attrs.columns = spanOf(value)
		case "rowspan":
			attrs.rows = spanOf(value)
		case "hidden":
			hidden = true
		case "aria-hidden":
			hidden = hidden || string(value) == "true"
		case "style":
			hidden = hidden || bytes.Contains(bytes.ReplaceAll(value, []byte(" "), nil), []byte("display:none"))
		}
	}
	return attrs, head, hidden
}

// spanOf parses a number of columns or rows, 0 if it is invalid.
func spanOf(value []byte) uint16 {
	n, _ := strconv.ParseUint(string(value), 10, 16)
	return uint16(n)
}

// closeTo closes the elements from the nth of the stack on.
func (b *treeBuilder) closeTo(n int) {
	for _, o := range b.stack[n:] {
		if o.node >= 0 {
			b.nodes[o.node].last = int32(len(b.nodes) - 1)
		}
	}
	b.stack = b.stack[:n]
}

// closeNearest closes the innermost open element that matches wanted, unless
// one that matches bounds is in between. It reports whether it closed one.
func (b *treeBuilder) closeNearest(wanted func(open) bool, bounds map[atom.Atom]bool) bool {
	for i := len(b.stack) - 1; i > 0; i-- {
		if wanted(b.stack[i]) {
			b.closeTo(i)
			return true
		}
		if bounds[b.stack[i].tag] {
			return false
		}
	}
	return false
}

func tags(list ...atom.Atom) map[atom.Atom]bool {
	set := map[atom.Atom]bool{}
	for _, tag := range list {
		set[tag] = true
	}
	return set
}

// blockTags are the elements that start on a line of their own. All of them
// end an open paragraph.
var blockTags = tags(
	atom.Address, atom.Article, atom.Aside, atom.Blockquote, atom.Center, atom.Details, atom.Dialog, atom.Dir, atom.Div,
	atom.Dl, atom.Dt, atom.Dd, atom.Fieldset, atom.Figcaption, atom.Figure, atom.Footer, atom.Form, atom.H1, atom.H2,
	atom.H3, atom.H4, atom.H5, atom.H6, atom.Header, atom.Hgroup, atom.Hr, atom.Li, atom.Main, atom.Menu, atom.Nav,
	atom.Ol, atom.P, atom.Pre, atom.Section, atom.Summary, atom.Table, atom.Ul, atom.Tr, atom.Td, atom.Th, atom.Thead,
	atom.Tbody, atom.Tfoot, atom.Caption,
)

var (
	cellBounds  = tags(atom.Table, atom.Td, atom.Th, atom.Caption, atom.Template, atom.Object)
	pBounds     = tags(atom.Table, atom.Td, atom.Th, atom.Caption, atom.Template, atom.Object, atom.Button)
	listBounds  = tags(atom.Ul, atom.Ol, atom.Menu, atom.Dir, atom.Dl, atom.Table, atom.Td, atom.Th)
	tableBounds = tags(atom.Table, atom.Template)
)

func hasTag(set ...atom.Atom) func(open) bool {
	return func(o open) bool {
		for _, tag := range set {
			if o.tag == tag {
				return true
			}
		}
		return false
	}
}

var (
	isP         = hasTag(atom.P)
	isA         = hasTag(atom.A)
	isLi        = hasTag(atom.Li)
	isTerm      = hasTag(atom.Dt, atom.Dd)
	isCell      = hasTag(atom.Td, atom.Th)
	isRow       = hasTag(atom.Tr)
	isGroup     = hasTag(atom.Thead, atom.Tbody, atom.Tfoot, atom.Caption)
	isHeading   = hasTag(atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6)
	inTables    = tags(atom.Td, atom.Th, atom.Tr, atom.Thead, atom.Tbody, atom.Tfoot, atom.Caption)
	headingTags = tags(atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6)
)

// closeBefore closes the elements whose end tag is implied by the start of
// another.
func (b *treeBuilder) closeBefore(tag atom.Atom) {
	switch {
	case tag == atom.A:
		b.closeNearest(isA, blockTags)
		return
	case inTables[tag]:
		b.closeNearest(isCell, tableBounds)
		if tag != atom.Td && tag != atom.Th {
			b.closeNearest(isRow, tableBounds)
		}
		if tag != atom.Td && tag != atom.Th && tag != atom.Tr {
			b.closeNearest(isGroup, tableBounds)
		}
		return
	case !blockTags[tag]:
		return
	}
	b.closeNearest(isP, pBounds)
	switch {
	case tag == atom.Li:
		b.closeNearest(isLi, listBounds)
	case tag == atom.Dt || tag == atom.Dd:
		b.closeNearest(isTerm, listBounds)
	case headingTags[tag] && isHeading(b.top()):
		b.closeTo(len(b.stack) - 1)
	}
}

func (b *treeBuilder) endTag(tag atom.Atom, name []byte) {
	switch {
	case tag == atom.Html || tag == atom.Head || tag == atom.Body:
		return
	case b.ignored > 0 && !void[tag]:
		b.ignored--
		return
	case headingTags[tag]:
		b.closeNearest(isHeading, cellBounds)
		return
	}
	bounds := cellBounds
	switch {
	case tag == atom.P:
		bounds = pBounds
	case tag == atom.Table || inTables[tag]:
		bounds = tableBounds
	case tag != 0 && !blockTags[tag] && !withoutText[tag]:
		bounds = blockTags
	}
	b.closeNearest(func(o open) bool { return o.tag == tag && (tag != 0 || o.name == string(name)) }, bounds)
}
