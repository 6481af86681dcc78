package mailbox

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestParse(t *testing.T) {
	for header, want := range map[string]Mailbox{
		"ada@example.com":                                   {"", "ada@example.com"},
		" <ada@example.com> ":                               {"", "ada@example.com"},
		"Ada <ada@example.com>":                             {"Ada", "ada@example.com"},
		`"Lovelace, Ada" <ada@example.com>`:                 {"Lovelace, Ada", "ada@example.com"},
		"Lovelace, Ada <ada@example.com>":                   {"Lovelace, Ada", "ada@example.com"},
		"Lovelace, Ada, Dr. <ada@example.com>":              {"Lovelace, Ada, Dr.", "ada@example.com"},
		"ada@example.com <ada@example.com>":                 {"", "ada@example.com"},
		"'ada@example.com' <ada@example.com>":               {"", "ada@example.com"},
		`"bank@example.org" <ada@example.com>`:              {"bank@example.org", "ada@example.com"},
		`"Bank <bank@example.org>" <ada@example.com>`:       {"Bank <bank@example.org>", "ada@example.com"},
		"Ada [Sales] <ada@example.com>":                     {"Ada [Sales]", "ada@example.com"},
		"Ada @ Sales <ada@example.com>":                     {"Ada @ Sales", "ada@example.com"},
		"Ada <Sales> <ada@example.com>":                     {"Ada", "ada@example.com"},
		"Ada (Sales) <ada@example.com>":                     {"Ada", "ada@example.com"},
		"ada@example.com (Ada Lovelace)":                    {"Ada Lovelace", "ada@example.com"},
		"ada@example.com (Ada (the first) Lovelace)":        {"Ada (the first) Lovelace", "ada@example.com"},
		"Ada <ada@example.com> (via the form)":              {"Ada", "ada@example.com"},
		"Ada <ada(comment)@example.com>":                    {"Ada", "ada@example.com"},
		"Ada <ada@example.com>, Bob <bob@example.com>":      {"Bob", "bob@example.com"},
		"ada@example.com, bob@example.com":                  {"", "ada@example.com"},
		"Team: ada@example.com, bob@example.com;":           {"", "ada@example.com"},
		"Team: Lovelace, Ada <ada@example.com>;":            {"Lovelace, Ada", "ada@example.com"},
		"Ada: Sales <ada@example.com>":                      {"Ada: Sales", "ada@example.com"},
		"<@relay.example,@b.example:ada@example.com>":       {"", "ada@example.com"},
		"ada.@example.com":                                  {"", "ada.@example.com"},
		"Ada <ada..b.@docomo.example>":                      {"Ada", "ada..b.@docomo.example"},
		"Ada <.ada@example.com>":                            {"Ada", ".ada@example.com"},
		`Ada <"ada."@example.com>`:                          {"Ada", "ada.@example.com"},
		`"ada b"@example.com`:                               {"", `"ada b"@example.com`},
		"Ada <<ada@example.com>>":                           {"Ada", "ada@example.com"},
		"Ada <ada@example.com":                              {"Ada", "ada@example.com"},
		`"Ada <ada@example.com>`:                            {`"Ada`, "ada@example.com"},
		"Ada (Sales <ada@example.com>":                      {"Ada (Sales", "ada@example.com"},
		"Ada\r\n <ada@example.com>":                         {"Ada", "ada@example.com"},
		"<mailto:ada@example.com>":                          {"", "ada@example.com"},
		"Ada < ada @ example.com >":                         {"Ada", "ada@example.com"},
		"Ada ada@example.com":                               {"Ada", "ada@example.com"},
		"Ada <ada@bücher.example>":                          {"Ada", "ada@bücher.example"},
		"Ada <ada@xn--bcher-kva.example>":                   {"Ada", "ada@xn--bcher-kva.example"},
		"Ada <ada@[192.0.2.1]>":                             {"Ada", "ada@[192.0.2.1]"},
		`"O'Neil \"Ada\"" <ada@example.com>`:                {`O'Neil "Ada"`, "ada@example.com"},
		"O'Neil <o'neil@example.com>":                       {"O'Neil", "o'neil@example.com"},
		"=?UTF-8?Q?Ada_L=C3=B6?= <ada@example.com>":         {"Ada Lö", "ada@example.com"},
		`"=?UTF-8?Q?Ada=2C_L=C3=B6?=" <ada@example.com>`:    {"Ada, Lö", "ada@example.com"},
		"=?windows-1251?B?wOTg?= <ada@example.com>":         {"Ада", "ada@example.com"},
		"=?koi8-r?B?4cTB?= <ada@example.com>":               {"Ада", "ada@example.com"},
		"=?ISO-2022-JP?B?GyRCOzNFRBsoQg==?= <ada@x.jp>":     {"山田", "ada@x.jp"},
		"=?GB2312?B?1cXI/Q==?= <ada@x.cn>":                  {"张三", "ada@x.cn"},
		"=?gb18030?B?1cXI/Q?= <ada@x.cn>":                   {"张三", "ada@x.cn"},
		"=?Big5?B?sWmkVA==?= <ada@x.tw>":                    {"張三", "ada@x.tw"},
		"=?ks_c_5601-1987?B?sei/tcij?= <ada@x.kr>":          {"김영호", "ada@x.kr"},
		"=?shift_jis?B?jlKTYw==?= <ada@x.jp>":               {"山田", "ada@x.jp"},
		"=?cp932?B?jlKTYw==?= <ada@x.jp>":                   {"山田", "ada@x.jp"},
		"=?iso-8859-15?Q?=A4?= <ada@example.com>":           {"€", "ada@example.com"},
		"=?cp850?Q?M=81ller?= <ada@example.com>":            {"Müller", "ada@example.com"},
		"=?iso-8859-1*de?Q?M=FCller?= <ada@example.com>":    {"Müller", "ada@example.com"},
		"=?utf-8?b?QWRhIDxhZGFAZXhhbXBsZS5jb20+?=":          {"Ada", "ada@example.com"},
		"=?x-none?Q?Ada?= <ada@example.com>":                {"=?x-none?Q?Ada?=", "ada@example.com"},
		"=?utf-8?q?a=0D=0ABcc:_b@x?= <ada@example.com>":     {"a Bcc: b@x", "ada@example.com"},
		"=?utf-8?B?0JDQtA==?=\r\n =?utf-8?B?0LA=?= <a@x.y>": {"Ада", "a@x.y"},
	} {
		if got, ok := Parse(header); !ok || got != want {
			t.Errorf("%s: %+v, want %+v", header, got, want)
		}
	}
	for _, header := range []string{
		"",
		"Ada",
		"<>",
		"undisclosed-recipients:;",
		"@example.com", "ada@", "Ada <ada>", "a b@",
	} {
		if got, ok := Parse(header); ok {
			t.Errorf("%s: %+v", header, got)
		}
	}
}

