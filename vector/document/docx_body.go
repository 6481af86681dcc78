package document

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"net/url"
	"strconv"
	"strings"

	"satchel/agent"

	"golang.org/x/net/html/charset"
)

// docxWalker converts the XML of a document's text to Markdown while reading
// it. It keeps open paragraphs (a text box has paragraphs inside a paragraph)
// and open tables (a cell may contain tables); everything else is already
// written.
type docxWalker struct {
	out   *sink
	parts *docxPackage
	xml   *xml.Decoder
	depth int // nesting of elements, at most

	paragraphs []*docxParagraph
	tables     []*docxTable
	inText     bool
	wrote      bool // something was written before
	wroteItem  bool // the last block was a list item

	links     map[string]string // of the current part: URLs by relationship id
	furniture *docxFurniture    // while headers or footers are read

	note      string            // key of the current note
	notes     map[string][]byte // texts of notes
	noteOrder []string          // keys of notes in the order of their references
	held      int               // bytes in open tables and notes
}

// docxParagraph is an open paragraph.
type docxParagraph struct {
	properties docxProperties
	text       []byte
	link       string // URL of the open link
	linkStart  int
}

// walk reads one part. Only the main part is required.
func (w *docxWalker) walk(archive *archive, name string) error {
	reader, err := archive.open(name)
	if reader == nil || err != nil {
		return err
	}
	defer reader.Close()
	w.xml = xml.NewDecoder(reader)
	w.xml.CharsetReader = charset.NewReaderLabel
	depth := 0
	for {
		token, err := w.xml.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return docxError(err)
		}
		switch typed := token.(type) {
		case xml.StartElement:
			if depth++; depth > w.depth {
				return tooComplex("the document's elements are nested too deep")
			}
			consumed, err := w.start(typed)
			if err != nil {
				return err
			}
			if consumed {
				depth--
			}
		case xml.EndElement:
			depth--
			if err := w.end(typed.Name.Local); err != nil {
				return err
			}
		case xml.CharData:
			if w.inText {
				w.add(string(typed))
			}
		case xml.Directive:
			return broken("the document holds a DOCTYPE, which DOCX files may not")
		}
	}
}

// docxError returns an archive's error unchanged, and any other as damaged
// text.
func docxError(err error) error {
	var known *agent.Error
	if errors.As(err, &known) {
		return known
	}
	return broken("the document's text is damaged")
}

// skipped are elements whose content is not part of the text: properties,
// deleted and moved text, field codes, and the fallback copies of text boxes.
var skipped = map[string]bool{
	"rPr": true, "sectPr": true, "tblPr": true, "tblGrid": true, "trPr": true, "tcPr": true, "sdtPr": true,
	"del": true, "moveFrom": true, "instrText": true, "delText": true, "Fallback": true, "rt": true,
}

// start handles the start of an element and reports whether it consumed the
// element's end too.
func (w *docxWalker) start(element xml.StartElement) (consumed bool, err error) {
	name := element.Name.Local
	if w.furniture != nil {
		if consumed, err := w.startFurniture(element); consumed || err != nil {
			return consumed, err
		}
	}
	if skipped[name] {
		return true, w.skip()
	}
	switch name {
	case "p":
		w.paragraphs = append(w.paragraphs, &docxParagraph{})
	case "pPr":
		var properties docxProperties
		if err := w.xml.DecodeElement(&properties, &element); err != nil {
			return true, docxError(err)
		}
		if p := w.paragraph(); p != nil {
			p.properties = properties
		}
		return true, nil
	case "t":
		w.inText = true
	case "tab", "ptab":
		w.add("\t")
	case "br", "cr":
		w.add("\n")
	case "noBreakHyphen":
		w.add("-")
	case "hyperlink":
		w.openLink(w.links[xmlAttribute(element, "id")])
	case "footnoteReference", "endnoteReference":
		w.addReference(name[:1] + xmlAttribute(element, "id"))
	case "footnote", "endnote":
		w.note = name[:1] + xmlAttribute(element, "id")
	case "tbl":
		if w.furniture == nil { // where tables only place the text
			w.tables = append(w.tables, &docxTable{})
		}
	case "tr":
		w.table(func(t *docxTable) {
			t.rows = append(t.rows, nil)
		})
	case "tc":
		w.table((*docxTable).openCell)
	}
	return false, nil
}

func (w *docxWalker) skip() error {
	if err := w.xml.Skip(); err != nil {
		return docxError(err)
	}
	return nil
}

func (w *docxWalker) end(name string) error {
	switch name {
	case "p":
		return w.endParagraph()
	case "t":
		w.inText = false
	case "hyperlink":
		w.closeLink()
	case "footnote", "endnote":
		w.note = ""
	case "tbl":
		return w.endTable()
	}
	return nil
}

