package httpapi

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"satchel/agent"
)

// FuzzContactsRoundTrip checks that exporting and importing gives the same contact,
// whatever it contains, and that no cell of the file is a formula.
func FuzzContactsRoundTrip(f *testing.F) {
	f.Add("Ada", "ada@example.com", "+1 555", "@ada", "notes", "vip|math", "key", "value")
	f.Add("=1+1", "-1", "\t", "\rx", "a\r\nb\rc\n", "a, b|\"q\"|@x|c\nd|e\rf", "=k", "=v")
	f.Add("'=1", "''", "'", "'''+", " \n ", "'=|,|\"", "\x00", "\u2028")
	f.Add("＝1+1", "＋1", "－2", "＠x", "\n=1", "＝t|'＝u|\n@v", "＠k", "\n＝v")
	f.Add("a;b\tc", `"`, `\.`, " x ", `""`, "", "", "\xff")
	f.Fuzz(func(t *testing.T, name, email, phone, handle, notes, tags, key, value string) {
		metadata, err := json.Marshal(map[string]any{key: value, "n": 1e30})
		if err != nil {
			return // no metadata
		}
		c := agent.Contact{
			Name:         name,
			Email:        email,
			Phone:        phone,
			Telegram:     handle,
			WhatsApp:     phone,
			SocialHandle: handle,
			ExternalID:   email,
			Notes:        notes,
			Tags:         strings.Split(tags, "|"),
			Metadata:     metadata,
		}
		var file bytes.Buffer
		w := writeContactsCSV(&file)
		if err := w.Write(c); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		rows, err := readContactsCSV(&file, 1<<30)
		if err != nil {
			t.Fatal(err)
		}
		if len(rows) != 1 || rows[0].Issues != nil || rows[0].Row != 2 {
			t.Fatalf("%+v became %+v", c, rows)
		}
		if got, want := rows[0].Change, expectedChange(c); !reflect.DeepEqual(got, want) {
			t.Errorf("%+v\nbecame %+v\nwant   %+v", c, got, want)
		}
	})
}

// expectedChange sets each field of c that is not empty.
func expectedChange(c agent.Contact) (change agent.ContactChange) {
	for _, column := range contactTexts {
		value := strings.ToValidUTF8(column.value(&c), "\uFFFD")
		if value != "" && (column.name == "notes" || !isBlank(value)) {
			*column.change(&change) = agent.Some(value)
		}
	}
	var tags []string
	for _, tag := range agent.CleanTags(c.Tags) {
		tags = append(tags, strings.ToValidUTF8(tag, "\uFFFD"))
	}
	if tags = agent.CleanTags(tags); len(tags) > 0 {
		change.Tags = agent.Some(tags)
	}
	change.Metadata = agent.Some(c.Metadata)
	return change
}

// FuzzReadContactsCSV reads arbitrary bytes: rows are numbered in order, contain UTF-8
// and valid metadata, and are no more than the lines.
func FuzzReadContactsCSV(f *testing.F) {
	for _, seed := range []string{
		"name,email,tags,metadata,x\nAda,a@x,\"a,\"\"b\"\"\",\"{\"\"a\"\":1}\",y\n",
		"sep=;\nname;email\n=1;'=2\n",
		"\uFEFFname\r\n\r\nAda\r\n",
		"name,notes\n\"Ada\nBob,\"x\"y\nCy,\"z\n",
		"name\tx\n\xff\t\xfe\n", "name,\n,\na,b\n", "name,name\n", "\"",
		"name,metadata\na,{\na,[[[[\n",
		strings.Repeat(",", 300),
		"name\n" + strings.Repeat("\"\n", 50),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		rows, err := readContactsCSV(bytes.NewReader(file), 1<<20)
		if err != nil {
			if rows != nil || agent.ErrorCode(err) == agent.CodeInternal {
				t.Errorf("%d rows and %v", len(rows), err)
			}
			return
		}
		lines := 1 + bytes.Count(file, []byte("\n")) + bytes.Count(file, []byte("\r"))
		last := 1
		for _, row := range rows {
			if row.Row <= last || row.Row > lines {
				t.Errorf("row %d after row %d, in %d lines", row.Row, last, lines)
			}
			last = row.Row
			text := strings.Join(row.Change.Tags.Value, "")
			for _, column := range contactTexts {
				text += column.change(&row.Change).Value
			}
			metadata := row.Change.Metadata
			if !utf8.ValidString(text) ||
				metadata.Given &&
					(!json.Valid(metadata.Value) || metadata.Value[0] != '{' || !utf8.Valid(metadata.Value)) {
				t.Errorf("row %d: %+v", row.Row, row.Change)
			}
			if row.Issues != nil && !reflect.DeepEqual(row.Change, agent.ContactChange{}) {
				t.Errorf("row %d has issues %v and a change", row.Row, row.Issues)
			}
		}
	})
}

