package chunk

import (
	"slices"
	"strings"

	"satchel/agent"
	"satchel/vector/document"
)

// maxLaterHeadings limits how many headings a chunk lists.
const maxLaterHeadings = 15

// laterHeadings returns the headings that start in blocks from i on, before cut. Of
// consecutive headings it returns the innermost.
func (splitter *splitter) laterHeadings(i, cut int) (list []string) {
	blocks := splitter.doc.Blocks
	for ; i < len(blocks) &&
		int(blocks[i].Start) < cut &&
		len(list) < maxLaterHeadings; i++ {
		if blocks[i].Kind != document.KindHeading {
			continue
		}
		i = splitter.lastOfHeadings(i, cut)
		if path := splitter.doc.Path(i); !slices.Contains(list, path) {
			list = append(list, path)
		}
	}
	return list
}

// pageStarts returns where the pages of the blocks before cut start in a content that
// begins at an offset, if there are several.
func pageStarts(blocks []document.Block, start, cut int) (list []agent.PageStart) {
	for i := 1; i < len(blocks) && int(blocks[i].Start) < cut; i++ {
		if blocks[i].Page == blocks[i-1].Page {
			continue
		}
		if list == nil {
			list = []agent.PageStart{{Page: int(blocks[0].Page)}}
		}
		list = append(list, agent.PageStart{Page: int(blocks[i].Page), Offset: int(blocks[i].Start) - start})
	}
	return list
}

// lineCount counts the lines of a file up to an offset in its text.
type lineCount struct {
	offset int
	ends   int // line ends before offset
	joined int // of Document.Joined, those up to offset
}

// at returns the number of the line at an offset that is not before that of the
// last call. 1 is the first line.
func (c *lineCount) at(doc *document.Document, offset int) int {
	c.ends += strings.Count(doc.Text[c.offset:offset], "\n")
	c.offset = offset
	for c.joined < len(doc.Joined) && int(doc.Joined[c.joined]) <= offset {
		c.joined++
	}
	return 1 + c.ends + c.joined
}
