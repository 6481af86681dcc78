package document

import (
	"testing"

	"satchel/agent"
)

func TestCheckHead(t *testing.T) {
	cases := []struct {
		name, head string
		want       Format
		code       agent.Code
	}{
		{"a.txt", "half a character: \xc3", FormatText, ""},
		{"a.txt", "half of four: \xf0\x9f\x98", FormatText, ""},
		{"a.md", "   \n\n  ", FormatMarkdown, ""},
		{"a.docx", "PK\x03\x04 and no more", FormatDOCX, ""},
		{"a.pdf", "%PDF-1.7", FormatPDF, ""},
		{"a.json", "\xff\xfe{\x00", FormatJSON, ""},
		{"a.exe", "MZ", "", agent.CodeUnsupportedFormat},
		{"a.txt", "", "", agent.CodeValidation},
		{"a.txt", "caf\xe9 au lait", "", agent.CodeValidation},
		{"a.csv", "a,\x00", "", agent.CodeValidation},
		{"a.pdf", "hello", "", agent.CodeValidation},
		{"a.docx", "hello", "", agent.CodeValidation},
		{"a.docx", string(ole), "", agent.CodeValidation},
	}
	for _, c := range cases {
		t.Run(c.name+" "+c.head, func(t *testing.T) {
			got, err := CheckHead(c.name, "", []byte(c.head))
			if c.code == "" && (err != nil || got != c.want) || c.code != "" && agent.ErrorCode(err) != c.code {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}
