package vector

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"satchel/agent"
	"satchel/store"
)

// axes embeds a text by how often it contains each of some words, so that a test
// controls which texts are similar.
type axes []string

func (axes) Model() string { return "axes" }

func (a axes) Embed(_ context.Context, text string) ([]float32, error) {
	v := make([]float32, 512)
	for i, word := range a {
		v[i] = float32(strings.Count(strings.ToLower(text), word))
	}
	return v, nil
}

// indexed creates an agent with indexed sources, from texts by name. Each line is a
// chunk.
func indexed(t testing.TB, e Embedder, texts map[string]string) (*Index, *store.DB, map[string]string) {
	t.Helper()
	folder := openFolder(t, t.TempDir())
	db := folder.Default()
	ix := newIndex(t, folder, e)
	ids := map[string]string{}
	for name, text := range texts {
		ids[name] = upload(t, db, name, []byte(text), agent.Chunking{Size: 40, Method: "sentence"}).ID
	}
	start(t, ix)
	wait(t, ix, db)
	return ix, db, ids
}

func contents(found []Result) []string {
	list := make([]string, len(found))
	for i, r := range found {
		list[i] = r.Content
	}
	return list
}

const (
	meaning = "river and stream"                // shares only the meaning with the query
	both    = "stream pump E204 in the meadow"  // shares some of both
	code    = "E204 was found here, says Clara" // shares only the code
	neither = "a bicycle without any lamps on"
)

func TestModes(t *testing.T) {
	ix, db, _ := indexed(t, axes{"river", "stream", "pump", "meadow", "clara", "bicycle"}, map[string]string{
		"a.txt": strings.Join([]string{neither, code, both, meaning}, "\n\n"),
	})
	query := "river stream E204"
	cosines := map[string]float64{meaning: 1, both: 1 / math.Sqrt(6), code: 0, neither: 0}
	for mode, want := range map[Mode][]string{
		Vector:  {meaning, both, neither, code},
		Keyword: {meaning, both, code},
		Hybrid:  {meaning, both, code, neither},
		"":      {meaning, both, code, neither},
	} {
		found := search(t, ix, db, Query{Text: query, Mode: mode})
		if got := contents(found); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", mode, got, want)
		}
		for _, r := range found {
			if math.Abs(r.Similarity-cosines[r.Content]) > 1e-6 {
				t.Errorf(
					"%s: the similarity of %q is %v, want the cosine %v",
					mode,
					r.Content,
					r.Similarity,
					cosines[r.Content],
				)
			}
		}
		if !slices.IsSortedFunc(found, func(a, b Result) int { return cmp.Compare(b.Score, a.Score) }) {
			t.Errorf("%s: the scores are not in order: %+v", mode, found)
		}
	}
	if found := search(t, ix, db, Query{Text: "E204", Mode: Keyword}); len(found) != 2 {
		t.Errorf("a code finds %q", contents(found))
	}
}

func TestMinScoreAndLimit(t *testing.T) {
	ix, db, _ := indexed(t, axes{"river", "stream", "pump", "meadow", "clara", "bicycle"}, map[string]string{
		"a.txt": strings.Join([]string{neither, code, both, meaning}, "\n\n"),
	})
	const query = "river stream E204"
	for _, mode := range []Mode{Hybrid, Vector, Keyword} {
		full := search(t, ix, db, Query{Text: query, Mode: mode})
		for i, r := range full {
			at := search(t, ix, db, Query{Text: query, Mode: mode, MinScore: r.Score}) // as shown to clients
			above := search(t, ix, db, Query{Text: query, Mode: mode, MinScore: r.Score + 1e-6})
			if len(at) < i+1 || len(above) > i {
				t.Errorf(
					"%s: %d results with a score of at least that of result %d, %d above it",
					mode,
					len(at),
					i,
					len(above),
				)
			}
		}
		if got := search(t, ix, db, Query{Text: query, Mode: mode, MinScore: 1}); len(got) != 0 {
			t.Errorf("%s: results with a high minimum score: %q", mode, contents(got))
		}
	}
	for limit, want := range map[int]int{1: 1, -7: 1, 3: 3, 1000: 4} {
		if got := contents(search(t, ix, db, Query{Text: query, Limit: limit})); len(got) != want || got[0] != meaning {
			t.Errorf("limit %d: %q", limit, got)
		}
	}
}

func TestLimitIsClamped(t *testing.T) {
	ix, db, _ := indexed(t, &fake{model: "fake"}, map[string]string{"a.txt": string(lines("otter", 70))})
	for limit, want := range map[int]int{0: 10, -1: 1, 1: 1, 50: 50, 51: 50, 1 << 30: 50} {
		for _, mode := range []Mode{Hybrid, Vector, Keyword} {
			if got := search(t, ix, db, Query{Text: "otter", Limit: limit, Mode: mode}); len(got) != want {
				t.Errorf("%s, limit %d: %d results, want %d", mode, limit, len(got), want)
			}
		}
	}
}

