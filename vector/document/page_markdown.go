package document

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/atom"
)

// pageWriter writes the text below a node as Markdown. Emphasis and the URLs
// of links within the site are omitted: neither helps to answer questions.
type pageWriter struct {
	*tree
	limit int // bytes; the rest is not written
	out   strings.Builder
	line  []byte // the current block

	prefix string // of each line, from the enclosing blocks
	marker string // of the next block, in place of prefix
	around string // the prefix outside marker
	tight  bool   // the previous block was in the same list
	lists  int    // nesting of lists
	flat   bool   // write blocks as words, for cells and titles
	inCode bool
	inLink bool
}

func (w *pageWriter) text() string {
	return strings.TrimSpace(w.out.String())
}

// inline returns the text below a node on one line.
func (w *pageWriter) inline(i int32) string {
	w.flat = true
	w.children(i)
	return string(bytes.TrimSpace(w.line))
}

// blocks writes everything below a node.
func (w *pageWriter) blocks(i int32) {
	w.children(i)
	w.flush()
}

func (w *pageWriter) children(i int32) {
	for c := i + 1; c < w.end(i) && w.out.Len()+len(w.line) <= w.limit; c = w.end(c) {
		if !w.boilerplate[c] {
			w.node(c)
		}
	}
}

func (w *pageWriter) node(i int32) {
	n := &w.nodes[i]
	switch {
	case n.text:
		w.words(w.textOf(i))
	case n.tag == atom.Br:
		w.breakLine()
	case n.tag == atom.Img:
		w.words([]byte(w.attrsOf(i).alt))
	case n.tag == atom.A:
		w.link(i)
	case n.tag == atom.Del || n.tag == atom.S || n.tag == atom.Strike:
		w.strikethrough(i)
	case n.tag == atom.Code ||
		n.tag == atom.Kbd ||
		n.tag == atom.Samp ||
		n.tag == atom.Tt:
		w.code(i)
	case w.flat && blockTags[n.tag]:
		w.words([]byte(" "))
		w.children(i)
		w.words([]byte(" "))
	case !blockTags[n.tag]:
		w.children(i)
	default:
		w.flush()
		w.block(i)
		w.flush()
	}
}

func (w *pageWriter) block(i int32) {
	switch n := &w.nodes[i]; n.tag {
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		w.heading(i)
	case atom.Pre:
		w.fence(i)
	case atom.Ul, atom.Ol, atom.Menu, atom.Dir:
		w.list(i)
	case atom.Blockquote:
		w.within("> ", "> ", func() { w.blocks(i) })
	case atom.Dd:
		w.tight, w.marker, w.around = w.out.Len() > 0, w.prefix+": ", w.prefix
		w.blocks(i)
		w.marker, w.tight = "", false
	case atom.Table:
		w.table(i)
	default:
		w.children(i)
	}
}

// within writes the content of a block: its first line starts with first, the
// others with rest.
func (w *pageWriter) within(first, rest string, write func()) {
	prefix, marker := w.prefix, w.marker
	if marker == "" {
		w.marker, w.around = prefix+first, prefix
	} else {
		w.marker = marker + first
	}
	w.prefix = prefix + rest
	write()
	w.prefix = prefix
	if w.marker != "" { // nothing was written
		w.marker = marker
	}
}

// flush ends the current block.
func (w *pageWriter) flush() {
	if w.flat {
		return
	}
	if block := bytes.Trim(w.line, " \n"); len(block) > 0 {
		w.begin()
		for k, line := range bytes.Split(block, []byte("\n")) {
			if k > 0 {
				w.out.WriteString("\n" + w.prefix)
			}
			if bytes.HasPrefix(line, []byte("```")) || bytes.HasPrefix(line, []byte("~~~")) {
				w.out.WriteByte('\\') // not a fence
			}
			w.out.Write(bytes.TrimRight(line, " "))
		}
	}
	w.line = w.line[:0]
}

// begin writes the separator between two blocks.
func (w *pageWriter) begin() {
	switch {
	case w.out.Len() == 0:
	case w.tight && w.marker != "":
		w.out.WriteByte('\n')
	case w.marker != "":
		w.out.WriteString("\n" + strings.TrimRight(w.around, " ") + "\n")
	default:
		w.out.WriteString("\n" + strings.TrimRight(w.prefix, " ") + "\n")
	}
	if w.marker != "" {
		w.out.WriteString(w.marker)
	} else {
		w.out.WriteString(w.prefix)
	}
	w.marker = ""
	w.tight = w.lists > 0
}

// words appends text with white space collapsed to single spaces.
func (w *pageWriter) words(text []byte) {
	for k := 0; k < len(text); {
		c := text[k]
		switch {
		case c <= ' ':
			w.space()
			k++
		case c < utf8.RuneSelf:
			end := k + 1
			for end < len(text) && text[end] > ' ' && text[end] < utf8.RuneSelf {
				end++
			}
			w.line = append(w.line, text[k:end]...)
			k = end
		default:
			r, size := utf8.DecodeRune(text[k:])
			switch r {
			case '\u00a0', '\u2028', '\u2029':
				w.space()
			case '\u00ad', '\u200b', '\u2060', '\ufeff': // invisible
			default:
				w.line = append(w.line, text[k:k+size]...)
			}
			k += size
		}
	}
}

