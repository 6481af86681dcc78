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

func (writer *pageWriter) text() string {
	return strings.TrimSpace(writer.out.String())
}

// inline returns the text below a node on one line.
func (writer *pageWriter) inline(i int32) string {
	writer.flat = true
	writer.children(i)
	return string(bytes.TrimSpace(writer.line))
}

// blocks writes everything below a node.
func (writer *pageWriter) blocks(i int32) {
	writer.children(i)
	writer.flush()
}

func (writer *pageWriter) children(i int32) {
	for c := i + 1; c < writer.end(i) && writer.out.Len()+len(writer.line) <= writer.limit; c = writer.end(c) {
		if !writer.boilerplate[c] {
			writer.node(c)
		}
	}
}

func (writer *pageWriter) node(index int32) {
	n := &writer.nodes[index]
	switch {
	case n.text:
		writer.words(writer.textOf(index))
	case n.tag == atom.Br:
		writer.breakLine()
	case n.tag == atom.Img:
		writer.words([]byte(writer.attrsOf(index).alt))
	case n.tag == atom.A:
		writer.link(index)
	case n.tag == atom.Del || n.tag == atom.S || n.tag == atom.Strike:
		writer.strikethrough(index)
	case n.tag == atom.Code ||
		n.tag == atom.Kbd ||
		n.tag == atom.Samp ||
		n.tag == atom.Tt:
		writer.code(index)
	case writer.flat && blockTags[n.tag]:
		writer.words([]byte(" "))
		writer.children(index)
		writer.words([]byte(" "))
	case !blockTags[n.tag]:
		writer.children(index)
	default:
		writer.flush()
		writer.block(index)
		writer.flush()
	}
}

func (writer *pageWriter) block(index int32) {
	switch node := &writer.nodes[index]; node.tag {
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		writer.heading(index)
	case atom.Pre:
		writer.fence(index)
	case atom.Ul, atom.Ol, atom.Menu, atom.Dir:
		writer.list(index)
	case atom.Blockquote:
		writer.within("> ", "> ", func() { writer.blocks(index) })
	case atom.Dd:
		writer.tight, writer.marker, writer.around = writer.out.Len() > 0, writer.prefix+": ", writer.prefix
		writer.blocks(index)
		writer.marker, writer.tight = "", false
	case atom.Table:
		writer.table(index)
	default:
		writer.children(index)
	}
}

// within writes the content of a block: its first line starts with first, the
// others with rest.
func (writer *pageWriter) within(first, rest string, write func()) {
	prefix, marker := writer.prefix, writer.marker
	if marker == "" {
		writer.marker, writer.around = prefix+first, prefix
	} else {
		writer.marker = marker + first
	}
	writer.prefix = prefix + rest
	write()
	writer.prefix = prefix
	if writer.marker != "" { // nothing was written
		writer.marker = marker
	}
}

// flush ends the current block.
func (writer *pageWriter) flush() {
	if writer.flat {
		return
	}
	if block := bytes.Trim(writer.line, " \n"); len(block) > 0 {
		writer.begin()
		for k, line := range bytes.Split(block, []byte("\n")) {
			if k > 0 {
				writer.out.WriteString("\n" + writer.prefix)
			}
			if bytes.HasPrefix(line, []byte("```")) || bytes.HasPrefix(line, []byte("~~~")) {
				writer.out.WriteByte('\\') // not a fence
			}
			writer.out.Write(bytes.TrimRight(line, " "))
		}
	}
	writer.line = writer.line[:0]
}

// begin writes the separator between two blocks.
func (writer *pageWriter) begin() {
	switch {
	case writer.out.Len() == 0:
	case writer.tight && writer.marker != "":
		writer.out.WriteByte('\n')
	case writer.marker != "":
		writer.out.WriteString("\n" + strings.TrimRight(writer.around, " ") + "\n")
	default:
		writer.out.WriteString("\n" + strings.TrimRight(writer.prefix, " ") + "\n")
	}
	if writer.marker != "" {
		writer.out.WriteString(writer.marker)
	} else {
		writer.out.WriteString(writer.prefix)
	}
	writer.marker = ""
	writer.tight = writer.lists > 0
}

// words appends text with white space collapsed to single spaces.
func (writer *pageWriter) words(text []byte) {
	for step := 0; step < len(text); {
		char := text[step]
		switch {
		case char <= ' ':
			writer.space()
			step++
		case char < utf8.RuneSelf:
			end := step + 1
			for end < len(text) && text[end] > ' ' && text[end] < utf8.RuneSelf {
				end++
			}
			writer.line = append(writer.line, text[step:end]...)
			step = end
		default:
			r, size := utf8.DecodeRune(text[step:])
			switch r {
			case '\u00a0', '\u2028', '\u2029':
				writer.space()
			case '\u00ad', '\u200b', '\u2060', '\ufeff': // invisible
			default:
				writer.line = append(writer.line, text[step:step+size]...)
			}
			step += size
		}
	}
}

