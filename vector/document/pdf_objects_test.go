package document

import (
	"bytes"
	"crypto/md5"
	"crypto/rc4"
	"fmt"
	"slices"
	"strings"
	"testing"

	"satchel/agent"
)

const (
	someText = "BT /F1 10 Tf 50 700 Td (some text) Tj ET"
	catalog  = "<</Type/Catalog/Pages 2 0 R>>"
	onlyPage = "<</Type/Pages/Kids[3 0 R]/Count 1>>"
	textPage = "<</Type/Page/Parent 2 0 R/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>"
)

// objectStream returns an object stream with objects numbered from first.
func objectStream(entries string, first int, objects ...string) string {
	var heads, bodies strings.Builder
	for i, object := range objects {
		fmt.Fprintf(&heads, "%d %d ", first+i, bodies.Len())
		bodies.WriteString(object + " ")
	}
	return pdfStream(
		fmt.Sprintf("/Type/ObjStm/N %d/First %d%s", len(objects), heads.Len(), entries),
		heads.String()+bodies.String(),
	)
}

// withXRefStream returns a file of objects, numbered from 1, whose table is a
// stream; entries are those of the table after object 0, each in 1, 2 and 1 bytes.
func withXRefStream(entries func(offsets []int) []byte, dict string, objects ...string) []byte {
	var b bytes.Buffer
	b.WriteString("%PDF-1.5\n")
	var offsets []int
	for i, object := range objects {
		offsets = append(offsets, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, object)
	}
	start := b.Len()
	offsets = append(offsets, start)
	data := append([]byte{0, 0, 0, 0}, entries(offsets)...)
	fmt.Fprintf(
		&b,
		"%d 0 obj\n%s\nendobj\nstartxref\n%d\n%%%%EOF\n",
		len(objects)+1,
		pdfStream(fmt.Sprintf("/Type/XRef/Size %d/W[1 2 1]/Root 1 0 R%s", len(data)/4, dict), string(data)),
		start,
	)
	return b.Bytes()
}

// plainEntries are the entries of objects that are in no object stream.
func plainEntries(offsets []int) []byte {
	var out []byte
	for _, offset := range offsets {
		out = append(out, 1, byte(offset>>8), byte(offset), 0)
	}
	return out
}

