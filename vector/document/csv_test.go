package document

import (
	"bytes"
	"context"
	"encoding/csv"
	"runtime"
	"strings"
	"testing"
)

func TestCSV(t *testing.T) {
	cases := []struct {
		name, file, data, want string
		ragged                 int
	}{
		{"commas", "a.csv", "id,name\n1,Ada\n2,Bob\n", `
row "id: 1\nname: Ada"
row "id: 2\nname: Bob"`, 0},
		{"semicolons, decimal commas", "a.csv", "id;price\r\n1;2,50\r\n2;3,75\r\n", `
row "id: 1\nprice: 2,50"
row "id: 2\nprice: 3,75"`, 0},
		{"tabs", "a.csv", "id\tname\n1\tA, B\n", `row "id: 1\nname: A, B"`, 0},
		{"tabs by name", "a.tsv", "a,b\tc,d\n1,2\t3,4\n", `row "a,b: 1,2\nc,d: 3,4"`, 0},
		{"one column", "a.csv", "name\nAda\nBob", `
row "name: Ada"
row "name: Bob"`, 0},
		{"quotes", "a.csv", "id,note\n1,\"a \"\"b\"\", c\nd\"\n2 , \" x \" \n", `
row "id: 1\nnote: a \"b\", c\nd"
row "id: 2\nnote:  x"`, 0},
		{"mark and sep line", "a.csv", "\xef\xbb\xbfsep=;\r\na;b\r\n1;2", `row "a: 1\nb: 2"`, 0},
		{"ragged", "a.csv", "a,b\n1\n1,2,3\n1,2\n", `
row "a: 1"
row "a: 1\nb: 2\ncolumn 3: 3"
row "a: 1\nb: 2"`, 2},
		{"no header", "a.csv", "1,2\n3,4\n", `
row "column 1: 1\ncolumn 2: 2"
row "column 1: 3\ncolumn 2: 4"`, 0},
		{"a column without a name", "a.csv", "a,,c\n1,2,3\n", `row "a: 1\ncolumn 2: 2\nc: 3"`, 0},
		{"empty values are left out", "a.csv", "a,b\n1,\n,\n,2\n", `
row "a: 1"
row "b: 2"`, 0},
		{"only a header", "a.csv", "a,b\n", `row "columns: a, b"`, 0},
		{"a quote never closed", "a.csv", "a,b\n\"1,2\n3,\"4\n", `
row "a: \"1\nb: 2"
row "a: 3\nb: \"4"`, 0},
		{"a quote within", "a.csv", "size,b\n5\" pipe,2\n\"a\"b\",3\n", `
row "size: 5\" pipe\nb: 2"
row "size: a\"b\nb: 3"`, 0},
		{"old Mac lines", "a.csv", "a,b\r1,2\r3,4\r", `
row "a: 1\nb: 2"
row "a: 3\nb: 4"`, 0},
		{"a name of two lines", "a.csv", "\"first\nname\",b\nx,y\n", `row "first name: x\nb: y"`, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			doc := mustRead(t, c.file, c.data)
			compare(t, outlineOf(doc), c.want)
			if doc.RaggedRows != c.ragged {
				t.Errorf("%d ragged rows", doc.RaggedRows)
			}
		})
	}
}

func TestCSVMemory(t *testing.T) {
	data := []byte("id,name,city\n" + strings.Repeat("1,Ada,London\n", 10<<20/13))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	doc, err := Read(context.Background(), "a.csv", "", data, Limits{})
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	// The text is 2.3 times the file, and a row's block takes 20 bytes.
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 60<<20 {
		t.Errorf("10 MB of CSV allocated %d MB for %d MB of text", grown>>20, len(doc.Text)>>20)
	}
}

func FuzzCSV(f *testing.F) {
	for _, seed := range []string{
		"a,b\n1,2\n", "a;b\n\"x\"\"y\";z\n", "sep=,\n1", "\"\n,\"", "a\t\"b\nc\"\td\r\n", "\r\r\n", "\" \"",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		doc, err := Read(context.Background(), "a.csv", "", data, Limits{Blocks: 50})
		if err != nil {
			checkError(t, err)
			return
		}
		checkDocument(t, doc)
	})
}

// FuzzCSVReader compares with encoding/csv where that reports no error.
func FuzzCSVReader(f *testing.F) {
	for _, seed := range []string{"a,b\n1,2\n", "\"a\"\"\",\"b\nc\"\n", ",,\n", "\n\na", "\"\"", "a\r\nb,\"\"\r\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if bytes.ContainsAny(data, " \r\t\v\f\u0085\u00a0\u2000\u2028\u3000") {
			return // trimmed here, kept by encoding/csv
		}
		oracle := csv.NewReader(bytes.NewReader(data))
		oracle.FieldsPerRecord = -1
		want, err := oracle.ReadAll()
		if err != nil {
			return
		}
		r := csvReader{data: data, delimiter: ','}
		var got [][]string
		for r.next() {
			var row []string
			for _, field := range r.fields {
				row = append(row, string(bytes.TrimSpace(field)))
			}
			got = append(got, row)
		}
		if len(got) != len(want) {
			t.Fatalf("got %q, want %q", got, want)
		}
		for i := range want {
			for j := range want[i] {
				want[i][j] = strings.TrimSpace(want[i][j])
			}
			if strings.Join(got[i], "\x00") != strings.Join(want[i], "\x00") {
				t.Fatalf("row %d: got %q, want %q", i, got[i], want[i])
			}
		}
	})
}
