package document

import (
	"strconv"
	"strings"
)

// listLevels is the number of levels that a list has in Word.
const listLevels = 9

// docxNumbering numbers the items of a document's lists.
type docxNumbering struct {
	lists  map[string]*docxList // by numId
	counts map[string]*[listLevels]int
}

// docxList is one list. Lists with the same definition continue each other's
// numbers, unless one overrides the start of a level.
type docxList struct {
	kind     string
	levels   [listLevels]docxLevel
	restarts [listLevels]*xmlValue
}

type docxLevel struct {
	Index  int       `xml:"ilvl,attr"`
	Start  *xmlValue `xml:"start"`
	Format xmlValue  `xml:"numFmt"`
	Text   xmlValue  `xml:"lvlText"`
}

func readNumbering(part []byte) docxNumbering {
	var doc struct {
		Kinds []struct {
			ID     string      `xml:"abstractNumId,attr"`
			Levels []docxLevel `xml:"lvl"`
		} `xml:"abstractNum"`
		Lists []struct {
			ID        string   `xml:"numId,attr"`
			Kind      xmlValue `xml:"abstractNumId"`
			Overrides []struct {
				Index int       `xml:"ilvl,attr"`
				Start *xmlValue `xml:"startOverride"`
			} `xml:"lvlOverride"`
		} `xml:"num"`
	}
	unmarshalPart(part, &doc)
	numbering := docxNumbering{lists: map[string]*docxList{}, counts: map[string]*[listLevels]int{}}
	kinds := map[string][listLevels]docxLevel{}
	for _, kind := range doc.Kinds {
		var levels [listLevels]docxLevel
		for _, level := range kind.Levels {
			if level.Index >= 0 && level.Index < listLevels {
				levels[level.Index] = level
			}
		}
		kinds[kind.ID] = levels
	}
	for _, l := range doc.Lists {
		list := &docxList{kind: l.Kind.Val, levels: kinds[l.Kind.Val]}
		for _, o := range l.Overrides {
			if o.Index >= 0 && o.Index < listLevels && o.Start != nil {
				list.restarts[o.Index] = o.Start
			}
		}
		numbering.lists[l.ID] = list
	}
	return numbering
}

// next counts an item of a list and returns its number as displayed, "" for a
// bullet.
func (n docxNumbering) next(id string, level int) string {
	list := n.lists[id]
	if list == nil {
		return ""
	}
	counts := n.counts[list.kind]
	if counts == nil {
		counts = &[listLevels]int{}
		n.counts[list.kind] = counts
		restart(counts[:])
	}
	switch own := list.restarts[level]; {
	case own != nil:
		counts[level] = startOf(own)
		list.restarts[level] = nil
	case counts[level] == notStarted:
		counts[level] = startOf(list.levels[level].Start)
	default:
		counts[level]++
	}
	restart(counts[level+1:])
	format := list.levels[level].Format.Val
	if format == "bullet" || format == "none" {
		return ""
	}
	text := list.levels[level].Text.Val
	if text == "" {
		text = "%" + strconv.Itoa(level+1) + "."
	}
	for i := 0; i <= level; i++ {
		count := counts[i]
		if count == notStarted { // an outer level without items so far
			count = startOf(list.levels[i].Start)
		}
		text = strings.ReplaceAll(
			text,
			"%"+strconv.Itoa(i+1),
			numeral(list.levels[i].Format.Val, count),
		)
	}
	return strings.TrimSpace(text)
}

// notStarted is the count of a level without items since it was restarted.
const notStarted = -1

func restart(counts []int) {
	for i := range counts {
		counts[i] = notStarted
	}
}

func startOf(v *xmlValue) int {
	return min(max(v.number(1), 0), 1_000_000)
}

// numeral formats a number in one of Word's formats, or in digits if the
// format is uncommon.
func numeral(format string, n int) string {
	switch format {
	case "lowerLetter":
		return strings.ToLower(letters(n))
	case "upperLetter":
		return letters(n)
	case "lowerRoman":
		return strings.ToLower(roman(n))
	case "upperRoman":
		return roman(n)
	}
	return strconv.Itoa(n)
}

// letters returns n as A to Z, AA to ZZ, AAA, as Word does.
func letters(n int) string {
	if n < 1 || n > 26*20 {
		return strconv.Itoa(n)
	}
	return strings.Repeat(string(rune('A'+(n-1)%26)), (n-1)/26+1)
}

func roman(n int) string {
	if n < 1 || n > 3999 {
		return strconv.Itoa(n)
	}
	values := []int{1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1}
	signs := []string{"M", "CM", "D", "CD", "C", "XC", "L", "XL", "X", "IX", "V", "IV", "I"}
	var b strings.Builder
	for i, value := range values {
		for ; n >= value; n -= value {
			b.WriteString(signs[i])
		}
	}
	return b.String()
}