// strikethrough marks text that is crossed out, such as an old price.
func (w *pageWriter) strikethrough(i int32) {
	start, written := len(w.line), w.out.Len()
	w.children(i)
	if w.inCode ||
		w.out.Len() != written ||
		len(bytes.TrimSpace(w.line[min(start, len(w.line)):])) == 0 {
		return // contains blocks, or nothing
	}
	if w.line[start] == ' ' {
		start++
	}
	end := len(bytes.TrimRight(w.line, " "))
	w.line = slices.Insert(slices.Insert(w.line, end, '~', '~'), start, '~', '~')
}

func (w *pageWriter) space() {
	if n := len(w.line); n > 0 && w.line[n-1] != ' ' && w.line[n-1] != '\n' {
		w.line = append(w.line, ' ')
	}
}

func (w *pageWriter) breakLine() {
	if w.flat || w.inCode {
		w.space()
	} else if n := len(w.line); n > 0 && w.line[n-1] != '\n' {
		w.line = append(bytes.TrimRight(w.line, " "), '\n')
	}
}

// heading writes a heading without its permalink.
func (w *pageWriter) heading(i int32) {
	h := pageWriter{
		tree:   w.tree,
		limit:  w.limit,
		flat:   true,
		inLink: true,
	}
	text := strings.TrimRight(h.inline(i), "#¶§🔗 ")
	if text == "" {
		return
	}
	level := map[atom.Atom]int{
		atom.H1: 1,
		atom.H2: 2,
		atom.H3: 3,
		atom.H4: 4,
		atom.H5: 5,
		atom.H6: 6,
	}[w.nodes[i].tag]
	w.line = append(w.line, strings.Repeat("#", level)+" "+text...)
	w.flush()
	w.tight = false
}

func longestRun(text string, sign byte) (longest int) {
	for k, run := 0, 0; k < len(text); k++ {
		if text[k] != sign {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return longest
}

// fence writes preformatted text unchanged.
func (w *pageWriter) fence(i int32) {
	var b bytes.Buffer
	w.raw(&b, i)
	text := strings.TrimRight(strings.TrimPrefix(string(lines(b.Bytes())), "\n"), " \n\t")
	if strings.TrimSpace(text) == "" {
		return
	}
	w.dropColon()
	w.begin()
	mark := strings.Repeat("`", max(3, longestRun(text, '`')+1))
	w.out.WriteString(mark + w.language(i))
	for line := range strings.SplitSeq(text, "\n") {
		w.out.WriteString("\n" + strings.TrimRight(w.prefix+line, " \t"))
	}
	w.out.WriteString("\n" + w.prefix + mark)
}

// dropColon removes the marker of a definition that has no text.
func (w *pageWriter) dropColon() {
	if w.marker == w.prefix+": " {
		w.marker = ""
	}
}

func (w *pageWriter) raw(b *bytes.Buffer, i int32) {
	for c := i + 1; c < w.end(i) && b.Len() <= w.limit; c = w.end(c) {
		switch n := &w.nodes[c]; {
		case n.text:
			b.Write(w.textOf(c))
		case n.tag == atom.Br:
			b.WriteByte('\n')
		case !w.boilerplate[c]:
			w.raw(b, c)
			if blockTags[n.tag] && !bytes.HasSuffix(b.Bytes(), []byte("\n")) {
				b.WriteByte('\n')
			}
		}
	}
}

// language returns the language of a code block from the classes of it and its
// parents.
func (w *pageWriter) language(i int32) string {
	around := []int32{i, w.nodes[i].parent, w.nodes[w.nodes[i].parent].parent}
	if i+1 < w.end(i) {
		around = append(around, i+1)
	}
	for _, n := range around {
		for class := range strings.FieldsSeq(w.attrsOf(n).class) {
			for _, prefix := range []string{"language-", "lang-", "highlight-source-", "highlight-"} {
				if name, ok := strings.CutPrefix(class, prefix); ok && isLanguage(name) {
					return name
				}
			}
		}
	}
	return ""
}

func isLanguage(name string) bool {
	switch name {
	case "", "default", "none", "text", "notranslate", "plaintext":
		return false
	}
	return len(name) <= 20 && strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789+#-") == ""
}

func (w *pageWriter) list(i int32) {
	w.dropColon()
	if w.lists == 0 {
		w.tight = false
	}
	w.lists++
	number := 0
	for c := i + 1; c < w.end(i); c = w.end(c) {
		switch {
		case w.boilerplate[c]:
		case w.nodes[c].tag != atom.Li:
			w.node(c)
		default:
			w.flush()
			mark := "- "
			if number++; w.nodes[i].tag == atom.Ol {
				mark = strconv.Itoa(number) + ". "
			}
			w.within(mark, strings.Repeat(" ", len(mark)), func() { w.blocks(c) })
		}
	}
	if w.lists--; w.lists == 0 {
		w.tight = false
	}
}