func TestDecode(t *testing.T) {
	for header, want := range map[string]string{
		"plain":                                   "plain",
		"=?utf-8?Q?a_=3D?= b":                     "a = b",
		"a =?utf-8?q?=C3?= =?utf-8?q?=A4?= b":     "a ä b", // a split character
		"=?utf-8?q?=C3=A4?= =?iso-8859-1?q?=E4?=": "ää",
		"=?utf-8?q?a b?=":                         "a b",
		"=?utf-8?q?100=25_=zz?=":                  "100% =zz",
		"=?utf-8?B?w6Q?=":                         "ä",
		"=?iso-2022-jp?B?GyRCOzMbKEI=?= =?iso-2022-jp?B?GyRCRUQbKEI=?=": "山田",
		"=?nope?q?a?= =?nope?q?b?=":                                     "=?nope?q?a?= =?nope?q?b?=",
	} {
		if got := Decode(header); got != want {
			t.Errorf("%s: %q, want %q", header, got, want)
		}
	}
}

func TestIDs(t *testing.T) {
	for header, want := range map[string][]string{
		"<a@x> <b@x>":                        {"<a@x>", "<b@x>"},
		"<a@x>,<b@x>, <c@x>":                 {"<a@x>", "<b@x>", "<c@x>"},
		"<a@x><b@x>":                         {"<a@x>", "<b@x>"},
		"<a@x>;\r\n\t<b@x>":                  {"<a@x>", "<b@x>"},
		"junk <a@\r\n x> of \"Mon\"":         {"<a@x>"},
		"<> <a@x":                            nil,
		"<a <b@x>":                           {"<b@x>"},
		"<" + strings.Repeat("x", 600) + ">": nil,
	} {
		if got := IDs(header); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", header, got, want)
		}
	}
}

func TestSplit(t *testing.T) {
	for list, want := range map[string][]string{
		"a@x, b@x":                  {"a@x", "b@x"},
		"a@x; b@x,":                 {"a@x", "b@x"},
		`"C, Cy" <c@x>, d@x`:        {`"C, Cy" <c@x>`, "d@x"},
		"Lovelace, Ada <a@x>, b@x":  {"Lovelace, Ada <a@x>", "b@x"},
		"Team: a@x, b@x;":           {"a@x", "b@x"},
		"a@x (Ada, the first), b@x": {"a@x (Ada, the first)", "b@x"},
		"ada":                       {"ada"},
		"a@x, ada":                  {"a@x", "ada"},
		"":                          nil,
	} {
		if got := Split(list); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", list, got, want)
		}
	}
}

func TestHeader(t *testing.T) {
	for text, want := range map[string]string{
		"ada@example.com":                  "ada@example.com",
		"Lovelace, Ada <ada@example.com>":  `"Lovelace, Ada" <ada@example.com>`,
		"ada.@docomo.example":              `"ada."@docomo.example`,
		"Ada <ada@bücher.example>":         `"Ada" <ada@xn--bcher-kva.example>`,
		"=?windows-1251?B?wOTg?= <a@x.ru>": "=?utf-8?q?=D0=90=D0=B4=D0=B0?= <a@x.ru>",
	} {
		if got, ok := Header(text); !ok || got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	for _, text := range []string{"", "ada", "a@x, b@x", "a@x\r\nBcc: b@x", "a@x b@x"} {
		if got, ok := Header(text); ok {
			t.Errorf("%q: %q", text, got)
		}
	}
}

func TestKey(t *testing.T) {
	for _, address := range []string{"help@bücher.example", "HELP@XN--BCHER-KVA.example", "help+tag@bücher.example",
		"Help <help+a+b@bücher.example>", `"help"@Bücher.Example`} {
		if got := Key(address); got != "help@xn--bcher-kva.example" {
			t.Errorf("%s: %s", address, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"Ada <a@x>", `"a\"b" <a@x> (c)`, "=?utf-8?q?=C3?=", "T: a@x;", "<<>>", `"`, "(", `<"a>b"@x`, "(\\",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, header string) {
		m, ok := Parse(header)
		if ok && (!strings.Contains(m.Address, "@") || strings.ContainsAny(m.Address+m.Name, "\r\n")) {
			t.Errorf("%q: %+v", header, m)
		}
		if utf8.ValidString(header) && !utf8.ValidString(m.Name) {
			t.Errorf("%q: name %q", header, m.Name)
		}
		Header(header)
		Key(header)
		IDs(header)
	})
}