// The table of a file's objects may be wrong in any way if the objects are whole.
func TestPDFWithWrongTable(t *testing.T) {
	objects := []string{catalog, onlyPage, textPage, pdfStream("", someText), helvetica}
	good := pdfBytes("", objects...)
	replace := func(old, with string) []byte { return bytes.Replace(good, []byte(old), []byte(with), 1) }
	xref := bytes.Index(good, []byte("xref\n"))
	position := func(file []byte, name string) int { return bytes.LastIndex(file, []byte(name)) }
	update := func(prev int) []byte {
		changed := strings.Replace(someText, "some", "more", 1)
		out := bytes.Clone(good)
		at := len(out)
		out = fmt.Appendf(out, "4 0 obj\n%s\nendobj\n", pdfStream("", changed))
		table := len(out)
		return fmt.Appendf(
			out,
			"xref\n4 1\n%010d 00000 n \ntrailer\n<</Size 6/Root 1 0 R/Prev %d>>\nstartxref\n%d\n%%%%EOF\n",
			at, prev, table,
		)
	}
	compressedPage := []string{
		catalog,
		onlyPage,
		"null",
		pdfStream("", someText),
		helvetica,
		objectStream("", 3, textPage),
	}
	inStream := func(offsets []int) []byte {
		out := plainEntries(offsets)
		copy(out[8:], []byte{2, 0, 6, 0})
		return out
	}
	cases := []struct {
		name string
		data []byte
		want string
	}{
		{"bytes before the file", append(bytes.Repeat([]byte("From: a@example.com\r\n"), 9), good...), "some text"},
		{"bytes added within it", replace("2 0 obj", "%comment\n2 0 obj"), "some text"},
		{"bytes after the file", append(bytes.Clone(good), bytes.Repeat([]byte{0, 'x'}, 3000)...), "some text"},
		{"line ends changed", bytes.ReplaceAll(good, []byte("\n"), []byte("\r\n")), "some text"},
		{"no table", append(bytes.Clone(good[:xref]), good[bytes.Index(good, []byte("trailer")):]...), "some text"},
		{"neither table nor trailer", append(bytes.Clone(good[:xref]), "startxref\n0\n%%EOF"...), "some text"},
		{"no end marker", bytes.TrimSuffix(good, []byte("%%EOF\n")), "some text"},
		{"a wrong start of the table", replace(fmt.Sprintf("startxref\n%d", xref), "startxref\n7"), "some text"},
		{"a start beyond the file", replace(fmt.Sprintf("startxref\n%d", xref), "startxref\n99999999"), "some text"},
		{"a damaged table", replace("00000 n ", "0000x n "), "some text"},
		{"all offsets wrong", replace("0 6\n0000000000", "1 6\n0000000000"), "some text"},
		{"an update", update(xref), "more text"},
		{"an update with a wrong previous table", update(99999), "more text"},
		{"an update without a previous table", update(0), "more text"},
		{"a table as a stream", withXRefStream(plainEntries, "", objects...), "some text"},
		{
			"a wrong table as a stream",
			withXRefStream(func(offsets []int) []byte { return make([]byte, 4*len(offsets)) }, "", objects...),
			"some text",
		},
		{"a table as a damaged stream", withXRefStream(plainEntries, "/Filter/FlateDecode", objects...), "some text"},
		{
			"a table as a stream with a predictor",
			withXRefStream(plainEntries, "/Filter/FlateDecode/DecodeParms<</Predictor 15>>", objects...),
			"some text",
		},
		{"objects in a stream", withXRefStream(inStream, "", compressedPage...), "some text"},
		{"objects in a stream, the table missing", append(
			pdfBytes("", compressedPage...)[:position(pdfBytes("", compressedPage...), "xref\n0")],
			"trailer<</Root 1 0 R>>\nstartxref\n1\n%%EOF"...,
		), "some text"},
		{"a catalog in a stream", withXRefStream(
			plainEntries,
			"",
			objectStream("", 10, strings.Replace(catalog, "2 0", "11 0", 1), onlyPage),
			"null",
			textPage,
			pdfStream("", someText),
			helvetica,
		), "some text"},
		{
			"a length that is too short",
			pdfBytes("", catalog, onlyPage, textPage, "<</Length 3>>stream\n"+someText+"\nendstream", helvetica),
			"some text",
		},
		{
			"a length that is too long",
			pdfBytes("", catalog, onlyPage, textPage, "<</Length 300>>stream\n"+someText+"\nendstream", helvetica),
			"some text",
		},
		{
			"no length",
			pdfBytes("", catalog, onlyPage, textPage, "<<>>stream\r\n"+someText+"\r\nendstream", helvetica),
			"some text",
		},
		{
			"a length elsewhere",
			pdfBytes(
				"", catalog, onlyPage, textPage,
				"<</Length 6 0 R>>stream\n"+someText+"\nendstream",
				helvetica,
				fmt.Sprint(len(someText)),
			),
			"some text",
		},
		{"a file within a stream", pdfBytes(
			"", catalog, onlyPage, textPage,
			pdfStream("", someText),
			helvetica,
			pdfStream("", string(onePage("BT /F1 10 Tf (inner) Tj ET", ""))),
		), "some text"},
		{"half of an update", append(bytes.Clone(good), update(0)[len(good):len(good)+30]...), "some text"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			doc, err := Read(t.Context(), "a.pdf", "", c.data, Limits{})
			if err != nil {
				t.Fatal(err)
			}
			compare(t, doc.Text, c.want)
		})
	}
}

