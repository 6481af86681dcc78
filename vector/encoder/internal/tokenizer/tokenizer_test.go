package tokenizer

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// The vocabularies and ids of testdata were made by make.py and make.mjs.

func load(t testing.TB, name string) *Tokenizer {
	t.Helper()
	tok, err := Parse(read(t, name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func read(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// golden reads rows of JSON values.
func golden(t testing.TB, name string) (rows [][]json.RawMessage) {
	t.Helper()
	if err := json.Unmarshal(read(t, name+".golden.json"), &rows); err != nil || len(rows) < 30 {
		t.Fatal(len(rows), err)
	}
	return rows
}

func decode[T any](t testing.TB, data json.RawMessage) (v T) {
	t.Helper()
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestWordPieceMatchesTheReference(t *testing.T) {
	for _, name := range []string{"wordpiece", "cased"} {
		tok, rows := load(t, name), golden(t, name)
		for i, row := range rows {
			text, next := decode[string](t, row[0]), decode[string](t, rows[(i+1)%len(rows)][0])
			if next == "" {
				row = row[:2] // the reference treats an empty text as no pair
			}
			ids := tok.Encode(text)
			if got, want := tok.Single(ids, 1000).IDs, decode[[]int32](t, row[1]); !slices.Equal(got, want) {
				t.Errorf("%s: %q\n got  %v\n want %v", name, text, got, want)
			}
			if len(row) == 2 {
				continue
			}
			pair := tok.Pair(ids, tok.Encode(next), 1000)
			if want, types :=
				decode[[]int32](t, row[2]),
				decode[[]int32](t, row[3]); !slices.Equal(pair.IDs, want) || !slices.Equal(pair.Types, types) {
				t.Errorf("%s: %q and %q\n got  %v\n want %v %v", name, text, next, pair, want, types)
			}
		}
	}
}

func TestUnigramMatchesSentencePiece(t *testing.T) {
	tok := load(t, "unigram")
	for _, row := range golden(t, "unigram") {
		text, want := decode[string](t, row[0]), decode[[]int32](t, row[1])
		if got := tok.Encode(text); !slices.Equal(got, want) {
			t.Errorf("%q\n got  %v\n want %v", text, got, want)
		}
	}
	if got, want :=
		tok.Pair([]int32{7}, []int32{8, 9}, 100),
		[]int32{0, 7, 2, 2, 8, 9, 2}; !slices.Equal(got.IDs, want) || slices.Max(got.Types) != 0 {
		t.Errorf("a pair is %v", got)
	}
}

func TestNamesOfSpecialTokensAreText(t *testing.T) {
	for name, text := range map[string]string{
		"wordpiece": "a [SEP] b [CLS]",
		"cased":     "[MASK]",
		"unigram":   "a</s> <mask> <s> <unk>",
	} {
		tok := load(t, name)
		for _, id := range tok.Encode(text) {
			if special := map[string][]int32{
				"unigram": {0, 1, 2, int32(tok.Size() - 1)},
			}[name]; slices.Contains(special, id) ||
				special == nil && id < 5 && id != 1 {
				t.Errorf("%s: %q became the special token %d", name, text, id)
			}
		}
	}
}

func TestIdeographsAreWords(t *testing.T) {
	var text string
	for _, step := range load(t, "wordpiece").normalize {
		text = step("a日本𠀀𠮷b")
	}
	if text != "a 日  本  𠀀  𠮷 b" {
		t.Errorf("got %q", text)
	}
}

func TestInputsFitTheLimit(t *testing.T) {
	tok := load(t, "wordpiece")
	long := slices.Repeat([]int32{7}, 50)
	for _, c := range []struct{ a, b, limit, wantA, wantB int }{
		{50, 50, 23, 10, 10},
		{3, 50, 23, 3, 17},
		{50, 3, 23, 17, 3},
		{5, 5, 23, 5, 5},
		{50, 50, 5, 1, 1},
		{0, 50, 23, 0, 20},
	} {
		in := tok.Pair(long[:c.a], long[:c.b], c.limit)
		second := slices.Index(in.Types, 1)
		if len(in.IDs) > c.limit || second != c.wantA+2 || len(in.IDs)-second != c.wantB+1 {
			t.Errorf("%d and %d tokens in %d: %v", c.a, c.b, c.limit, in)
		}
	}
	if in := tok.Single(long, 12); len(in.IDs) != 12 || in.IDs[0] != 2 || in.IDs[11] != 3 {
		t.Errorf("one text: %v", in)
	}
	if !tok.CanPair(5) || tok.CanPair(4) {
		t.Error("the limit of pairs is wrong")
	}
}

func TestLongTextsTerminate(t *testing.T) {
	for _, name := range []string{"wordpiece", "unigram"} {
		tok := load(t, name)
		for _, piece := range []string{"a ", "a", "\ufdfa", "é", "日", "\x80"} {
			if n := len(tok.Encode(strings.Repeat(piece, 1<<20))); n > 2*MaxText {
				t.Errorf("%s: %d tokens", name, n)
			}
		}
	}
}

// with replaces a part of a tokenizer.json.
func with(t testing.TB, name, part, by string) []byte {
	t.Helper()
	parts := map[string]json.RawMessage{}
	if err := json.Unmarshal(read(t, name+".json"), &parts); err != nil {
		t.Fatal(err)
	}
	parts[part] = json.RawMessage(by)
	data, err := json.Marshal(parts)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestUnknownPartsAreRejected(t *testing.T) {
	deep := strings.Repeat(`{"type":"Sequence","normalizers":[`, 6) + strings.Repeat(`]}`, 6)
	for _, c := range []struct{ part, by, want string }{
		{"model", `{"type":"BPE"}`, `"BPE" cannot be read`},
		{"model", `{"type":"WordPiece","vocab":{"a":0},"unk_token":"b"}`, "not in the vocabulary"},
		{"model", `{"type":"WordPiece","vocab":{"a":-1},"unk_token":"a"}`, "has id -1"},
		{"model", `{"type":"WordPiece","vocab":{"a":1},"unk_token":"a","new":1}`, "unknown field"},
		{"model", `{"type":"WordPiece","vocab":{"a":1},"unk_token":"a","max_input_chars_per_word":0}`, "out of range"},
		{"model", `{"type":"Unigram","unk_id":1,"vocab":[["a",0]]}`, "unk_id"},
		{"model", `{"type":"Unigram","vocab":[["a",0]]}`, "unk_id"},
		{"model", `{"type":"Unigram","unk_id":0,"vocab":[["a"]]}`, "not a text and a score"},
		{"model", `{"type":"Unigram","unk_id":0,"vocab":[["a",0]],"byte_fallback":true}`, "byte_fallback"},
		{"model", `null`, "cannot be read"},
		{"normalizer", `{"type":"Nmt"}`, `"Nmt" cannot be read`},
		{"normalizer", `{"type":"BertNormalizer","lowercase":true,"odd":1}`, "unknown field"},
		{"normalizer", `{"type":"Replace","pattern":{"Regex":"a+"},"content":""}`, "a replacement"},
		{"normalizer", `{"type":"Precompiled","precompiled_charsmap":"!"}`, "base64"},
		{"normalizer", `{"type":"Precompiled","precompiled_charsmap":"/////w=="}`, "cut off"},
		{"normalizer", deep, "too long"},
		{"normalizer", `{}`, "no type"},
		{"pre_tokenizer", `{"type":"ByteLevel"}`, `"ByteLevel" cannot be read`},
		{"pre_tokenizer", `{"type":"Metaspace","replacement":""}`, "not one character"},
		{"pre_tokenizer", `{"type":"Metaspace","replacement":"_","prepend_scheme":"sometimes"}`, "sometimes"},
		{"post_processor", `null`, "post_processor"},
		{"post_processor", `{"type":"BertProcessing","sep":["[SEP]",-3],"cls":["[CLS]",2]}`, "not a text and an id"},
		{"post_processor", `{"type":"TemplateProcessing","single":[],"pair":[],"special_tokens":{}}`, "each text once"},
		{
			"post_processor",
			`{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"x","type_id":0}}],"special_tokens":{}}`,
			"not described",
		},
		{
			"post_processor",
			`{"type":"TemplateProcessing","single":[{"Sequence":{"id":"C","type_id":0}}],"special_tokens":{}}`,
			"neither",
		},
		{"added_tokens", `[{"id":9,"content":"x","special":false}]`, "not a special one"},
		{"added_tokens", `[{"id":-9,"content":"x","special":true}]`, "has id -9"},
		{"surprise", `1`, "unknown field"},
	} {
		if _, err := Parse(with(t, "wordpiece", c.part, c.by)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: %v, want an error with %q", c.part, c.by, err, c.want)
		}
	}
}

// A map whose trie points outside or to itself neither hangs nor changes the text.
func TestHostileMapsTerminate(t *testing.T) {
	units := func(list ...uint32) string {
		data := binary.LittleEndian.AppendUint32(nil, uint32(4*len(list)))
		for _, u := range list {
			data = binary.LittleEndian.AppendUint32(data, u)
		}
		return base64.StdEncoding.EncodeToString(append(data, "no end"...))
	}
	for _, m := range []string{units(0), units(1<<31 | 1<<10), units(0xffffffff), units('a', 'a'|1<<8, 'a')} {
		tok, err := Parse(with(t, "wordpiece", "normalizer", `{"type":"Precompiled","precompiled_charsmap":"`+m+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		if len(tok.Encode(strings.Repeat("hello ", 100))) == 0 {
			t.Error("the text was lost")
		}
	}
}

func TestOtherParts(t *testing.T) {
	tok, err := Parse(with(
		t,
		"unigram",
		"normalizer",
		`{"type":"Sequence","normalizers":[{"type":"NFKC"},{"type":"Strip","strip_left":true,"strip_right":true},`+
			`{"type":"Replace","pattern":{"Regex":" {2,}"},"content":" "},{"type":"Lowercase"},{"type":"Replace",`+
			`"pattern":{"String":"q"},"content":"r"}]}`,
	))
	if err != nil {
		t.Fatal(err)
	}
	if a, b := tok.Encode("  ﬁne   Qed  "), tok.Encode("fine red"); !slices.Equal(a, b) {
		t.Errorf("%v, want %v", a, b)
	}
	classic, err := Parse(with(
		t,
		"wordpiece",
		"post_processor",
		`{"type":"BertProcessing","sep":["[SEP]",3],"cls":["[CLS]",2]}`,
	))
	if err != nil {
		t.Fatal(err)
	}
	if got, want :=
		classic.Pair([]int32{9}, []int32{8}, 9),
		load(t, "wordpiece").Pair([]int32{9}, []int32{8}, 9); !slices.Equal(got.IDs, want.IDs) ||
		!slices.Equal(got.Types, want.Types) {
		t.Errorf("%v, want %v", got, want)
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{"wordpiece", "unigram"} {
		f.Add(read(f, name+".json"))
	}
	f.Add(
		[]byte(`{"model":{"type":"Unigram","unk_id":0,"vocab":[["",-1],["a",-1e308]]},` +
			`"post_processor":{"type":"BertProcessing","sep":["",3],"cls":["",2]}}`),
	)
	f.Fuzz(func(t *testing.T, data []byte) {
		tok, err := Parse(data)
		if err != nil {
			return
		}
		for _, id := range tok.Single(tok.Encode("Hello, wörld 日本 [SEP]"), 64).IDs {
			if id < 0 || int(id) >= tok.Size() {
				t.Fatalf("id %d of %d", id, tok.Size())
			}
		}
	})
}

func FuzzEncode(f *testing.F) {
	for _, row := range golden(f, "unigram") {
		f.Add(decode[string](f, row[0]))
	}
	var toks []*Tokenizer
	for _, name := range []string{"wordpiece", "cased", "unigram"} {
		toks = append(toks, load(f, name))
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, tok := range toks {
			ids := tok.Encode(text)
			if len(ids) > 30*utf8.RuneCountInString(text)+1 {
				t.Fatalf("%d tokens of %d characters", len(ids), utf8.RuneCountInString(text))
			}
			for _, id := range ids {
				if id < 0 || int(id) >= tok.Size() {
					t.Fatalf("id %d of %d", id, tok.Size())
				}
			}
		}
	})
}