// strikethrough marks text that is crossed out, such as an old price.
func (writer *pageWriter) strikethrough(i int32) {
	start, written := len(writer.line), writer.out.Len()
	writer.children(i)
	if writer.inCode ||
		writer.out.Len() != written ||
		len(bytes.TrimSpace(writer.line[min(start, len(writer.line)):])) == 0 {
		return // contains blocks, or nothing
	}
	if writer.line[start] == ' ' {
		start++
	}
	end := len(bytes.TrimRight(writer.line, " "))
	writer.line = slices.Insert(slices.Insert(writer.line, end, '~', '~'), start, '~', '~')
}

func (writer *pageWriter) space() {
	if n := len(writer.line); n > 0 && writer.line[n-1] != ' ' && writer.line[n-1] != '\n' {
		writer.line = append(writer.line, ' ')
	}
}

func (writer *pageWriter) breakLine() {
	if writer.flat || writer.inCode {
		writer.space()
	} else if n := len(writer.line); n > 0 && writer.line[n-1] != '\n' {
		writer.line = append(bytes.TrimRight(writer.line, " "), '\n')
	}
}

// heading writes a heading without its permalink.
func (writer *pageWriter) heading(index int32) {
	h := pageWriter{
		tree:   writer.tree,
		limit:  writer.limit,
		flat:   true,
		inLink: true,
	}
	text := strings.TrimRight(h.inline(index), "#¶§🔗 ")
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
	}[writer.nodes[index].tag]
	writer.line = append(writer.line, strings.Repeat("#", level)+" "+text...)
	writer.flush()
	writer.tight = false
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
func (writer *pageWriter) fence(i int32) {
	var b bytes.Buffer
	writer.raw(&b, i)
	text := strings.TrimRight(strings.TrimPrefix(string(lines(b.Bytes())), "\n"), " \n\t")
	if strings.TrimSpace(text) == "" {
		return
	}
	writer.dropColon()
	writer.begin()
	mark := strings.Repeat("`", max(3, longestRun(text, '`')+1))
	writer.out.WriteString(mark + writer.language(i))
	for line := range strings.SplitSeq(text, "\n") {
		writer.out.WriteString("\n" + strings.TrimRight(writer.prefix+line, " \t"))
	}
	writer.out.WriteString("\n" + writer.prefix + mark)
}

// dropColon removes the marker of a definition that has no text.
func (writer *pageWriter) dropColon() {
	if writer.marker == writer.prefix+": " {
		writer.marker = ""
	}
}

func (writer *pageWriter) raw(b *bytes.Buffer, i int32) {
	for c := i + 1; c < writer.end(i) && b.Len() <= writer.limit; c = writer.end(c) {
		switch n := &writer.nodes[c]; {
		case n.text:
			b.Write(writer.textOf(c))
		case n.tag == atom.Br:
			b.WriteByte('\n')
		case !writer.boilerplate[c]:
			writer.raw(b, c)
			if blockTags[n.tag] && !bytes.HasSuffix(b.Bytes(), []byte("\n")) {
				b.WriteByte('\n')
			}
		}
	}
}

// language returns the language of a code block from the classes of it and its
// parents.
func (writer *pageWriter) language(i int32) string {
	around := []int32{i, writer.nodes[i].parent, writer.nodes[writer.nodes[i].parent].parent}
	if i+1 < writer.end(i) {
		around = append(around, i+1)
	}
	for _, n := range around {
		for class := range strings.FieldsSeq(writer.attrsOf(n).class) {
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

func (writer *pageWriter) list(index int32) {
	writer.dropColon()
	if writer.lists == 0 {
		writer.tight = false
	}
	writer.lists++
	number := 0
	for c := index + 1; c < writer.end(index); c = writer.end(c) {
		switch {
		case writer.boilerplate[c]:
		case writer.nodes[c].tag != atom.Li:
			writer.node(c)
		default:
			writer.flush()
			mark := "- "
			if number++; writer.nodes[index].tag == atom.Ol {
				mark = strconv.Itoa(number) + ". "
			}
			writer.within(mark, strings.Repeat(" ", len(mark)), func() { writer.blocks(c) })
		}
	}
	if writer.lists--; writer.lists == 0 {
		writer.tight = false
	}
}