func xmlAttribute(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// paragraph returns the innermost open paragraph, or nil.
func (w *docxWalker) paragraph() *docxParagraph {
	if n := len(w.paragraphs); n > 0 {
		return w.paragraphs[n-1]
	}
	return nil
}

func (w *docxWalker) add(text string) {
	if w.furniture.inNumber() {
		return
	}
	if p := w.paragraph(); p != nil {
		p.text = append(p.text, text...)
	}
}

func (w *docxWalker) openLink(address string) {
	p := w.paragraph()
	u, err := url.Parse(address)
	if p == nil ||
		err != nil ||
		u.Scheme != "http" && u.Scheme != "https" ||
		len(address) > maxTitle {
		return
	}
	p.link, p.linkStart = u.String(), len(p.text)
}

func (w *docxWalker) closeLink() {
	p := w.paragraph()
	if p == nil || p.link == "" {
		return
	}
	if label := bytes.TrimSpace(p.text[p.linkStart:]); len(label) > 0 {
		linked := "[" + string(label) + "](" + p.link + ")"
		p.text = append(p.text[:p.linkStart], linked...)
	}
	p.link = ""
}

// addReference records a reference to a footnote or endnote.
func (w *docxWalker) addReference(key string) {
	w.noteOrder = append(w.noteOrder, key)
	w.add("[^" + strconv.Itoa(len(w.noteOrder)) + "]")
}

// endParagraph writes the innermost paragraph, or adds it to its note or cell.
func (w *docxWalker) endParagraph() error {
	paragraph := w.paragraph()
	if paragraph == nil {
		return nil
	}
	w.paragraphs = w.paragraphs[:len(w.paragraphs)-1]
	text := strings.TrimSpace(clean(string(paragraph.text)))
	if w.furniture != nil {
		return w.addFurniture(string(paragraph.text))
	}
	if text == "" || w.parts.styles.isContents(paragraph.properties) {
		return nil
	}
	if w.note != "" || len(w.tables) > 0 {
		return w.addParagraph(text)
	}
	list, level := w.parts.styles.list(paragraph.properties)
	number := ""
	if list != "" {
		number = w.parts.numbering.next(list, level)
	}
	if heading := w.parts.styles.level(paragraph.properties); heading > 0 {
		text = strings.Join(strings.Fields(number+" "+text), " ")
		return w.write(strings.Repeat("#", heading)+" "+text, false)
	}
	if list != "" {
		return w.write(strings.Repeat("  ", level)+listMarker(number)+indent(text, level+1), true)
	}
	return w.write(escapeBlock(text), false)
}

// addParagraph adds a paragraph to the current note or cell.
func (w *docxWalker) addParagraph(text string) error {
	if w.held += len(text); w.held > w.out.limit {
		return tooMuchText(w.out.limit)
	}
	if w.note == "" {
		w.tables[len(w.tables)-1].add(text)
		return nil
	}
	if w.notes == nil {
		w.notes = map[string][]byte{}
	}
	w.notes[w.note] = append(w.notes[w.note], " "+strings.Join(strings.Fields(text), " ")...)
	return nil
}

// listMarker returns the Markdown marker of an item. Only "1." and "1)" are
// numbers in Markdown.
func listMarker(number string) string {
	switch {
	case number == "":
		return "- "
	case isListItem(number + " x"):
		return number + " "
	}
	return "- " + number + " "
}

// indent indents the lines of an item after the first.
func indent(text string, level int) string {
	return strings.ReplaceAll(text, "\n", "\n"+strings.Repeat("  ", level))
}

// escapeBlock escapes a paragraph that would start a heading or a code fence.
func escapeBlock(text string) string {
	if atxLevel(text) > 0 {
		text = `\` + text
	}
	return escapedFences.Replace(text)
}

var escapedFences = strings.NewReplacer("```", "\\`\\`\\`", "~~~", `\~\~\~`)

// write writes a block. List items are on consecutive lines, other blocks are
// separated by a blank line.
func (w *docxWalker) write(text string, item bool) error {
	between := "\n\n"
	switch {
	case !w.wrote:
		between = ""
	case item && w.wroteItem:
		between = "\n"
	}
	w.wrote, w.wroteItem = true, item
	return w.out.write(0, between+text)
}

// writeNotes writes the notes that the text references.
func (w *docxWalker) writeNotes(archive *archive) error {
	order := w.noteOrder
	if len(order) == 0 {
		return nil
	}
	for _, name := range w.parts.notes {
		w.links = w.parts.linksOf(archive, name)
		var known *agent.Error
		if err := w.walk(archive, name); errors.As(err, &known) && known.Code == CodeTooComplex {
			return err
		}
	}
	for i, key := range order {
		if text := w.notes[key]; len(text) > 0 {
			if err := w.write("[^"+strconv.Itoa(i+1)+"]:"+string(text), false); err != nil {
				return err
			}
		}
	}
	return nil
}
