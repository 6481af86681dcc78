package vector

import (
	"slices"
	"strings"

	"satchel/agent"
)

// maxJoined is how many chunks may be joined into one result.
const maxJoined = 3

// minOverlap is how many bytes two consecutive chunks must share for the
// second to continue the first.
const minOverlap = 16

// passage is a result in progress: consecutive hits of one source.
type passage struct {
	best  candidate
	parts []candidate // in order
}

// addPassage adds the next best hit to a list of passages: to an adjacent one,
// if it has room, or as a new passage. If that closes the gap to another
// passage, both are joined.
func addPassage(list []passage, c candidate) []passage {
	added := passage{c, []candidate{c}}
	at := len(list)
	for i := 0; i < len(list); i++ {
		parts := join(list[i].parts, added.parts)
		if parts == nil {
			continue
		}
		if at < len(list) { // the gap is closed
			list[at].parts = parts
			return slices.Delete(list, i, i+1)
		}
		at = i
		list[i].parts = parts
		added.parts = parts
	}
	if at == len(list) {
		list = append(list, added)
	}
	return list
}

// join concatenates two runs of chunks if one continues the other; otherwise it
// returns nil.
func join(a, b []candidate) []candidate {
	if len(a)+len(b) > maxJoined ||
		a[0].SourceID != b[0].SourceID ||
		a[0].Metadata.URL != b[0].Metadata.URL {
		return nil
	}
	if b[0].Position < a[0].Position {
		a, b = b, a
	}
	last, next := a[len(a)-1], b[0]
	if last.Position+1 != next.Position || overlap(last.Content, next.Content) < minOverlap {
		return nil
	}
	return slices.Concat(a, b)
}

// overlap returns the length of the longest suffix of a that is a prefix of right.
// It applies the prefix function of Knuth, Morris and Pratt to right followed by a.
func overlap(left, right string) int {
	left = left[max(len(left)-len(right), 0):]
	prefix := make([]int, len(right)) // for each prefix of right: its longest suffix that is a prefix of right
	advance := func(n int, c byte) int {
		for n > 0 && (n == len(right) || right[n] != c) {
			n = prefix[n-1]
		}
		if n < len(right) && right[n] == c {
			n++
		}
		return n
	}
	for i := 1; i < len(right); i++ {
		prefix[i] = advance(prefix[i-1], right[i])
	}
	n := 0
	for i := range len(left) {
		n = advance(n, left[i])
	}
	return n
}

// result converts a passage to a result, which contains text shared by chunks
// once.
func (p passage) result(by ranking) Result {
	r := Result{
		ID:         p.best.ID,
		SourceID:   p.best.SourceID,
		Score:      by.score(&p.best),
		Similarity: millionths(p.best.cosine),
		Metadata:   ResultMetadata{ChunkMetadata: p.best.Metadata},
	}
	if len(p.parts) == 1 {
		r.Content = p.best.Content
		return r
	}
	var content strings.Builder
	var pages []agent.PageStart
	for i, part := range p.parts {
		text := part.Content
		shared := 0
		if i > 0 {
			shared = overlap(p.parts[i-1].Content, text)
		}
		pages = appendPages(pages, part.Metadata, content.Len()-shared)
		content.WriteString(text[shared:])
		r.Metadata.ChunkIDs = append(r.Metadata.ChunkIDs, part.ID)
	}
	r.Content = content.String()
	p.place(&r.Metadata.ChunkMetadata)
	if r.Metadata.PageStarts = nil; len(pages) > 1 {
		r.Metadata.PageStarts = pages
	}
	r.Metadata.SetPages([2]int{0, len(r.Content)})
	return r
}

// appendPages appends the pages that start in a chunk, whose text begins at an offset.
func appendPages(list []agent.PageStart, m agent.ChunkMetadata, at int) []agent.PageStart {
	starts := m.PageStarts
	if len(starts) == 0 {
		starts = []agent.PageStart{{Page: m.Page}}
	}
	for _, p := range starts {
		last := agent.PageStart{Page: -1}
		if len(list) > 0 {
			last = list[len(list)-1]
		}
		if p.Page > last.Page {
			list = append(list, agent.PageStart{Page: p.Page, Offset: max(at+p.Offset, last.Offset)})
		}
	}
	return list
}

// place sets the sections and lines of all parts.
func (p passage) place(m *agent.ChunkMetadata) {
	m.Sections = slices.Clone(p.best.Metadata.Sections)
	for _, part := range p.parts {
		for _, section := range part.Metadata.Sections {
			if !slices.Contains(m.Sections, section) {
				m.Sections = append(m.Sections, section)
			}
		}
	}
	m.Line, m.LastLine = p.parts[0].Metadata.Line, p.parts[len(p.parts)-1].Metadata.LastLine
	m.SetPlace()
}