func TestSearchOneSource(t *testing.T) {
	ix, db, ids := indexed(t, axes{"otter", "heron"}, map[string]string{
		"a.txt": "otter of the north",
		"b.txt": "otter of the south",
	})
	for name, id := range ids {
		for _, mode := range []Mode{Hybrid, Vector, Keyword} {
			found := search(t, ix, db, Query{Text: "otter", SourceID: id, Mode: mode})
			if len(found) != 1 || found[0].SourceID != id || found[0].Metadata.SourceName != name {
				t.Errorf("%s in %s: %+v", mode, name, found)
			}
		}
	}
}

func TestBadQueries(t *testing.T) {
	ix, db, _ := indexed(t, axes{"otter"}, nil)
	for _, c := range []struct {
		q     Query
		code  agent.Code
		field string
	}{
		{Query{}, agent.CodeValidation, "query"},
		{Query{Text: " \n\t "}, agent.CodeValidation, "query"},
		{Query{Text: strings.Repeat("é", MaxQuery+1)}, agent.CodeValidation, "query"},
		{Query{Text: "x", MinScore: 1.01}, agent.CodeValidation, "min_score"},
		{Query{Text: "x", MinScore: math.NaN()}, agent.CodeValidation, "min_score"},
		{Query{Text: "x", Mode: "fuzzy"}, agent.CodeValidation, "mode"},
		{Query{Text: "x", SourceID: "source-x"}, agent.CodeNotFound, ""},
	} {
		_, err := ix.Search(context.Background(), db, c.q)
		var e *agent.Error
		if agent.ErrorCode(err) != c.code {
			t.Errorf("%+v: %v, want %s", c.q, err, c.code)
		} else if e, _ = errors.AsType[*agent.Error](err); c.field != "" && e.Details["field"] != c.field {
			t.Errorf("%+v: details %v, want field %s", c.q, e.Details, c.field)
		}
	}
	if found := search(t, ix, db, Query{Text: strings.Repeat("é", MaxQuery)}); found == nil || len(found) != 0 {
		t.Errorf("no knowledge: %v, want an empty list", found)
	}
}

// TestFoundBeforeEmbedded searches while the embedding of a source is blocked: it is
// found by words immediately, with its final score.
func TestFoundBeforeEmbedded(t *testing.T) {
	folder := openFolder(t, t.TempDir())
	db := folder.Default()
	ix := newIndex(t, folder, axes{"river", "stream", "pump", "meadow", "clara", "bicycle"})
	reached, hold := make(chan struct{}), make(chan struct{})
	ix.step = func(name string) {
		if name == "put" {
			close(reached)
			<-hold
		}
	}
	s := upload(t, db, "a.txt", []byte(strings.Join([]string{neither, code, both, meaning}, "\n\n")), agent.Chunking{
		Size:   40,
		Method: "sentence",
	})
	start(t, ix)
	<-reached
	q := Query{Text: "river stream E204"}
	early := search(t, ix, db, q)
	if got := contents(early); !slices.Equal(got, []string{meaning, both, code}) {
		t.Errorf("before: %q", got)
	}
	if got := search(t, ix, db, Query{Text: q.Text, Mode: Vector}); len(got) != 0 {
		t.Errorf("by meaning, before: %q", contents(got))
	}
	if got := search(t, ix, db, Query{Text: q.Text, MinScore: early[0].Score}); len(got) != 1 {
		t.Errorf("with a minimum score, before: %q", contents(got))
	}
	if got := search(t, ix, db, Query{Text: q.Text, Limit: 1}); len(got) != 1 || got[0].Content != meaning {
		t.Errorf("with limit 1, before: %q", contents(got))
	}
	if p := source(t, db, s.ID).Progress; p == nil || p.Queued != 4 {
		t.Errorf("progress %+v", p)
	}
	close(hold)
	wait(t, ix, db)
	late := search(t, ix, db, q)
	if len(late) != 4 {
		t.Fatalf("after: %q", contents(late))
	}
	for i, r := range early {
		if r.ID != late[i].ID || r.Score != late[i].Score {
			t.Errorf("result %d was %+v and is %+v", i, r, late[i])
		}
	}
}

