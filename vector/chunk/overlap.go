package chunk

import (
	"unicode/utf8"

	"satchel/vector/document"
)

// overlapFrom returns where the chunk after the one from start to s.done
// starts: up to Overlap characters before s.done, at the best position to start
// reading. An overlap does not cross a heading, and contains only whole
// records, rows, items and lines of code.
func (splitter *splitter) overlapFrom(start, end int) int {
	overlap := min(splitter.Overlap, splitter.Size-splitter.minNew)
	if overlap == 0 {
		return splitter.done
	}
	from := retreat(splitter.text, start, splitter.done, overlap)
	if from == start { // the whole chunk would be repeated
		for from += (splitter.done - start + 1) / 2; !utf8.RuneStart(splitter.text[from]); from++ {
		}
	}
	at := splitter.overlapStart(from)
	if at <= start ||
		at >= splitter.done ||
		splitter.windowEnd(splitter.headAt(at), at, end) < min(splitter.done+splitter.minNew, end) {
		return splitter.done
	}
	return at
}

// overlapStart returns the best position to start a chunk, from an offset on and before
// s.done.
func (splitter *splitter) overlapStart(from int) int {
	if at := splitter.firstBoundary(atHeading, atHeading, from, splitter.done); at >= 0 {
		return at
	}
	index := splitter.blockAt(from)
	if index >= len(splitter.doc.Blocks) {
		return splitter.done
	}
	block := splitter.doc.Blocks[index]
	cutInLine := splitter.done < int(block.End) &&
		splitter.done > 0 &&
		splitter.text[splitter.done-1] != '\n'
	strongest, weakest, within := atHeading, atSentence, from+(splitter.done-from)/2
	switch {
	case cutInLine:
	case block.Kind == document.KindRow:
		weakest, within = atBlock, splitter.done
	case block.Kind != document.KindParagraph && block.Kind != document.KindHeading:
		weakest, within = atRow, splitter.done
	}
	if at := splitter.firstBoundary(strongest, weakest, from, within); at >= 0 {
		return at
	}
	if within == splitter.done {
		return splitter.done
	}
	// A shorter overlap, or none, is better than half a sentence.
	if at := splitter.firstBoundary(strongest, weakest, within, splitter.done); at >= 0 {
		return at
	}
	if at := splitter.firstBoundary(atHeading, atWord, from, splitter.done); at >= 0 && at < splitter.done {
		return at
	}
	return graphemeBefore(splitter.text, from)
}
