package document

import (
	"bytes"
	"encoding/xml"
	"path"
	"strconv"
	"strings"
)

// extractDOCX converts a Word document (ECMA-376 part 1, WordprocessingML) to
// Markdown: page headers, headings, lists, tables, links, notes, and page footers.
// Missing or damaged parts
// are skipped, except the main text.
func extractDOCX(in input, out *sink) error {
	archive, ok := openArchive(in.data)
	if !ok {
		return rejected("is not a DOCX file")
	}
	name := docxMain(archive)
	parts, err := docxParts(archive, name)
	if err != nil {
		return err
	}
	walker := &docxWalker{
		out:   out,
		parts: parts,
		depth: in.limits.Depth * 5,
	}
	furniture := map[string]bool{}
	if err := walker.writeFurniture(archive, parts.headers, furniture); err != nil {
		return err
	}
	walker.links = parts.links
	if err := walker.walk(archive, name); err != nil {
		return err
	}
	if err := walker.writeNotes(archive); err != nil {
		return err
	}
	if err := walker.writeFurniture(archive, parts.footers, furniture); err != nil {
		return err
	}
	out.title = docxTitle(archive)
	return nil
}

// docxPackage has the parts that a document's text refers to.
type docxPackage struct {
	styles    docxStyles
	numbering docxNumbering
	links     map[string]string // URLs by relationship id
	notes     []string          // names of the parts with footnotes and endnotes
	headers   []string          // names of parts
	footers   []string
}

func docxParts(archive *archive, main string) (*docxPackage, error) {
	p := &docxPackage{links: map[string]string{}}
	names := map[string]string{}
	folder := path.Dir(main)
	for _, kind := range []string{"styles", "numbering", "footnotes", "endnotes"} {
		names[kind] = path.Join(folder, kind+".xml")
	}
	rels, err := archive.read(relsOf(main), maxSmallPart)
	if err != nil {
		return nil, err
	}
	for _, rel := range relationships(rels, folder) {
		kind := path.Base(rel.kind)
		switch _, known := names[kind]; {
		case kind == "hyperlink" && rel.external:
			p.links[rel.id] = rel.target
		case !archive.has(rel.target):
		case known:
			names[kind] = rel.target
		case kind == "header":
			p.headers = append(p.headers, rel.target)
		case kind == "footer":
			p.footers = append(p.footers, rel.target)
		}
	}
	p.notes = []string{names["footnotes"], names["endnotes"]}
	styles, err := archive.read(names["styles"], maxSmallPart)
	if err != nil {
		return nil, err
	}
	numbering, err := archive.read(names["numbering"], maxSmallPart)
	if err != nil {
		return nil, err
	}
	p.styles = readStyles(styles)
	p.numbering = readNumbering(numbering)
	return p, nil
}

// linksOf returns the links of a part other than the main one.
func (p *docxPackage) linksOf(a *archive, name string) map[string]string {
	links := map[string]string{}
	rels, _ := a.read(relsOf(name), maxSmallPart) // reading the part itself returns an error of the archive
	for _, rel := range relationships(rels, path.Dir(name)) {
		if path.Base(rel.kind) == "hyperlink" && rel.external {
			links[rel.id] = rel.target
		}
	}
	return links
}

// docxTitle returns the title in the document's properties.
func docxTitle(a *archive) string {
	core, err := a.read("docProps/core.xml", maxSmallPart)
	if err != nil {
		return ""
	}
	var properties struct {
		Title string `xml:"title"`
	}
	unmarshalPart(core, &properties)
	return clipTitle(properties.Title)
}

// unmarshalPart parses a part until its first syntax error.
func unmarshalPart(part []byte, into any) {
	if len(part) > 0 {
		_ = xml.NewDecoder(bytes.NewReader(part)).Decode(into)
	}
}

// xmlValue is an element with its value in an attribute.
type xmlValue struct {
	Val string `xml:"val,attr"`
}

// number returns the value as a number, or its argument if it is not one.
func (v *xmlValue) number(or int) int {
	if v == nil {
		return or
	}
	n, err := strconv.Atoi(strings.TrimSpace(v.Val))
	if err != nil {
		return or
	}
	return n
}

// docxStyles are the styles of paragraphs by id.
type docxStyles map[string]docxStyle

type docxStyle struct {
	ID         string         `xml:"styleId,attr"`
	Name       xmlValue       `xml:"name"`
	BasedOn    xmlValue       `xml:"basedOn"`
	Properties docxProperties `xml:"pPr"`
}

// docxProperties are the properties of a paragraph that affect its Markdown.
type docxProperties struct {
	Style   xmlValue  `xml:"pStyle"`
	Outline *xmlValue `xml:"outlineLvl"`
	Num     *struct {
		Level xmlValue `xml:"ilvl"`
		ID    xmlValue `xml:"numId"`
	} `xml:"numPr"`
}

func readStyles(part []byte) docxStyles {
	var doc struct {
		Styles []docxStyle `xml:"style"`
	}
	unmarshalPart(part, &doc)
	styles := docxStyles{}
	for _, s := range doc.Styles {
		styles[s.ID] = s
	}
	return styles
}

// maxStyleChain limits how many basedOn references are followed, as they may
// form a cycle.
const maxStyleChain = 20

// level returns the heading level of a paragraph, 0 if it is not a heading. It
// is the outline level of the paragraph, or else of its style or of a style
// that this is based on, or else given by the style's name, which is in
// English whatever the language of the style's id.
func (s docxStyles) level(properties docxProperties) int {
	id := properties.Style.Val
	for range maxStyleChain {
		if properties.Outline != nil {
			level := properties.Outline.number(9) + 1
			if level < 1 || level > 9 {
				return 0
			}
			return min(level, 6)
		}
		style, ok := s[id]
		if !ok {
			return levelOfName(id)
		}
		if level := levelOfName(style.Name.Val); level > 0 {
			return level
		}
		properties, id = style.Properties, style.BasedOn.Val
	}
	return 0
}

// levelOfName recognizes "heading 1" to "heading 9", "Heading1" and "Title".
func levelOfName(name string) int {
	name = strings.ToLower(strings.ReplaceAll(name, " ", ""))
	if name == "title" {
		return 1
	}
	if digit, ok := strings.CutPrefix(name, "heading"); ok && len(digit) == 1 && digit[0] >= '1' && digit[0] <= '9' {
		return min(int(digit[0]-'0'), 6)
	}
	return 0
}

// isContents reports whether a paragraph is a line of a table of contents,
// which only repeats headings.
func (s docxStyles) isContents(p docxProperties) bool {
	name := strings.ToLower(s[p.Style.Val].Name.Val)
	digit, ok := strings.CutPrefix(name, "toc ")
	return ok && len(digit) == 1
}

// list returns the list that a paragraph belongs to and its level, or "".
func (s docxStyles) list(properties docxProperties) (id string, level int) {
	style := properties.Style.Val
	for range maxStyleChain {
		if properties.Num != nil && properties.Num.ID.Val != "" {
			if properties.Num.ID.Val == "0" {
				return "", 0
			}
			return properties.Num.ID.Val, min(max(properties.Num.Level.number(0), 0), listLevels-1)
		}
		next, ok := s[style]
		if !ok {
			return "", 0
		}
		properties, style = next.Properties, next.BasedOn.Val
	}
	return "", 0
}
