package httpapi

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"satchel/agent"
)

// summary formats a row as {field:value …} or as its issues, for comparison.
func summary(row contactRow) string {
	var parts []string
	for _, issue := range row.Issues {
		parts = append(parts, "! "+issue.Field+" "+issue.Issue)
	}
	for _, column := range contactTexts {
		if value := *column.change(&row.Change); value.Given {
			parts = append(parts, fmt.Sprintf("%s=%q", column.name, value.Value))
		}
	}
	if row.Change.Tags.Given {
		parts = append(parts, fmt.Sprintf("tags=%q", row.Change.Tags.Value))
	}
	if row.Change.Metadata.Given {
		parts = append(parts, "metadata="+string(row.Change.Metadata.Value))
	}
	return fmt.Sprint(row.Row, ": ", strings.Join(parts, " "))
}

func TestReadContactsCSV(t *testing.T) {
	for name, tt := range map[string]struct {
		file string
		want []string
	}{
		"the specification's columns": {
			"name,email,phone,chatbot_a,tags\nAda,ada@example.com,+1 555,@ada,\"vip,math\"\n",
			[]string{`2: name="Ada" email="ada@example.com" phone="+1 555" chatbot_a="@ada" tags=["vip" "math"]`},
		},
		"every column": {
			"name,email,phone,chatbot_a,chatbot_b,social_handle,external_id,notes,tags,metadata," +
				"id,created_at,updated_at\n" +
				`A,b,c,d,e,f,g,h,i,"{""j"":1}",k,l,m`,
			[]string{
				`2: name="A" email="b" phone="c" chatbot_a="d" chatbot_b="e" social_handle="f" external_id="g" ` +
					`notes="h" tags=["i"] metadata={"j":1}`,
			},
		},
		"only names":  {"name\nAda\nBob", []string{`2: name="Ada"`, `3: name="Bob"`}},
		"header only": {"name,email\n", nil},
		"header in capitals": {
			" NAME , E-mail,External ID\nAda,x,7\n",
			[]string{`2: name="Ada" external_id="7" metadata={"E-mail":"x"}`},
		},
		"real names": {
			"name,Telegram,WhatsApp\nAda,@ada,+1555\n",
			[]string{`2: name="Ada" chatbot_a="@ada" chatbot_b="+1555"`},
		},
		"byte order mark": {"\uFEFFname\nAda\n", []string{`2: name="Ada"`}},
		"CR LF": {
			"name,notes\r\nAda,\"a\r\nb\"\r\nBob,c\r\n",
			[]string{`2: name="Ada" notes="a\r\nb"`, `3: name="Bob" notes="c"`},
		},
		"CR": {"name\rAda\rBob\r", []string{`2: name="Ada"`, `3: name="Bob"`}},
		"semicolons": {
			"name;email;tags\nAda;a@x;vip,math\n",
			[]string{`2: name="Ada" email="a@x" tags=["vip" "math"]`},
		},
		"tabs": {"name\temail\nAda, Countess\ta@x\n", []string{`2: name="Ada, Countess" email="a@x"`}},
		"semicolon in a name": {
			"name,email;work,phone\nAda,a;b,1\n",
			[]string{`2: name="Ada" phone="1" metadata={"email;work":"a;b"}`},
		},
		"commas in a name": {"name;a,b,c,d\nAda;1\n", []string{`2: name="Ada" metadata={"a,b,c,d":"1"}`}},
		"CR and a bad quote": {
			"name,x\rEve,\"e\"e\rBob,\r",
			[]string{`2: ! x has text after a closing quote`, `3: name="Bob"`},
		},
		"many tags": {
			"name,tags\na,\"" + strings.Repeat("t,", 999) + "t\"\nb,\"" + strings.Repeat("t,", 1000) + "t\"\nc,\"" +
				strings.Repeat("t\n", 1001) + "\"\n",
			[]string{
				`2: name="a" tags=["t"]`,
				`3: ! tags must have at most 1000 entries`,
				`4: ! tags must have at most 1000 entries`,
			},
		},
		"delimiter line":      {"sep=;\r\nname;a,b,c\r\nAda;1\r\n", []string{`2: name="Ada" metadata={"a,b,c":"1"}`}},
		"delimiter line, bar": {"SEP=|\nname|email\nAda|a@x\n", []string{`2: name="Ada" email="a@x"`}},
		"quotes": {
			"\"name\", \"notes\"\n \"Ada \"\"A\"\"\" , \"x,\ny\"\n",
			[]string{`2: name="Ada \"A\"" notes="x,\ny"`},
		},
		"rows after line feeds": {
			"name,notes\nAda,\"1\n2\n3\"\nBob,\n",
			[]string{`2: name="Ada" notes="1\n2\n3"`, `3: name="Bob"`},
		},
		"empty lines": {
			"\n\nname,email\n\nAda,a@x\n  \n,\n,,,,\n\"\"\nBob,b@x\n\n",
			[]string{`5: name="Ada" email="a@x"`, `10: name="Bob" email="b@x"`},
		},
		"empty cells": {
			"name,email,notes,tags,metadata,x\nAda,, ,\" , \",  , \n",
			[]string{`2: name="Ada" notes=" "`},
		},
		"space is kept": {"name,notes\n Ada , x \n", []string{`2: name=" Ada " notes=" x "`}},
		"unknown columns": {
			"name,Company,Größe\nAda,\"A \"\"&\"\" <B>\",7\n",
			[]string{`2: name="Ada" metadata={"Company":"A \"&\" <B>","Größe":"7"}`},
		},
		"metadata and more": {
			"name,metadata,b\nAda,\"{\"\"a\"\":1e400,\"\"b\"\":2}\",3\n",
			[]string{`2: name="Ada" metadata={"a":1e400,"b":"3"}`},
		},
		"unnamed columns": {
			"name,,\nAda,,\nBob,x,y\n",
			[]string{
				`2: name="Ada"`,
				`3: ! column 2 has no name in the header row ! column 3 has no name in the header row`,
			},
		},
		"formulas": {
			"name,phone,x\n'=1+1,'+1 555,'@x\n''=a,'b,''\n",
			[]string{`2: name="=1+1" phone="+1 555" metadata={"x":"@x"}`,
				`3: name="'=a" phone="'b" metadata={"x":"''"}`},
		},
		"tags": {
			"name,tags\na,\" x , y,,x\"\nb,\"\"\"p, q\"\",\"\"r\"\"\"\"s\"\"\"\nc,\"x\ny\"\nd,\"\"\"x\"\ne,a\"\"\n",
			[]string{
				`2: name="a" tags=["x" "y"]`, `3: name="b" tags=["p, q" "r\"s"]`, `4: name="c" tags=["x" "y"]`,
				`5: ! tags has a quote that is never closed`, `6: ! tags has a quote within text that is not quoted`},
		},
		"metadata not an object": {"name,metadata\na,7\nb,[]\nc,{\nd,null\ne,\"\"\"x\"\"\"\nf,{}\n", []string{
			`2: ! metadata must be a JSON object`,
			`3: ! metadata must be a JSON object`,
			`4: ! metadata must be a JSON object`,
			`5: ! metadata must be a JSON object`,
			`6: ! metadata must be a JSON object`,
			`7: name="f" metadata={}`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			rows, err := readContactsCSV(iotest.OneByteReader(strings.NewReader(tt.file)), 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			got := []string{}
			for _, row := range rows {
				got = append(got, summary(row))
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

func TestBadRowsDoNotAffectOthers(t *testing.T) {
	for name, tt := range map[string]struct {
		bad   string
		issue string
	}{
		"too few cells":      {"Eve", "row has 1 cells where the header row has 3"},
		"too many cells":     {"Eve,e@x,,", "row has 4 cells where the header row has 3"},
		"many cells":         {"Eve" + strings.Repeat(",", 5000), "row has 5001 cells where the header row has 3"},
		"quote within text":  {`E"ve,e@x,`, "name has a quote within text that is not quoted"},
		"text after a quote": {`Eve,"e"@x,`, "email has text after a closing quote"},
		// the next row's quote closes it
		"quote not closed":    {`Eve,e@x,"oh`, "notes has text after a closing quote"},
		"after a line break":  {"\"E\nve\",\"e\"@x,", "email has text after a closing quote"},
		"quote in the fourth": {`Eve,e@x,,"oh" x`, "row has text after a closing quote"},
		"not UTF-8":           {"Eve,e@x,\xe9t\xe9", "notes is not UTF-8 text"},
	} {
		t.Run(name, func(t *testing.T) {
			rows, err := readContactsCSV(
				strings.NewReader("name,email,notes\nAda,a@x,\n"+tt.bad+"\nBob,b@x,\"c,\nd\"\nCy,c@x,\n"),
				1<<20,
			)
			if err != nil {
				t.Fatal(err)
			}
			got := []string{}
			for _, row := range rows {
				got = append(got, summary(row))
			}
			want := []string{
				`2: name="Ada" email="a@x"`,
				`3: ! ` + tt.issue,
				`4: name="Bob" email="b@x" notes="c,\nd"`,
				`5: name="Cy" email="c@x"`,
			}
			if !slices.Equal(got, want) {
				t.Errorf("got  %q\nwant %q", got, want)
			}
		})
	}
}

func TestUnclosedQuote(t *testing.T) {
	for _, end := range []string{"", "\n", "\r\n", "\nBob,b@x\n"} {
		rows, err := readContactsCSV(strings.NewReader("name,email\nAda,\"a@x"+end), 1<<20)
		if err != nil || len(rows) == 0 || summary(rows[0]) != "2: ! email has a quote that is never closed" {
			t.Errorf("%q: %v, %v", end, rows, err)
		}
		if want := strings.Count(end, "Bob"); len(rows) != 1+want ||
			want == 1 && summary(rows[1]) != `3: name="Bob" email="b@x"` {
			t.Errorf("%q: %v", end, rows)
		}
	}
}

func TestReadContactsCSVRefusesFiles(t *testing.T) {
	header := func(names int) string {
		return "name" + strings.Repeat(",", names-1)
	}
	long := strings.Repeat("ä", maxColumnName)
	for name, tt := range map[string]struct {
		file string
		code agent.Code
		want string
	}{
		"empty":                 {"", agent.CodeValidation, "is empty"},
		"byte order mark only":  {"\uFEFF", agent.CodeValidation, "is empty"},
		"blank":                 {" \n\r\n,,\n", agent.CodeValidation, "is empty"},
		"no name":               {"email,phone\na@x,1\n", agent.CodeValidation, `needs a column "name"`},
		"no header":             {"Ada,a@x\n", agent.CodeValidation, `needs a column "name"`},
		"name as metadata":      {"first name\nAda\n", agent.CodeValidation, `needs a column "name"`},
		"repeated":              {"name,email,Email\nAda,a,b\n", agent.CodeValidation, `the column "email" twice`},
		"repeated by alias":     {"name,telegram,chatbot_a\n", agent.CodeValidation, `the column "chatbot_a" twice`},
		"repeated unknown":      {"name,Company,company\n", agent.CodeValidation, `the column "company" twice`},
		"quote in header":       {"na\"me,email\nAda,a\n", agent.CodeValidation, "in the header row"},
		"quote open in header":  {"\"name,email\nAda,a\n", agent.CodeValidation, "in the header row"},
		"header not UTF-8":      {"name,Gr\xf6\xdfe\n", agent.CodeValidation, "must be UTF-8"},
		"UTF-16":                {"\xff\xfen\x00a\x00", agent.CodeValidation, "not UTF-16"},
		"UTF-16, big end first": {"\xfe\xff\x00n\x00a", agent.CodeValidation, "not UTF-16"},
		"too many columns":      {header(maxContactColumns + 1), agent.CodeValidation, "at most 200 columns"},
		"many columns":          {header(maxContactColumns), "", ""},
		"long name": {
			"name," + long + "x\n",
			agent.CodeValidation,
			"more than 100 characters over column 2",
		},
		"longest name": {"name," + long + "\n", "", ""},
		"too large": {
			"name\n" + strings.Repeat("x", 1<<20-4),
			agent.CodeFileTooLarge,
			"at most 1048576 bytes",
		},
		"as large as allowed": {"name\n" + strings.Repeat("x", 1<<20-5), "", ""},
		"too many rows": {
			"name\n" + strings.Repeat("x\n\n", maxImportRows+1),
			agent.CodeFileTooLarge,
			"at most 100000 rows",
		},
		"as many as allowed": {"name\n" + strings.Repeat("x\n\n", maxImportRows), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			rows, err := readContactsCSV(strings.NewReader(tt.file), 1<<20)
			if agent.ErrorCode(err) != tt.code ||
				err != nil && (!strings.Contains(err.Error(), tt.want) || rows != nil) {
				t.Errorf("%d rows and %v, want %s with %q", len(rows), err, tt.code, tt.want)
			}
		})
	}
}

func TestMetadataOfAFileIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	names, cells := "name", "a"
	for n := range 50 {
		names += fmt.Sprintf(",%s%02d", strings.Repeat("k", maxColumnName-2), n)
		cells += ",b"
	}
	perRow := 50*(maxColumnName+len(`"":"b",`)) + len(`{`)
	file := names + "\n" + strings.Repeat(cells+"\n", maxContactMetadata/perRow)
	if _, err := readContactsCSV(strings.NewReader(file), 10<<20); err != nil {
		t.Errorf("just below the limit: %v", err)
	}
	_, err := readContactsCSV(strings.NewReader(file+strings.Repeat(cells+"\n", 100)), 10<<20)
	if agent.ErrorCode(err) != agent.CodeFileTooLarge {
		t.Errorf("above the limit: %v", err)
	}
}

func TestReadContactsCSVReturnsReadErrors(t *testing.T) {
	broken := errors.New("connection reset")
	rows, err := readContactsCSV(io.MultiReader(strings.NewReader("name\nAda\n"), iotest.ErrReader(broken)), 1<<20)
	if !errors.Is(err, broken) || rows != nil {
		t.Errorf("got %v, %v", rows, err)
	}
}

func TestContactWriter(t *testing.T) {
	var out bytes.Buffer
	w := writeContactsCSV(&out)
	at := agent.At(time.Date(2026, 1, 31, 9, 0, 0, 0, time.UTC))
	for _, c := range []agent.Contact{
		{
			ID:           "contact-1",
			Name:         "=cmd|' /C calc'!A0",
			Email:        "ada@example.com",
			Phone:        "+1 555 0100",
			Telegram:     "@ada",
			WhatsApp:     "-1",
			SocialHandle: "\tx",
			ExternalID:   "\rx",
			Notes:        "a \"b\",\r\nc",
			Tags:         []string{"vip", "a, b", `"q"`},
			Metadata:     []byte(`{"a": 1}`),
			CreatedAt:    at,
			UpdatedAt:    at,
		},
		{Name: "'plain", Notes: "'=1", Metadata: []byte(`{}`), Tags: []string{"@x", " ", "@x"}},
		{Name: "not \xff UTF-8"},
	} {
		if err := w.Write(c); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	want := "name,email,phone,chatbot_a,chatbot_b,social_handle,external_id,notes,tags,metadata," +
		"id,created_at,updated_at\n" +
		`'=cmd|' /C calc'!A0,ada@example.com,'+1 555 0100,'@ada,'-1,'` + "\tx,\"'\rx\",\"a \"\"b\"\",\r\nc\"," +
		`"vip,""a, b"",""""""q""""""","{""a"": 1}",contact-1,2026-01-31T09:00:00.000Z,2026-01-31T09:00:00.000Z` + "\n" +
		"'plain,,,,,,,''=1,'@x,,,,\n" + "not \uFFFD UTF-8,,,,,,,,,,,,\n"
	if out.String() != want {
		t.Errorf("got\n%q\nwant\n%q", out.String(), want)
	}
	records, err := csv.NewReader(&out).ReadAll()
	if err != nil || len(records) != 4 {
		t.Errorf("another reader sees %d records, %v", len(records), err)
	}
}

func TestContactWriterWritesAHeaderOrAnError(t *testing.T) {
	var out bytes.Buffer
	if err := writeContactsCSV(&out).Close(); err != nil || !strings.HasPrefix(out.String(), "name,email,") {
		t.Errorf("got %q, %v", out.String(), err)
	}
	full := errors.New("disk full")
	w := writeContactsCSV(failingWriter{full})
	if err := errors.Join(w.Write(agent.Contact{Name: strings.Repeat("x", 1<<16)}), w.Close()); !errors.Is(err, full) {
		t.Errorf("got %v, want %v", err, full)
	}
}

type failingWriter struct{ err error }

func (f failingWriter) Write([]byte) (int, error) { return 0, f.err }

func TestFormulaGuardKeepsEveryText(t *testing.T) {
	letters := []string{"", "'", "=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠", "a", " ", "\"", "é", "\xff"}
	for _, a := range letters {
		for _, b := range letters {
			for _, c := range letters {
				for _, d := range letters {
					cell := a + b + c + d
					guarded := guardFormula(cell)
					if strings.IndexAny(guarded, "=+-@\t\r\n＝＋－＠") == 0 {
						t.Errorf("%q is exported as the formula %q", cell, guarded)
					}
					if got := unguardFormula(guarded); got != cell {
						t.Errorf("%q becomes %q and then %q", cell, guarded, got)
					}
				}
			}
		}
	}
}

// TestConsoleGuardsFormulas checks that the console's rule for formulas is the server's.
func TestConsoleGuardsFormulas(t *testing.T) {
	source, err := os.ReadFile("console/src/parts/formula.ts")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`const formula = /(.+)/;`).FindSubmatch(source)
	if found == nil {
		t.Fatal("formula.ts has no rule")
	}
	rule := regexp.MustCompile(string(found[1]))
	for letter := rune(0); letter <= 0xFFFF; letter++ {
		if cell := string(letter) + "1"; rule.MatchString(cell) != isFormula(cell) ||
			rule.MatchString("''"+cell) != isFormula("''"+cell) {
			t.Errorf("the console says %v about %q", rule.MatchString(cell), cell)
		}
	}
}

func TestContactColumnsNameEveryTextOfAChange(t *testing.T) {
	texts := 0
	for field := range reflect.TypeFor[agent.ContactChange]().Fields() {
		if field.Type == reflect.TypeFor[agent.Optional[string]]() {
			texts++
		}
	}
	if texts != len(contactTexts) {
		t.Errorf("%d columns of text for %d fields", len(contactTexts), texts)
	}
}
