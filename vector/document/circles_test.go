package document

import (
	"bytes"
	"strings"
	"testing"

	"satchel/agent"
)

// Files of other formats that point at themselves, or are nested without end, are read
// as far as they can be, or they are broken or too complex: they do not use up their
// time.
func TestFilesInCircles(t *testing.T) {
	deep := func(open, text, end string) string {
		return strings.Repeat(open, 200_000) + text + strings.Repeat(end, 200_000)
	}
	relation := func(kind, target string) string {
		return `<Relationship Id="r" Type="` + relType + kind + `" Target="` + target + `"/>`
	}
	rels := func(targets ...string) string {
		var list string
		for _, target := range targets {
			list += relation(strings.TrimSuffix(target, ".xml"), target)
		}
		return `<Relationships xmlns="x">` + list + `</Relationships>`
	}
	style := func(id, base string) string {
		return `<w:style w:styleId="` + id + `"><w:name w:val="` + id + `"/><w:basedOn w:val="` + base + `"/></w:style>`
	}
	cases := []struct {
		name, file string
		data       []byte
		code       agent.Code // "" if the file is read
	}{
		{"a part of itself", "a.docx", docxFile(t, map[string]string{
			"document":                     par("text"),
			"word/_rels/document.xml.rels": rels("document.xml", "footnotes.xml", "header.xml"),
			"word/header.xml":              `<w:hdr ` + wordNS + `>` + par("head") + `</w:hdr>`,
			"word/_rels/header.xml.rels":   rels("header.xml", "document.xml"),
		}), ""},
		{"the main part as header, footer and notes", "a.docx", docxFile(t, map[string]string{
			"document": par("text") + `<w:p><w:r><w:footnoteReference w:id="1"/></w:r></w:p>`,
			"word/_rels/document.xml.rels": `<Relationships xmlns="x">` + relation("header", "document.xml") +
				relation("footer", "document.xml") + relation("footnotes", "document.xml") + `</Relationships>`,
		}), ""},
		{"styles of themselves", "a.docx", docxFile(t, map[string]string{
			"styles":   style("a", "a") + style("b", "c") + style("c", "b"),
			"document": styled("a", "one") + styled("b", "two"),
		}), ""},
		{"a list of itself", "a.docx", docxFile(t, map[string]string{
			"numbering": `<w:num w:numId="1"><w:abstractNumId w:val="1"/></w:num>`,
			"document":  item("1", "0", "one"),
		}), ""},
		{"deep tables", "a.docx", docxFile(t, map[string]string{
			"document": deep("<w:tbl><w:tr><w:tc>", par("text"), "</w:tc></w:tr></w:tbl>"),
		}), CodeTooComplex},
		{"deep properties", "a.docx", docxFile(t, map[string]string{
			"styles":   deep("<w:a>", "", "</w:a>"),
			"document": par("text"),
		}), CodeTooComplex},
		{"entities of entities", "a.docx", docxFile(t, map[string]string{
			"word/document.xml": `<!DOCTYPE x [<!ENTITY a "b"><!ENTITY b "&a;&a;">]><w:document ` +
				wordNS + `>&b;</w:document>`,
		}), CodeBrokenFile},
		{"deep JSON", "a.json", []byte(deep("[", "1", "]")), CodeBrokenFile},
		{"deep JSON objects", "a.json", []byte(strings.Repeat(`{"a":`, 5000) + "1" + strings.Repeat("}", 5000)),
			CodeTooComplex},
		{"JSON without an end", "a.json", []byte(strings.Repeat("[", 200_000)), CodeBrokenFile},
		{"deep HTML", "a.html", []byte(deep("<div>", "text", "</div>")), ""},
		{"deep inline HTML", "a.html", []byte(deep("<b><i><a href=x>", "text", "</a></i></b>")), ""},
		{
			"deep dialogs around a headline",
			"a.html",
			[]byte(deep("<div class='klaro cookie'>", "<h1>Head</h1>text", "</div>")),
			"",
		},
		{"deep lists", "a.html", []byte(deep("<ul><li>", "text", "</li></ul>")), ""},
		{"deep tables of a page", "a.html", []byte(deep("<table><tr><td>", "text", "</table>")), ""},
		{"tags without an end", "a.html", []byte("text" + strings.Repeat("<a href='", 200_000)), ""},
		{"comments without an end", "a.html", []byte("text" + strings.Repeat("<!--", 200_000)), ""},
		{"a base that is relative", "a.html", []byte("<base href='a/'><base href='b/'>text <a href=a/a/a>a</a>"), ""},
		{"deep quotes", "a.md", []byte(strings.Repeat(">", 200_000) + "text"), ""},
		{"deep Markdown lists", "a.md", []byte(strings.Repeat("- ", 200_000) + "text"), ""},
		{"emphasis without an end", "a.md", []byte(strings.Repeat("*a **a [", 100_000)), ""},
		{"fences without an end", "a.md", []byte(strings.Repeat("```\n~~~\n", 100_000) + "text"), ""},
		{"quotes without an end", "a.csv", []byte("a,b\n" + strings.Repeat("\"x,\n", 100_000)), ""},
		{"many columns", "a.csv", []byte(strings.Repeat("a,", 100_000) + "\n1"), CodeTooComplex},
		{"cells of many columns and rows", "a.html", []byte(strings.Repeat("<table>", 50) +
			strings.Repeat("<tr><td colspan=1000 rowspan=65534>x", 2000)), ""},
		{"many attributes", "a.html", []byte("<p " + strings.Repeat("a='b' ", 200_000) + ">text"), ""},
		{"many tags that are not open", "a.html", []byte("text" + strings.Repeat("</b></p></table>", 100_000)), ""},
		{
			"formatting that is opened in each paragraph",
			"a.html",
			[]byte(strings.Repeat("<p><b><i><font>text", 50_000)),
			"",
		},
		{"tags and entities without an end", "a.html", []byte(strings.Repeat("<i>&amp&#x41", 50_000) + "text"), ""},
		{"links without an end", "a.md", []byte(strings.Repeat("[a](", 200_000)), ""},
		{"images in images", "a.md", []byte(strings.Repeat("![", 200_000) + "text"), ""},
		{"back quotes of all lengths", "a.md", []byte(ticks(800)), ""},
		{"headings of headings", "a.md", []byte(strings.Repeat("# a\n## b\n###### c\n", 50_000)), ""},
		{"tables of Markdown", "a.md", []byte(strings.Repeat("|a|b|\n|-|-|\n", 50_000)), ""},
		{"hyphens at line ends", "a.txt", []byte(strings.Repeat("exam-\nple", 200_000)), ""},
		{"form feeds", "a.txt", bytes.Repeat([]byte("a\f"), 200_000), ""},
		{"a million empty lines of JSON", "a.jsonl", []byte(strings.Repeat("\n", 1_000_000) + "{}"), ""},
		{"numbers of many digits", "a.json", []byte("[" + strings.Repeat("9", 1_000_000) + ",1e999999999]"), ""},
		{"an object of many equal keys", "a.json", []byte("{" + strings.Repeat(`"a":1,`, 200_000) + `"a":2}`), ""},
		{"one long line", "a.txt", bytes.Repeat([]byte("-"), 5<<20), ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			doc, err := Read(t.Context(), c.file, "", c.data, Limits{})
			if agent.ErrorCode(err) != c.code {
				t.Fatalf("got %v, want the code %q", err, c.code)
			}
			if err != nil {
				checkError(t, err)
				return
			}
			checkDocument(t, doc)
		})
	}
}

// ticks returns runs of back quotes of each length up to n.
func ticks(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat("`", i+1) + " a ")
	}
	return b.String()
}
