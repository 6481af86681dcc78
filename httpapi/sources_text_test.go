package httpapi

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"
)

// TestSourceText checks that a source's text is joined from its chunks, that each chunk
// is at its given position, and that parts of the text continue where others end.
func TestSourceText(t *testing.T) {
	c := newTestClient(t)
	var doc strings.Builder
	for i := range 60 {
		fmt.Fprintf(
			&doc,
			"Paragraph %d is about 🥖 number %d and tells how long it is kept before it is sold again.\n\n",
			i, i*7,
		)
	}
	for _, overlap := range []string{"0", "120"} {
		made := c.upload(t, "/api/agents/default/sources", "bread.txt", doc.String(), map[string]string{
			"chunk_size": "400",
			"overlap":    overlap,
		})
		path := "/api/agents/default/sources/" + fmt.Sprint(made.json["id"])
		c.waitIndexed(t, path)
		chunks := c.must(t, 200, "GET", path+"/chunks?limit=200", "")["chunks"].([]any)
		whole := c.textOf(t, path+"/text", chunks)
		if whole.From != 0 || len(whole.units) != whole.Total || len(whole.Chunks) != len(chunks) {
			t.Fatalf("overlap %s: %+v", overlap, whole)
		}
		for i := range 60 {
			if n := strings.Count(whole.Text, fmt.Sprintf("Paragraph %d ", i)); n != 1 {
				t.Errorf("overlap %s: paragraph %d occurs %d times", overlap, i, n)
			}
		}
		var parts []uint16
		for len(parts) < whole.Total {
			part := c.textOf(t, fmt.Sprintf("%s/text?offset=%d&bytes=900", path, len(parts)), nil)
			if part.From != len(parts) || len(part.units) == 0 {
				t.Fatalf("overlap %s: at %d %+v", overlap, len(parts), part)
			}
			parts = append(parts, part.units...)
		}
		if string(utf16.Decode(parts)) != string(utf16.Decode(whole.units)) {
			t.Errorf("overlap %s: the parts differ from the whole", overlap)
		}
		for _, chunk := range chunks {
			id := fmt.Sprint(at(chunk, "id"))
			around := c.textOf(t, path+"/text?bytes=1500&chunk="+id, chunks)
			if got := string(utf16.Decode(
				whole.units[around.From : around.From+len(around.units)],
			)); got != around.Text ||
				!strings.Contains(got, fmt.Sprint(at(chunk, "content"))) {
				t.Errorf("overlap %s: around %s: %q", overlap, id, got)
			}
		}
		if end := c.textOf(
			t,
			fmt.Sprintf("%s/text?offset=%d", path, whole.Total+5),
			nil,
		); end.Text != "" || end.From != whole.Total {
			t.Errorf("past the end: %+v", end)
		}
		c.must(t, 404, "GET", path+"/text?chunk=chunk-x", "")
		c.must(t, 400, "GET", path+"/text?offset=-1", "")
		c.must(t, 400, "GET", path+"/text?bytes=0", "")
	}
	c.must(t, 404, "GET", "/api/agents/default/sources/source-x/text", "")
}

// sourcePart is a response of …/text.
type sourcePart struct {
	Text        string
	From, Total int
	Chunks      []struct {
		ID       string
		From, To int
	}
	units []uint16
}

// textOf reads a part of a source's text. Each chunk in it must be at its given position.
func (c *testClient) textOf(t *testing.T, path string, chunks []any) (part sourcePart) {
	t.Helper()
	a := c.send(t, "GET", path, "")
	if err := json.Unmarshal([]byte(a.text), &part); err != nil || a.StatusCode != 200 {
		t.Fatalf("%s: %d %s", path, a.StatusCode, a.text)
	}
	part.units = utf16.Encode([]rune(part.Text))
	content := map[string]string{}
	for _, chunk := range chunks {
		content[fmt.Sprint(at(chunk, "id"))] = fmt.Sprint(at(chunk, "content"))
	}
	for _, chunk := range part.Chunks {
		if got := string(utf16.Decode(part.units[chunk.From:chunk.To])); chunks != nil && got != content[chunk.ID] {
			t.Errorf("%s: chunk %s is %q, want %q", path, chunk.ID, got, content[chunk.ID])
		}
	}
	return part
}

// TestHighlights checks that results have the positions of the query's words, in all
// forms.
func TestHighlights(t *testing.T) {
	c := newTestClient(t)
	made := c.upload(
		t,
		"/api/agents/default/sources",
		"policy.md",
		"# Returns\n\n🥖 Goods can be returned within thirty days. A return is free.\n",
		nil,
	)
	c.waitIndexed(t, "/api/agents/default/sources/"+fmt.Sprint(made.json["id"]))
	for _, a := range []map[string]any{
		c.must(t, 200, "GET", "/api/agents/default/sources/search?query=how+are+returns+made", ""),
		c.must(t, 200, "POST", "/api/agents/default/sources/search", `{"query":"how are returns made"}`),
	} {
		units := utf16.Encode([]rune(fmt.Sprint(at(a, "results.0.content"))))
		var words []string
		ranges, _ := at(a, "results.0.highlights").([]any)
		for _, r := range ranges {
			from, _ := at(r, "0").(json.Number).Int64()
			to, _ := at(r, "1").(json.Number).Int64()
			words = append(words, string(utf16.Decode(units[from:to])))
		}
		if got := strings.Join(words, " "); got != "Returns returned return" {
			t.Errorf("%q in %v", got, a)
		}
	}
}
