package client

import "strings"

// diffContext is how many unchanged lines a diff shows around changes.
const diffContext = 2

// maxDiff is how many lines a side may have to be compared line by line.
const maxDiff = 3000

// diff returns the difference of two texts: lines with -, lines with +, and a
// few lines around them. "null" means no text.
func diff(before, after string) string {
	a, b := lines(before), lines(after)
	if len(a) > maxDiff || len(b) > maxDiff {
		return "  (too long to be compared line by line)\n"
	}
	return strings.Join(nearChanges(markedLines(a, b)), "")
}

func lines(text string) []string {
	if strings.TrimSpace(text) == "null" {
		return nil
	}
	return strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
}

// markedLines returns all lines of both texts in order, each marked.
func markedLines(texts, b []string) []string {
	common := make([][]uint16, len(texts)+1) // lengths of the longest common subsequences of the rests
	for i := range common {
		common[i] = make([]uint16, len(b)+1)
	}
	for i := len(texts) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if texts[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	var out []string
	mark := func(sign, line string) {
		out = append(out, sign+" "+strings.TrimSuffix(line, "\n")+"\n")
	}
	i, j := 0, 0
	for i < len(texts) || j < len(b) {
		switch {
		case i < len(texts) && j < len(b) && texts[i] == b[j]:
			mark(" ", texts[i])
			i, j = i+1, j+1
		case j == len(b) || i < len(texts) && common[i+1][j] >= common[i][j+1]:
			mark("-", texts[i])
			i++
		default:
			mark("+", b[j])
			j++
		}
	}
	return out
}

// nearChanges drops unchanged lines that are far from any change.
func nearChanges(all []string) []string {
	keep := make([]bool, len(all))
	for i, line := range all {
		if line[0] == ' ' {
			continue
		}
		for j := max(0, i-diffContext); j <= min(len(all)-1, i+diffContext); j++ {
			keep[j] = true
		}
	}
	var out []string
	for i, line := range all {
		switch {
		case keep[i]:
			out = append(out, line)
		case i > 0 && keep[i-1]:
			out = append(out, "  …\n")
		}
	}
	return out
}
