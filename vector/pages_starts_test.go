package vector

import (
	"strings"
	"testing"

	"satchel/agent"
	"satchel/store"
	"satchel/vector/chunk"
	"satchel/vector/document"
)

// squash replaces each run of white space by a blank.
func squash(text string) string { return strings.Join(strings.Fields(text), " ") }

// pagesBySentence returns the page of each sentence of a PDF.
func pagesBySentence(t *testing.T, data []byte) map[string]int {
	t.Helper()
	doc, err := document.Read(t.Context(), "guide.pdf", "", data, document.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	pages := map[string]int{}
	for _, b := range doc.Blocks {
		text := doc.TextOf(b)
		for _, s := range chunk.Sentences(text) {
			pages[squash(text[s[0]:s[1]])] = int(b.Page)
		}
	}
	if doc.Pages != 3 || len(pages) != 14 {
		t.Fatalf("%d pages, %d sentences", doc.Pages, len(pages))
	}
	return pages
}

// The page of every sentence of a PDF is right, wherever passages start and end, however
// much they overlap, and where several of them are one result.
func TestPagesOfSentences(t *testing.T) {
	data := testdata(t, "three_pages.pdf")
	pages := pagesBySentence(t, data)
	for _, c := range []agent.Chunking{
		agent.DefaultChunking,
		{Size: 400, Overlap: 150, Method: "sentence"},
		{Size: 300, Overlap: 0, Method: "recursive"},
		{Size: 200, Overlap: 90, Method: "fixed"},
		{Size: 120, Overlap: 60, Method: "semantic"},
	} {
		folder := openFolder(t, t.TempDir())
		db, ix := folder.Default(), newIndex(t, folder, Local())
		s := upload(t, db, "guide.pdf", data, c)
		start(t, ix)
		wait(t, ix, db)
		chunks, _, err := db.Chunks(t.Context(), s.ID, store.Page{Limit: 100})
		if err != nil || len(chunks) == 0 {
			t.Fatal(err)
		}
		found := search(t, ix, db, Query{
			Text:  "return parts, pay money, deposit for a loan bike, alarm",
			Mode:  Keyword,
			Limit: 20,
		})
		for _, chunk := range chunks {
			found = append(found, Result{
				Content:  chunk.Content,
				Metadata: ResultMetadata{ChunkMetadata: chunk.Metadata},
			})
		}
		seen, joined := 0, 0
		for _, r := range found {
			joined += len(r.Metadata.ChunkIDs)
			for _, at := range chunk.Sentences(r.Content) {
				sentence, m := squash(r.Content[at[0]:at[1]]), r.Metadata
				want := pages[sentence]
				if want == 0 {
					continue // cut
				}
				seen++
				if m.SetPages(at); m.Page != want || m.LastPage != want && len(m.PageStarts) > 0 {
					t.Errorf(
						"%+v: %q of %v is on pages %d to %d, want %d",
						c, sentence, m.ChunkIDs, m.Page, m.LastPage, want,
					)
				}
			}
		}
		if seen < len(pages)/2 || c.Overlap > 60 && joined == 0 && len(chunks) > 1 {
			t.Errorf("%+v: %d sentences, %d chunks are joined", c, seen, joined)
		}
	}
}

// A search shows the page of the sentence that answers, and a list of chunks all pages.
func TestPageOfBestSentence(t *testing.T) {
	folder := openFolder(t, t.TempDir())
	db, ix := folder.Default(), newIndex(t, folder, Local())
	s := upload(t, db, "guide.pdf", testdata(t, "three_pages.pdf"), agent.DefaultChunking)
	start(t, ix)
	wait(t, ix, db)
	chunks, _, err := db.Chunks(t.Context(), s.ID, store.Page{Limit: 10})
	if err != nil ||
		len(chunks) != 1 ||
		chunks[0].Metadata.Place != "pages 1–3" ||
		chunks[0].Metadata.Page != 1 ||
		chunks[0].Metadata.LastPage != 3 {
		t.Fatalf("%+v, %v", chunks, err)
	}
	for query, want := range map[string]string{
		"within how many days can I return parts": "page 1",
		"how much is the deposit for a loan bike": "page 2",
		"when is the compressor drained":          "page 3",
	} {
		r := search(t, ix, db, Query{Text: query})
		if len(r) != 1 || r[0].Metadata.Place != want || len(r[0].BestSentence) != 2 {
			t.Errorf("%s: %+v", query, r)
		}
	}
}

// The page of a citation is that of the sentence which the answer states.
func TestCite(t *testing.T) {
	result := func() Result {
		r := Result{
			Content: "Parts can be returned within thirty days. A receipt is needed.\n\n" +
				"The deposit is sixty euros. It is paid back by card.",
		}
		r.Metadata.PageStarts = []agent.PageStart{{Page: 4}, {Page: 5, Offset: strings.Index(r.Content, "The deposit")}}
		r.Metadata.SetPages([2]int{0, len(r.Content)})
		return r
	}
	for _, c := range []struct{ statements, place, best string }{
		{"", "pages 4–5", ""},
		{"Yes.", "pages 4–5", ""},
		{"You pay sixty euros as a deposit.", "page 5", "The deposit is sixty euros."},
		{"You have thirty days.", "page 4", "Parts can be returned within thirty days."},
		{
			"Yes.|The deposit of sixty euros is paid back to your card.|Show your receipt.",
			"pages 4–5",
			"The deposit is sixty euros.",
		},
	} {
		r := result()
		r.Cite(strings.FieldsFunc(c.statements, func(r rune) bool { return r == '|' }))
		best := ""
		if r.BestSentence != nil {
			best = units(r.Content, r.BestSentence)
		}
		if r.Metadata.Place != c.place || best != c.best {
			t.Errorf("%q: %s, %q; want %s, %q", c.statements, r.Metadata.Place, best, c.place, c.best)
		}
	}
}
