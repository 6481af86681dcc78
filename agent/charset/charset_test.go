package charset

import (
	"testing"

	"golang.org/x/net/html/charset"
)

// TestDecode: the mark comes first, then the header, then what the text declares, then
// UTF-8, then the frequencies of letters.
func TestDecode(t *testing.T) {
	in := func(name, text string) string {
		enc, _ := charset.Lookup(name)
		out, err := enc.NewEncoder().String(text)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	const russian, japanese, long = "Привет", "こんにちは", "Добрый день! Ваш заказ готов, его можно забрать завтра " +
		"после обеда в нашем магазине."
	for _, c := range []struct{ name, media, text, want string }{
		{"header", "text/plain; charset=windows-1251", in("windows-1251", russian), russian},
		{
			"header of JSON",
			"application/json; charset=windows-1251",
			in("windows-1251", `{"a":"`+russian+`"}`),
			`{"a":"` + russian + `"}`,
		},
		{"upper case", `text/plain; charset="KOI8-R"`, in("koi8-r", russian), russian},
		{"Shift_JIS", "text/html; charset=Shift_JIS", in("shift_jis", japanese), japanese},
		{"ISO-2022-JP", "text/plain; charset=ISO-2022-JP", in("iso-2022-jp", japanese), japanese},
		{"UTF-16 by header", "text/plain; charset=utf-16le", in("utf-16le", russian), russian},
		{"UTF-8 mark", "application/json", BOM + `{"a":1}`, `{"a":1}`},
		{"mark before header", "text/plain; charset=windows-1251", BOM + russian, russian},
		{"UTF-16 mark", "application/json", "\xFF\xFE" + in("utf-16le", `{"a":1}`), `{"a":1}`},
		{"UTF-16 without a mark", "application/json", in("utf-16le", `{"a":1}`), `{"a":1}`},
		{"the other way round", "text/xml", in("utf-16be", "<a>"+russian+"</a>"), "<a>" + russian + "</a>"},
		{
			"meta",
			"text/html",
			in("windows-1251", `<meta charset="windows-1251"><p>`+russian),
			`<meta charset="windows-1251"><p>` + russian,
		},
		{
			"XML",
			"application/xml",
			in("windows-1251", `<?xml version="1.0" encoding="windows-1251"?><a>`+russian+`</a>`),
			`<?xml version="1.0" encoding="windows-1251"?><a>` + russian + `</a>`,
		},
		{"guessed", "", in("windows-1251", long), long},
		{"guessed, Latin", "text/plain", "caf\xe9", "café"},
		{
			"UTF-8 that is said to be Latin 1",
			"application/json; charset=ISO-8859-1",
			`{"a":"` + russian + `"}`,
			`{"a":"` + russian + `"}`,
		},
		{"no such charset", "text/plain; charset=klingon", russian, russian},
		{"broken UTF-8", "text/plain", russian + russian + "\xff", russian + russian + "\uFFFD"},
		{"empty", "text/plain; charset=utf-8", "", ""},
	} {
		if got := string(Decode([]byte(c.text), c.media)); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestIsText(t *testing.T) {
	for media, want := range map[string]bool{
		"text/csv":                            true,
		"application/problem+json":            true,
		"image/svg+xml":                       true,
		"application/xhtml+xml":               true,
		"application/x-thing; charset=koi8-r": true,
		"image/png":                           false,
		"application/octet-stream":            false,
		"":                                    false,
	} {
		if IsText(media) != want {
			t.Errorf("%q is text: %v", media, !want)
		}
	}
}
