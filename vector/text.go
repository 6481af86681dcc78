package vector

import (
	"context"
	"math"
	"strings"

	"satchel/agent"
	"satchel/store"
)

// betweenChunks separates chunks without shared text in a source's text.
const betweenChunks = "\n\n"

// Limits of a part of a source's text, in bytes.
const (
	DefaultWindow = 64 << 10
	MaxWindow     = 1 << 20
)

// Window selects a part of a source's text.
type Window struct {
	ChunkID string // around this chunk; "": from Offset on
	Offset  int    // in UTF-16 code units
	Bytes   int    // of whole chunks, at least one; 0: DefaultWindow
}

// SourceText is a part of a source's text, reassembled from its chunks without
// repeating what they share. Its offsets are in UTF-16 code units.
type SourceText struct {
	Text   string      `json:"text"`
	From   int         `json:"from" doc:"Offset of text in the source's whole text, in UTF-16 code units." example:"0"`
	Total  int         `json:"total" doc:"Length of the source's whole text, in UTF-16 code units." example:"48210"`
	Chunks []TextChunk `json:"chunks" doc:"The chunks in text. Adjacent chunks may overlap."`
}

// TextChunk is the position of a chunk in a part of a source's text.
type TextChunk struct {
	ID       string `json:"id" example:"chunk-06f1q2s3t4v5a6b7c8d9"`
	Position int    `json:"position" example:"0"`
	From     int    `json:"from" doc:"Start offset in text, in UTF-16 code units." example:"0"`
	To       int    `json:"to" doc:"End offset in text." example:"812"`
	Page     int    `json:"page" doc:"1 is the first page; 0 if the format has no pages."`
	Section  string `json:"section"`
	URL      string `json:"url"`
	Place    string `json:"place" doc:"Page, sections and lines as a text to show." example:"page 4 · Returns"`
}

// Text returns a part of a source's text. Errors are those of the store, with
// NOT_FOUND for an unknown source or chunk.
func Text(ctx context.Context, db *store.DB, sourceID string, window Window) (SourceText, error) {
	var is agent.Issues
	is.Check(window.Offset >= 0, "offset", "must be at least 0")
	is.Check(window.Bytes >= 0 && window.Bytes <= MaxWindow, "bytes", "must be from 1 to 1048576")
	if window.Bytes == 0 {
		window.Bytes = DefaultWindow
	}
	if err := is.Err(); err != nil {
		return SourceText{}, err
	}
	return store.Read(ctx, db, func(tx *store.Tx) (SourceText, error) {
		l := layout{wanted: window.ChunkID, at: -1}
		if err := tx.EachChunk(sourceID, 0, math.MaxInt32, l.add); err != nil {
			return SourceText{}, err
		}
		if window.ChunkID != "" && l.at < 0 {
			return SourceText{}, agent.NotFound("chunk", window.ChunkID)
		}
		out := SourceText{
			Total:  l.total,
			From:   min(window.Offset, l.total),
			Chunks: []TextChunk{},
		}
		first, last := l.window(window)
		if first > last {
			return out, nil
		}
		if window.ChunkID != "" {
			out.From = l.places[first].from
		}
		return out, l.join(tx, sourceID, first, last, &out)
	})
}

// place is the position of a chunk in the whole text of its source.
type place struct {
	position int
	from, to int // in UTF-16 code units
	shared   int // bytes shared with the previous chunk
	bytes    int // bytes that it adds
}

// layout holds the positions of all chunks of a source.
type layout struct {
	wanted string // id of a chunk
	at     int    // its index in places; -1 if it does not exist
	places []place
	total  int // in UTF-16 code units
	before agent.Chunk
}

func (l *layout) add(chunk agent.Chunk) {
	p := place{
		position: chunk.Position,
		from:     l.total,
		bytes:    len(chunk.Content),
	}
	if len(l.places) > 0 {
		if p.shared = shared(l.before, chunk); p.shared == 0 {
			p.from += len(betweenChunks)
		}
		p.from -= utf16Len(chunk.Content[:p.shared])
		p.bytes -= p.shared
	}
	p.to = p.from + utf16Len(chunk.Content)
	if chunk.ID == l.wanted {
		l.at = len(l.places)
	}
	l.places, l.total, l.before = append(l.places, p), p.to, chunk
}

// shared returns how many bytes at the start of a chunk are the end of the
// previous one.
func shared(before, c agent.Chunk) int {
	if before.Metadata.URL != c.Metadata.URL {
		return 0
	}
	if n := overlap(before.Content, c.Content); n >= minOverlap {
		return n
	}
	return 0
}

// window returns the first and the last chunk of a part of the text.
func (l *layout) window(w Window) (first, last int) {
	if w.ChunkID == "" {
		for first < len(l.places) && l.places[first].to <= w.Offset {
			first++
		}
		return first, l.extend(first, w.Bytes)
	}
	first = l.at
	for remaining := (w.Bytes - l.places[first].bytes) / 2; first > 0 && l.places[first-1].bytes <= remaining; first-- {
		remaining -= l.places[first-1].bytes
	}
	return first, max(l.extend(first, w.Bytes), l.at)
}

// extend returns the last chunk, starting with first, that fits into a number
// of bytes; the first always fits.
func (l *layout) extend(first, bytes int) (last int) {
	last = first - 1
	for last+1 < len(l.places) && (last < first || l.places[last+1].bytes <= bytes) {
		last++
		bytes -= l.places[last].bytes
	}
	return last
}

// join concatenates the text of chunks, starting at out.From.
func (l *layout) join(tx *store.Tx, sourceID string, first, last int, out *SourceText) error {
	var text strings.Builder
	if gap := l.places[first].from - out.From; gap > 0 { // it starts between two chunks
		text.WriteString(betweenChunks[len(betweenChunks)-gap:])
	}
	index := first
	err := tx.EachChunk(
		sourceID,
		l.places[first].position,
		l.places[last].position,
		func(chunk agent.Chunk) {
			place := l.places[index]
			if index > first && place.shared == 0 {
				text.WriteString(betweenChunks)
			}
			if index > first {
				text.WriteString(chunk.Content[place.shared:])
			} else {
				text.WriteString(chunk.Content)
			}
			out.Chunks = append(out.Chunks, TextChunk{
				ID:       chunk.ID,
				Position: chunk.Position,
				From:     max(place.from-out.From, 0),
				To:       place.to - out.From,
				Page:     chunk.Metadata.Page,
				Section:  chunk.Metadata.Section,
				URL:      chunk.Metadata.URL,
				Place:    chunk.Metadata.Place,
			})
			index++
		},
	)
	out.Text = trimUTF16(text.String(), out.From-l.places[first].from)
	return err
}
