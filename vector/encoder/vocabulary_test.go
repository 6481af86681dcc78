package encoder

import (
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"satchel/vector/encoder/internal/modelfile"
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
		"nothing":                   {"", nil},
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
			t.Errorf("%s: %q gave %v, want %v", name, c.text, got, c.want)
		}
	}
	if slices.ContainsFunc(m.Tokens("<s></s>extra_token_id_1"), func(id int32) bool { return id < reserved && id != unknown }) {
		t.Error("a text could name a marker of the vocabulary")
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
			t.Errorf("%q gave %v, %q gave %v", a, got, b, want)
		}
	}
}

func TestLongTextsAreCut(t *testing.T) {
	m := shared(t)
	if a, b := m.Tokens(chunk(MaxText)), m.Tokens(chunk(MaxText+5000)); !slices.Equal(a, b) {
		t.Error("what lies past MaxText changed the tokens")
	}
	// 3 bytes each become 18 characters when normalized.
	if n := len(m.Tokens(strings.Repeat("\ufdfa", 1<<20))); n > MaxText {
		t.Errorf("%d tokens", n)
	}
	for _, tail := range []string{"é", "日", "🙂", "\x80\x80\x80\x80\x80"} {
		for shift := range 5 {
			text := strings.Repeat("a", MaxText-shift) + tail
			if cut := truncate(text); len(cut) > MaxText || len(cut) <= MaxText-utf8.UTFMax || utf8.ValidString(text) && !utf8.ValidString(cut) {
				t.Errorf("%q after %d bytes was cut to %d", tail, MaxText-shift, len(cut))
			}
		}
	}
}

// TestTheBestWayIsFound compares with trying all ways to cut a text, over a
// vocabulary small enough for that.
func TestTheBestWayIsFound(t *testing.T) {
	texts := []string{"a", "b", "c", "ab", "bc", "abc", "ca", "▁", "▁a", "bca", "cc"}
	scores := []float64{-2, -2.5, -3, -3.1, -4, -5.2, -4.4, -1, -2.2, -6.1, -9}
	list := make([]modelfile.Piece, reserved)
	for i, text := range texts {
		list = append(list, modelfile.Piece{Text: text, Score: float32(scores[i])})
	}
	v := newVocabulary(list)
	for n := range 1500 {
		var text []byte
		for ; n > 0; n /= 4 {
			text = append(text, "abcd"[n%4])
		}
		if len(text) == 0 {
			continue
		}
		got, want := v.scoreOf(v.tokens(string(text)), list, boundary+string(text)), v.best(boundary+string(text), list)
		if math.Abs(got-want) > 1e-4 {
			t.Fatalf("%q: score %v, the best is %v", text, got, want)
		}
	}
}

// scoreOf adds up the scores of a way to cut a text in which "d" is the only
// unknown character.
func (v *vocabulary) scoreOf(ids []int32, list []modelfile.Piece, text string) float64 {
	total := float64(strings.Count(text, "d")) * v.unknown
	for _, id := range ids {
		if id != unknown {
			total += float64(list[id].Score)
		}
	}
	return total
}

func (v *vocabulary) best(text string, list []modelfile.Piece) float64 {
	if text == "" {
		return 0
	}
	best := math.Inf(-1)
	if text[0] == 'd' {
		best = v.unknown + v.best(text[1:], list)
	}
	for _, p := range list[reserved:] {
		if rest, ok := strings.CutPrefix(text, p.Text); ok {
			best = max(best, float64(p.Score)+v.best(rest, list))
		}
	}
	return best
}

func TestTrie(t *testing.T) {
	texts := []string{"", "the", "th", "▁a", "zebra", "the"}
	tree := newTrie(texts)
	find := func(text string) int32 {
		node := root
		for i := 0; i < len(text); i++ {
			if node = tree.child(node, text[i]); node < 0 {
				return -1
			}
		}
		return tree.id[node]
	}
	for text, want := range map[string]int32{
		"the": 5, "th": 2, "▁a": 3, "zebra": 4, // of equal texts the last counts
		"": -1, "t": -1, "then": -1, "\xe2": -1, "zebras": -1, "x": -1,
	} {
		if got := find(text); got != want {
			t.Errorf("%q is %d, want %d", text, got, want)
		}
	}
	if empty := newTrie(nil); empty.child(root, 'a') != -1 {
		t.Error("an empty trie has an edge")
	}
}

func FuzzTokens(f *testing.F) {
	for _, c := range golden(f) {
		f.Add(c.Text)
	}
	for _, text := range []string{"\x00", "\xff\xfe", "a\x80b", "\u0301\u0301", "\ufdfa", "▁▁", ":30:00", "日\xe6\x97", strings.Repeat("é", 300)} {
		f.Add(text)
	}
	m, list := shared(f), pieces(f)
	f.Fuzz(func(t *testing.T, text string) {
		ids := m.Tokens(text)
		if !slices.Equal(ids, m.Tokens(text)) {
			t.Fatal("the same text gave other ids")
		}
		checkIDs(t, ids, list, normalize(text))
	})
}

// checkIDs reports ids that are out of range or do not spell the text: known
// pieces lie in it in their order, and only unknown runs lie between them.
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
			t.Fatalf("piece %q is not where the ids have it", list[id].Text)
		}
		text = text[at+len(list[id].Text):]
	}
	if text != "" && (len(ids) == 0 || ids[len(ids)-1] != unknown) {
		t.Fatalf("%q is left over", text)
	}
}