// A file that points at itself, or states far more than it has, is read as far as it
// can be, or it is broken: it does not use up its time.
func TestPDFInCircles(t *testing.T) {
	page := func(extra ...string) []byte {
		return pdfBytes(
			"",
			append([]string{catalog, onlyPage, textPage, pdfStream("", someText), helvetica}, extra...)...,
		)
	}
	objects := func(trailer string, list ...string) []byte { return pdfBytes(trailer, list...) }
	ofPage := func(entries string, more ...string) []byte {
		return objects(
			"",
			append(
				[]string{
					catalog,
					onlyPage,
					"<</Type/Page/Parent 2 0 R" + entries + ">>",
					pdfStream("", someText),
					helvetica,
				},
				more...,
			)...,
		)
	}
	ofFont := func(font string, more ...string) []byte {
		return objects("", append([]string{catalog, onlyPage, textPage, pdfStream("", someText), font}, more...)...)
	}
	tables := func(prev ...string) []byte { // each table's previous one, of offsets %[1]d, %[2]d …
		out := bytes.Clone(page()[:bytes.Index(page(), []byte("xref\n"))])
		var offsets []any
		for range prev { // the tables have fixed lengths
			offsets = append(offsets, len(out)+len(offsets)*91)
		}
		for _, p := range prev {
			table := fmt.Sprintf(
				"xref\n0 1\n0000000000 65535 f \ntrailer\n<</Size 6/Root 1 0 R%s>>",
				fmt.Sprintf(p, offsets...),
			)
			out = append(out, fmt.Sprintf("%-90s\n", table)...)
		}
		return fmt.Appendf(out, "startxref\n%d\n%%%%EOF", offsets[0])
	}
	repeated := func(n int, text string) string { return strings.Repeat(text, n) }
	form := func(name string, others string) string {
		return pdfStream(
			"/Type/XObject/Subtype/Form/Resources<</Font<</F1 5 0 R>>/XObject<<"+others+">>>>",
			"BT /F1 10 Tf 50 600 Td ("+name+") Tj ET /A Do /A Do /B Do /B Do /C Do",
		)
	}
	cases := []struct {
		name string
		data []byte
		want string     // text, or else
		code agent.Code // an error
	}{
		{
			"only a table whose previous one is itself",
			[]byte("%PDF-1.4\nxref\n0 1\n0000000000 65535 f \ntrailer\n<</Size 1/Root 1 0 R/Prev " +
				"9>>\nstartxref\n9\n%%EOF\n"),
			"",
			CodeBrokenFile,
		},
		{"a previous table that is itself", tables("/Prev %[1]d"), "some text", ""},
		{"two previous tables in a circle", tables("/Prev %[2]d", "/Prev %[1]d"), "some text", ""},
		{"three previous tables in a circle", tables("/Prev %[2]d", "/Prev %[3]d", "/Prev %[2]d"), "some text", ""},
		{"a table whose stream is itself", tables("/XRefStm %[1]d"), "some text", ""},
		{
			"a stream whose previous one is itself",
			withXRefStream(plainEntries, "/Prev 526", catalog, onlyPage, textPage, pdfStream("", someText), helvetica),
			"some text",
			"",
		},
		{
			"pages below themselves",
			objects(
				"",
				catalog,
				"<</Type/Pages/Kids[2 0 R 3 0 R 2 0 R]/Count 9>>",
				textPage,
				pdfStream("", someText),
				helvetica,
			),
			"some text",
			"",
		},
		{"pages below each other", objects(
			"",
			catalog,
			"<</Type/Pages/Kids[6 0 R 3 0 R]>>",
			textPage,
			pdfStream("", someText),
			helvetica,
			"<</Type/Pages/Kids[2 0 R 2 0 R 6 0 R]>>",
		), "some text", ""},
		{
			"only pages below each other",
			objects("", catalog, "<</Kids[3 0 R 3 0 R]>>", "<</Kids[2 0 R 2 0 R]>>"),
			"",
			CodeBrokenFile,
		},
		{"parents in a circle", objects(
			"",
			catalog,
			"<</Type/Pages/Parent 3 0 R/Kids[3 0 R]>>",
			"<</Type/Page/Parent 2 0 R/Contents 4 0 R>>",
			pdfStream("", someText),
		), "", CodeNoText},
		{"a catalog as its own pages", objects("", "<</Type/Catalog/Pages 1 0 R/Kids[1 0 R]>>"), "", CodeBrokenFile},
		{
			"a billion pages",
			objects(
				"",
				catalog,
				"<</Type/Pages/Kids[3 0 R]/Count 1000000000>>",
				textPage,
				pdfStream("", someText),
				helvetica,
			),
			"some text",
			"",
		},
		{
			"a billion objects",
			bytes.Replace(page(), []byte("xref\n0 6"), []byte("xref\n0 1000000000"), 1),
			"some text",
			"",
		},
		{"an object with a huge number", page("0 4000000000 0 obj null"), "some text", ""},
		{"an object stream in itself", page(objectStream("", 6, "null")), "some text", ""},
		{
			"an object stream that extends itself",
			withXRefStream(
				func(offsets []int) []byte {
					out := plainEntries(offsets)
					copy(out[8:], []byte{2, 0, 6, 0})
					return out
				},
				"", catalog, onlyPage, "null",
				pdfStream("", someText),
				helvetica,
				objectStream("/Extends 6 0 R", 9, "null"),
			),
			"",
			CodeBrokenFile,
		},
		{
			"an object stream of a billion objects",
			page(pdfStream("/Type/ObjStm/N 1000000000/First 4", "9 0 null")),
			"some text",
			"",
		},
		{
			"an object stream whose length is in it",
			page("<</Type/ObjStm/N 1/First 5/Length 9 0 R>>stream\n9 0  12\nendstream"),
			"some text",
			"",
		},
		{
			"a length that is the stream itself",
			objects("", catalog, onlyPage, textPage, "<</Length 4 0 R>>stream\n"+someText+"\nendstream", helvetica),
			"some text",
			"",
		},
		{
			"two lengths of each other",
			objects(
				"", catalog, onlyPage, textPage,
				"<</Length 6 0 R>>stream\n"+someText+"\nendstream",
				helvetica,
				"7 0 R",
				"6 0 R",
			),
			"some text",
			"",
		},
		{
			"a filter that is the stream itself",
			page(pdfStream("/Type/ObjStm/First 1/Filter 6 0 R", "x")),
			"some text",
			"",
		},
		{
			"a thousand filters",
			ofPage(
				"/Contents 6 0 R/Resources<</Font<</F1 5 0 R>>>>",
				pdfStream("/Filter["+repeated(1000, "/ASCII85Decode")+"]", "x~>"),
			),
			"",
			CodeNoText,
		},
		{
			"contents in a circle",
			ofPage("/Contents[6 0 R 4 0 R]/Resources<</Font<</F1 5 0 R>>>>", "[6 0 R 6 0 R]"),
			"some text",
			"",
		},
		{
			"200,000 contents",
			ofPage("/Contents["+repeated(200_000, "7 0 R ")+"]", "null", pdfStream("", " ")),
			"",
			CodeTooComplex,
		},
		{
			"resources of themselves",
			ofPage("/Contents 4 0 R/Resources 6 0 R", "<</Font 6 0 R/XObject 6 0 R/F1 5 0 R>>"),
			"some text",
			"",
		},
		{"a form that draws itself", objects(
			"",
			catalog,
			onlyPage,
			"<</Type/Page/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>/XObject<</A 6 0 R>>>>>>",
			pdfStream("", someText+" /A Do"),
			helvetica,
			form("inner", "/A 6 0 R"),
		), "some text\n\ninner", ""},
		{"three forms that draw each other", objects(
			"",
			catalog,
			onlyPage,
			"<</Type/Page/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>/XObject<</A 6 0 R>>>>>>",
			pdfStream("", someText+" /A Do"),
			helvetica,
			form("A", "/B 7 0 R"),
			form("B", "/C 8 0 R"),
			form("C", "/A 6 0 R/B 7 0 R"),
		), "some text\n\nABC", ""},
		{
			"a font below itself",
			ofFont("<</Type/Font/Subtype/Type0/Encoding/Identity-H/DescendantFonts[5 0 R]>>"),
			"",
			CodeNoText,
		},
		{
			"a font's encoding that is the font",
			ofFont("<</Type/Font/Subtype/Type1/Encoding 5 0 R/Differences 5 0 R/ToUnicode 5 0 R>>"),
			"some text",
			"",
		},
		{
			"a font's text that has no end",
			ofFont("<</Type/Font/Subtype/Type1/ToUnicode 6 0 R>>", pdfStream("", "begincmap <41")),
			"some text",
			"",
		},
		{"widths of all codes, repeatedly", ofFont(
			"<</Subtype/Type0/ToUnicode 6 0 R/DescendantFonts[<</W["+repeated(100_000, "0 65535 1 ")+"]>>]>>",
			pdfStream(
				"",
				"1 begincodespacerange <00> <ff> endcodespacerange "+
					repeated(100_000, "1 beginbfrange <0000> <ffff> <0041> endbfrange "),
			),
		), "", CodeNoText},
		{"outlines and names in circles", objects(
			"/Info 6 0 R",
			"<</Pages 2 0 R/Outlines 6 0 R/Names<</Dests 6 0 R>>>>",
			onlyPage,
			textPage,
			pdfStream("", someText),
			helvetica,
			"<</First 6 0 R/Last 6 0 R/Next 6 0 R/Prev 6 0 R/Parent 6 0 R/Kids[6 0 R]/Title 6 0 R>>",
		), "some text", ""},
		{"deep arrays", page(repeated(100_000, "[") + repeated(100_000, "]")), "some text", ""},
		{
			"deep dictionaries",
			ofPage("/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>/X " + repeated(100_000, "<</A ") +
				repeated(100_000, ">>")),
			"",
			CodeBrokenFile,
		},
		{
			"deep contents",
			objects(
				"", catalog, onlyPage, textPage,
				pdfStream("", repeated(100_000, "[")+repeated(100_000, "]")+someText),
				helvetica,
			),
			"some text",
			"",
		},
		{
			"contents without an end",
			objects("", catalog, onlyPage, textPage, pdfStream("", someText+" BT /F1 9 Tf <41"), helvetica),
			"some text",
			"",
		},
		{
			"objects without an end",
			append([]byte("%PDF-1.4\n"+repeated(200_000, "1 0 obj<</A(")), page()...),
			"",
			CodeBrokenFile,
		},
		{
			"trailers without an end",
			append([]byte("%PDF-1.4\n"+repeated(200_000, "trailer<</A(")), page()...),
			"",
			CodeBrokenFile,
		},
		{
			"streams without an end",
			append(
				[]byte("%PDF-1.4\n"+repeated(200_000, "1 0 obj<<>>stream\n")),
				bytes.ReplaceAll(page(), []byte("end"), []byte("END"))...,
			),
			"",
			CodeBrokenFile,
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			doc, err := Read(t.Context(), "a.pdf", "", c.data, Limits{})
			if agent.ErrorCode(err) != c.code {
				t.Fatalf("got %v, want the code %q", err, c.code)
			}
			if err != nil {
				checkError(t, err)
				return
			}
			compare(t, doc.Text, c.want)
		})
	}
}

