package terms

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"satchel/store/sqlite"
)

// reference is FTS5 with the tokenizer of the schema.
func reference(t testing.TB) func(text string) []string {
	t.Helper()
	db, err := sqlite.Open(sqlite.Source{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	schema, err := os.ReadFile("../../migrations/0001.sql")
	if err != nil {
		t.Fatal(err)
	}
	_, tokenizer, _ := strings.Cut(string(schema), "CREATE VIRTUAL TABLE _chunk_text")
	_, tokenizer, _ = strings.Cut(tokenizer, "tokenize=")
	tokenizer, _, _ = strings.Cut(tokenizer, ");")
	for _, statement := range []string{
		"CREATE VIRTUAL TABLE f USING fts5(content, tokenize=" + tokenizer + ")",
		"CREATE VIRTUAL TABLE v USING fts5vocab('f', 'instance')",
	} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	return func(text string) (list []string) {
		if _, err := db.Exec("DELETE FROM f"); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec("INSERT INTO f VALUES (?)", text); err != nil {
			t.Fatal(err)
		}
		rows, err := db.Query(`SELECT term FROM v ORDER BY "offset"`)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		for rows.Next() {
			var term string
			if err := rows.Scan(&term); err != nil {
				t.Fatal(err)
			}
			list = append(list, term)
		}
		return list
	}
}

// TestLettersEqualFTS5 compares letters that have marks, and those that are another
// form of a letter.
func TestLettersEqualFTS5(t *testing.T) {
	want := reference(t)
	letters := []rune("µſςϐϑϕϖϰϱϵıİẞ")
	for _, of := range []struct{ first, last rune }{
		{'À', 'ſ'}, {0x300, 0x36F}, {'Ά', 'ώ'}, {'Ѐ', 'џ'}, {'ぁ', 'ヿ'}, {'가', '갛'}, {'Ạ', 'ỹ'},
	} {
		for r := of.first; r <= of.last; r++ {
			if wordChar(string(r)) > 0 {
				letters = append(letters, r)
			}
		}
	}
	for _, r := range letters {
		text := "q" + string(r) + "q"
		if got, want := Terms(text), want(text); !slices.Equal(got, want) {
			t.Errorf("%U: %q, FTS5 has %q", r, got, want)
		}
	}
}

// TestWordsEqualFTS5 compares all words of the repository's texts.
func TestWordsEqualFTS5(t *testing.T) {
	want := reference(t)
	files, _ := filepath.Glob("../../../vector/lab/quality/testdata/*.md")
	more, _ := filepath.Glob("../../../docs/*.md")
	own, _ := filepath.Glob("../../[a-r]*[a-s].go")
	words := 0
	for _, name := range slices.Concat(files, more, own) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		got, want := Terms(string(text)), want(string(text))
		words += len(want)
		if len(got) != len(want) {
			t.Errorf("%s: %d words, FTS5 has %d", name, len(got), len(want))
			continue
		}
		for i := range got {
			if got[i] != want[i] {
				t.Errorf("%s: %q, FTS5 has %q", name, got[i], want[i])
			}
		}
	}
	if words < 30_000 {
		t.Errorf("only %d words were compared", words)
	}
}

func TestWordsOfOtherScripts(t *testing.T) {
	want := reference(t)
	for _, text := range []string{
		"Crème BRÛLÉE naïve cafe\u0301 Straße Ærø ĲSSELMEER", "ПРИВЕТ мир", "हिन्दी में", "ภาษาไทย กิน น้ำ", "東京 京都 ｶﾅ",
		"ties dying agreed feed plastered bled motoring sing conflated troubled sized hopping tanned falling " +
			"hissing fizzed failing filing happy sky",
		"relational conditional rational valenci hesitanci digitizer radicalli differentli vileli analogousli " +
			"vietnamization predication operator feudalism",
		"decisiveness hopefulness callousness formaliti sensitiviti sensibiliti triplicate formative formalize " +
			"electriciti electrical hopeful goodness",
		"revival allowance inference airliner gyroscopic adjustable defensible irritant replacement adjustment " +
			"dependent adoption homologou communism",
		"activate angulariti homologous effective bowdlerize probate rate cease controll roll generate " +
			"ion as is us yes ssses eed s",
		"x1 42 e1042 ERR_SSL_42 foo.Bar() AB-12/3 I\u2160 \u00bd",
	} {
		if got, want := Terms(text), want(text); !slices.Equal(got, want) {
			t.Errorf("%q:\n%q, FTS5 has\n%q", text, got, want)
		}
	}
}

// FuzzStem compares stems of arbitrary letters with FTS5's.
func FuzzStem(f *testing.F) {
	for _, seed := range []string{"generalizations", "yyy", "ssss", "eedinged", "ying", "ates", "bbing", "aaions"} {
		f.Add(seed)
	}
	want := reference(f)
	f.Fuzz(func(t *testing.T, word string) {
		letters := strings.Map(func(r rune) rune { return 'a' + r&31%26 }, word)
		if got, want := Terms(letters), want(letters); !slices.Equal(got, want) {
			t.Errorf("%q: %q, FTS5 has %q", letters, got, want)
		}
	})
}

func TestSeparate(t *testing.T) {
	for text, want := range map[string]string{
		"":             "",
		"plain text é": "plain text é",
		"東":            " 東 ",
		"東京":           " 東京 京 ",
		"東京都の":         " 東京 京都 都の の ",
		"iPhone手机!":    "iPhone 手机 机 !",
		"サーバー":         " サー ーバ バー ー ",
		"กินข้าว":      " กิน ินข นข้ ข้า ้าว าว ว ",
		"ไป":           " ไป ป ",
		"서울에서 만나":      " 서울 울에 에서 서   만나 나 ",
		"か\u3099き":     " か\u3099 \u3099き き ",
	} {
		if got := Separate(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// FuzzSeparate separates arbitrary texts: nothing is lost, and separating the result
// again does not change it.
func FuzzSeparate(f *testing.F) {
	for _, seed := range []string{"", "東京都 tokyo", "กินข้าว", "\xff東\xfe", "か\u3099", "한국어", "ー", "\u0301東"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		whole := ""
		for _, run := range Runs(text) {
			whole += run.Text
			if run.Gram > 0 && strings.Contains(run.Text, " ") {
				t.Errorf("%q: the run %q has a space", text, run.Text)
			}
		}
		if whole != text {
			t.Errorf("%q: the runs are %q", text, whole)
		}
		if len(Separate(text)) > 8*len(text) {
			t.Errorf("%q grows to %d bytes", text, len(Separate(text)))
		}
	})
}
