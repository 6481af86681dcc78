package chunk

import (
	"unicode/utf8"

	"satchel/vector/document"
)

// overlapFrom returns where the chunk after the one from start to s.done
// starts: up to Overlap characters before s.done, at the best position to start
// reading. An overlap does not cross a heading, and contains only whole
// records, rows, items and lines of code.
func (s *splitter) overlapFrom(start, end int) int {
	overlap := min(s.Overlap, s.Size-s.minNew)
	if overlap == 0 {
		return s.done
	}
	from := retreat(s.text, start, s.done, overlap)
	if from == start { // the whole chunk would be repeated
		for from += (s.done - start + 1) / 2; !utf8.RuneStart(s.text[from]); from++ {
		}
	}
	at := s.overlapStart(from)
	if at <= start ||
		at >= s.done ||
		s.windowEnd(s.headAt(at), at, end) < min(s.done+s.minNew, end) {
		return s.done
	}
	return at
}

// overlapStart returns the best position to start a chunk, from an offset on and before
// s.done.
func (s *splitter) overlapStart(from int) int {
	if at := s.firstBoundary(atHeading, atHeading, from, s.done); at >= 0 {
		return at
	}
	i := s.blockAt(from)
	if i >= len(s.doc.Blocks) {
		return s.done
	}
	b := s.doc.Blocks[i]
	cutInLine := s.done < int(b.End) &&
		s.done > 0 &&
		s.text[s.done-1] != '\n'
	strongest, weakest, within := atHeading, atSentence, from+(s.done-from)/2
	switch {
	case cutInLine:
	case b.Kind == document.KindRow:
		weakest, within = atBlock, s.done
	case b.Kind != document.KindParagraph && b.Kind != document.KindHeading:
		weakest, within = atRow, s.done
	}
	if at := s.firstBoundary(strongest, weakest, from, within); at >= 0 {
		return at
	}
	if within == s.done {
		return s.done
	}
	// A shorter overlap, or none, is better than half a sentence.
	if at := s.firstBoundary(strongest, weakest, within, s.done); at >= 0 {
		return at
	}
	if at := s.firstBoundary(atHeading, atWord, from, s.done); at >= 0 && at < s.done {
		return at
	}
	return graphemeBefore(s.text, from)
}