// Small streams that unpack to much more, drawn again and again.
func TestPDFBombs(t *testing.T) {
	spaces := compressed(strings.Repeat(" ", 31<<20))
	font := "<</Type/Font/Subtype/Type1/ToUnicode 6 0 R/N %d>>"
	var fonts, draws strings.Builder
	for i := range 200 {
		fmt.Fprintf(&fonts, "/F%d "+font, i, i)
		fmt.Fprintf(&draws, "BT /F%d 9 Tf ET ", i)
	}
	form := strings.Replace(spaces, "<<", "<</Subtype/Form", 1)
	kids := "<</Type/Pages/Kids[" + strings.Repeat("3 0 R ", 4000) + "]>>"
	for name, file := range map[string][]byte{
		"pages": pdfBytes("", catalog, kids, textPage, spaces, helvetica),
		"forms": pdfBytes(
			"",
			catalog,
			onlyPage,
			"<</Contents 4 0 R/Resources<</XObject<</A 5 0 R>>>>>>",
			pdfStream("", strings.Repeat("/A Do ", 9000)),
			form,
		),
		"fonts": pdfBytes(
			"",
			catalog,
			onlyPage,
			"<</Contents 4 0 R/Resources<</Font<<"+fonts.String()+">>>>>>",
			pdfStream("", draws.String()),
			helvetica,
			spaces,
		),
		"objects": pdfBytes("", append(
			[]string{catalog, kids, textPage, pdfStream("", someText), helvetica},
			slices.Repeat([]string{compressedObjects()}, 20)...,
		)...),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read(t.Context(), "a.pdf", "", file, Limits{})
			if agent.ErrorCode(err) != CodeTooComplex {
				t.Fatalf("got %v", err)
			}
			checkError(t, err)
		})
	}
}

