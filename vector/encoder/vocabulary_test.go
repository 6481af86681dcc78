package encoder

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"satchel/vector/internal/modelfile"
)

// pieces returns the vocabulary of the embedded model.
func pieces(t testing.TB) []modelfile.Piece {
	t.Helper()
	file, err := modelfile.Decode(content())
	if err != nil {
		t.Fatal(err)
	}
	return file.Pieces
}

func TestTokensOfOddTexts(t *testing.T) {
	m := shared(t)
	id := func(text string) int32 {
		for i, p := range pieces(t) {
			if p.Text == text {
				return int32(i)
			}
		}
		t.Fatalf("no piece %q", text)
		return 0
	}
	space := id("▁")
	cases := map[string]struct {
		text string
		want []int32
	}{
		"empty":                     {"", nil},
		"one space":                 {" ", []int32{space, space}},
		"NUL":                       {"\x00", []int32{space, unknown}},
		"NULs are one unknown":      {"\x00\x00\x00", []int32{space, unknown}},
		"NUL inside":                {"a\x00the", []int32{id("▁a"), unknown, id("the")}},
		"a lone continuation byte":  {"\x80", []int32{space, unknown}},
		"a cut character":           {"the\xe2\x96", []int32{id("▁the"), unknown}},
		"a surrogate half":          {"\xed\xa0\x80", []int32{space, unknown}},
		"half a boundary, a letter": {"\xe2\x96s", []int32{space, unknown, id("s")}},
		"a leading colon":           {":", []int32{id("▁:")}},
		"a smile":                   {":)", []int32{id("▁:)")}},
		"a time":                    {"10:30", []int32{id("▁10"), id(":30")}},
	}
	for name, c := range cases {
		if got := m.Tokens(c.text); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q: got %v, want %v", name, c.text, got, c.want)
		}
	}
	if slices.ContainsFunc(m.Tokens("<s></s>extra_token_id_1"), func(id int32) bool {
		return id < reserved && id != unknown
	}) {
		t.Error("a text became a marker of the vocabulary")
	}
}

func TestTokensFollowCompatibleForms(t *testing.T) {
	m := shared(t)
	for a, b := range map[string]string{
		"ﬁne":           "fine",
		"ｆｕｌｌ ｗｉｄｔｈ":    "full width",
		"cafe\u0301":    "café",
		"no\u00a0break": "no break",
		"x²":            "x2",
	} {
		if got, want := m.Tokens(a), m.Tokens(b); !slices.Equal(got, want) {
			t.Errorf("%q became %v, %q became %v", a, got, b, want)
		}
	}
}

func TestLongTextsAreCut(t *testing.T) {
	m := shared(t)
	if a, b := m.Tokens(chunk(MaxText)), m.Tokens(chunk(MaxText+5000)); !slices.Equal(a, b) {
		t.Error("text after MaxText changed the tokens")
	}
	// 3 bytes each become 18 characters when normalized.
	if n := len(m.Tokens(strings.Repeat("\ufdfa", 1<<20))); n > MaxText {
		t.Errorf("%d tokens", n)
	}
	for _, tail := range []string{"é", "日", "🙂", "\x80\x80\x80\x80\x80"} {
		for shift := range 5 {
			text := strings.Repeat("a", MaxText-shift) + tail
			if cut := truncate(text); len(cut) > MaxText ||
				len(cut) <= MaxText-utf8.UTFMax ||
				utf8.ValidString(text) && !utf8.ValidString(cut) {
				t.Errorf("%q after %d bytes was cut to %d", tail, MaxText-shift, len(cut))
			}
		}
	}
}

func FuzzTokens(f *testing.F) {
	for _, c := range golden(f) {
		f.Add(c.Text)
	}
	for _, text := range []string{
		"\x00", "\xff\xfe", "a\x80b", "\u0301\u0301", "\ufdfa", "▁▁", ":30:00", "日\xe6\x97", strings.Repeat("é", 300),
	} {
		f.Add(text)
	}
	m, list := shared(f), pieces(f)
	f.Fuzz(func(t *testing.T, text string) {
		ids := m.Tokens(text)
		if !slices.Equal(ids, m.Tokens(text)) {
			t.Fatal("the same text has different ids")
		}
		checkIDs(t, ids, list, normalize(text))
	})
}

// checkIDs checks that all ids are in range and spell the text: the known pieces are
// in the text in their order, with only unknown text between them.
func checkIDs(t *testing.T, ids []int32, list []modelfile.Piece, text string) {
	t.Helper()
	for i, id := range ids {
		switch {
		case id < 0 || int(id) >= len(list) || id > unknown && id < reserved:
			t.Fatalf("id %d is out of range", id)
		case id == unknown && i > 0 && ids[i-1] == unknown:
			t.Fatal("two unknowns in a row")
		case id == unknown:
			continue
		}
		at := strings.Index(text, list[id].Text)
		if at < 0 || at > 0 && (i == 0 || ids[i-1] != unknown) {
			t.Fatalf("piece %q is not in the text at its place", list[id].Text)
		}
		text = text[at+len(list[id].Text):]
	}
	if text != "" && (len(ids) == 0 || ids[len(ids)-1] != unknown) {
		t.Fatalf("%q is not covered by the ids", text)
	}
}