// TestSectionIsIndexedNotShown finds a chunk by its headings, which are not part of
// its content.
func TestSectionIsIndexedNotShown(t *testing.T) {
	folder := openFolder(t, t.TempDir())
	db := folder.Default()
	ix := newIndex(t, folder, axes{"zeppelin"})
	upload(
		t,
		db,
		"a.md",
		[]byte("# Zeppelin\n\n"+strings.Repeat("It floats. ", 20)+"\n\nAnd it lands."),
		agent.Chunking{Size: 60, Method: "recursive"},
	)
	start(t, ix)
	wait(t, ix, db)
	for _, mode := range []Mode{Hybrid, Vector, Keyword} {
		found := search(t, ix, db, Query{Text: "zeppelin", Mode: mode, Limit: 50})
		hidden := 0
		for _, r := range found {
			if !strings.Contains(r.Content, "Zeppelin") && r.Metadata.Section == "Zeppelin" {
				hidden++
			}
		}
		if hidden == 0 {
			t.Errorf("%s: no chunk is found by its heading: %+v", mode, found)
		}
	}
}

func TestSection(t *testing.T) {
	for _, c := range [][3]string{
		{"", "", ""},
		{"Manual", "", "Manual"},
		{"", "A > B", "A > B"},
		{"Manual", "A > B", "Manual > A > B"},
		{"A", "A > B", "A > B"},
		{"A", "A", "A"},
		{"A", "AB > C", "A > AB > C"},
	} {
		if got := section(c[0], c[1]); got != c[2] {
			t.Errorf("title %q, headings %q: %q, want %q", c[0], c[1], got, c[2])
		}
	}
}

// written formats words as "form|form", names with a "!" and optional ones with a "?".
func written(words store.Words) (list []string) {
	for _, w := range words {
		var ways []string
		for _, way := range w.Ways {
			ways = append(ways, way.Text)
		}
		text := strings.Join(ways, "|")
		if w.Name {
			text += "!"
		}
		if w.Optional {
			text += "?"
		}
		list = append(list, text)
	}
	return list
}

func TestWordsOf(t *testing.T) {
	for _, c := range []struct {
		query string
		want  []string
	}{
		{"", nil},
		{"How do I? how!", []string{"how", "do", "i"}},
		{"MX-200 error", []string{"mx 200|mx200!", "mx?", "200?", "error"}},
		{"4.2.1, 4.2.1", []string{"4 2 1!", "4?", "2?", "1?"}}, // 421 would be something else
		{"v4.2.1", []string{"v4 2 1|v421|v 4 2 1!", "v4?", "2?", "1?"}},
		{"what is E1042?", []string{"what", "is", "e1042|e 1042!"}},
		{"E 1042 or type 7", []string{"e", "1042!", "e1042|e 1042!?", "or", "type", "7?", "type7!?"}},
		{"fsync_every", []string{"fsync every|fsyncevery!", "fsync?", "every?"}},
		{"newHTTPServer2", []string{"newhttpserver2|new http server 2!"}},
		{"HTTP JSON Server", []string{"http", "json", "server", "httpjson?", "jsonserver?"}},
		{"how do I back up?", []string{"how", "do", "i", "back", "up", "backup?"}},
		{"the doctor's note", []string{"the", "doctor", "note", "doctornote?"}},
		{"l’eau chaude", []string{"eau", "chaude", "eauchaude?"}},
		{"don't rock'n'roll", []string{"don", "rock n roll|rocknroll?", "rock", "n", "roll", "donrocknroll?"}},
		{"two-step", []string{"two step|twostep?", "two", "step"}},
		{"--verify - .env", []string{"verify!", "env!"}},
		{"naïve cafe\u0301 Straße", []string{"naïve", "cafe\u0301", "straße"}},
		{"❤️ 🦦 -- \x00", nil},
		{"東京都 iPhone手机", []string{"東京", "京都", "東京 京都?", "手机", "iphone|i phone!"}},
		{"1.2.3.4.5.6.7.8.9", []string{"1", "2", "3", "4", "5", "6", "7", "8", "9"}},
	} {
		words, _ := wordsOf(c.query)
		if got := written(words); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.query, got, c.want)
		}
	}
}

// FuzzSearch searches for arbitrary texts.
func FuzzSearch(f *testing.F) {
	for _, seed := range []string{
		"otter", `"`, "a AND NOT", "\x00", "\xff", "🦦", "x-y_z", "NEAR(", "e\u0301", "  ", "section:x",
	} {
		f.Add(seed)
	}
	ix, db, _ := indexed(f, &fake{model: "fake"}, map[string]string{"a.txt": string(lines("otter", 20))})
	f.Fuzz(func(t *testing.T, text string) {
		for _, mode := range []Mode{Hybrid, Vector, Keyword} {
			found, err := ix.Search(context.Background(), db, Query{Text: text, Mode: mode})
			if err != nil && agent.ErrorCode(err) != agent.CodeValidation {
				t.Errorf("%s %q: %v", mode, text, err)
			}
			for _, r := range found {
				if !(r.Score >= 0 && r.Score <= 1) {
					t.Errorf("%s %q: score %v", mode, text, r.Score)
				}
			}
		}
	})
}
