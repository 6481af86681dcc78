package lexicon

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func load(t testing.TB) *Table {
	t.Helper()
	table, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func TestWords(t *testing.T) {
	for text, want := range map[string][]string{
		"":                                  nil,
		"the of and":                        nil,
		"The dog’s bowl, my 2 cats' toys":   {"dog", "bowl", "cats", "toys"},
		"don't won't shan't":                {"shan't"},
		"re-use E1042 Straße 'quoted' A4":   {"re", "use", "e", "straße", "quoted"},
		"I'd like a ROOM\tfor\ntwo\x00now!": {"room", "two"},
	} {
		if got := slices.Collect(Words(text)); !slices.Equal(got, want) {
			t.Errorf("%q has the words %q, want %q", text, got, want)
		}
	}
	for range Words("one two three") {
		break // the iteration may stop early
	}
}

func TestBase(t *testing.T) {
	const known = " heating summer sum dog bus city knife wolf stop bake walk happy large quick " +
		"child buy leaf red heat glass "
	for word, want := range map[string]string{
		"dog": "dog", "dogs": "dog", "buses": "bus", "cities": "city", "knives": "knife", "wolves": "wolf",
		"stopped": "stop", "stopping": "stop", "baked": "bake", "baking": "bake", "walked": "walk", "walking": "walk",
		"happier": "happy", "happily": "happy", "larger": "large", "quickest": "quick",
		"quickly": "quick", "redder": "red", "children": "child", "bought": "buy", "leaves": "leaf",
		"heating": "heat", "heats": "heat", "summer": "summer", "glasses": "glass", "glass": "glass", "bus": "bus",
		"s": "", "ed": "", "unheard": "", "": "",
	} {
		if got := Base(word, func(s string) int { return strings.Index(known, " "+s+" ") }); got != want {
			t.Errorf("%q is a form of %q, want %q", word, got, want)
		}
	}
}

// TestSimilar checks which of several texts is closest in meaning to another.
func TestSimilar(t *testing.T) {
	table := load(t)
	for _, c := range []struct {
		query string
		texts []string // the first is the right one
	}{
		{"couch", []string{"A sofa with two cushions", "A carrot from the field", "A contract of two years"}},
		{
			"garbage collection",
			[]string{"Rubbish goes into the grey bin", "The train leaves at nine", "Salaries are paid monthly"},
		},
		{"merlot on the rug", []string{"Red wine on a carpet", "A walk in the forest", "A letter to the judge"}},
		{
			"the physician cured me",
			[]string{"The doctor heals the sick", "The carpenter planes a board", "Rain falls on the hills"},
		},
		{"kitten", []string{"Young cats", "Young trees", "Young engines"}},
		{"automobile repairs", []string{"We mend cars", "We bake bread", "We teach French"}},
	} {
		got := table.Similar(c.query, c.texts)
		for i := range got[1:] {
			if got[0] <= got[1+i] {
				t.Errorf(
					"%q: the similarity to %q is %.3f, to %q %.3f",
					c.query,
					c.texts[0],
					got[0],
					c.texts[1+i],
					got[1+i],
				)
			}
		}
	}
}

func TestSimilarBounds(t *testing.T) {
	table := load(t)
	long := strings.Repeat("wine ", MaxText)
	got := table.Similar("wine", []string{"", "the of", "xyzzy", "wine", long, "\xff\x00"})
	for i, want := range []float64{0, 0, 0, 1, 1, 0} {
		if math.Abs(got[i]-want) > 1e-6 {
			t.Errorf("text %d has the similarity %v, want %v", i, got[i], want)
		}
	}
	if got := table.Similar("the", []string{"wine"}); got[0] != 0 {
		t.Errorf("a query without words has the similarity %v", got[0])
	}
	if got := table.Similar("wine", nil); len(got) != 0 {
		t.Errorf("without texts: %v", got)
	}
}

// TestEncode checks that decoded vectors are close to the encoded ones, whatever their
// lengths: 5 bits a number leave some 0.25% of the squares.
func TestEncode(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	want := map[string][]float32{
		"sea":   make([]float32, 128),
		"ships": make([]float32, 128),
		"nil":   make([]float32, 128),
	}
	for i := range 128 {
		want["sea"][i] = float32(random.NormFloat64())
		want["ships"][i] = float32(1000 * random.NormFloat64())
	}
	table, err := Decode(string(Encode([]string{"sea", "ship", "nil"}, [][]float32{
		want["sea"],
		want["ships"],
		want["nil"],
	})))
	if err != nil {
		t.Fatal(err)
	}
	for word, want := range want {
		got := make([]float32, 128)
		table.addRow(got, table.row(word), 1)
		table.addRow(got, table.row(word), 2)
		var squares, errors float64
		for i := range got {
			squares += float64(want[i]) * float64(want[i])
			errors += math.Pow(float64(got[i])/3-float64(want[i]), 2)
		}
		if errors > 0.0035*squares+1e-12 {
			t.Errorf("%s: the error of the vector is %v of its squares", word, errors/squares)
		}
	}
	if table.row("mountain") != -1 {
		t.Error("an unknown word has a row")
	}
}

// FuzzDecode checks that Decode never panics, and that a table it accepts is usable.
func FuzzDecode(f *testing.F) {
	good := Encode([]string{"sea", "ship"}, [][]float32{{1, -0.5, 7: 2}, {3, 7: 0}})
	f.Add(string(good))
	f.Add(string(good[:len(good)-5]))
	f.Add("LEX2")
	f.Add(string(Encode([]string{"sea", "sea"}, [][]float32{{1, 7: 2}, {2, 7: 1}})))
	f.Fuzz(func(t *testing.T, file string) {
		if table, err := Decode(file); err == nil {
			table.Similar("sea ship", []string{"ships", "seas", ""})
		}
	})
}

// FuzzSimilar checks that similarities of any texts are in their range.
func FuzzSimilar(f *testing.F) {
	f.Add("couch", "a sofa")
	f.Add("don't ’s ''", "\xff\xfe İstanbul ſ")
	f.Fuzz(func(t *testing.T, query, text string) {
		for _, x := range load(t).Similar(query, []string{text, query}) {
			if math.IsNaN(x) || math.Abs(x) > 1+1e-9 {
				t.Errorf("%q to %q: %v", query, text, x)
			}
		}
	})
}

// TestDamaged changes each byte of a table.
func TestDamaged(t *testing.T) {
	good := Encode([]string{"sea", "ship"}, [][]float32{{1, -0.5, 7: 2}, {3, 7: 0}})
	for i := range good {
		bad := slices.Clone(good)
		bad[i] ^= 0x41
		if _, err := Decode(string(bad)); err == nil {
			t.Errorf("byte %d was changed, and the table is accepted", i)
		}
	}
}