// compressedObjects returns an object stream that unpacks to 16 MB.
func compressedObjects() string {
	return strings.Replace(compressed("90 0 ("+strings.Repeat("a", 16<<20)+")"), "<<", "<</Type/ObjStm/First 5", 1)
}

// A file that only the owner's password protects is read, its object streams included,
// of which only the stream itself is encrypted.
func TestEncryptedPDF(t *testing.T) {
	const id = "0123456789abcdef"
	pad := "\x28\xBF\x4E\x5E\x4E\x75\x8A\x41\x64\x00\x4E\x56\xFF\xFA\x01\x08\x2E\x2E\x00\xB6\xD0\x68\x3E\x80\x2F" +
		"\x0C\xA9\xFE\x64\x53\x69\x7A"
	owner := strings.Repeat("o", 32)
	sum := md5.Sum([]byte(pad + owner + "\xFC\xFF\xFF\xFF" + id))
	for range 50 {
		sum = md5.Sum(sum[:])
	}
	key := sum[:]
	encrypt := func(key []byte, text string) string {
		c, err := rc4.NewCipher(key)
		if err != nil {
			t.Fatal(err)
		}
		out := []byte(text)
		c.XORKeyStream(out, out)
		return string(out)
	}
	stream := func(number byte, plain string) string { // encrypts the data of a stream
		head, body, _ := strings.Cut(plain, "stream\n")
		body = strings.TrimSuffix(body, "\nendstream")
		own := md5.Sum(append(bytes.Clone(key), number, 0, 0, 0, 0))
		return head + "stream\n" + encrypt(own[:], body) + "\nendstream"
	}
	user := md5.Sum([]byte(pad + id))
	check := string(user[:])
	for i := range byte(20) {
		round := bytes.Clone(key)
		for j := range round {
			round[j] ^= i
		}
		check = encrypt(round, check)
	}
	font := strings.Replace(helvetica, "<<", "<</Registry(Adobe)/Note<41>", 1)
	file := pdfBytes(
		fmt.Sprintf(
			"/ID[<%x><00>]/Encrypt<</Filter/Standard/V 2/R 3/Length 128/P -4/O(%s)/U<%x%032d>>>",
			id, owner, check, 0,
		),
		catalog,
		strings.Replace(onlyPage, "3 0", "5 0", 1),
		stream(3, pdfStream("", someText)),
		stream(4, objectStream("", 5, strings.NewReplacer("4 0", "3 0", "5 0", "6 0").Replace(textPage), font)),
	)
	doc, err := Read(t.Context(), "a.pdf", "", file, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	compare(t, doc.Text, "some text")
}
