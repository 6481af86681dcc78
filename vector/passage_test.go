package vector

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"satchel/agent"
	"satchel/store"
)

func hit(source string, position int, content string) candidate {
	return candidate{hasCosine: true, cosine: 0.5, FoundChunk: store.FoundChunk{
		SourceID: source,
		Chunk:    agent.Chunk{ID: fmt.Sprint("c", position), Position: position, Content: content},
	}}
}

// pieces returns overlapping chunks of a text of numbered words.
func pieces(n int) []string {
	list := make([]string, n)
	for i := range list {
		var words []string
		for j := i * 10; j < i*10+14; j++ {
			words = append(words, fmt.Sprint("word", j))
		}
		list[i] = strings.Join(words, " ")
	}
	return list
}

func TestNeighboursBecomeOneResult(t *testing.T) {
	p := pieces(6)
	for _, c := range []struct {
		name  string
		hits  []candidate
		limit int
		want  []string // ids of each result's chunks
	}{
		{"one chunk", []candidate{hit("s", 2, p[2])}, 5, []string{"c2"}},
		{"two neighbours", []candidate{hit("s", 2, p[2]), hit("s", 1, p[1])}, 5, []string{"c1 c2"}},
		{
			"another in between",
			[]candidate{hit("s", 2, p[2]), hit("s", 5, p[5]), hit("s", 3, p[3])},
			5,
			[]string{"c2 c3", "c5"},
		},
		{"a gap closes", []candidate{hit("s", 1, p[1]), hit("s", 3, p[3]), hit("s", 2, p[2])}, 5, []string{"c1 c2 c3"}},
		{
			"no more than three",
			[]candidate{hit("s", 1, p[1]), hit("s", 2, p[2]), hit("s", 3, p[3]), hit("s", 4, p[4])},
			5,
			[]string{"c1 c2 c3", "c4"},
		},
		{
			"a gap too wide",
			[]candidate{hit("s", 1, p[1]), hit("s", 2, p[2]), hit("s", 4, p[4]), hit("s", 3, p[3])},
			5,
			[]string{"c1 c2 c3", "c4"},
		},
		{"other sources", []candidate{hit("s", 1, p[1]), hit("t", 2, p[2])}, 5, []string{"c1", "c2"}},
		{"no overlap", []candidate{hit("s", 1, p[1]), hit("s", 2, p[4])}, 5, []string{"c1", "c2"}},
		{
			"the limit is filled",
			[]candidate{hit("s", 1, p[1]), hit("s", 2, p[2]), hit("s", 5, p[5])},
			2,
			[]string{"c1 c2", "c5"},
		},
		{"the limit is kept", []candidate{hit("s", 1, p[1]), hit("s", 4, p[4]), hit("s", 2, p[2])}, 1, []string{"c1"}},
	} {
		for i := range c.hits {
			c.hits[i].cosine = 1 - float64(i)/10
			c.hits[i].Seq = int64(i)
		}
		best := c.hits[0].ID
		found := results(slices.Clone(c.hits), Query{Limit: c.limit}, ranking{mode: Vector, trust: 1})
		got := make([]string, len(found))
		for i, r := range found {
			if got[i] = strings.Join(r.Metadata.ChunkIDs, " "); got[i] == "" {
				got[i] = r.ID
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if len(found) > 0 && (found[0].ID != best || found[0].Similarity != 1) {
			t.Errorf("%s: the first result is %s with similarity %v", c.name, found[0].ID, found[0].Similarity)
		}
	}
	joined := results(
		[]candidate{hit("s", 2, p[2]), hit("s", 1, p[1])},
		Query{Limit: 5},
		ranking{mode: Vector, trust: 1},
	)[0].Content
	var want []string
	for j := 10; j < 34; j++ {
		want = append(want, fmt.Sprint("word", j))
	}
	if joined != strings.Join(want, " ") {
		t.Errorf("the text is %q", joined)
	}
}

func TestOverlap(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"abc", "", 0}, {"", "abc", 0}, {"abc", "cde", 1}, {"abc", "abc", 3},
		{"aaab", "aab", 3}, {"xabab", "ababc", 4}, {"abc", "bcd", 2}, {"abcx", "bcd", 0}, {"aabaaab", "aabaaaa", 3},
		{"long before ab", "ab", 2},
	} {
		if got := overlap(c.a, c.b); got != c.want {
			t.Errorf("%q, %q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

// FuzzOverlap compares overlap with trying every length.
func FuzzOverlap(f *testing.F) {
	f.Add("abab", "ababab")
	f.Add("\x00\x00", "\x00")
	f.Fuzz(func(t *testing.T, a, b string) {
		want := min(len(a), len(b))
		for !strings.HasPrefix(b, a[len(a)-want:]) {
			want--
		}
		if got := overlap(a, b); got != want {
			t.Errorf("%q, %q: %d, want %d", a, b, got, want)
		}
	})
}

// TestOverlapsOfAnUploadAreJoined uploads a file and checks that results repeat no
// text.
func TestOverlapsOfAnUploadAreJoined(t *testing.T) {
	folder := openFolder(t, t.TempDir())
	db := folder.Default()
	ix := newIndex(t, folder, axes{"heron", "otter"})
	var b strings.Builder
	for i := range 12 {
		fmt.Fprintf(&b, "Sentence %d tells of the heron by the lake. ", i)
	}
	upload(t, db, "a.txt", []byte(b.String()), agent.Chunking{Size: 200, Overlap: 90, Method: "sentence"})
	start(t, ix)
	wait(t, ix, db)
	found := search(t, ix, db, Query{Text: "heron", Limit: 50})
	n := 0
	for _, r := range found {
		n += max(len(r.Metadata.ChunkIDs), 1)
		for i := range 12 {
			if strings.Count(r.Content, fmt.Sprintf("Sentence %d ", i)) > 1 {
				t.Errorf("a sentence is in the result twice: %q", r.Content)
			}
		}
		if len(r.Metadata.ChunkIDs) > 0 && !strings.Contains(b.String(), r.Content) {
			t.Errorf("the result is not part of the text: %q", r.Content)
		}
	}
	chunks, _, err := db.Chunks(context.Background(), found[0].SourceID, store.Page{Limit: 100})
	if err != nil || n != len(chunks) || len(found) >= n {
		t.Errorf("%d results of %d chunks, the file has %d (%v)", len(found), n, len(chunks), err)
	}
}

// TestScriptsWithoutSpaces finds words within sentences, and codes in any spelling.
func TestScriptsWithoutSpaces(t *testing.T) {
	texts := []string{
		"昨日东京都的天气很好。", "我的猫喜欢吃鱼。", "配送料は五千円以上で無料です。", "返品は三十日以内にお願いします。",
		"ร้านเปิดทุกวันเวลาเก้าโมง", "สินค้าคืนได้ภายในเจ็ดวัน", "서울에서 부산까지 기차로", "iPhone手机壳 AB-12/3",
		"It failed with ERR_SSL_42 again.", "Call foo.Bar() before readTimeout.",
	}
	ix, db, _ := indexed(t, &fake{model: "fake"}, map[string]string{"a.txt": strings.Join(texts, "\n\n")})
	for query, want := range map[string]int{
		"东京": 0, "天气": 0, "东京都": 0, "今天天气怎么样": 0, "猫": 1, "鱼": 1, "送料": 2, "無料ですか": 2, "返品": 3, "三十日": 3,
		"ทุกวัน": 4, "เปิด": 4, "คืนได้": 5, "วัน": -1, "서울": 6, "기차": 6, "手机壳": 7, "iphone": 7,
		"AB-12/3": 7, "ab 12": 7, "ERR_SSL_42": 8, "err ssl 42": 8, "foo.Bar()": 9, "foo bar": 9,
		"readTimeout": 9, "readtimeout()": 9,
	} {
		found := contents(search(t, ix, db, Query{Text: query, Mode: Keyword}))
		if want < 0 {
			if len(found) != 2 {
				t.Errorf("%s: found %q, want two", query, found)
			}
		} else if len(found) == 0 || !strings.Contains(found[0], texts[want]) {
			t.Errorf("%s: found %q, want %q first", query, found, texts[want])
		}
	}
}

func TestResultOfSeveralChunksHasAllPositions(t *testing.T) {
	p := pieces(3)
	first, second := hit("s", 0, p[0]), hit("s", 1, p[1])
	first.Metadata = agent.ChunkMetadata{Section: "A", Sections: []string{"A"}, Line: 3, LastLine: 9}
	second.Metadata = agent.ChunkMetadata{Section: "A > B", Sections: []string{"A > B", "C"}, Line: 8, LastLine: 20}
	second.cosine = 0.9
	found := results([]candidate{first, second}, Query{Limit: 5}, ranking{mode: Vector, trust: 1})
	if len(found) != 1 || found[0].Metadata.Place != "A > B · C · A · lines 3–20" {
		t.Errorf("found %+v", found)
	}
}