// FuzzCSVRecords checks that what encoding/csv writes is read back unchanged.
func FuzzCSVRecords(f *testing.F) {
	f.Add("a|b|c\nd|e|f", byte(0))
	f.Add("\"|,;\t|\r| \"x\" \n |\\.|", byte(1))
	f.Add("||\n'||\x00", byte(2))
	f.Fuzz(func(t *testing.T, cells string, which byte) {
		var file bytes.Buffer
		w := csv.NewWriter(&file)
		w.Comma = rune(",;\t"[which%3])
		var want [][]string
		for line := range strings.SplitSeq(cells, "\n") {
			if record := strings.Split(line, "|"); len(record) > 1 { // one empty cell is only a line break
				want = append(want, record)
			}
		}
		if err := w.WriteAll(want); err != nil {
			t.Fatal(err)
		}
		records := csvRecords{text: file.String(), delimiter: ",;\t"[which%3]}
		for i, record := range want {
			if !records.next(len(cells)+1) || records.broken != "" || !slices.Equal(records.fields, record) {
				t.Fatalf("record %d of %q: %q, want %q", i, file.String(), records.fields, record)
			}
		}
		if records.next(1) {
			t.Errorf("one more record in %q: %q", file.String(), records.fields)
		}
	})
}

// FuzzCSVRecordsEnd checks that any text is read to its end, record by record, and that a
// record whose fields are not all kept is still counted completely.
func FuzzCSVRecordsEnd(f *testing.F) {
	f.Add("a,\"b\nc\"\r\n\"d,e\n\"\"\"\n,", 1)
	f.Add("\"\"x\n\"\r\"\r\n \" \"\n", 0)
	f.Fuzz(func(t *testing.T, text string, keep int) {
		some, all := csvRecords{text: text, delimiter: ','}, csvRecords{text: text, delimiter: ','}
		for pos := -1; all.next(len(text) + 1); pos = all.pos {
			if all.pos <= pos {
				t.Fatalf("record %d of %q ends at %d, where it began", all.row, text, pos)
			}
			if !some.next(keep) ||
				some.count != all.count ||
				some.broken != all.broken ||
				some.pos != all.pos ||
				some.blank != all.blank ||
				len(some.fields) > max(keep, 0) {
				t.Fatalf("record %d of %q differs when %d fields are kept: %+v", all.row, text, keep, some)
			}
			if all.broken == "" && len(all.fields) != all.count {
				t.Errorf("record %d of %q: %d fields, counted %d", all.row, text, len(all.fields), all.count)
			}
		}
	})
}

func BenchmarkContactsCSV(b *testing.B) {
	for _, rows := range []int{100, 10_000} {
		var file bytes.Buffer
		write := func() {
			file.Reset()
			w := writeContactsCSV(&file)
			for n := range rows {
				err := w.Write(agent.Contact{
					ID:        fmt.Sprint("contact-", n),
					Name:      fmt.Sprint("Contact ", n),
					Email:     fmt.Sprintf("c%d@example.com", n),
					Phone:     "+1 555 0100",
					Telegram:  "@contact",
					Notes:     "Met at the fair, \"very\" keen.\nCall back.",
					Tags:      []string{"vip", "math"},
					Metadata:  []byte(`{"company":"Example"}`),
					CreatedAt: agent.Now(),
				})
				if err != nil {
					b.Fatal(err)
				}
			}
			if err := w.Close(); err != nil {
				b.Fatal(err)
			}
		}
		b.Run(fmt.Sprintf("export/%d", rows), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				write()
			}
			b.SetBytes(int64(file.Len()))
		})
		write()
		for name, text := range map[string]string{
			"import":   file.String(),
			"metadata": "name,a,b,c\n" + strings.Repeat("Ada,1,2,3\n", rows),
			"broken":   "name,a\n" + strings.Repeat("x,\"\"\"\n", rows),
		} {
			b.Run(fmt.Sprintf("%s/%d", name, rows), func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					if _, err := readContactsCSV(strings.NewReader(text), 100<<20); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
