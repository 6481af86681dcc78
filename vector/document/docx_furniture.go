package document

import (
	"encoding/xml"
	"slices"
	"strings"
	"unicode"

	"satchel/agent"
)

// Headers and footers are on every page, in up to three variants for each section
// of a document. Their text, such as a company's address, is read once, without
// the numbers of pages.

// docxFurniture is the state of reading headers or footers.
type docxFurniture struct {
	seen   map[string]bool // paragraphs of all headers and footers
	fields []bool          // open fields, innermost last: whether they are numbers of pages
}

// pageNumber stands for a page's number in the text of a paragraph.
const pageNumber = "\x00"

// numberFields are the fields that are different on each page or each day.
var numberFields = words("PAGE NUMPAGES SECTIONPAGES PAGEREF DATE TIME PRINTDATE SAVEDATE")

// maxNumberWords is how many words accompany a page's number, as in "Page 3 of 7".
const maxNumberWords = 3

// writeFurniture writes the paragraphs of headers or footers. Damaged parts are
// skipped.
func (w *docxWalker) writeFurniture(a *archive, names []string, seen map[string]bool) error {
	for _, name := range names {
		w.furniture = &docxFurniture{seen: seen}
		w.links = w.parts.linksOf(a, name)
		err := w.walk(a, name)
		w.furniture, w.paragraphs, w.inText = nil, nil, false
		if err != nil && agent.ErrorCode(err) != CodeBrokenFile {
			return err
		}
	}
	return nil
}

// startFurniture handles the fields of headers and footers.
func (w *docxWalker) startFurniture(element xml.StartElement) (consumed bool, err error) {
	furniture := w.furniture
	switch element.Name.Local {
	case "fldSimple":
		if isNumberField(xmlAttribute(element, "instr")) {
			w.add(pageNumber)
			return true, w.skip()
		}
	case "pgNum":
		w.add(pageNumber)
	case "fldChar":
		switch kind := xmlAttribute(element, "fldCharType"); {
		case kind == "begin" && len(furniture.fields) < listLevels:
			furniture.fields = append(furniture.fields, false)
		case kind == "end" && len(furniture.fields) > 0:
			furniture.fields = furniture.fields[:len(furniture.fields)-1]
		}
	case "instrText":
		var instruction string
		if err := w.xml.DecodeElement(&instruction, &element); err != nil {
			return true, docxError(err)
		}
		if n := len(furniture.fields); n > 0 && isNumberField(instruction) {
			w.add(pageNumber)
			furniture.fields[n-1] = true
		}
		return true, nil
	}
	return false, nil
}

func isNumberField(instruction string) bool {
	name, _, _ := strings.Cut(strings.TrimSpace(instruction), " ")
	return numberFields[strings.ToUpper(name)]
}

// inNumber reports whether the text is the result of a field that is left out.
func (f *docxFurniture) inNumber() bool {
	return f != nil && slices.Contains(f.fields, true)
}

// addFurniture writes a paragraph of a header or footer unless it was written
// before. What only accompanies a page's number is left out.
func (w *docxWalker) addFurniture(text string) error {
	var kept []string
	for column := range strings.SplitSeq(text, "\t") {
		if strings.Contains(column, pageNumber) {
			column = strings.Trim(strings.ReplaceAll(column, pageNumber, ""), " |/·–—-")
			if len(strings.FieldsFunc(column, func(r rune) bool {
				return !unicode.IsLetter(r)
			})) <= maxNumberWords {
				continue
			}
		}
		if column = strings.TrimSpace(column); column != "" {
			kept = append(kept, column)
		}
	}
	text = clean(strings.Join(kept, "\t"))
	key := strings.Join(strings.Fields(text), " ")
	if key == "" || w.furniture.seen[key] {
		return nil
	}
	w.furniture.seen[key] = true
	return w.write(escapeBlock(text), false)
}
