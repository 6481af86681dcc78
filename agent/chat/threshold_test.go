package chat

import (
	"embed"
	"io"
	"log/slog"
	"path"
	"strings"
	"testing"

	"satchel/agent"
	"satchel/store"
	"satchel/vector"
)

// thresholdSet has small documents of different sizes in several languages, and
// questions of three classes: answered by a document (the last column has the words
// that answer), related to a document that does not answer, and unrelated.
//
//go:embed testdata
var thresholdSet embed.FS

// thresholdQuestion is a line of a set of questions.
type thresholdQuestion struct{ class, document, text, answer string }

// askedQuestion is a question with the passages that it finds.
type askedQuestion struct {
	thresholdQuestion
	found []vector.Result
}

func readThresholdQuestions(t *testing.T, set string) (list []thresholdQuestion) {
	t.Helper()
	data, err := thresholdSet.ReadFile("testdata/" + set + ".tsv")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if f := strings.Split(strings.TrimSuffix(line, "\n"), "\t"); f[0] != "class" {
			list = append(list, thresholdQuestion{f[0], f[1], f[2], strings.Join(f[3:], "")})
		}
	}
	return list
}

// thresholdSources indexes the documents and returns their sources by name.
func thresholdSources(t *testing.T, set string) (*vector.Index, *store.DB, map[string]string) {
	t.Helper()
	folder, err := store.Open(store.Options{Path: t.TempDir(), Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = folder.Close() })
	db, sources := folder.Default(), map[string]string{}
	index := vector.New(folder, vector.Local(), nil)
	entries, err := thresholdSet.ReadDir("testdata/" + set)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		text, err := thresholdSet.ReadFile(path.Join("testdata", set, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		u, err := db.ReceiveFile(t.Context(), e.Name(), "", strings.NewReader(string(text)), int64(len(text)))
		if err != nil {
			t.Fatal(err)
		}
		made, err := db.CreateFileSource(t.Context(), e.Name(), agent.DefaultChunking, u)
		if err != nil {
			t.Fatal(err)
		}
		sources[strings.TrimSuffix(e.Name(), ".md")] = made.ID
	}
	if err := index.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(index.Stop)
	if err := index.Wait(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	return index, db, sources
}

// rates are shares at a threshold: of the answered questions whose passage reaches it,
// and of the others for which no passage does.
type rates struct{ answered, related, unrelated float64 }

func ratesAt(list []askedQuestion, least float64) rates {
	hits, all := map[string]float64{}, map[string]float64{}
	for _, q := range list {
		passed, right := 0, false
		for _, r := range q.found {
			if r.Score >= least {
				passed++
				right = right || strings.Contains(strings.Join(strings.Fields(r.Content), " "), q.answer)
			}
		}
		all[q.class]++
		if q.class == "answered" && right || q.class != "answered" && passed == 0 {
			hits[q.class]++
		}
	}
	return rates{
		hits["answered"] / all["answered"],
		hits["related"] / all["related"],
		hits["unrelated"] / all["unrelated"],
	}
}

// TestThreshold: passages that answer a question reach the threshold, and few
// unrelated ones do, whether an agent has one small document or several.
func TestThreshold(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	index, db, sources := thresholdSources(t, "threshold")
	var alone, together []askedQuestion
	for _, q := range readThresholdQuestions(t, "threshold") {
		for id, list := range map[string]*[]askedQuestion{sources[q.document]: &alone, "": &together} {
			found, err := index.Search(t.Context(), db, vector.Query{Text: q.text, Limit: maxPassages, SourceID: id})
			if err != nil {
				t.Fatal(err)
			}
			*list = append(*list, askedQuestion{q, found})
		}
	}
	if testing.Verbose() {
		for _, least := range []float64{
			0, 0.16, 0.18, 0.2, 0.22, 0.24, 0.26, 0.28, 0.3, 0.32, 0.34, 0.36, 0.4, 0.45, 0.5,
		} {
			t.Logf("%.2f: alone %.2f, together %.2f", least, ratesAt(alone, least), ratesAt(together, least))
		}
	}
	for _, c := range []struct {
		name  string
		list  []askedQuestion
		floor rates
	}{{"alone", alone, rates{0.9, 0.2, 0.75}}, {"together", together, rates{0.86, 0.35, 0.7}}} {
		got := ratesAt(c.list, weakScore)
		if got.answered < c.floor.answered || got.related < c.floor.related || got.unrelated < c.floor.unrelated {
			t.Errorf("%s: %.2f, want at least %.2f", c.name, got, c.floor)
		}
	}
}
